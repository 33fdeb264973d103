//! Bars of several parts, one upon the other.

use super::canvas::{Anchor, Canvas, Entry, Mark, Picture, legend_height, width_of};
use super::scale::{Scale, Stretch};
use crate::text::put;

/// Stacked bars over a common axis.
#[derive(Clone, Debug)]
pub struct Bars<'a> {
    /// The name of its file.
    pub name: &'a str,
    /// What it shows.
    pub title: &'a str,
    /// What one sees, in words.
    pub description: &'a str,
    /// What goes to the right, with its unit.
    pub across: &'a str,
    /// What goes up, with its unit.
    pub up: &'a str,
    /// The parts of every bar from below: a class of the style sheet, and what it means.
    pub parts: Vec<(&'a str, &'a str)>,
    /// The bars from left to right.
    pub stacks: Vec<Stack>,
}

/// One bar.
#[derive(Clone, Debug)]
pub struct Stack {
    /// What it stands for.
    pub label: String,
    /// How high each of its parts is.
    pub heights: Vec<f64>,
}

const SHEET: (f64, f64) = (860.0, 260.0);

impl Bars<'_> {
    /// The chart.
    pub fn draw(&self) -> Picture {
        let (width, plot) = SHEET;
        let entries: Vec<Entry<'_>> =
            self.parts.iter().map(|(class, label)| Entry { mark: Mark::Square(class), label }).collect();
        let legend = legend_height(&entries, width - 20.0);
        let mut canvas = Canvas::new(width, plot + legend);
        canvas.legend(&entries, 10.0, 0.0, width - 20.0);
        let (top, bottom) = (legend + 10.0, legend + plot - 40.0);
        let sums = self.stacks.iter().map(|stack| stack.heights.iter().sum());
        let up = Scale::over(sums.chain([0.0]), bottom, top, Stretch::Linear);
        let ticks = up.ticks(4);
        let left = 26.0 + ticks.iter().map(|(_, label)| width_of(label)).fold(20.0, f64::max);
        let right = width - 14.0;
        for (tick, label) in ticks {
            let y = up.at(tick);
            canvas.path("grid", &format!("M{left:.1} {y:.1}H{right:.1}"));
            canvas.text("note", left - 6.0, y + 4.0, Anchor::End, &label);
        }
        let wide = (right - left) / self.stacks.len().max(1) as f64;
        self.parts.iter().enumerate().for_each(|(part, (class, _))| {
            canvas.path(class, &self.boxes(part, left, wide, &up));
        });
        self.labels(&mut canvas, left, wide, bottom);
        canvas.text("note", f64::midpoint(left, right), bottom + 34.0, Anchor::Middle, self.across);
        canvas.upright("note", 13.0, f64::midpoint(top, bottom), self.up);
        canvas.finish(self.name, self.title, self.description)
    }

    fn boxes(&self, part: usize, left: f64, wide: f64, up: &Scale) -> String {
        let mut d = String::new();
        let width = (wide * 0.85).clamp(0.5, 60.0);
        for (at, stack) in self.stacks.iter().enumerate() {
            let below: f64 = stack.heights.iter().take(part).sum();
            let (from, to) = (up.at(below), up.at(below + stack.heights.get(part).copied().unwrap_or(0.0)));
            if from - to > 0.05 {
                let x = left + (at as f64 + 0.5) * wide - width / 2.0;
                put!(d, "M{x:.1} {from:.1}V{to:.1}h{width:.1}V{from:.1}z");
            }
        }
        d
    }

    /// As many labels as there is room for.
    fn labels(&self, canvas: &mut Canvas, left: f64, wide: f64, bottom: f64) {
        let longest = self.stacks.iter().map(|stack| width_of(&stack.label)).fold(20.0, f64::max);
        let every = ((longest + 10.0) / wide).ceil().max(1.0) as usize;
        for (at, stack) in self.stacks.iter().enumerate().step_by(every) {
            let x = left + (at as f64 + 0.5) * wide;
            canvas.text("note", x, bottom + 17.0, Anchor::Middle, &stack.label);
        }
    }
}
