//! A board of 8 x 8 whose squares weigh more or less.

use super::canvas::{Anchor, Canvas, Picture};
use crate::text::number;

/// What the squares of a board weigh.
#[derive(Clone, Debug)]
pub struct BoardWeights<'a> {
    /// What it shows.
    pub title: &'a str,
    /// The squares that are weighed: row, column, weight.
    pub squares: Vec<(usize, usize, f64)>,
    /// The weight that is drawn with full colour.
    pub most: f64,
}

const SIDE: f64 = 15.0;

impl BoardWeights<'_> {
    /// The board: blue squares count for the player, orange ones against it.
    pub fn draw(&self) -> Picture {
        let side = 8.0 * SIDE;
        let mut canvas = Canvas::new(side + 2.0, side + 20.0);
        canvas.text("note", 1.0, 12.0, Anchor::Start, self.title);
        let top = 18.0;
        canvas.path("grid", &format!("M1 {top}h{side}v{side}h-{side}z"));
        for &(row, column, weight) in &self.squares {
            let (x, y) = (1.0 + column as f64 * SIDE, top + row as f64 * SIDE);
            let class = if weight < 0.0 { "f1" } else { "f0" };
            let share = (weight.abs() / self.most.max(1e-12)).min(1.0);
            canvas.shade(class, share, (x, y), SIDE - 1.0);
        }
        let strongest = self.squares.iter().map(|square| square.2.abs()).fold(0.0, f64::max);
        let description =
            format!("{} squares, the largest weight is {}", self.squares.len(), number(strongest));
        canvas.finish("weights", self.title, &description)
    }
}
