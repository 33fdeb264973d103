//! A population in two dimensions, as SVG: species by colour and by shape, representatives ringed.

mod marker;
mod text;

use crate::kinds::Species;
use crate::projection::Projection;
use marker::{Marker, NOISE, OUTLINE};
use std::fmt::Write as _;
use text::{escaped, shortened};

/// What to draw.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    /// What stands above it.
    pub title: &'a str,
    /// Where the individuals lie.
    pub projection: &'a Projection,
    /// Which species they belong to.
    pub species: &'a Species,
    /// The individual that represents each species; species beyond its end have none.
    pub representatives: &'a [usize],
    /// What each individual is called; individuals beyond its end go by their number.
    pub names: &'a [String],
}

/// The whole picture, the part of it that shows the population, and the legend beside that.
const SIZE: (f64, f64) = (940.0, 660.0);
const PLOT: Frame = Frame { left: 48.0, top: 76.0, width: 600.0, height: 520.0 };
const LEGEND_LEFT: f64 = 676.0;
const LEGEND_TOP: f64 = 92.0;
const LEGEND_STEP: f64 = 24.0;
/// Species that the legend has room for.
const LEGEND_ROWS: usize = 17;
/// Characters of a name or title that there is room for.
const NAME_LENGTH: usize = 28;
const TITLE_LENGTH: usize = 90;
const RING: f64 = 11.0;

/// Shades that can be read on white and, where the reader prefers that, on black.
const STYLE: &str = "<style>\
    text{font-family:system-ui,sans-serif;font-size:13px;fill:#1a1a1a}\
    .title{font-size:18px;font-weight:600}.note{font-size:12px;fill:#555}\
    .paper{fill:#fff}.frame{fill:none;stroke:#bbb}\
    .species{stroke:#1a1a1a;stroke-width:.8}.noise{fill:none;stroke:#8a8a8a;stroke-width:1.6}\
    .ring{fill:none;stroke:#1a1a1a;stroke-width:2}\
    .label{font-weight:700;paint-order:stroke;stroke:#fff;stroke-width:3px}\
    @media(prefers-color-scheme:dark){text{fill:#eee}.note{fill:#aaa}.paper{fill:#161616}.frame{stroke:#555}\
    .species{stroke:#eee}.ring{stroke:#eee}.label{stroke:#161616}}\
    </style>\n";

