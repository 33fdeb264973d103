//! Rows and columns of coloured cells: islands by epochs, senders by receivers.

use super::canvas::{Anchor, Canvas, Entry, Mark, Picture, legend_height, width_of};
use crate::text::{count, number, put};

/// Cells of different kinds.
#[derive(Clone, Debug)]
pub struct Grid<'a> {
    /// The name of its file.
    pub name: &'a str,
    /// What it shows.
    pub title: &'a str,
    /// What one sees, in words.
    pub description: &'a str,
    /// What goes to the right, and what its first and last cells stand for.
    pub across: (&'a str, (u64, u64)),
    /// What goes down, and how many there are: more than rows where a row stands for several.
    pub down: (&'a str, u64),
    /// What the edges of the first and of the last column, and of the first and of the last row, stand for, where these are
    /// ranges of values. Otherwise columns and rows are counted.
    pub edges: Option<[(f64, f64); 2]>,
    /// The kinds of cells: a class of the style sheet or a colour that begins with `#`, and what it means.
    pub kinds: Vec<(String, String)>,
    /// The cells row by row, all rows alike in length: the number of their kind, or [`NOTHING`]. Of many rows only every
    /// [`rows_together`]-th is drawn; the others may be empty.
    pub cells: Vec<Vec<u8>>,
}

/// A cell that is not drawn.
pub const NOTHING: u8 = u8::MAX;

/// Colours from little to much that people with any colour vision see in the same order.
pub const LEVELS: [&str; 10] = [
    "#00224e", "#1a3a6c", "#3f4c6b", "#5b5f6e", "#757575", "#908c77", "#ada470", "#cbbd62", "#e9d848",
    "#fff27a",
];

/// The level of a value between two others.
pub fn level(value: f64, low: f64, high: f64) -> u8 {
    if !value.is_finite() {
        return NOTHING;
    }
    let share = if high > low { (value - low) / (high - low) } else { 1.0 };
    (share.clamp(0.0, 1.0) * LEVELS.len() as f64).min(LEVELS.len() as f64 - 1.0) as u8
}

/// The kinds of a grid whose cells are levels between two values: only the first, the last and two between are named.
pub fn levels(low: f64, high: f64) -> Vec<(String, String)> {
    let last = LEVELS.len() - 1;
    let name = |at: usize| match at {
        0 | 3 | 6 | 9 => number(rounded(low + (high - low) * at as f64 / last as f64)),
        _ => String::new(),
    };
    LEVELS.iter().enumerate().map(|(at, colour)| ((*colour).to_owned(), name(at))).collect()
}

fn rounded(value: f64) -> f64 {
    if value.abs() >= 100.0 { value.round() } else { (value * 1000.0).round() / 1000.0 }
}

/// Cells that are drawn at most in a direction; more are drawn together.
const MOST: usize = 400;
const WIDTH: f64 = 860.0;
/// About this number of places are named on the axis that goes to the right.
const TICKS: u64 = 12;
const RIGHT: f64 = 14.0;
/// Steps between the values that are named on an axis of ranges.
const STEPS: usize = 5;

/// How many rows are drawn as one, where there are so many: the first of them.
pub fn rows_together(rows: usize) -> usize {
    rows.div_ceil(MOST).max(1)
}

impl Grid<'_> {
    /// The grid.
    pub fn draw(&self) -> Picture {
        let entries: Vec<Entry<'_>> = self.kinds.iter().map(|kind| entry(kind)).collect();
        let legend = legend_height(&entries, WIDTH - 20.0);
        let (rows, columns) = (self.cells.len(), self.cells.first().map_or(0, Vec::len));
        let tall = (360.0 / rows.max(1) as f64).clamp(1.2, 22.0);
        let tall = if rows > MOST { 480.0 / rows as f64 } else { tall };
        let height = tall * rows as f64;
        let widest = match self.edges {
            Some([_, down]) => (0..=STEPS).map(|at| width_of(&named(down, at))).fold(0.0, f64::max),
            None => width_of(&self.down.1.saturating_sub(1).to_string()),
        };
        let left = 30.0 + widest;
        let wide = (WIDTH - left - RIGHT) / columns.max(1) as f64;
        let mut canvas = Canvas::new(WIDTH, legend + height + 48.0);
        canvas.legend(&entries, 10.0, 0.0, WIDTH - 20.0);
        let origin = (left, legend + 6.0);
        for (number, (style, _)) in self.kinds.iter().enumerate() {
            let d = self.cells_of(number as u8, origin, (wide, tall));
            if style.starts_with('#') { canvas.fill(style, &d) } else { canvas.path(style, &d) }
        }
        let size = (wide * columns as f64, height);
        match self.edges {
            Some(edges) => range_labels(&mut canvas, origin, size, edges),
            None => self.labels(&mut canvas, origin, size),
        }
        canvas.text("note", left + size.0 / 2.0, origin.1 + height + 34.0, Anchor::Middle, self.across.0);
        canvas.upright("note", 11.0, origin.1 + height / 2.0, self.down.0);
        canvas.finish(self.name, self.title, self.description)
    }

    /// All cells of a kind as one path, neighbours in a row together.
    fn cells_of(&self, kind: u8, (left, top): (f64, f64), (wide, tall): (f64, f64)) -> String {
        let mut d = String::new();
        // A hair of overlap keeps the paper from shining through between rows.
        let height = if tall > 4.0 { tall - 1.0 } else { tall + 0.1 };
        let step = rows_together(self.cells.len());
        for (row, cells) in self.cells.iter().enumerate().step_by(step) {
            let mut column = 0;
            for run in cells.chunk_by(|one, other| one == other) {
                if run[0] == kind {
                    let (x, y) = (left + column as f64 * wide, top + row as f64 * tall);
                    let (width, height) = (run.len() as f64 * wide, height + (step - 1) as f64 * tall);
                    put!(d, "M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
                }
                column += run.len();
            }
        }
        d
    }

    fn labels(&self, canvas: &mut Canvas, (left, top): (f64, f64), (width, height): (f64, f64)) {
        let things = self.down.1;
        let tall = height / things.max(1) as f64;
        let every = round_up((15.0 / tall).ceil() as usize);
        for thing in (0..things).step_by(every) {
            let y = top + (thing as f64 + 0.5) * tall + 4.0;
            canvas.text("note", left - 6.0, y, Anchor::End, &thing.to_string());
        }
        let (first, last) = self.across.1;
        let bottom = top + height;
        let all = last.saturating_sub(first).max(1);
        let columns = self.cells.first().map_or(0, Vec::len) as u64;
        // A column that stands for one thing is named below its middle; otherwise values stand at the edges.
        let middle = if columns == all { 0.5 } else { 0.0 };
        let every = round_up(all.div_ceil(TICKS) as usize) as u64;
        for at in (0..=all).step_by(every as usize).filter(|&at| middle == 0.0 || at < all) {
            let x = left + width * (at as f64 + middle) / all as f64;
            let anchor = match at {
                0 if middle == 0.0 => Anchor::Start,
                at if at == all => Anchor::End,
                _ => Anchor::Middle,
            };
            canvas.text("note", x, bottom + 16.0, anchor, &count(first + at));
        }
    }
}

/// Names values at equal steps along both edges.
fn range_labels(
    canvas: &mut Canvas,
    (left, top): (f64, f64),
    (width, height): (f64, f64),
    [across, down]: [(f64, f64); 2],
) {
    for at in 0..=STEPS {
        let share = at as f64 / STEPS as f64;
        let anchor = match at {
            0 => Anchor::Start,
            STEPS => Anchor::End,
            _ => Anchor::Middle,
        };
        canvas.text("note", left + width * share, top + height + 16.0, anchor, &named(across, at));
        canvas.text("note", left - 6.0, top + height * share + 4.0, Anchor::End, &named(down, at));
    }
}

/// The value at a step of a range.
fn named((low, high): (f64, f64), at: usize) -> String {
    number(rounded(low + (high - low) * at as f64 / STEPS as f64))
}

fn entry((style, label): &(String, String)) -> Entry<'_> {
    let mark = if style.starts_with('#') { Mark::Colour(style) } else { Mark::Square(style) };
    Entry { mark, label }
}

