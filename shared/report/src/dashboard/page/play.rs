//! A board to play on.

use super::{Frame, Part, page};
use crate::text::{escaped, put};

/// How the form of a new game is filled.
#[derive(Clone, Debug, PartialEq)]
pub struct PlayForm {
    /// The player to play against.
    pub player: String,
    /// Whether there is no other player.
    pub is_fixed: bool,
    /// Whether the person has white.
    pub plays_white: bool,
    /// What the player may use for a move.
    pub strength: PlayStrength,
}

/// What a player may use for a move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlayStrength {
    /// A number of plies.
    Plies(u32),
    /// A time.
    Seconds(f64),
}

impl Default for PlayForm {
    fn default() -> Self {
        let player = "material".to_owned();
        Self { player, is_fixed: false, plays_white: false, strength: PlayStrength::Plies(6) }
    }
}

/// The 32 squares at the start: `b` and `w` are men.
const START: &str = "bbbbbbbbbbbb........wwwwwwwwwwww";

/// The page of a board.
pub fn play(form: &PlayForm, frame: &Frame) -> String {
    let PlayForm { player, is_fixed, plays_white, strength } = form;
    let (limit, strength) = match strength {
        PlayStrength::Plies(plies) => ("depth", f64::from(*plies)),
        PlayStrength::Seconds(seconds) => ("seconds", *seconds),
    };
    let side = if *plays_white { "white" } else { "black" };
    let option = |value: &str, chosen: &str, text: &str| {
        let selected = if value == chosen { " selected" } else { "" };
        format!("<option value=\"{value}\"{selected}>{text}</option>")
    };
    let mut body = String::from("<h1>Play</h1>\n<noscript><p>Playing needs scripts.</p></noscript>\n");
    put!(
        body,
        "<form id=\"game\" class=\"filter\"><label>Player <input name=\"player\" value=\"{}\"{}></label>\
         <datalist id=\"players\"><option value=\"material\"><option value=\"random\"></datalist>\
         <label>You play <select name=\"side\">{}{}</select></label>\
         <label>Strength <select name=\"limit\">{}{}</select></label>\
         <label>Plies or seconds <input name=\"strength\" type=\"number\" min=\"0.001\" max=\"24\" step=\"any\" value=\"{strength}\"></label>\
         <button>New game</button></form>\n",
        escaped(player),
        if *is_fixed { " readonly" } else { " list=\"players\"" },
        option("black", side, "black, first"),
        option("white", side, "white"),
        option("depth", limit, "plies"),
        option("seconds", limit, "seconds a move"),
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
        let form = PlayForm { player: "\"><script>".to_owned(), ..PlayForm::default() };
        let html = play(&form, &Frame { has_table: true, ..Frame::default() });
        assert_eq!(html.matches("data-at=").count(), 32);
        assert_eq!(html.matches("class=\"man black\"").count(), 12);
        assert!(!html.contains("<script>") && html.contains("/assets/play.js"), "{html}");
    }

    #[test]
    fn a_form_is_filled_with_what_a_command_has_set() {
        let html = play(&PlayForm::default(), &Frame::default());
        assert!(html.contains("value=\"material\" list=") && !html.contains("readonly"), "{html}");
        assert!(html.contains("<option value=\"black\" selected>") && html.contains("value=\"6\""));
        let form = PlayForm {
            player: "random".to_owned(),
            is_fixed: true,
            plays_white: true,
            strength: PlayStrength::Seconds(0.5),
        };
        let html = play(&form, &Frame::default());
        assert!(html.contains("value=\"random\" readonly"), "{html}");
        assert!(html.contains("<option value=\"white\" selected>") && html.contains("value=\"0.5\""));
        assert!(html.contains("<option value=\"seconds\" selected>"), "{html}");
    }
}
