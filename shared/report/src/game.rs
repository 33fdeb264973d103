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
    /// The board before the first move, as in [`Ply`].
    pub start: String,
    /// What was played, in order.
    pub plies: Vec<Ply>,
    /// The game in the portable notation of draughts programs.
    pub pdn: String,
}

/// A move, and the board after it.
#[derive(Clone, Debug)]
pub struct Ply {
    /// The move in the usual notation.
    pub text: String,
    /// The 32 playable squares by number: `b` and `w` men, `B` and `W` kings, `.` none.
    pub board: String,
    /// The squares that it left and reached, counted from 0.
    pub between: [u8; 2],
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

/// The game on a page: the board, and the moves in numbered pairs, as PDN has them, each with the board after it. Scripts open the game at its start position and
/// step through it. Without scripts and on paper, the board at the end is shown.
pub(crate) fn html(game: &Game) -> String {
    let [black, white] = game.players.each_ref().map(|name| escaped(name));
    let (title, result) = (escaped(&game.title), escaped(&game.result));
    let last = game.plies.len();
    let end = game.plies.last();
    let mut html = format!(
        "<figure class=\"game\" data-start=\"{start}\"><figcaption><strong>{title}</strong><br>{black} (black) against \
         {white} (white): {result}. <a download=\"game.pdn\" href=\"data:text/plain;charset=utf-8,{pdn}\">Download PDN</a>\
         </figcaption>\n<div class=\"table-top\"><div tabindex=\"0\" role=\"group\" \
         aria-label=\"{title}: step with the arrow keys\">{board}\
         <div class=\"steps\" hidden><button type=\"button\" data-step=\"first\" aria-label=\"To the start\">«</button>\
         <button type=\"button\" data-step=\"back\" aria-label=\"One move back\">‹</button>\
         <input type=\"range\" min=\"0\" max=\"{last}\" value=\"{last}\" aria-label=\"Move\">\
         <button type=\"button\" data-step=\"on\" aria-label=\"One move on\">›</button>\
         <button type=\"button\" data-step=\"last\" aria-label=\"To the end\">»</button>\
         </div><output>after the last move</output></div>\n<ol class=\"moves\" tabindex=\"0\" aria-label=\"Moves\">",
        start = escaped(&game.start),
        pdn = encoded(&game.pdn),
        board = board(
            end.map_or(&game.start, |ply| &ply.board),
            end.map_or(&[][..], |ply| &ply.between[..]),
            &game.title
        )
    );
    for pair in game.plies.chunks(2) {
        html.push_str("<li>");
        for Ply { text, board, between: [from, to] } in pair {
            let (board, text) = (escaped(board), escaped(text));
            put!(html, "<span data-board=\"{board}\" data-between=\"{from} {to}\">{text}</span> ");
        }
        html.push_str("</li>");
    }
    html + "</ol></div></figure>\n"
}

/// A text as a part of an address.
fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(byte as char);
        } else {
            put!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

fn board(pieces: &str, marked: &[u8], title: &str) -> String {
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
        let mark = if marked.contains(&(square as u8)) { " moved" } else { "" };
        put!(
            svg,
            "<rect class=\"dark{mark}\" data-place=\"{square}\" x=\"{x}\" y=\"{y}\" width=\"{SIDE}\" height=\"{SIDE}\"/>\
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