impl Picture<'_> {
    /// The picture as a file that stands alone.
    pub fn to_svg(&self) -> String {
        let mut svg = self.head();
        let scale = Scale::new(&self.projection.points);
        self.write_outsiders(&mut svg, &scale);
        for species in 0..self.species.count() {
            self.write_members(&mut svg, species, &scale);
        }
        self.write_representatives(&mut svg, &scale);
        self.write_legend(&mut svg);
        svg.push_str("</svg>\n");
        svg
    }

    fn head(&self) -> String {
        let (width, height) = SIZE;
        let Frame { left, top, width: plot_width, height: plot_height } = PLOT;
        let (title, counts) = (escaped(&shortened(self.title, TITLE_LENGTH)), self.counts());
        let (middle, below, above) =
            (left + plot_width / 2.0, top + plot_height + 20.0, top + plot_height / 2.0);
        let kept = self.projection.kept * 100.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\">\n<title>{title}</title>\n<desc>{counts}</desc>\n{STYLE}\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n\
             <rect class=\"frame\" x=\"{left}\" y=\"{top}\" width=\"{plot_width}\" height=\"{plot_height}\"/>\n\
             <text class=\"title\" x=\"{left}\" y=\"34\">{title}</text>\n\
             <text class=\"note\" x=\"{left}\" y=\"58\">{counts}</text>\n\
             <text class=\"note\" x=\"{middle}\" y=\"{below}\" text-anchor=\"middle\">first dimension</text>\n\
             <text class=\"note\" transform=\"translate({x} {above}) rotate(-90)\" \
             text-anchor=\"middle\">second dimension</text>\n\
             <text class=\"note\" x=\"{left}\" y=\"{last}\">Near is alike, both axes in one scale; \
             the plane keeps {kept:.0} % of the population's spread.</text>\n",
            x = left - 14.0,
            last = height - 16.0,
        )
    }

    fn counts(&self) -> String {
        let outsiders = self.species.outsiders().count();
        let individuals = self.projection.points.len();
        format!("{individuals} individuals, {} species, {outsiders} of no species", self.species.count())
    }

    fn write_outsiders(&self, svg: &mut String, scale: &Scale) {
        svg.push_str("<g class=\"noise\">\n");
        self.species.outsiders().for_each(|individual| self.write_individual(svg, NOISE, individual, scale));
        svg.push_str("</g>\n");
    }

    fn write_members(&self, svg: &mut String, species: usize, scale: &Scale) {
        let Marker { shape, colour } = Marker::of(species);
        put(svg, format_args!("<g class=\"species\" fill=\"{colour}\">\n"));
        for individual in &self.species.members()[species] {
            self.write_individual(svg, shape, *individual, scale);
        }
        svg.push_str("</g>\n");
    }

    fn write_individual(&self, svg: &mut String, shape: &str, individual: usize, scale: &Scale) {
        let Some(point) = self.projection.points.get(individual) else { return };
        let ([x, y], name) = (scale.place(*point), escaped(&self.name(individual)));
        put(
            svg,
            format_args!(
                "<path d=\"{shape}\" transform=\"translate({x:.2} {y:.2})\"><title>{name}</title></path>\n"
            ),
        );
    }

    fn write_representatives(&self, svg: &mut String, scale: &Scale) {
        for (species, individual) in self.representatives.iter().enumerate() {
            let Some(point) = self.projection.points.get(*individual) else { continue };
            let [x, y] = scale.place(*point);
            let (label_x, label_y, number) = (x + RING, y - RING, species + 1);
            put(
                svg,
                format_args!(
                    "<circle class=\"ring\" cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{RING}\"/>\
                     <text class=\"label\" x=\"{label_x:.2}\" y=\"{label_y:.2}\">{number}</text>\n"
                ),
            );
        }
    }

    fn write_legend(&self, svg: &mut String) {
        let mut rows: Vec<(String, String)> =
            (0..self.species.count()).take(LEGEND_ROWS).map(|species| self.legend_of(species)).collect();
        rows.insert(0, (String::new(), "species: members, representative".to_owned()));
        let more = self.species.count().saturating_sub(LEGEND_ROWS);
        if more > 0 {
            rows.push((String::new(), format!("and {more} more")));
        }
        rows.push((format!("<g class=\"noise\"><path d=\"{NOISE}\"/></g>"), "of no species".to_owned()));
        rows.push(("<circle class=\"ring\" r=\"8\"/>".to_owned(), "represents its species".to_owned()));
        for (row, (marker, text)) in rows.iter().enumerate() {
            let y = LEGEND_TOP + LEGEND_STEP * row as f64;
            put(
                svg,
                format_args!(
                    "<g transform=\"translate({LEGEND_LEFT} {y})\">{marker}<text x=\"18\" y=\"4.5\">{text}</text></g>\n"
                ),
            );
        }
    }

    /// The marker of a species, and what it is.
    fn legend_of(&self, species: usize) -> (String, String) {
        let Marker { shape, colour } = Marker::of(species);
        let marker = format!("<g class=\"species\" fill=\"{colour}\"><path d=\"{shape}\"/></g>");
        let (number, members) = (species + 1, self.species.members()[species].len());
        let text = match self.representatives.get(species) {
            Some(one) => {
                format!("{number}: {members}, {}", escaped(&shortened(&self.name(*one), NAME_LENGTH)))
            }
            None => format!("{number}: {members}"),
        };
        (marker, text)
    }

    fn name(&self, individual: usize) -> String {
        self.names.get(individual).cloned().unwrap_or_else(|| individual.to_string())
    }
}

fn put(svg: &mut String, text: std::fmt::Arguments<'_>) {
    svg.write_fmt(text).expect("a string takes whatever is written");
}

/// A part of the picture.
struct Frame {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

/// From coordinates of the projection to those of the picture, as large as they fit.
struct Scale {
    centre: [f64; 2],
    factor: f64,
}

impl Scale {
    fn new(points: &[[f64; 2]]) -> Self {
        let room = [PLOT.width, PLOT.height].map(|side| side - 4.0 * OUTLINE);
        let ranges = [0, 1].map(|axis| range(points.iter().map(|point| point[axis])));
        let fits = [0, 1].map(|axis| room[axis] / (ranges[axis].1 - ranges[axis].0));
        let factor = fits[0].min(fits[1]);
        let factor = if factor.is_finite() { factor } else { 1.0 };
        Self { centre: ranges.map(|(low, high)| f64::midpoint(low, high)), factor }
    }

    fn place(&self, point: [f64; 2]) -> [f64; 2] {
        let middle = [PLOT.left + PLOT.width / 2.0, PLOT.top + PLOT.height / 2.0];
        let right = (point[0] - self.centre[0]) * self.factor;
        let up = (point[1] - self.centre[1]) * self.factor;
        [middle[0] + right, middle[1] - up]
    }
}

fn range(numbers: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = numbers.clone().reduce(f64::min).unwrap_or(0.0);
    (low, numbers.reduce(f64::max).unwrap_or(0.0))
}
