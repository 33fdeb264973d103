//! Values with the ranges in which they lie, one below the other: estimates with intervals, or boxes of many values.

use super::canvas::{Anchor, Canvas, Picture, width_of};
use super::scale::{Scale, Stretch};
use crate::text::{put, shortened};

/// Values with their ranges over a common axis. Where few values lie far from all others, the axis is broken.
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
#[derive(Clone, Debug, Default)]
pub struct Range {
    /// Whose it is.
    pub label: String,
    /// The value.
    pub value: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The middle half, drawn as a box with the value as its line.
    pub half: Option<(f64, f64)>,
}

impl Range {
    /// The median of some values, with the middle half and both ends; nothing if there are none.
    pub fn of_values(label: impl Into<String>, values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (&low, &high) = (sorted.first()?, sorted.last()?);
        let half = Some((quantile(&sorted, 0.25), quantile(&sorted, 0.75)));
        Some(Self { label: label.into(), value: quantile(&sorted, 0.5), low, high, half })
    }
}

/// The value below which a share of sorted values lies, between two of them where it falls there.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

const WIDTH: f64 = 860.0;
const NARROW: f64 = 340.0;
const ROW: f64 = 22.0;
const TOP: f64 = 6.0;
/// Characters of a label that there is room for.
const LABEL: usize = 30;
const NARROW_LABEL: usize = 14;
/// Pixels of a break in the axis.
const BREAK: f64 = 26.0;

/// Ranges that are together at least this number of times as wide as a gap hide it.
const WIDE_RANGES: f64 = 3.0;

/// From the smallest to the largest of some values.
fn extent(values: &[f64]) -> f64 {
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (high - values.iter().copied().fold(f64::INFINITY, f64::min)).max(0.0)
}

/// One axis, or two with a break between them.
struct Axis(Vec<(f64, Scale)>);

impl Axis {
    /// Breaks where a gap between ranges is wider than all values on both sides of it together: there they could not be
    /// told apart. A gap that is small beside wide ranges breaks nothing.
    fn over(rows: &[Range], left: f64, right: f64) -> Self {
        let finite = rows.iter().filter(|row| row.value.is_finite());
        let mut ranges: Vec<(f64, f64)> =
            finite.map(|row| (row.low.min(row.value), row.high.max(row.value))).collect();
        ranges.retain(|(low, high)| low.is_finite() && high.is_finite());
        let values: Vec<f64> = rows.iter().map(|row| row.value).filter(|value| value.is_finite()).collect();
        ranges.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut gap: Option<(f64, usize)> = None;
        let mut reached = ranges.first().map_or(0.0, |first| first.1);
        for (at, (low, high)) in ranges.iter().enumerate().skip(1) {
            if gap.is_none_or(|(widest, _)| low - reached > widest) {
                gap = Some((low - reached, at));
            }
            reached = reached.max(*high);
        }
        let span = |part: &[(f64, f64)]| {
            let ends = part.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), range| {
                (range.0.min(low), range.1.max(high))
            });
            (ends.1 - ends.0).max(0.0)
        };
        let ends =
            |part: &[(f64, f64)]| part.iter().flat_map(|&(low, high)| [low, high]).collect::<Vec<f64>>();
        if let Some((width, at)) = gap {
            let (below, above) = ranges.split_at(at);
            let rest = span(below) + span(above);
            let is_below = |value: &f64| *value < above[0].0;
            let (low, high): (Vec<f64>, Vec<f64>) = values.into_iter().partition(is_below);
            let told_apart = extent(&low) + extent(&high);
            let hides_values = told_apart > 0.0 && width > told_apart && width > rest / WIDE_RANGES;
            if rest > 0.0 && (width > rest || hides_values) {
                // As much room as each part needs, but some for both.
                let share = (span(below) / rest).clamp(0.2, 0.8);
                let middle = left + share * (right - left - BREAK);
                let scale = |part, from, to| Scale::over(ends(part).into_iter(), from, to, Stretch::Linear);
                let first = scale(below, left, middle);
                let second = scale(above, middle + BREAK, right);
                return Self(vec![(f64::NEG_INFINITY, first), (above[0].0, second)]);
            }
        }
        Self(vec![(f64::NEG_INFINITY, Scale::over(ends(&ranges).into_iter(), left, right, Stretch::Linear))])
    }

    fn at(&self, value: f64) -> f64 {
        let part = self.0.iter().rev().find(|(from, _)| value >= *from).unwrap_or(&self.0[0]);
        part.1.at(value)
    }
}

