//! Curves with bands around them.

use super::COLOURS;
use super::canvas::{Anchor, Canvas, Entry, Mark, Picture, legend_height, width_of};
use super::scale::{Scale, Stretch};
use crate::text::{number, put};

/// Curves over a common axis.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
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
    /// How values are spread upwards.
    pub stretch: Stretch,
    /// How large it is.
    pub size: Size,
    /// The curves.
    pub series: Vec<Series>,
    /// Values that the axes must reach, so that several charts have the same: across and up.
    pub reach: [Vec<f64>; 2],
}

/// How large a chart is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// As wide as a page; narrow screens show a second drawing of it.
    Wide,
    /// Beside something else; narrow screens show a second drawing of it.
    Half,
    /// As wide as a telephone.
    Narrow,
    /// One of several side by side, with axes.
    Small,
    /// One of very many: curves alone.
    Tiny,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// What it is; nothing keeps it out of the legend.
    pub label: String,
    /// The number of its colour; from [`COLOURS`] on curves are dashed.
    pub colour: usize,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// For each point the range around it, if there is one.
    pub band: Vec<(f64, f64)>,
    /// Whether its band is a background to other bands.
    pub faint: bool,
    /// Where the best was found: a ring.
    pub found: Option<(f64, f64)>,
    /// Whether its last value is marked and written beside it.
    pub ends: bool,
}

impl Series {
    /// A curve without a band.
    pub fn curve(label: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), colour, points, band: vec![], faint: false, found: None, ends: false }
    }
}

/// At most this number of some places, evenly spread, the first and the last among them.
pub fn thinned(count: usize, most: usize) -> Vec<usize> {
    if count <= most.max(2) {
        return (0..count).collect();
    }
    (0..most).map(|at| at * (count - 1) / (most - 1)).collect()
}

/// Pixels between the last value of a curve and its number: more than the ring of the best needs.
const BESIDE: f64 = 9.0;

/// Where the curves are, within the sheet.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Size {
    fn sheet(self) -> (f64, f64) {
        match self {
            Self::Wide => (860.0, 320.0),
            Self::Half => (560.0, 320.0),
            Self::Narrow => (340.0, 260.0),
            Self::Small => (280.0, 190.0),
            Self::Tiny => (130.0, 70.0),
        }
    }

    fn ticks(self) -> (usize, usize) {
        match self {
            Self::Wide => (8, 5),
            Self::Half => (6, 5),
            Self::Narrow => (4, 4),
            Self::Small => (3, 3),
            Self::Tiny => (0, 0),
        }
    }
}

