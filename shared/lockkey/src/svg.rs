//! Levels drawn as SVG, with the way through them and where one looked for it.

use crate::difficulty::Survey;
use crate::grid::{Cell, Direction};
use crate::level::{Colour, Fixture, Level};
use std::fmt::Write;

/// Pixels of a cell.
const CELL: u32 = 32;

/// Pixels around the grid.
const MARGIN: u32 = 8;

/// Colours that people with any colour vision tell apart; letters tell the rest.
const PALETTE: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c7a00", "#555555"];

/// The fill of a cell visited in no leg, in one, in two and so on.
const HEAT: [&str; 6] = ["#ffffff", "#fff3d6", "#ffe0a3", "#ffc46b", "#ff9f43", "#f2711c"];

impl Level {
    /// The level as an SVG picture; with a survey, the cells it visited as a heat map and the way it found.
    pub fn to_svg(&self, survey: Option<&Survey>) -> String {
        let side = |cells: u8| u32::from(cells) * CELL + 2 * MARGIN;
        let (width, height) = (side(self.grid.width()), side(self.grid.height()));
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" font-family=\"sans-serif\" text-anchor=\"middle\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        if let Some(survey) = survey {
            svg += &self.heat(survey);
        }
        svg += &self.walls();
        if let Some(survey) = survey {
            survey.legs.iter().enumerate().for_each(|(index, leg)| svg += &way(index, &leg.path));
        }
        svg += &self.parts_drawn();
        svg + "</svg>\n"
    }

    fn heat(&self, survey: &Survey) -> String {
        let visits = |cell: Cell| survey.legs.iter().filter(|leg| leg.visited.contains(&cell)).count();
        let mut svg = "<g id=\"visited\">\n".to_owned();
        for cell in self.grid.cells().filter(|&cell| visits(cell) > 0) {
            let (x, y) = corner(cell);
            let fill = HEAT[visits(cell).min(HEAT.len() - 1)];
            line(
                &mut svg,
                format_args!(
                    "<rect x=\"{x}\" y=\"{y}\" width=\"{CELL}\" height=\"{CELL}\" fill=\"{fill}\"/>"
                ),
            );
        }
        svg + "</g>\n"
    }

    fn walls(&self) -> String {
        let mut path = String::new();
        for cell in self.grid.cells() {
            let (x, y) = corner(cell);
            let (right, below) = (x + CELL, y + CELL);
            let sides = [
                (Direction::North, (x, y, right, y)),
                (Direction::West, (x, y, x, below)),
                (Direction::East, (right, y, right, below)),
                (Direction::South, (x, below, right, below)),
            ];
            for (way, (x1, y1, x2, y2)) in sides {
                // Each wall once: the ones to the north and west belong to the neighbour, but at the edge.
                let is_own = way >= Direction::East || self.grid.neighbour(cell, way).is_none();
                if is_own && !self.grid.is_open(cell, way) {
                    let _ = write!(path, "M{x1} {y1}L{x2} {y2}");
                }
            }
        }
        format!(
            "<path id=\"walls\" d=\"{path}\" stroke=\"#222222\" stroke-width=\"3\" stroke-linecap=\"square\"/>\n"
        )
    }

    fn parts_drawn(&self) -> String {
        let mut svg = String::new();
        for (cell, label, fill) in [(self.entry, "in", "#dddddd"), (self.exit, "out", "#222222")] {
            let (x, y) = centre(cell);
            let ink = if label == "in" { "#222222" } else { "#ffffff" };
            line(
                &mut svg,
                format_args!("<circle cx=\"{x}\" cy=\"{y}\" r=\"12\" fill=\"{fill}\" stroke=\"#222222\"/>"),
            );
            write_label(&mut svg, cell, label, ink, 11);
        }
        for key in &self.keys {
            let (x, y) = centre(key.cell);
            let fill = fill(key.colour);
            line(
                &mut svg,
                format_args!(
                    "<circle cx=\"{x}\" cy=\"{y}\" r=\"10\" fill=\"#ffffff\" stroke=\"{fill}\" stroke-width=\"4\"/>"
                ),
            );
            write_label(&mut svg, key.cell, &key.colour.key_letter().to_string(), "#222222", 14);
        }
        for &Fixture { colour, cell } in &self.locks {
            let (x, y) = centre(cell);
            let fill = fill(colour);
            let (x, y) = (x - 11, y - 11);
            line(
                &mut svg,
                format_args!(
                    "<rect x=\"{x}\" y=\"{y}\" width=\"22\" height=\"22\" rx=\"3\" fill=\"{fill}\" stroke=\"#222222\"/>"
                ),
            );
            write_label(&mut svg, cell, &colour.lock_letter().to_string(), "#ffffff", 14);
        }
        svg
    }
}

fn way(index: usize, path: &[Cell]) -> String {
    // Each leg a little aside, so that ways there and back do not hide each other.
    let aside = 2 * (index as u32 % 4);
    let stroke = PALETTE[index % PALETTE.len()];
    let points: Vec<String> = path
        .iter()
        .map(|&cell| {
            let (x, y) = centre(cell);
            format!("{},{}", x + aside - 3, y + aside - 3)
        })
        .collect();
    let points = points.join(" ");
    format!(
        "<polyline class=\"way\" points=\"{points}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"2\" stroke-linejoin=\"round\"/>\n"
    )
}

fn write_label(svg: &mut String, cell: Cell, label: &str, ink: &str, size: u32) {
    let (x, y) = centre(cell);
    let y = y + size / 3;
    line(svg, format_args!("<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{ink}\">{label}</text>"));
}

fn fill(colour: Colour) -> &'static str {
    PALETTE[colour.index() % PALETTE.len()]
}

fn corner(cell: Cell) -> (u32, u32) {
    (u32::from(cell.x()) * CELL + MARGIN, u32::from(cell.y()) * CELL + MARGIN)
}

fn centre(cell: Cell) -> (u32, u32) {
    let (x, y) = corner(cell);
    (x + CELL / 2, y + CELL / 2)
}

fn line(svg: &mut String, element: std::fmt::Arguments<'_>) {
    // Writing into a string cannot fail.
    let _ = writeln!(svg, "{element}");
}

#[cfg(test)]
mod tests {
    use crate::difficulty::Method;
    use crate::level::Level;

    #[test]
    fn everything_is_drawn_once() {
        let level: Level = "#######\n#<.A.>#\n#.#####\n#....a#\n#######\n".parse().unwrap();
        let bare = level.to_svg(None);
        assert_eq!(bare.matches("<circle").count(), 3);
        assert_eq!(bare.matches("<text").count(), 4);
        assert_eq!(bare.matches("<rect").count(), 2);
        // Ten sides around, and the two walls between the rows.
        assert_eq!(bare.matches('M').count(), 10 + 2);
        let survey = level.survey(Method::Plain).unwrap();
        let full = level.to_svg(Some(&survey));
        assert_eq!(full.matches("class=\"way\"").count(), 2);
        assert_eq!(full.matches("<rect").count(), 2 + 6);
    }
}
