//! Species, and those that belong to none.

/// What becomes of an individual in no dense region.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Noise {
    /// It belongs to no species. The default: an outlier is mostly what a last mutation moved away, and
    /// it has no kind among which it could prove itself.
    #[default]
    Drop,
    /// It is a species of its own, numbered after the clusters.
    Own,
    /// It belongs to the species of the nearest core point; of several as near to that of the first.
    Nearest,
}

/// The individuals of a population by species.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Species {
    labels: Vec<Option<usize>>,
    members: Vec<Vec<usize>>,
}

impl Species {
    /// Of labels from 0 on; an unused number in between is a species without members.
    pub(crate) fn new(labels: Vec<Option<usize>>) -> Self {
        let count = labels.iter().flatten().max().map_or(0, |last| last + 1);
        let mut members = vec![vec![]; count];
        for (point, label) in labels.iter().enumerate() {
            if let Some(label) = label {
                members[*label].push(point);
            }
        }
        Self { labels, members }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.members.len()
    }

    /// The species of an individual, if it has one.
    pub fn of(&self, individual: usize) -> Option<usize> {
        self.labels.get(individual).copied().flatten()
    }

    /// The individuals of each species, in order.
    pub fn members(&self) -> &[Vec<usize>] {
        &self.members
    }

    /// The individuals of no species, in order.
    pub fn outsiders(&self) -> impl Iterator<Item = usize> {
        self.labels.iter().enumerate().filter_map(|(individual, label)| label.is_none().then_some(individual))
    }
}
