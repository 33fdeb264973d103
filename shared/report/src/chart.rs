//! Charts as SVG: their colours come from the page's style sheet, so that they suit light and dark and people with any
//! colour vision; each says in words what it shows.

mod bars;
mod board;
mod canvas;
mod grid;
mod lines;
mod network;
mod ranges;
mod scale;

pub use bars::{Bars, Stack};
pub use board::BoardWeights;
pub use canvas::Picture;
pub(crate) use canvas::standalone;
pub use grid::{Grid, LEVELS, NOTHING, level, levels, rows_together};
pub(crate) use lines::curve_class;
pub use lines::{Lines, Series, Size, thinned};
pub use network::{Flow, Network};
pub use ranges::{Range, Ranges};
pub use scale::Stretch;

/// What charts look like.
pub(crate) const STYLE: &str = include_str!("chart.css");

/// Colours that can be distinguished; further series are dashed or pale.
pub const COLOURS: usize = 8;