impl Lines<'_> {
    /// The chart; one that may be too wide with a drawing for narrow screens.
    pub fn draw(&self) -> Picture {
        let picture = self.drawn();
        if !matches!(self.size, Size::Wide | Size::Half) {
            return picture;
        }
        let narrow = Lines { size: Size::Narrow, ..self.clone() }.drawn().svg;
        Picture { narrow: Some(narrow), ..picture }
    }

    fn drawn(&self) -> Picture {
        let (width, plot) = self.size.sheet();
        let classes: Vec<String> = self.series.iter().map(|series| curve_class(series.colour)).collect();
        let named = self.series.iter().zip(&classes).filter(|(series, _)| !series.label.is_empty());
        let mut entries: Vec<Entry<'_>> =
            named.map(|(series, class)| Entry { mark: Mark::Line(class), label: &series.label }).collect();
        if self.series.iter().any(|series| series.found.is_some()) {
            entries.push(Entry { mark: Mark::Ring("found"), label: "best found here" });
        }
        let entries = if self.is_alone() { entries } else { vec![] };
        let legend = legend_height(&entries, width - 20.0);
        let mut canvas = Canvas::new(width, plot + legend);
        canvas.legend(&entries, 10.0, 0.0, width - 20.0);
        let frame = self.frame(width, legend, plot);
        let across = Scale::over(
            self.points().map(|(x, _)| x).chain(self.reach[0].iter().copied()),
            frame.left,
            frame.right,
            Stretch::Linear,
        );
        let up = self.upwards(frame.bottom, frame.top);
        self.axes(&mut canvas, &frame, &across, &up);
        for series in &self.series {
            draw_band(&mut canvas, series, &across, &up);
        }
        for (series, class) in self.series.iter().zip(&classes) {
            draw_curve(&mut canvas, class, series, &across, &up);
        }
        self.draw_marks(&mut canvas, &across, &up);
        canvas.finish(self.name, self.title, self.description)
    }

    /// Whether it stands alone on a page, with a legend of its own.
    fn is_alone(&self) -> bool {
        matches!(self.size, Size::Wide | Size::Half | Size::Narrow)
    }

    /// The axis upwards: with some room above the highest value, unless the caller says how far it reaches.
    fn upwards(&self, from: f64, to: f64) -> Scale {
        let bands = self.series.iter().flat_map(|series| series.band.iter().flat_map(|&(a, b)| [a, b]));
        let found = self.series.iter().filter_map(|series| series.found).map(|(_, y)| y);
        let values = self.points().map(|(_, y)| y).chain(bands).chain(found);
        let is_free = self.is_alone() && self.reach[1].iter().all(|reach| *reach == 0.0);
        let scale = Scale::over(values.chain(self.reach[1].iter().copied()), from, to, self.stretch);
        if is_free { scale.with_headroom() } else { scale }
    }

    /// A dot at the last value of a curve with its number to the right of it, and rings where the best was found.
    /// Numbers that would stand over each other are left out.
    fn draw_marks(&self, canvas: &mut Canvas, across: &Scale, up: &Scale) {
        let mut taken: Vec<f64> = vec![];
        for (series, (x, y)) in self.last_values() {
            let (left, top) = (across.at(x), up.at(y));
            canvas.circle(&format!("f{}", series.colour % COLOURS), left, top, 3.5);
            if taken.iter().all(|other| (other - top).abs() > 17.0) {
                canvas.text("value", left + BESIDE, top + 4.0, Anchor::Start, &number(y));
                taken.push(top);
            }
        }
        for (x, y) in self.series.iter().filter_map(|series| series.found).filter(|(_, y)| y.is_finite()) {
            canvas.circle("found", across.at(x), up.at(y), 6.0);
        }
    }

    /// The curves whose last values are written, with these. The longest come first, because they would run through the
    /// number of a shorter one at the same height; of those about as long the highest.
    fn last_values(&self) -> Vec<(&Series, (f64, f64))> {
        let last = |series: &Series| series.points.iter().rev().copied().find(|(_, y)| y.is_finite());
        let written = self.series.iter().filter(|series| series.ends);
        let mut values: Vec<_> = written.filter_map(|series| Some((series, last(series)?))).collect();
        let longest = values.iter().map(|(_, (x, _))| *x).fold(0.0, f64::max);
        let tenths = |x: f64| (10.0 * x / longest).round();
        values.sort_by(|(_, (x, y)), (_, (other, below))| {
            tenths(*other).total_cmp(&tenths(*x)).then(below.total_cmp(y))
        });
        values
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.series.iter().flat_map(|series| series.points.iter().copied())
    }

    /// Labels of the axis upwards need as much room as the longest of them, and so do last values to the right.
    fn frame(&self, width: f64, top: f64, plot: f64) -> Frame {
        if self.size == Size::Tiny {
            return Frame { left: 2.0, right: width - 2.0, top: 16.0, bottom: plot - 2.0 };
        }
        let heading = if self.size == Size::Small { 24.0 } else { 10.0 };
        let ticks = self.upwards(1.0, 0.0).ticks(self.size.ticks().1);
        let widest = ticks.iter().map(|(_, label)| width_of(label)).fold(20.0, f64::max);
        let last = self
            .last_values()
            .into_iter()
            .map(|(_, (_, y))| BESIDE + width_of(&number(y)))
            .fold(16.0, f64::max);
        Frame {
            left: 26.0 + widest,
            right: width - 4.0 - last,
            top: top + heading,
            bottom: top + plot - 40.0,
        }
    }

    fn axes(&self, canvas: &mut Canvas, frame: &Frame, across: &Scale, up: &Scale) {
        let Frame { left, right, top, bottom } = *frame;
        if !self.is_alone() {
            canvas.text("name", left, top - 6.0, Anchor::Start, self.title);
        }
        if self.size == Size::Tiny {
            canvas.path("axis", &format!("M{left:.1} {bottom:.1}H{right:.1}"));
            return;
        }
        let (columns, rows) = self.size.ticks();
        for (tick, label) in up.ticks(rows) {
            let y = up.at(tick);
            canvas.path("grid", &format!("M{left:.1} {y:.1}H{right:.1}"));
            canvas.text("note", left - 6.0, y + 4.0, Anchor::End, &label);
        }
        for (tick, label) in across.ticks(columns) {
            let x = across.at(tick);
            canvas.path("axis", &format!("M{x:.1} {bottom:.1}v4"));
            canvas.text("note", x, bottom + 17.0, Anchor::Middle, &label);
        }
        canvas.path("axis", &format!("M{left:.1} {bottom:.1}H{right:.1}"));
        canvas.text("note", f64::midpoint(left, right), bottom + 34.0, Anchor::Middle, self.across);
        canvas.upright("note", 13.0, f64::midpoint(top, bottom), self.up);
    }
}

