//! The text of a document: from byte offsets to lines, columns and excerpts for people.

use std::ops::Range;
use std::sync::Arc;

/// Bytes of the text, from the first to one past the last.
pub(super) type Span = Range<usize>;

/// How much of a line an excerpt shows, in characters.
const EXCERPT_WIDTH: usize = 100;
/// How much of it stands before the marker when the line is cut.
const EXCERPT_LEAD: usize = 40;

/// A text with the offsets at which its lines begin.
#[derive(Clone, Debug)]
pub(super) struct Source {
    text: Arc<str>,
    line_starts: Arc<[usize]>,
}

/// Line and column, both counted from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// One line of the text, cut to a bearable width, and what is marked in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub(super) text: String,
    /// Characters before the marker.
    pub(super) indent: usize,
    /// Characters under the marker, at least one.
    pub(super) width: usize,
}

impl Source {
    pub(super) fn new(text: &str) -> Self {
        let after_newlines = text.match_indices('\n').map(|(offset, _)| offset + 1);
        Self { text: text.into(), line_starts: std::iter::once(0).chain(after_newlines).collect() }
    }

    pub(super) fn text(&self, span: &Span) -> &str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    /// A line by its number, without its end.
    pub(super) fn line(&self, line: usize) -> &str {
        self.text[self.line_starts[line - 1]..].lines().next().unwrap_or_default()
    }

    /// Where the next line begins that looks like a table's header, or the end of the text.
    pub(super) fn next_header(&self, offset: usize) -> usize {
        let rest = self.text.get(offset..).unwrap_or_default();
        rest.find("\n[").map_or(self.text.len(), |distance| offset + distance + 1)
    }

    pub(super) fn position(&self, offset: usize) -> Position {
        let line = self.line_of(offset);
        let start = self.line_starts[line];
        let offset = self.text.floor_char_boundary(offset).max(start);
        Position { line: line + 1, column: self.text[start..offset].chars().count() + 1 }
    }

    /// The line at which a span begins. The document itself has no line that would show it.
    pub(super) fn excerpt(&self, span: &Span) -> Option<Excerpt> {
        if span.end == 0 {
            return None;
        }
        let Position { line, column } = self.position(span.start);
        let start = self.line_starts[line - 1];
        let content = self.line(line);
        let end = self.text.floor_char_boundary(span.end).min(start + content.len());
        let before = column - 1;
        let marked = self.text.get(span.start..end).map_or(0, |marked| marked.chars().count());
        Some(cut(content, before, marked.max(1)))
    }

    fn line_of(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset) - 1
    }
}

/// The part of a line around what is marked.
fn cut(line: &str, before: usize, marked: usize) -> Excerpt {
    let length = line.chars().count();
    let skipped = if length > EXCERPT_WIDTH { before.saturating_sub(EXCERPT_LEAD) } else { 0 };
    let mut text: String = line.chars().skip(skipped).take(EXCERPT_WIDTH).map(printable).collect();
    let shown = text.chars().count();
    let width = marked.min(shown.saturating_sub(before - skipped)).max(1);
    if skipped + shown < length {
        text.push('…');
    }
    let lead = if skipped > 0 { "…" } else { "" };
    Excerpt { text: format!("{lead}{text}"), indent: before - skipped + lead.chars().count(), width }
}

/// Tabs would move the marker, and control characters could steer the reader's terminal.
pub(super) fn printable(character: char) -> char {
    match character {
        '\t' => ' ',
        control if control.is_control() => '\u{fffd}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lines_and_characters() {
        let source = Source::new("a\nä = 1\n");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(2), Position { line: 2, column: 1 });
        assert_eq!(source.position(4), Position { line: 2, column: 2 });
        assert_eq!(source.position(99), Position { line: 3, column: 1 });
    }

    #[test]
    fn marks_at_most_one_line() {
        let source = Source::new("key = [\n1,\n]\r\n");
        assert_eq!(source.excerpt(&(6..12)), Some(Excerpt { text: "key = [".into(), indent: 6, width: 1 }));
        assert_eq!(source.excerpt(&(11..14)), Some(Excerpt { text: "]".into(), indent: 0, width: 1 }));
    }

    #[test]
    fn cuts_long_lines_around_the_marker() {
        let line = format!("{}bad{}", "x".repeat(500), "y".repeat(500));
        let excerpt = Source::new(&line).excerpt(&(500..503)).unwrap();
        assert_eq!(excerpt.text, format!("…{}bad{}…", "x".repeat(40), "y".repeat(57)));
        assert_eq!((excerpt.indent, excerpt.width), (41, 3));
    }

    #[test]
    fn hides_control_characters() {
        assert_eq!(Source::new("\ta\u{1b}[2J").excerpt(&(1..2)).unwrap().text, " a\u{fffd}[2J");
    }
}
