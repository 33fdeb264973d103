//! Reading PDN: what can't be read is named by line, column and reason.

use super::{Comment, PdnGame, PdnResult, Tag};
use crate::fen::FenError;
use crate::notation::MoveError;
use crate::position::Position;

/// Why a text is no PDN, and where (lines and columns counted from 1).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}, column {column}: {reason}")]
pub struct PdnError {
    /// The line, counted from 1.
    pub line: usize,
    /// The character in it, counted from 1.
    pub column: usize,
    /// What was expected there, and what was found.
    pub reason: PdnReason,
}

/// What is wrong with a PDN text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PdnReason {
    /// Something begins here and never ends.
    #[error("expected {0} before the end of the text, found none")]
    Unclosed(&'static str),
    /// A character that begins nothing.
    #[error("expected a header, a move, a comment or a result, found `{0}`")]
    Unexpected(char),
    /// A header that is not `[name "value"]`.
    #[error("expected a header such as [Event \"value\"], found `{0}`")]
    Header(String),
    /// A game of another kind.
    #[error("expected game type 21 (English checkers), found `{0}`")]
    GameType(String),
    /// A header that says how the game ended, in unknown words.
    #[error("expected a result of 1-0, 0-1, 1/2-1/2 or *, found `{0}`")]
    Result(String),
    /// The header and the end of the moves disagree.
    #[error("expected {}, as the header says, found `{}`", header.text(), end.text())]
    Disagreement {
        /// What the header says.
        header: PdnResult,
        /// What stands behind the last move.
        end: PdnResult,
    },
    /// The starting position can't be read.
    #[error("in the starting position, {0}")]
    Fen(FenError),
    /// A word that is no legal move.
    #[error(transparent)]
    Move(MoveError),
    /// The text ends, or another game begins, within a game.
    #[error("expected a result at the end of the game, found none")]
    Unfinished,
}

/// Reads all games of a text. Variations and numeric remarks are skipped, comments kept.
///
/// # Errors
/// At the first thing that can't be read.
pub fn read_pdn(text: &str) -> Result<Vec<PdnGame>, PdnError> {
    let mut reader = Reader { cursor: Cursor::new(text), game: None, games: Vec::new() };
    while reader.read_item()? {}
    reader.expect_no_game()?;
    Ok(reader.games)
}

/// A place in the text.
#[derive(Clone, Copy)]
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    fn error(self, reason: PdnReason) -> PdnError {
        PdnError { line: self.line, column: self.column, reason }
    }
}

/// The text and how far it has been read.
struct Cursor<'a> {
    rest: &'a str,
    place: Place,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        // Some programs put a byte order mark before everything.
        Self { rest: text.strip_prefix('\u{feff}').unwrap_or(text), place: Place { line: 1, column: 1 } }
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.rest = &self.rest[next.len_utf8()..];
        if next == '\n' {
            self.place = Place { line: self.place.line + 1, column: 1 };
        } else {
            self.place.column += 1;
        }
        Some(next)
    }

    fn skip_blanks(&mut self) {
        self.take_while(char::is_whitespace);
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let before = self.rest;
        while self.peek().is_some_and(&belongs) {
            self.next();
        }
        &before[..before.len() - self.rest.len()]
    }

    /// What stands up to `end`, which is skipped; nothing if it never comes.
    fn take_until(&mut self, end: char) -> Option<&'a str> {
        let taken = self.take_while(|c| c != end);
        self.next().map(|_| taken)
    }
}

/// The game being read, and what its header announced.
struct Draft {
    game: PdnGame,
    position: Position,
    announced: Option<PdnResult>,
    /// Moves have come: a header now would begin another game.
    under_way: bool,
}

impl Default for Draft {
    fn default() -> Self {
        Self { game: PdnGame::default(), position: Position::START, announced: None, under_way: false }
    }
}

struct Reader<'a> {
    cursor: Cursor<'a>,
    game: Option<Draft>,
    games: Vec<PdnGame>,
}

