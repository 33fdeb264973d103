//! Lines of the protocol: a command and its arguments, `go think` or `level time=60 inc="0.5"`.

use std::io::{self, BufRead, Read as _};

/// Longer lines are no lines of the protocol: a game of a thousand moves takes ten thousand characters.
const LONGEST: usize = 1 << 16;

/// A line, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    pub(crate) command: String,
    arguments: Vec<(String, String)>,
}

impl Line {
    pub(crate) fn parse(text: &str) -> Self {
        let text = text.trim();
        let (command, mut rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let mut arguments = Vec::new();
        loop {
            rest = rest.trim_start();
            if rest.is_empty() {
                return Self { command: command.to_owned(), arguments };
            }
            let (name, value, left) = argument(rest);
            arguments.push((name.to_owned(), value.to_owned()));
            rest = left;
        }
    }

    /// The value of an argument; empty if it stands there without one.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// The value of an argument as a number; a negative one counts as 0, a huge one as a thousand million.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        let number: f64 = self.value(name)?.parse().ok()?;
        number.is_finite().then(|| number.clamp(0.0, 1e9))
    }
}

/// The first argument of a text: its name, its value, and what follows.
fn argument(text: &str) -> (&str, &str, &str) {
    let end = text.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let Some(rest) = rest.strip_prefix('=') else { return (name, "", rest) };
    let (value, rest) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
        None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
    };
    (name, value, rest)
}

/// A value as an argument bears it.
pub(crate) fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace(['"', '\n', '\r'], "'"))
}

/// Reads a line; nothing at the end. A line that is too long, or no text, is an error.
pub(crate) fn read_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut text = String::new();
    let length = input.take(LONGEST as u64).read_line(&mut text)?;
    if length == LONGEST {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "expected a line of the protocol, found a longer one",
        ));
    }
    Ok((length > 0).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arguments_are_told_apart() {
        let line = Line::parse(" level  time=60.5 inc=\"0 5\" infinite  moves= ");
        assert_eq!(line.command, "level");
        assert_eq!(line.number("time"), Some(60.5));
        assert_eq!(line.value("inc"), Some("0 5"));
        assert_eq!(line.value("infinite"), Some(""));
        assert_eq!(line.value("moves"), Some(""));
        assert_eq!(line.value("depth"), None);
        assert_eq!(Line::parse("pos moves=\"11-15").value("moves"), Some("11-15"));
    }

    #[test]
    fn long_lines_are_refused() {
        let long = "x".repeat(1 << 17);
        assert!(read_line(&mut long.as_bytes()).is_err());
        let mut short: &[u8] = b"hub\nquit";
        assert_eq!(read_line(&mut short).unwrap(), Some("hub\n".to_owned()));
        assert_eq!(read_line(&mut short).unwrap(), Some("quit".to_owned()));
        assert_eq!(read_line(&mut short).unwrap(), None);
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart(text in "\\PC{0,60}|[a-z= \"]{0,40}") {
            Line::parse(&text);
        }
    }
}
