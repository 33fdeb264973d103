//! A board to play on.

use super::{Frame, Part, page};
use crate::text::{escaped, put};

/// The 32 squares at the start: `b` and `w` are men.
const START: &str = "bbbbbbbbbbbb........wwwwwwwwwwww";

/// The page of a board. The player's name may be changed on it unless one is given.
pub fn play(player: &str, frame: &Frame) -> String {
    let mut body = String::from("<h1>Play</h1>\n<noscript><p>Playing needs scripts.</p></noscript>\n");
    put!(
        body,
        "<form id=\"game\" class=\"filter\"><label>Player <input name=\"player\" value=\"{}\" list=\"players\"></label>\
         <datalist id=\"players\"><option value=\"material\"><option value=\"random\"></datalist>\
         <label>You play <select name=\"side\"><option value=\"black\">black, first</option>\
         <option value=\"white\">white</option></select></label>\
         <label>Strength <select name=\"limit\"><option value=\"depth\">plies</option>\
         <option value=\"seconds\">seconds a move</option></select></label>\
         <label>How many <input name=\"strength\" type=\"number\" min=\"1\" max=\"24\" value=\"6\"></label>\
         <button>New game</button></form>\n",
        escaped(if player.is_empty() { "material" } else { player })
    );
    body.push_str(
        "<div class=\"play\"><div>\n<div id=\"board\" class=\"squares\" role=\"group\" aria-label=\"Board\">",
    );
    for (square, piece) in (1..).zip(START.chars()) {
        put!(
            body,
            "<button type=\"button\" data-at=\"{square}\" class=\"{}\">{square}</button>",
            class(piece)
        );
    }
    body.push_str(
        "</div>\n<p id=\"told\" role=\"status\"></p>\n<div class=\"tools\">\
         <button type=\"button\" data-do=\"undo\">Undo</button> <button type=\"button\" data-do=\"hint\">Hint</button> \
         <button type=\"button\" data-do=\"resign\">Resign</button></div>\n</div>\n<div>\n\
         <h2>Evaluation</h2>\n<div id=\"bar\" class=\"bar-of\" role=\"img\" aria-label=\"no evaluation yet\"><span></span></div>\n\
         <p id=\"thought\"></p>\n<p id=\"verdict\"></p>\n<div id=\"votes\"></div>\n\
         <h2>Moves</h2>\n<ol id=\"moves\" class=\"moves\" tabindex=\"0\" aria-label=\"Moves\"></ol>\n\
         <details><summary>PDN</summary><form id=\"pdn\"><label for=\"pdn-text\">The game as PDN; paste another one to read it</label>\
         <textarea id=\"pdn-text\" rows=\"8\" cols=\"40\"></textarea><p><button>Read</button> \
         <a id=\"save\" download=\"game.pdn\" href=\"data:,\">Save</a></p></form></details>\n</div></div>\n",
    );
    page(frame, Part::Play, "Play", &body)
}

fn class(piece: char) -> &'static str {
    match piece {
        'b' => "man black",
        'w' => "man white",
        _ => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_has_all_squares_and_the_players_name_stays_text() {
        let html = play("\"><script>", &Frame { has_table: true, ..Frame::default() });
        assert_eq!(html.matches("data-at=").count(), 32);
        assert_eq!(html.matches("class=\"man black\"").count(), 12);
        assert!(!html.contains("<script>") && html.contains("/assets/play.js"), "{html}");
    }
}
