//! How a species looks: a colour and a shape, so that either alone distinguishes neighbours.

/// How the members of a species are drawn.
pub(super) struct Marker {
    /// A path around the origin.
    pub(super) shape: &'static str,
    pub(super) colour: &'static str,
}

/// About how far a shape, and what is drawn around it, reaches from its centre.
pub(super) const OUTLINE: f64 = 8.0;

/// Those of no species: a small cross.
pub(super) const NOISE: &str = "M-4-4L4 4M-4 4L4-4";

/// The palette of Okabe and Ito, whose colours differ for every kind of colour vision; its grey is for noise.
const COLOURS: [&str; 7] = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];

/// Circle, square, triangle, diamond, plus, triangle downwards, hexagon, bow tie: one more than colours, so that 56
/// species look different.
const SHAPES: [&str; 8] = [
    "M5.5 0A5.5 5.5 0 1 1-5.5 0A5.5 5.5 0 1 1 5.5 0Z",
    "M-5-5H5V5H-5Z",
    "M0-6.5L6 5H-6Z",
    "M0-7L7 0L0 7L-7 0Z",
    "M-2-6.5H2V-2H6.5V2H2V6.5H-2V2H-6.5V-2H-2Z",
    "M0 6.5L6-5H-6Z",
    "M-6.5 0L-3.3-5.6H3.3L6.5 0L3.3 5.6H-3.3Z",
    "M-6-5.5L6 5.5V-5.5L-6 5.5Z",
];

impl Marker {
    /// That of a species by its number.
    pub(super) fn of(species: usize) -> Self {
        Self { shape: SHAPES[species % SHAPES.len()], colour: COLOURS[species % COLOURS.len()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn fifty_six_species_look_different() {
        let looks: BTreeSet<(&str, &str)> =
            (0..56).map(Marker::of).map(|marker| (marker.shape, marker.colour)).collect();
        assert_eq!(looks.len(), 56);
    }
}
