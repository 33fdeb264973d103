//! Values with the ranges in which they lie, one below the other.

use super::canvas::{Anchor, Canvas, Picture, width_of};
use super::scale::{Scale, Stretch};
use crate::text::shortened;

/// Values with their ranges over a common axis.
#[derive(Clone, Debug)]
pub struct Ranges<'a> {
    /// The name of its file.
    pub name: &'a str,
    /// What it shows.
    pub title: &'a str,
    /// What one sees, in words.
    pub description: &'a str,
    /// What goes to the right, with its unit.
    pub across: &'a str,
    /// The values from above.
    pub rows: Vec<Range>,
}

/// A value and where it may lie.
#[derive(Clone, Debug)]
pub struct Range {
    /// Whose it is.
    pub label: String,
    /// The value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

const WIDTH: f64 = 860.0;
const ROW: f64 = 22.0;
const TOP: f64 = 6.0;
/// Characters of a label that there is room for.
const LABEL: usize = 30;

impl Ranges<'_> {
    /// The chart.
    pub fn draw(&self) -> Picture {
        let labels: Vec<String> = self.rows.iter().map(|row| shortened(&row.label, LABEL)).collect();
        let widest = labels.iter().map(|label| width_of(label)).fold(20.0, f64::max);
        let (left, right) = (16.0 + widest, WIDTH - 26.0);
        let bottom = TOP + ROW * self.rows.len() as f64;
        let ends = self.rows.iter().flat_map(|row| [row.low, row.high, row.value]);
        let scale = Scale::over(ends, left + 8.0, right, Stretch::Linear);
        let mut canvas = Canvas::new(WIDTH, bottom + 44.0);
        for (tick, label) in scale.ticks(8) {
            let x = scale.at(tick);
            canvas.path("grid", &format!("M{x:.1} {TOP:.1}V{bottom:.1}"));
            canvas.text("note", x, bottom + 16.0, Anchor::Middle, &label);
        }
        canvas.path("axis", &format!("M{left:.1} {bottom:.1}H{right:.1}"));
        canvas.text("note", f64::midpoint(left, right), bottom + 36.0, Anchor::Middle, self.across);
        for (at, (row, label)) in self.rows.iter().zip(&labels).enumerate() {
            let y = TOP + ROW * (at as f64 + 0.5);
            canvas.text("", left - 6.0, y + 4.0, Anchor::End, label);
            if row.low.is_finite() && row.high.is_finite() {
                canvas
                    .path("curve k0", &format!("M{:.1} {y:.1}H{:.1}", scale.at(row.low), scale.at(row.high)));
            }
            if row.value.is_finite() {
                canvas.circle("f0", scale.at(row.value), y, 4.5);
            }
        }
        canvas.finish(self.name, self.title, self.description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_its_name_its_range_and_its_value() {
        let row = |label: &str, value: f64| Range {
            label: label.to_owned(),
            value,
            low: value - 5.0,
            high: value + 9.0,
        };
        let rows = vec![row("<one>", 3.0), row("other", -40.0), row("unknown", f64::NAN)];
        let chart = Ranges { name: "n", title: "t", description: "d", across: "Elo", rows };
        let svg = chart.draw().svg;
        assert!(svg.contains("&lt;one&gt;") && svg.contains("other"));
        assert_eq!((svg.matches("<circle").count(), svg.matches("curve").count()), (2, 2), "{svg}");
    }
}
