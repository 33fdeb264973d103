//! What is wrong with a document, for people and for programs.

use super::source::{Excerpt, Source, Span, printable};
use serde::Serialize;
use std::fmt;

/// A report lists this many problems and then says that there are more.
pub const MAX_DIAGNOSTICS: usize = 100;

/// The longest key path that is printed whole, in characters.
const MAX_KEY_LENGTH: usize = 200;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The key path it concerns; empty for the document itself and for text that is no TOML.
    pub key: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// What was expected and what was found.
    pub message: String,
    /// What to do about it, where that is known.
    pub help: Option<String>,
    #[serde(skip)]
    excerpt: Option<Excerpt>,
}

impl Diagnostic {
    pub(super) fn new(source: &Source, span: &Span, key: &str, message: &str, help: Option<&str>) -> Self {
        let position = source.position(span.start);
        Self {
            key: visible(&shortened(key, MAX_KEY_LENGTH)),
            line: position.line,
            column: position.column,
            message: visible(message),
            help: help.map(visible),
            excerpt: source.excerpt(span),
        }
    }
}

fn visible(text: &str) -> String {
    text.chars().map(printable).collect()
}

/// A text cut to a number of characters.
pub(super) fn shortened(text: &str, length: usize) -> String {
    match text.char_indices().nth(length) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// All that is wrong with one document, in the order of its lines.
///
/// Printed, each problem is `FILE:LINE:COLUMN: KEY: message`, then the line with a marker, then a `help:` line
/// where there is something to advise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct Diagnostics {
    /// The name of the document, as it was given to [`parse`](super::parse).
    pub file: String,
    /// The first [`MAX_DIAGNOSTICS`] problems, at least one.
    pub problems: Vec<Diagnostic>,
    /// Whether there are more than those.
    pub more: bool,
}

impl Diagnostics {
    pub(super) fn new(file: &str, mut problems: Vec<Diagnostic>) -> Self {
        problems.sort_by_key(|problem| (problem.line, problem.column));
        problems.dedup();
        let more = problems.len() > MAX_DIAGNOSTICS;
        problems.truncate(MAX_DIAGNOSTICS);
        Self { file: file.to_owned(), problems, more }
    }
}

impl Diagnostics {
    /// The same without places in a text, for a text that its reader has not written.
    pub fn without_places(&self) -> String {
        let words = |Diagnostic { key, message, help, .. }: &Diagnostic| {
            let help = help.as_ref().map_or(String::new(), |help| format!(" ({help})"));
            if key.is_empty() { format!("{message}{help}") } else { format!("{key}: {message}{help}") }
        };
        self.problems.iter().map(words).collect::<Vec<String>>().join("; ")
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.problems.iter().enumerate() {
            if position > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{}:{problem}", self.file)?;
        }
        if self.more {
            write!(formatter, "\n{}: further problems are not shown", self.file)?;
        }
        Ok(())
    }
}

/// `LINE:COLUMN: KEY: message`, the marked line and the help, without a final newline.
impl fmt::Display for Diagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: ", self.line, self.column)?;
        if !self.key.is_empty() {
            write!(formatter, "{}: ", self.key)?;
        }
        formatter.write_str(&self.message)?;
        if let Some(Excerpt { text, indent, width }) = &self.excerpt {
            write!(formatter, "\n    {text}\n    {:indent$}{:^<width$}", "", "")?;
        }
        match &self.help {
            Some(help) => write!(formatter, "\n    help: {help}"),
            None => Ok(()),
        }
    }
}