impl Ranges<'_> {
    /// The chart, with a drawing for narrow screens.
    pub fn draw(&self) -> Picture {
        let picture = self.drawn(WIDTH, LABEL);
        let narrow = self.drawn(NARROW, NARROW_LABEL).svg;
        Picture { narrow: Some(narrow), ..picture }
    }

    fn drawn(&self, width: f64, label: usize) -> Picture {
        let labels: Vec<String> = self.rows.iter().map(|row| shortened(&row.label, label)).collect();
        let widest = labels.iter().map(|label| width_of(label)).fold(20.0, f64::max);
        let (left, right) = (16.0 + widest, width - 26.0);
        let bottom = TOP + ROW * self.rows.len() as f64;
        let axis = Axis::over(&self.rows, left + 8.0, right);
        let mut canvas = Canvas::new(width, bottom + 44.0);
        self.axes(&mut canvas, &axis, (left, right, bottom), width);
        for (at, (row, label)) in self.rows.iter().zip(&labels).enumerate() {
            let y = TOP + ROW * (at as f64 + 0.5);
            canvas.text("", left - 6.0, y + 4.0, Anchor::End, label);
            if row.low.is_finite() && row.high.is_finite() {
                canvas.path("curve k0", &format!("M{:.1} {y:.1}H{:.1}", axis.at(row.low), axis.at(row.high)));
            }
            match row.half {
                Some((from, to)) if row.value.is_finite() => {
                    let (from, to, middle) = (axis.at(from), axis.at(to), axis.at(row.value));
                    canvas.rect("box", from, y - 7.0, (to - from).max(1.0), 14.0);
                    canvas.path("curve k1", &format!("M{middle:.1} {:.1}v14", y - 7.0));
                }
                _ if row.value.is_finite() => canvas.circle("f0", axis.at(row.value), y, 4.5),
                _ => {}
            }
        }
        canvas.finish(self.name, self.title, self.description)
    }

    fn axes(&self, canvas: &mut Canvas, axis: &Axis, (left, right, bottom): (f64, f64, f64), width: f64) {
        let ticks = if width > 500.0 { 8 } else { 3 };
        let mut line = format!("M{left:.1} {bottom:.1}");
        let mut written = f64::NEG_INFINITY;
        for (part, (_, scale)) in axis.0.iter().enumerate() {
            if part > 0 {
                // A zigzag where values are left out.
                let from = scale.start() - BREAK;
                put!(line, "H{:.1}l4 -6 6 12 6 -12 4 6", from + 3.0);
            }
            for (tick, label) in scale.ticks((ticks / axis.0.len()).max(1)) {
                let x = scale.at(tick);
                canvas.path("grid", &format!("M{x:.1} {TOP:.1}V{bottom:.1}"));
                if x - width_of(&label) / 2.0 > written + 4.0 && x + width_of(&label) / 2.0 < width {
                    canvas.text("note", x, bottom + 16.0, Anchor::Middle, &label);
                    written = x + width_of(&label) / 2.0;
                }
            }
        }
        put!(line, "H{right:.1}");
        canvas.path("axis", &line);
        let across =
            if axis.0.len() > 1 { format!("{} (axis broken)", self.across) } else { self.across.to_owned() };
        let most = (width / 7.5) as usize;
        canvas.text("note", width / 2.0, bottom + 36.0, Anchor::Middle, &shortened(&across, most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(label: &str, value: f64) -> Range {
        Range { label: label.to_owned(), value, low: value - 5.0, high: value + 9.0, half: None }
    }

    #[test]
    fn every_row_has_its_name_its_range_and_its_value() {
        let rows = vec![row("<one>", 3.0), row("other", -40.0), row("unknown", f64::NAN)];
        let chart = Ranges { name: "n", title: "t", description: "d", across: "Elo", rows };
        let svg = chart.draw().svg;
        assert!(svg.contains("&lt;one&gt;") && svg.contains("other"));
        assert_eq!((svg.matches("<circle").count(), svg.matches("curve").count()), (2, 2), "{svg}");
    }

    #[test]
    fn an_outlier_breaks_the_axis_and_the_others_can_be_told_apart() {
        let chart = |values: &[f64]| {
            let rows = values.iter().map(|&value| row("", value)).collect();
            Ranges { name: "n", title: "t", description: "d", across: "Elo", rows }
        };
        let with = chart(&[60.0, 40.0, 20.0, -520.0]);
        let svg = with.draw().svg;
        assert!(svg.contains("axis broken") && svg.contains("l4 -6 6 12 6 -12 4 6"), "{svg}");
        let axis = Axis::over(&with.rows, 0.0, 800.0);
        assert!(axis.at(60.0) - axis.at(40.0) > 100.0, "{}", axis.at(60.0) - axis.at(40.0));
        assert!(axis.at(-520.0) < axis.at(20.0));
        assert!(!chart(&[60.0, 40.0, 20.0, -20.0]).draw().svg.contains("axis broken"));
    }

    #[test]
    fn wide_intervals_do_not_hide_an_outlier() {
        let chart = |rows: &[(f64, f64)]| {
            let range = |&(value, doubt): &(f64, f64)| Range {
                low: value - doubt,
                high: value + doubt,
                ..row("", value)
            };
            let rows = rows.iter().map(range).collect();
            Ranges { name: "n", title: "t", description: "d", across: "Elo", rows }.draw().svg
        };
        // The ratings of examples/tournament.toml.
        let rated = [(570.0, 130.0), (423.0, 127.0), (48.0, 128.0), (-1041.0, 355.0)];
        assert!(chart(&rated).contains("axis broken"));
        assert!(
            !chart(&[(10.0, 4.0), (0.0, 4.0)]).contains("axis broken"),
            "two values are told apart anyway"
        );
        assert!(
            !chart(&[(30.0, 12.0), (29.0, 12.0), (0.0, 12.0)]).contains("axis broken"),
            "the gap is narrow"
        );
    }

    #[test]
    fn a_box_is_the_middle_half() {
        let range = Range::of_values("x", [4.0, 1.0, f64::NAN, 3.0, 2.0, 5.0].into_iter()).unwrap();
        assert_eq!((range.low, range.half, range.value, range.high), (1.0, Some((2.0, 4.0)), 3.0, 5.0));
        assert!(Range::of_values("x", [f64::NAN].into_iter()).is_none());
        let chart = Ranges { name: "n", title: "t", description: "d", across: "", rows: vec![range] };
        assert_eq!(chart.draw().svg.matches("class=\"box\"").count(), 1);
    }
}
