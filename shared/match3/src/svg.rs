//! Boards and scores drawn as SVG.

use crate::board::Board;
use std::fmt::Write;

/// Pixels of a cell.
const CELL: u32 = 32;

/// Pixels around a picture.
const MARGIN: u32 = 8;

/// Pixels of a histogram's bars, the highest of them.
const BARS: u32 = 160;

/// Most bars of a histogram; scores beyond the last fall into it.
const MOST_BARS: usize = 60;

/// Fill of the colours from 1, chosen so that people with any colour vision tell them apart.
pub(crate) const PALETTE: [&str; 7] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];

impl Board {
    /// The board as an SVG picture, each block with its number.
    pub fn to_svg(&self) -> String {
        let side = |cells: u8| u32::from(cells) * CELL + 2 * MARGIN;
        let mut svg = head(side(self.width()), side(self.height()));
        for (y, row) in (0..).zip(self.rows()) {
            for (x, &colour) in (0..).zip(row) {
                draw_cell(&mut svg, x * CELL + MARGIN, y * CELL + MARGIN, colour);
            }
        }
        svg + "</svg>\n"
    }
}

fn head(width: u32, height: u32) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" text-anchor=\"middle\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    )
}

fn draw_cell(svg: &mut String, x: u32, y: u32, colour: u8) {
    let fill = colour.checked_sub(1).map_or("none", |index| PALETTE[usize::from(index) % PALETTE.len()]);
    let (left, top, side) = (x + 1, y + 1, CELL - 2);
    line(
        svg,
        format_args!(
            "<rect class=\"cell\" x=\"{left}\" y=\"{top}\" width=\"{side}\" height=\"{side}\" rx=\"5\" \
             fill=\"{fill}\" stroke=\"#cccccc\"/>"
        ),
    );
    if colour > 0 {
        let (x, y) = (x + CELL / 2, y + CELL / 2 + 4);
        // White with a dark rim reads on every fill.
        line(
            svg,
            format_args!(
                "<text x=\"{x}\" y=\"{y}\" fill=\"#ffffff\" stroke=\"#222222\" stroke-width=\"3\" \
                 paint-order=\"stroke\" font-weight=\"bold\">{colour}</text>"
            ),
        );
    }
}

/// A histogram of scores, a bar a point, with the pass score as a line.
pub fn histogram_svg(scores: &[f64], pass: f64) -> String {
    const BAR: u32 = 10;
    let mut counts = vec![0_usize; MOST_BARS];
    for score in scores {
        counts[(score.max(0.0) as usize).min(MOST_BARS - 1)] += 1;
    }
    let highest = counts.iter().copied().max().unwrap_or(0).max(1);
    let (width, height) = (MOST_BARS as u32 * BAR + 2 * MARGIN, BARS + 20 + 2 * MARGIN);
    let floor = MARGIN + BARS;
    let mut svg = head(width, height);
    for (score, &count) in counts.iter().enumerate() {
        let tall = (count * BARS as usize / highest) as u32;
        let (x, y) = (MARGIN + score as u32 * BAR, floor - tall);
        let fill = if score as f64 >= pass { "#009e73" } else { "#d55e00" };
        line(
            &mut svg,
            format_args!(
                "<rect class=\"bar\" x=\"{x}\" y=\"{y}\" width=\"9\" height=\"{tall}\" fill=\"{fill}\"/>"
            ),
        );
    }
    for score in (0..=MOST_BARS as u32).step_by(10) {
        let (x, y) = (MARGIN + score * BAR, floor + 16);
        line(&mut svg, format_args!("<text x=\"{x}\" y=\"{y}\">{score}</text>"));
    }
    let at = MARGIN + (pass.clamp(0.0, MOST_BARS as f64) * f64::from(BAR)) as u32;
    line(
        &mut svg,
        format_args!(
            "<path class=\"pass\" d=\"M{at} {MARGIN}V{floor}\" stroke=\"#222222\" stroke-dasharray=\"4 3\"/>"
        ),
    );
    svg + "</svg>\n"
}

fn line(svg: &mut String, element: std::fmt::Arguments<'_>) {
    // Writing into a string cannot fail.
    let _ = writeln!(svg, "{element}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_drawn_and_every_block_numbered() {
        let board: Board = "..3\n121\n".parse().unwrap();
        let svg = board.to_svg();
        assert_eq!((svg.matches("class=\"cell\"").count(), svg.matches("<text").count()), (6, 4));
        assert_eq!(svg.matches(PALETTE[0]).count(), 2);
    }

    #[test]
    fn the_tallest_bar_stands_at_the_commonest_score() {
        let svg = histogram_svg(&[3.2, 3.9, 3.0, 20.0, 1e9, -1.0], 15.0);
        let bars: Vec<&str> = svg.lines().filter(|line| line.contains("class=\"bar\"")).collect();
        assert_eq!(bars.len(), MOST_BARS);
        assert!(bars[3].contains("height=\"160\""));
        assert!(bars[20].contains("height=\"53\"") && bars[20].contains("#009e73"));
        assert!(bars[59].contains("height=\"53\"") && bars[0].contains("height=\"53\""));
        assert!(histogram_svg(&[], 15.0).contains("class=\"pass\""));
    }
}
