//! A sheet to draw on.

use super::STYLE;
use crate::text::{escaped, put};

/// A finished picture.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The name of its file, without its ending.
    pub name: String,
    /// What it shows, in a few words.
    pub title: String,
    /// The picture itself: an element that may stand in a page.
    pub svg: String,
    /// Its width in pixels, before a page fits it in.
    pub width: f64,
    /// The same drawn for narrow screens, if it is too wide for them.
    pub narrow: Option<String>,
}

impl Picture {
    /// A picture that was drawn elsewhere, a whole SVG file. It stands in a page as an image of its own, so that neither
    /// its style nor its names touch anything else there.
    pub fn sealed(name: &str, title: &str, svg: &str, width: f64) -> Self {
        let mut source = String::with_capacity(svg.len() * 5 / 4);
        for character in svg.trim_end().chars() {
            match character {
                '"' | '#' | '%' | '&' | '<' | '>' | '\'' | '\n' => put!(source, "%{:02X}", character as u32),
                other => source.push(other),
            }
        }
        let alt = escaped(title);
        let image = format!("<img src=\"data:image/svg+xml,{source}\" alt=\"{alt}\">");
        Self { name: name.to_owned(), title: title.to_owned(), svg: image, width, narrow: None }
    }
}

/// The picture as a file of its own, with its style in it.
pub(crate) fn standalone(picture: &Picture) -> String {
    let style = format!("><style>\n{STYLE}svg{{background:var(--paper)}}</style>");
    let svg = picture.svg.replacen('>', &style, 1);
    let svg = if svg.contains("xmlns=") {
        svg
    } else {
        svg.replacen("<svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"", 1)
    };
    svg + "\n"
}

/// How a text stands to its place.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A sheet of this number of pixels.
pub(super) struct Canvas {
    width: f64,
    height: f64,
    body: String,
}

impl Canvas {
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    pub(super) fn path(&mut self, class: &str, d: &str) {
        if !d.is_empty() {
            put!(self.body, "<path class=\"{class}\" d=\"{d}\"/>");
        }
    }

    /// A path with a colour of its own rather than one of the style sheet.
    pub(super) fn fill(&mut self, colour: &str, d: &str) {
        if !d.is_empty() {
            put!(self.body, "<path fill=\"{colour}\" d=\"{d}\"/>");
        }
    }

    /// A line of some width.
    pub(super) fn stroke(&mut self, class: &str, width: f64, d: &str) {
        put!(self.body, "<path class=\"{class}\" fill=\"none\" stroke-width=\"{width:.1}\" d=\"{d}\"/>");
    }

    pub(super) fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        put!(
            self.body,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }

    pub(super) fn swatch(&mut self, colour: &str, x: f64, y: f64, width: f64, height: f64) {
        put!(
            self.body,
            "<rect fill=\"{colour}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }

    /// A square that is more or less opaque.
    pub(super) fn shade(&mut self, class: &str, opacity: f64, (x, y): (f64, f64), side: f64) {
        put!(
            self.body,
            "<rect class=\"{class}\" opacity=\"{opacity:.2}\" x=\"{x:.0}\" y=\"{y:.0}\" width=\"{side:.0}\" \
             height=\"{side:.0}\"/>"
        );
    }

    pub(super) fn circle(&mut self, class: &str, x: f64, y: f64, radius: f64) {
        put!(self.body, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\"/>");
    }

    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        put!(
            self.body,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escaped(text)
        );
    }

    /// A text that goes upwards, in the middle of its place.
    pub(super) fn upright(&mut self, class: &str, x: f64, y: f64, text: &str) {
        put!(
            self.body,
            "<text class=\"{class}\" transform=\"translate({x:.1},{y:.1}) rotate(-90)\" \
             text-anchor=\"middle\">{}</text>",
            escaped(text)
        );
    }

    pub(super) fn finish(self, name: &str, title: &str, description: &str) -> Picture {
        let Self { width, height, body } = self;
        let (shown, description) = (escaped(title), escaped(description));
        let svg = format!(
            "<svg class=\"chart\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{shown}\">\
             <title>{shown}</title><desc>{description}</desc>{body}</svg>"
        );
        Picture { name: name.to_owned(), title: title.to_owned(), svg, width, narrow: None }
    }
}

/// About how wide a text is at the usual size of letters.
pub(super) fn width_of(text: &str) -> f64 {
    7.0 * text.chars().count() as f64
}

/// An entry of a legend: how its mark is drawn, and what it says.
pub(super) struct Entry<'a> {
    pub(super) mark: Mark<'a>,
    pub(super) label: &'a str,
}

/// What stands before an entry of a legend.
pub(super) enum Mark<'a> {
    /// A ring of this class.
    Ring(&'a str),
    /// A piece of a line of this class.
    Line(&'a str),
    /// A square of this class.
    Square(&'a str),
    /// A square of this colour.
    Colour(&'a str),
}

/// Height of a line of a legend.
const LINE: f64 = 18.0;

/// The place of each entry: from the left, and from line to line as far as they reach.
fn places(entries: &[Entry<'_>], width: f64) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (0.0, 0.0);
    let place = |entry: &Entry<'_>| {
        // Steps without a name make a scale together with their neighbours.
        let needed = if entry.label.is_empty() { 13.0 } else { 26.0 + width_of(entry.label) + 12.0 };
        if x > 0.0 && x + needed > width {
            (x, y) = (0.0, y + LINE);
        }
        let place = (x, y);
        x += needed;
        place
    };
    entries.iter().map(place).collect()
}

/// How high a legend will be.
pub(super) fn legend_height(entries: &[Entry<'_>], width: f64) -> f64 {
    places(entries, width).last().map_or(0.0, |(_, y)| y + LINE)
}

impl Canvas {
    pub(super) fn legend(&mut self, entries: &[Entry<'_>], left: f64, top: f64, width: f64) {
        for (entry, (x, y)) in entries.iter().zip(places(entries, width)) {
            let (x, y) = (left + x, top + y + LINE / 2.0);
            match entry.mark {
                Mark::Line(class) => self.path(class, &format!("M{x:.1} {y:.1}h20")),
                Mark::Ring(class) => self.circle(class, x + 12.0, y, 6.0),
                Mark::Square(class) => self.rect(class, x + 6.0, y - 6.0, 12.0, 12.0),
                Mark::Colour(colour) => self.swatch(colour, x + 6.0, y - 6.0, 12.0, 12.0),
            }
            self.text("", x + 26.0, y + 4.0, Anchor::Start, entry.label);
        }
    }
}
