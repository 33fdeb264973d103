//! Key paths: how a message, a sweep axis or a rule names one value of a document.

use std::fmt;
use std::str::FromStr;

/// One step of a [`KeyPath`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Segment {
    /// Into a table, by key.
    Key(String),
    /// Into an array, by position counted from 0.
    Index(usize),
}

/// Where a value stands in a document: `islands.override[2].algorithm.population`.
///
/// Keys that TOML would have to quote are quoted here too: `sweep.axes."problem.turns"[0]`.
/// The empty path is the document itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPath {
    segments: Vec<Segment>,
}

/// A text that is no key path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at character {position} of the key path, found `{path}`")]
pub struct KeyPathError {
    path: String,
    expected: &'static str,
    position: usize,
}

impl KeyPath {
    /// The steps from the document to the value.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Whether this is the document itself.
    pub fn is_root(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) fn push_key(&mut self, key: &str) {
        self.segments.push(Segment::Key(key.to_owned()));
    }

    pub(super) fn push_index(&mut self, index: usize) {
        self.segments.push(Segment::Index(index));
    }

    pub(super) fn pop(&mut self) {
        self.segments.pop();
    }
}

fn is_bare(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '-' || character == '_'
}

/// A key as TOML writes it: bare where that is possible, in quotes otherwise.
pub(crate) fn written(key: &str) -> String {
    if !key.is_empty() && key.chars().all(is_bare) {
        key.to_owned()
    } else {
        serde_json::Value::from(key).to_string()
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, segment) in self.segments.iter().enumerate() {
            match segment {
                Segment::Key(key) if position == 0 => formatter.write_str(&written(key))?,
                Segment::Key(key) => write!(formatter, ".{}", written(key))?,
                Segment::Index(index) => write!(formatter, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl FromStr for KeyPath {
    type Err = KeyPathError;

    fn from_str(text: &str) -> Result<Self, KeyPathError> {
        let mut parser = Parser { text, position: 0 };
        let mut segments = Vec::new();
        while !parser.rest().is_empty() {
            segments.push(parser.segment(segments.is_empty())?);
        }
        Ok(Self { segments })
    }
}

struct Parser<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.position..]
    }

    fn segment(&mut self, first: bool) -> Result<Segment, KeyPathError> {
        if self.take("[") {
            return self.index();
        }
        if !first && !self.take(".") {
            return Err(self.error("`.` or `[`"));
        }
        if self.rest().starts_with('"') { self.quoted() } else { self.bare() }
    }

    fn index(&mut self) -> Result<Segment, KeyPathError> {
        let digits = self.take_while(|character| character.is_ascii_digit());
        let index = digits.parse().map_err(|_| self.error("an index"))?;
        if self.take("]") { Ok(Segment::Index(index)) } else { Err(self.error("`]`")) }
    }

    fn bare(&mut self) -> Result<Segment, KeyPathError> {
        let key = self.take_while(is_bare);
        if key.is_empty() { Err(self.error("a key")) } else { Ok(Segment::Key(key.to_owned())) }
    }

    fn quoted(&mut self) -> Result<Segment, KeyPathError> {
        let mut strings = serde_json::Deserializer::from_str(self.rest()).into_iter::<String>();
        let Some(Ok(key)) = strings.next() else { return Err(self.error("a quoted key")) };
        self.position += strings.byte_offset();
        Ok(Segment::Key(key))
    }

    fn take(&mut self, prefix: &str) -> bool {
        let found = self.rest().starts_with(prefix);
        self.position += if found { prefix.len() } else { 0 };
        found
    }

    fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|character| !accept(character)).unwrap_or(rest.len());
        self.position += end;
        &rest[..end]
    }

    fn error(&self, expected: &'static str) -> KeyPathError {
        let position = self.text[..self.position].chars().count() + 1;
        KeyPathError { path: self.text.to_owned(), expected, position }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_keys_quotes_and_indices() {
        let path: KeyPath = r#"sweep.axes."problem.turns"[10].x-y"#.parse().unwrap();
        let key = |key: &str| Segment::Key(key.to_owned());
        let expected = [key("sweep"), key("axes"), key("problem.turns"), Segment::Index(10), key("x-y")];
        assert_eq!(path.segments(), expected);
    }

    #[test]
    fn says_what_is_wrong_with_a_path() {
        let message = |text: &str| text.parse::<KeyPath>().unwrap_err().to_string();
        assert_eq!(message("a..b"), "expected a key at character 3 of the key path, found `a..b`");
        assert_eq!(message("a[x]"), "expected an index at character 3 of the key path, found `a[x]`");
        assert_eq!(message("a[1"), "expected `]` at character 4 of the key path, found `a[1`");
        assert_eq!(message("a[1]b"), "expected `.` or `[` at character 5 of the key path, found `a[1]b`");
        assert_eq!(message("\"a"), "expected a quoted key at character 1 of the key path, found `\"a`");
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(segments in prop::collection::vec(
            prop_oneof![any::<String>().prop_map(Segment::Key), (0usize..100).prop_map(Segment::Index)], 0..5,
        )) {
            let path = KeyPath { segments };
            prop_assert_eq!(path.to_string().parse::<KeyPath>().unwrap(), path);
        }
    }
}
