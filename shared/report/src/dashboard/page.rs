//! The pages of the dashboard.

mod play;
mod run;
mod runs;
mod workers;

pub use play::{PlayForm, PlayStrength, play};
pub use run::{RunPage, run};
pub use runs::runs;
pub use workers::workers;

use crate::text::{escaped, put, time};

/// What all pages have in common.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Frame {
    /// Where the data comes from: a coordinator, a store.
    pub place: String,
    /// When the page was made, in milliseconds since 1970.
    pub now: u64,
    /// Whether the reader may change something.
    pub may_act: bool,
    /// Whether the reader has logged in.
    pub is_logged_in: bool,
    /// Whether the page is notified of changes.
    pub is_live: bool,
    /// Whether games can be played here.
    pub has_table: bool,
}

/// What is said on a page that is not refreshed.
const LOST: &str = "Not connected: this page is not refreshed until the server answers again.";

/// Which part of the dashboard a page belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Runs,
    Workers,
    Play,
    Neither,
}

/// A whole page. Everything within `#live` is replaced when something has changed.
fn page(frame: &Frame, part: Part, title: &str, body: &str) -> String {
    let title = escaped(title);
    let games = match part {
        Part::Play => "<script src=\"/assets/play.js\" defer></script>\n",
        _ if body.contains("class=\"game\"") => "<script src=\"/assets/games.js\" defer></script>\n",
        _ => "",
    };
    let stream = if frame.is_live { " data-stream=\"/api/v1/stream\"" } else { "" };
    let current = |own| if part == own { " aria-current=\"page\"" } else { "" };
    let play = if frame.has_table {
        format!(" <a href=\"/play\"{}>Play</a>", current(Part::Play))
    } else {
        String::new()
    };
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} · Atoll</title>\n\
         <link rel=\"stylesheet\" href=\"/assets/dashboard.css\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <script src=\"/assets/dashboard.js\" defer></script>\n{games}</head>\n<body{stream}>\n\
         <header class=\"bar\"><strong>Atoll</strong><nav aria-label=\"Dashboard\">\
         <a href=\"/\"{}>Runs</a> <a href=\"/workers\"{}>Workers</a>{play}</nav>\
         <span class=\"where\">{}</span>",
        current(Part::Runs),
        current(Part::Workers),
        escaped(&frame.place)
    );
    if frame.is_logged_in {
        page.push_str("<form method=\"post\" action=\"/logout\"><button>Log out</button></form>");
    }
    page.push_str("</header>\n");
    if frame.is_live {
        put!(page, "<p id=\"lost\" class=\"said bad\" role=\"status\" hidden>{LOST}</p>\n");
    }
    put!(page, "<main id=\"live\">\n{body}</main>\n");
    // Outside of what is replaced: a message stays until the next one.
    if frame.may_act {
        page.push_str("<p id=\"said\" class=\"said\" role=\"status\"></p>\n");
    }
    page + "</body>\n</html>\n"
}

/// The form that asks for a token, and the path that it leads to.
pub fn login(message: &str, next: &str) -> String {
    let message = if message.is_empty() {
        String::new()
    } else {
        format!("<p class=\"said bad\">{}</p>", escaped(message))
    };
    let body = format!(
        "<h1>Log in</h1>\n{message}<form class=\"login\" method=\"post\" action=\"/login\">\
         <input type=\"hidden\" name=\"next\" value=\"{}\">\
         <label for=\"token\">Token of a viewer or an operator</label>\
         <input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required>\
         <button>Log in</button></form>\n",
        escaped(next)
    );
    page(&Frame::default(), Part::Neither, "Log in", &body)
}

/// A page that cannot be shown, and why.
pub fn failed(frame: &Frame, title: &str, reason: &str) -> String {
    let body = format!("<h1>{}</h1>\n<p>{}</p>\n", escaped(title), crate::html::inline(reason));
    page(frame, Part::Neither, title, &body)
}

/// How long ago something was.
fn ago(frame: &Frame, at: u64) -> String {
    match frame.now.checked_sub(at) {
        _ if at == 0 => "–".to_owned(),
        Some(age) if age >= 48 * 3_600_000 => format!("{} days ago", age / 86_400_000),
        Some(age) if age >= 1000 => format!("{} ago", time(age)),
        _ => "just now".to_owned(),
    }
}

/// A state, in the colour of its kind.
fn state(word: &str) -> String {
    let word = escaped(word);
    format!("<span class=\"state {word}\">{word}</span>")
}

/// A text as a part of a query.
pub fn query(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => encoded.push(byte as char),
            other => put!(encoded, "%{other:02X}"),
        }
    }
    encoded
}

/// A button that sends an action, after a question if there is one.
fn button(page: &mut String, label: &str, path: &str, body: &str, question: &str) {
    let ask =
        if question.is_empty() { String::new() } else { format!(" data-confirm=\"{}\"", escaped(question)) };
    put!(
        page,
        "<button type=\"button\" data-post=\"{}\" data-body=\"{}\"{ask}>{}</button>",
        escaped(path),
        escaped(body),
        escaped(label)
    );
}