impl Reader<'_> {
    /// Reads the next thing; false at the end of the text.
    fn read_item(&mut self) -> Result<bool, PdnError> {
        self.cursor.skip_blanks();
        let place = self.cursor.place;
        let Some(first) = self.cursor.peek() else { return Ok(false) };
        match first {
            '[' => self.read_header(place)?,
            '{' => self.read_comment(place)?,
            ';' => self.read_line_comment(),
            '%' if place.column == 1 => drop(self.cursor.take_while(|c| c != '\n')),
            '(' => self.skip_variation(place)?,
            '$' => self.skip_numeric_remark(),
            '*' | '0'..='9' => self.read_word(place)?,
            other => return Err(place.error(PdnReason::Unexpected(other))),
        }
        Ok(true)
    }

    fn draft(&mut self) -> &mut Draft {
        self.game.get_or_insert_default()
    }

    fn expect_no_game(&self) -> Result<(), PdnError> {
        match self.game {
            Some(_) => Err(self.cursor.place.error(PdnReason::Unfinished)),
            None => Ok(()),
        }
    }

    fn read_header(&mut self, place: Place) -> Result<(), PdnError> {
        if self.game.as_ref().is_some_and(|draft| draft.under_way) {
            self.expect_no_game()?;
        }
        self.cursor.next();
        self.cursor.skip_blanks();
        let name = self.cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_').to_owned();
        self.cursor.skip_blanks();
        if name.is_empty() || self.cursor.next() != Some('"') {
            return Err(place.error(PdnReason::Header(name)));
        }
        let inside = self.cursor.place;
        let value =
            self.read_quoted().ok_or_else(|| place.error(PdnReason::Unclosed("the end of a header")))?;
        self.cursor.skip_blanks();
        if self.cursor.next() != Some(']') {
            return Err(place.error(PdnReason::Header(name)));
        }
        self.draft().set_header(Tag { name, value }).map_err(|reason| inside.error(reason))
    }

    /// The rest of a quoted value, in which a backslash guards quotes and itself; nothing if its line ends first.
    fn read_quoted(&mut self) -> Option<String> {
        let mut value = String::new();
        loop {
            match self.cursor.next()? {
                '"' => return Some(value),
                '\\' => value.push(self.cursor.next().filter(|c| *c != '\n')?),
                '\n' => return None,
                other => value.push(other),
            }
        }
    }

    fn read_comment(&mut self, place: Place) -> Result<(), PdnError> {
        self.cursor.next();
        let text = self.cursor.take_until('}');
        let text = text.ok_or_else(|| place.error(PdnReason::Unclosed("the `}` of a comment")))?;
        self.add_comment(text);
        Ok(())
    }

    fn read_line_comment(&mut self) {
        self.cursor.next();
        let text = self.cursor.take_while(|c| c != '\n');
        self.add_comment(text);
    }

    /// Keeps a remark, its blanks evened out; one before any header or move belongs to no game.
    fn add_comment(&mut self, text: &str) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('}', ")");
        if let Some(draft) = &mut self.game {
            draft.game.comments.push(Comment { after: draft.game.moves.len(), text });
        }
    }

    /// Skips a variation and all within it; its comments may contain brackets.
    fn skip_variation(&mut self, place: Place) -> Result<(), PdnError> {
        let mut open = 0_usize;
        while let Some(next) = self.cursor.next() {
            match next {
                '(' => open += 1,
                ')' => open -= 1,
                '{' => drop(self.cursor.take_until('}')),
                ';' => drop(self.cursor.take_while(|c| c != '\n')),
                _ => {}
            }
            if open == 0 {
                return Ok(());
            }
        }
        Err(place.error(PdnReason::Unclosed("the `)` of a variation")))
    }

    fn skip_numeric_remark(&mut self) {
        self.cursor.next();
        self.cursor.take_while(|c| c.is_ascii_digit());
    }

    /// A move number, a move, or the result.
    fn read_word(&mut self, place: Place) -> Result<(), PdnError> {
        let belongs = |c: char| !c.is_whitespace() && !"{}()[];$.\"".contains(c);
        let word = self.cursor.take_while(belongs);
        let is_number = word.bytes().all(|b| b.is_ascii_digit());
        if is_number && self.cursor.peek() == Some('.') {
            self.cursor.take_while(|c| c == '.');
            self.draft().under_way = true;
            return Ok(());
        }
        if let Some(result) = PdnResult::from_text(word) {
            return self.finish(result).map_err(|reason| place.error(reason));
        }
        let word = word.trim_end_matches(['!', '?']);
        self.draft().play(word).map_err(|error| place.error(PdnReason::Move(error)))
    }

    fn finish(&mut self, end: PdnResult) -> Result<(), PdnReason> {
        let mut draft = self.game.take().unwrap_or_default();
        match draft.announced {
            Some(header) if header != end => Err(PdnReason::Disagreement { header, end }),
            _ => {
                draft.game.result = end;
                self.games.push(draft.game);
                Ok(())
            }
        }
    }
}

impl Draft {
    fn set_header(&mut self, tag: Tag) -> Result<(), PdnReason> {
        match tag.name.as_str() {
            "GameType" => {
                let number = tag.value.split(',').next().unwrap_or_default().trim();
                if number != "21" {
                    return Err(PdnReason::GameType(tag.value));
                }
            }
            "Result" => {
                let result = PdnResult::from_text(&tag.value).ok_or(PdnReason::Result(tag.value))?;
                self.announced = Some(result);
            }
            "FEN" => {
                self.position = tag.value.parse().map_err(PdnReason::Fen)?;
                self.game.start = self.position;
            }
            "SetUp" => {}
            _ => self.game.tags.push(tag),
        }
        Ok(())
    }

    fn play(&mut self, word: &str) -> Result<(), MoveError> {
        let mv = self.position.parse_move(word)?;
        self.position = self.position.play(&mv);
        self.game.moves.push(mv);
        self.under_way = true;
        Ok(())
    }
}