/// The next of 1, 2, 5, 10, 20, 50 and so on.
fn round_up(least: usize) -> usize {
    let steps = std::iter::successors(Some(1usize), |power| power.checked_mul(10));
    let steps = steps.flat_map(|power| [power, power.saturating_mul(2), power.saturating_mul(5)]);
    steps.into_iter().find(|&step| step >= least).unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_span_the_values() {
        assert_eq!([level(0.0, 0.0, 1.0), level(0.55, 0.0, 1.0), level(1.0, 0.0, 1.0)], [0, 5, 9]);
        assert_eq!(level(f64::NEG_INFINITY, 0.0, 1.0), NOTHING);
        assert_eq!(level(3.0, 3.0, 3.0), 9);
        assert_eq!([round_up(1), round_up(3), round_up(11)], [1, 5, 20]);
    }

    #[test]
    fn columns_are_named_below_their_middles_and_edges_by_round_values() {
        let places = |columns: usize, last: u64| -> Vec<(String, f64)> {
            let kinds = vec![("f0".to_owned(), "one".to_owned())];
            let (across, cells) = (("x", (0, last)), vec![vec![0; columns]]);
            let grid = Grid {
                name: "g",
                title: "t",
                description: "d",
                across,
                down: ("y", 1),
                edges: None,
                kinds,
                cells,
            };
            let svg = grid.draw().svg;
            let texts = svg.split("<text ").filter(|text| text.contains("text-anchor=\"middle\""));
            let named = texts.filter_map(|text| {
                let x = text.split("x=\"").nth(1)?.split('"').next()?.parse().ok()?;
                let label = text.split_once('>')?.1.split('<').next()?;
                label.replace('\u{202f}', "").parse::<u64>().ok().map(|_| (label.to_owned(), x))
            });
            named.collect()
        };
        let eight = places(8, 8);
        assert_eq!(eight.len(), 8, "{eight:?}");
        let wide = eight[1].1 - eight[0].1;
        for (at, (label, x)) in eight.iter().enumerate() {
            assert_eq!(*label, at.to_string());
            assert!((x - eight[0].1 - wide * at as f64).abs() < 0.2, "{eight:?}");
        }
        let many: Vec<String> = places(240, 5000).into_iter().map(|(label, _)| label).collect();
        assert_eq!(many[..2], ["500", "1\u{202f}000"].map(str::to_owned), "{many:?}");
    }

    #[test]
    fn neighbours_of_a_kind_are_one_stroke() {
        let kinds = vec![("f0".to_owned(), "one".to_owned()), ("f1".to_owned(), "two".to_owned())];
        let cells = vec![vec![0, 0, 0, 1], vec![NOTHING, 1, 1, 1]];
        let across = ("epoch", (0, 4));
        let grid = Grid {
            name: "g",
            title: "t",
            description: "d",
            across,
            down: ("island", 2),
            edges: None,
            kinds,
            cells,
        };
        let svg = grid.draw().svg;
        assert_eq!(svg.matches('z').count(), 3, "{svg}");
    }

    #[test]
    fn rows_that_stand_for_several_things_are_named_by_the_things() {
        let kinds = vec![("f0".to_owned(), "one".to_owned())];
        let (across, cells) = (("from", (0, 1000)), vec![vec![0; 200]; 200]);
        let grid = Grid {
            name: "g",
            title: "t",
            description: "d",
            across,
            down: ("to", 1000),
            edges: None,
            kinds,
            cells,
        };
        let svg = grid.draw().svg;
        let labels = svg.split("<text ").filter(|text| text.contains("text-anchor=\"end\""));
        let label = |text: &str| text.split_once('>')?.1.split('<').next()?.parse::<u64>().ok();
        let named: Vec<u64> = labels.filter_map(label).collect();
        assert_eq!(named.first(), Some(&0), "{named:?}");
        assert_eq!(named.iter().max(), Some(&950), "{named:?}");
    }
}
