//! Games of checkers on a drawn board: a list of moves with the board after each of them.

use crate::text::{escaped, put};

/// A game that was played.
#[derive(Clone, Debug)]
pub struct Game {
    /// What it is called.
    pub title: String,
    /// Who had the first move, and who the second.
    pub players: [String; 2],
    /// How it ended, in words.
    pub result: String,
    /// What was played, in order.
    pub plies: Vec<Ply>,
}

/// A move, and the board after it.
#[derive(Clone, Debug)]
pub struct Ply {
    /// The move in the usual notation.
    pub text: String,
    /// The 32 playable squares by number: `b` and `w` men, `B` and `W` kings, `.` none.
    pub board: String,
}

const SIDE: usize = 40;

/// What a square holds, as the style sheet calls it.
fn class(piece: char) -> &'static str {
    match piece {
        'b' => "man black",
        'B' => "king black",
        'w' => "man white",
        'W' => "king white",
        _ => "none",
    }
}

/// The game on a page: the board as it was at the end, every move with the board after it, and the means to step
/// through them for those whose browser runs scripts.
pub(crate) fn html(game: &Game) -> String {
    let [black, white] = game.players.each_ref().map(|name| escaped(name));
    let (title, result) = (escaped(&game.title), escaped(&game.result));
    let last = game.plies.len();
    let end = game.plies.last().map_or("", |ply| ply.board.as_str());
    let mut html = format!(
        "<figure class=\"game\"><figcaption><strong>{title}</strong><br>{black} (black) against {white} (white): \
         {result}</figcaption>\n<div class=\"table-top\"><div>{}\
         <div class=\"steps\" hidden><button type=\"button\" data-step=\"first\" aria-label=\"To the start\">«</button>\
         <button type=\"button\" data-step=\"back\" aria-label=\"One move back\">‹</button>\
         <input type=\"range\" min=\"1\" max=\"{last}\" value=\"{last}\" aria-label=\"Move\">\
         <button type=\"button\" data-step=\"on\" aria-label=\"One move on\">›</button>\
         <button type=\"button\" data-step=\"last\" aria-label=\"To the end\">»</button>\
         </div><output>after the last move</output></div>\n<ol class=\"moves\" tabindex=\"0\" aria-label=\"Moves\">",
        board(end, &game.title)
    );
    for ply in &game.plies {
        put!(html, "<li data-board=\"{}\">{}</li>", escaped(&ply.board), escaped(&ply.text));
    }
    html + "</ol></div></figure>\n"
}

fn board(pieces: &str, title: &str) -> String {
    let side = 8 * SIDE;
    let mut svg = format!(
        "<svg class=\"board\" viewBox=\"0 0 {side} {side}\" role=\"img\" aria-label=\"board of {}\">\
         <rect class=\"light\" width=\"{side}\" height=\"{side}\"/>",
        escaped(title)
    );
    let pieces = pieces.chars().chain(std::iter::repeat('.'));
    for (square, piece) in (0..32).zip(pieces) {
        let (row, column) = (square / 4, (square % 4) * 2 + 1 - square / 4 % 2);
        let (x, y) = (column * SIDE, row * SIDE);
        let middle = SIDE / 2;
        put!(
            svg,
            "<rect class=\"dark\" x=\"{x}\" y=\"{y}\" width=\"{SIDE}\" height=\"{SIDE}\"/>\
             <text class=\"number\" x=\"{}\" y=\"{}\">{}</text>\
             <g data-square=\"{square}\" class=\"{}\" transform=\"translate({},{})\"><circle r=\"15\"/>\
             <circle class=\"rim\" r=\"10\"/><path class=\"crown\" d=\"M-8 6h16l2-11-6 4-4-7-4 7-6-4z\"/></g>",
            x + 3,
            y + 10,
            square + 1,
            class(piece),
            x + middle,
            y + middle,
        );
    }
    svg + "</svg>"
}

/// The game as text: its moves in pairs.
pub(crate) fn markdown(game: &Game) -> String {
    let mut text = String::new();
    for (number, pair) in game.plies.chunks(2).enumerate() {
        let moves: Vec<&str> = pair.iter().map(|ply| ply.text.as_str()).collect();
        put!(text, "{}{}. {}", if number > 0 { " " } else { "" }, number + 1, moves.join(" "));
    }
    text
}
