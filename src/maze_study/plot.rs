//! The gap to the optimum against the turns of a game, for each variant: a panel for each board.

use super::{Board, Size, published};
use std::fmt::Write;

const PANEL: (f64, f64) = (330.0, 300.0);
/// Room around each panel for its axes.
const MARGIN: (f64, f64) = (50.0, 40.0);
const LEGEND: f64 = 190.0;
/// Gaps at which lines are drawn, in percent.
const TICKS: [f64; 8] = [0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 70.0];
/// Colours that people with any colour vision can tell apart; with two kinds of lines they are enough.
const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31"];

pub(super) fn svg(boards: &[Board]) -> String {
    let variants = variants(boards);
    let width = boards.len() as f64 * (PANEL.0 + MARGIN.0) + MARGIN.0 + LEGEND;
    let height = (PANEL.1 + 2.0 * MARGIN.1).max(40.0 + 20.0 * variants.len() as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (at, board) in boards.iter().enumerate() {
        let left = MARGIN.0 + at as f64 * (PANEL.0 + MARGIN.0);
        push(&mut svg, &Panel::new(board, left, boards).svg(&variants));
    }
    push(&mut svg, &legend(&variants, width - LEGEND));
    svg + "</svg>\n"
}

/// Every variant, in the order of their names.
fn variants(boards: &[Board]) -> Vec<String> {
    let games = boards.iter().flat_map(|board| &board.games);
    let mut names: Vec<String> = games.flat_map(|game| &game.outcomes).map(|o| o.variant.clone()).collect();
    names.sort();
    names.dedup();
    names
}

/// How the line of the variant with this number looks.
fn style(number: usize) -> String {
    let dashes = if number < COLOURS.len() { "" } else { " stroke-dasharray=\"5 3\"" };
    format!("stroke=\"{}\" stroke-width=\"1.8\" fill=\"none\"{dashes}", COLOURS[number % COLOURS.len()])
}

struct Panel<'a> {
    board: &'a Board,
    left: f64,
    turns: (f64, f64),
    highest: f64,
}

impl<'a> Panel<'a> {
    /// All panels have the same scales.
    fn new(board: &'a Board, left: f64, all: &[Board]) -> Self {
        let games = || all.iter().flat_map(|board| &board.games);
        let turns = games().map(|game| f64::from(game.turns));
        let gaps = games().flat_map(|game| game.outcomes.iter().filter_map(|o| game.gap(o.mean())));
        let (least, most) = turns.fold((f64::MAX, 1.0), |(low, high), n| (n.min(low), n.max(high)));
        Self { board, left, turns: (least.min(most - 1.0), most), highest: gaps.fold(1.0, f64::max) }
    }

    fn x(&self, turns: f64) -> f64 {
        self.left + (turns - self.turns.0) / (self.turns.1 - self.turns.0) * PANEL.0
    }

    /// By the square root, so that small gaps stay visible beside large ones.
    fn y(&self, gap: f64) -> f64 {
        MARGIN.1 + PANEL.1 * (1.0 - (gap.max(0.0) / self.highest).sqrt())
    }

    fn svg(&self, variants: &[String]) -> String {
        let mut svg = self.axes();
        for (number, variant) in variants.iter().enumerate() {
            let points = self.board.games.iter().filter_map(|game| {
                let gap = game.gap(game.outcome(variant)?.mean())?;
                Some(format!("{:.1},{:.1}", self.x(f64::from(game.turns)), self.y(gap)))
            });
            let points: Vec<String> = points.collect();
            push(&mut svg, &format!("<polyline points=\"{}\" {}/>\n", points.join(" "), style(number)));
        }
        svg
    }

    fn axes(&self) -> String {
        let (left, right, bottom) = (self.left, self.left + PANEL.0, MARGIN.1 + PANEL.1);
        let Size { width, height } = self.board.size;
        let middle = left + PANEL.0 / 2.0;
        let mut svg = format!(
            "<text x=\"{middle}\" y=\"20\" text-anchor=\"middle\" font-weight=\"bold\">{width} x {height}</text>\n\
             <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">turns</text>\n",
            bottom + 34.0
        );
        for tick in TICKS.into_iter().filter(|&tick| tick <= self.highest) {
            let y = self.y(tick);
            push(
                &mut svg,
                &format!(
                    "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#ddd\"/>\
                     <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{tick} %</text>\n",
                    left - 5.0,
                    y + 4.0
                ),
            );
        }
        for game in &self.board.games {
            let x = self.x(f64::from(game.turns));
            push(
                &mut svg,
                &format!(
                    "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                    bottom + 17.0,
                    game.turns
                ),
            );
        }
        svg
    }
}

fn legend(variants: &[String], left: f64) -> String {
    let mut svg = format!("<text x=\"{left}\" y=\"20\" font-weight=\"bold\">gap to the optimum</text>\n");
    for (number, variant) in variants.iter().enumerate() {
        let y = 42.0 + 20.0 * number as f64;
        let name = published::title(variant).replace('&', "&amp;").replace('<', "&lt;");
        let line = format!("<path d=\"M{left} {y}h26\" {}/>", style(number));
        push(&mut svg, &format!("{line}<text x=\"{}\" y=\"{}\">{name}</text>\n", left + 32.0, y + 4.0));
    }
    svg
}

fn push(text: &mut String, more: &str) {
    text.write_str(more).expect("writing into a string does not fail");
}
