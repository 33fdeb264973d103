//! Games as text: Portable Draughts Notation, game type 21 (English checkers).
//!
//! A result names White first: `1-0` says that White won, `0-1` that Black won, although Black moves first.

mod reader;

pub use reader::{PdnError, PdnReason, read_pdn};

use crate::game::Outcome;
use crate::moves::Move;
use crate::position::{Position, Side};
use std::fmt;

/// How a recorded game ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PdnResult {
    /// `1-0`
    WhiteWon,
    /// `0-1`
    BlackWon,
    /// `1/2-1/2`
    Draw,
    /// `*`
    #[default]
    Unknown,
}

impl PdnResult {
    const ALL: [Self; 4] = [Self::WhiteWon, Self::BlackWon, Self::Draw, Self::Unknown];

    /// As it is written.
    pub const fn text(self) -> &'static str {
        match self {
            Self::WhiteWon => "1-0",
            Self::BlackWon => "0-1",
            Self::Draw => "1/2-1/2",
            Self::Unknown => "*",
        }
    }

    /// The result that is written like this.
    fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|result| result.text() == text)
    }
}

impl From<Option<Outcome>> for PdnResult {
    fn from(outcome: Option<Outcome>) -> Self {
        match outcome {
            Some(Outcome::Win(Side::White)) => Self::WhiteWon,
            Some(Outcome::Win(Side::Black)) => Self::BlackWon,
            Some(Outcome::Draw(_)) => Self::Draw,
            None => Self::Unknown,
        }
    }
}

/// A header line, `[name "value"]`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tag {
    /// Letters, digits and underscores.
    pub name: String,
    /// Any text of one line.
    pub value: String,
}

/// A remark in a game.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Comment {
    /// How many moves stand before it.
    pub after: usize,
    /// What it says, blanks at its ends aside.
    pub text: String,
}

/// A recorded game. Displayed, it is the text of a PDN file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PdnGame {
    /// The headers, but those that follow from the game itself: `GameType`, `Result`, `SetUp` and `FEN`.
    pub tags: Vec<Tag>,
    /// Where it starts.
    pub start: Position,
    /// The moves of the main line, legal one after the other.
    pub moves: Vec<Move>,
    /// Remarks, in the order of the moves.
    pub comments: Vec<Comment>,
    /// How it ended.
    pub result: PdnResult,
}

impl PdnGame {
    /// Headers that are written and read as something else than a [`Tag`].
    const OWN_TAGS: [&'static str; 4] = ["GameType", "Result", "SetUp", "FEN"];

    /// The value of a header.
    pub fn tag(&self, name: &str) -> Option<&str> {
        self.tags.iter().find(|tag| tag.name == name).map(|tag| tag.value.as_str())
    }

    /// The numbers, moves, remarks and result of the game, in order.
    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let mut comments = self.comments.iter().peekable();
        for ply in 0..=self.moves.len() {
            while let Some(comment) = comments.next_if(|comment| comment.after <= ply) {
                let text = comment.text.replace('}', ")");
                words.extend(format!("{{{text}}}").split_whitespace().map(str::to_owned));
            }
            let Some(mv) = self.moves.get(ply) else { break };
            if ply % 2 == 0 {
                words.push(format!("{}.", ply / 2 + 1));
            }
            words.push(mv.to_string());
        }
        words.push(self.result.text().to_owned());
        words
    }
}

impl fmt::Display for PdnGame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for tag in self.tags.iter().filter(|tag| !Self::OWN_TAGS.contains(&tag.name.as_str())) {
            write_tag(f, &tag.name, &tag.value)?;
        }
        write_tag(f, "GameType", "21")?;
        write_tag(f, "Result", self.result.text())?;
        if self.start != Position::START {
            write_tag(f, "SetUp", "1")?;
            write_tag(f, "FEN", &self.start.to_string())?;
        }
        writeln!(f)?;
        write_wrapped(f, &self.words())?;
        writeln!(f)
    }
}

fn write_tag(f: &mut fmt::Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace(['\n', '\r'], " ");
    writeln!(f, "[{name} \"{value}\"]")
}

/// Words separated by blanks, in lines of at most 80 characters where words allow it.
fn write_wrapped(f: &mut fmt::Formatter<'_>, words: &[String]) -> fmt::Result {
    const LINE: usize = 80;
    let mut column = 0;
    for word in words {
        let length = word.chars().count();
        let (separator, next) = match column {
            0 => ("", length),
            _ if column + 1 + length > LINE => ("\n", length),
            _ => (" ", column + 1 + length),
        };
        write!(f, "{separator}{word}")?;
        column = next;
    }
    writeln!(f)
}
