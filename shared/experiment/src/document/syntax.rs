//! What the TOML parser did not understand, one problem for each mistake.

use super::diagnostics::{Diagnostic, MAX_DIAGNOSTICS};
use super::source::{Source, Span};
use super::suggest::quoted;
use toml::de::Error;

const DUPLICATE: &str = "duplicate key";

/// At most one problem a line, because what follows on the same line mostly follows from it; and none for the keys
/// of a table that is itself there twice.
pub(super) fn problems(source: &Source, errors: Vec<Error>) -> Vec<Diagnostic> {
    let mut errors: Vec<(Span, Error)> =
        errors.into_iter().map(|error| (error.span().unwrap_or(0..0), error)).collect();
    errors.sort_by_key(|(span, _)| span.start);
    let mut problems: Vec<Diagnostic> = Vec::new();
    let mut repeated = 0..0;
    for (span, error) in errors {
        let is_duplicate = error.message() == DUPLICATE;
        let line = source.position(span.start).line;
        let follows = is_duplicate && repeated.contains(&span.start);
        if follows || problems.last().is_some_and(|last| last.line == line) {
            continue;
        }
        if is_duplicate && source.line(line).starts_with('[') {
            repeated = span.end..source.next_header(span.end);
        }
        problems.push(Diagnostic::new(
            source,
            &span,
            "",
            &message(error.message(), source.text(&span)),
            None,
        ));
        if problems.len() > MAX_DIAGNOSTICS {
            break;
        }
    }
    problems
}

/// The parser's words, with what it found; a value that is not there at all it takes for an unquoted string.
fn message(message: &str, found: &str) -> String {
    match found.lines().next().unwrap_or_default() {
        "" if message.starts_with("string values must be quoted") => {
            "expected a value, found nothing".to_owned()
        }
        "" => message.to_owned(),
        found if message == DUPLICATE => format!("expected each key once, found {} again", quoted(found)),
        found => format!("{message}, found {}", quoted(found)),
    }
}