/// How a curve of this colour is drawn.
pub(crate) fn curve_class(colour: usize) -> String {
    let dashed = if colour < COLOURS { "" } else { " dashed" };
    format!("curve k{}{dashed}", colour % COLOURS)
}

/// A curve, broken where a value is not finite. A single point is drawn as a short line.
fn draw_curve(canvas: &mut Canvas, class: &str, series: &Series, across: &Scale, up: &Scale) {
    let mut d = String::new();
    let mut is_down = false;
    for &(x, y) in &series.points {
        if !y.is_finite() {
            is_down = false;
            continue;
        }
        put!(d, "{}{:.1} {:.1}", if is_down { 'L' } else { 'M' }, across.at(x), up.at(y));
        is_down = true;
    }
    if series.points.len() == 1 && is_down {
        d.push_str("h4");
    }
    canvas.path(class, &d);
}

fn draw_band(canvas: &mut Canvas, series: &Series, across: &Scale, up: &Scale) {
    let ends = series.points.iter().zip(&series.band);
    let ends: Vec<(f64, f64, f64)> = ends
        .filter(|(_, (low, high))| low.is_finite() && high.is_finite())
        .map(|(&(x, _), &(low, high))| (across.at(x), up.at(low), up.at(high)))
        .collect();
    if ends.len() < 2 {
        return;
    }
    let mut d = String::new();
    for (at, (x, _, high)) in ends.iter().enumerate() {
        put!(d, "{}{x:.1} {high:.1}", if at > 0 { 'L' } else { 'M' });
    }
    ends.iter().rev().for_each(|(x, low, _)| put!(d, "L{x:.1} {low:.1}"));
    d.push('Z');
    let weight = if series.faint { "faint" } else { "area" };
    canvas.path(&format!("{weight} f{}", series.colour % COLOURS), &d);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_both_ends() {
        assert_eq!(thinned(3, 10), [0, 1, 2]);
        assert_eq!(thinned(101, 5), [0, 25, 50, 75, 100]);
        assert_eq!(thinned(0, 5), [0usize; 0]);
    }

    #[test]
    fn last_values_stand_beside_their_curves() {
        let curve = Series { ends: true, ..Series::curve("a", 0, vec![(0.0, 1.0), (10.0, 0.594)]) };
        let chart = Lines {
            name: "n",
            title: "t",
            description: "d",
            across: "generation",
            up: "fitness",
            stretch: Stretch::Linear,
            size: Size::Half,
            series: vec![curve],
            reach: [vec![], vec![]],
        };
        let svg = chart.draw().svg;
        let place = |from: &str| -> f64 {
            let rest = svg.split_once(from).expect(from).1;
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        let (dot, text) = (place("<circle class=\"f0\" cx=\""), place("<text class=\"value\" x=\""));
        assert!(text > dot && text + width_of("0.594") <= 560.0, "{text} beside {dot}");
    }
}
