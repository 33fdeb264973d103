//! A limit on nesting, applied before anything is built that would have to be walked (or dropped) recursively.

use super::source::Span;
use toml_parser::Source;
use toml_parser::lexer::TokenKind;

/// The deepest nesting of tables and arrays in one header or one value.
pub(super) const MAX_DEPTH: usize = 64;

/// The first place that is nested deeper than [`MAX_DEPTH`].
///
/// The TOML parser limits brackets and dotted keys each for itself, but not their product: a dotted key in each of
/// many inline tables.
pub(super) fn first_too_deep(text: &str) -> Option<Span> {
    let mut levels = Levels::default();
    Source::new(text).lex().find_map(|token| {
        levels.count(token.kind());
        (levels.depth() > MAX_DEPTH).then(|| token.span().start()..token.span().end())
    })
}

/// Dots of the current key, for each open bracket and for the line itself.
#[derive(Default)]
struct Levels {
    outer_dots: Vec<usize>,
    dots: usize,
    outer_sum: usize,
}

impl Levels {
    fn depth(&self) -> usize {
        self.outer_dots.len() + self.outer_sum + self.dots
    }

    fn count(&mut self, kind: TokenKind) {
        match kind {
            TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => self.open(),
            TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket => self.close(),
            TokenKind::Dot => self.dots += 1,
            TokenKind::Comma | TokenKind::Newline => self.dots = 0,
            _ => {}
        }
    }

    fn open(&mut self) {
        self.outer_sum += self.dots;
        self.outer_dots.push(std::mem::take(&mut self.dots));
    }

    fn close(&mut self) {
        self.dots = self.outer_dots.pop().unwrap_or(0);
        self.outer_sum -= self.dots;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_and_dots_count_together() {
        assert_eq!(first_too_deep(&format!("a = {}{}", "[".repeat(64), "]".repeat(64))), None);
        assert_eq!(first_too_deep(&format!("a = {}", "[".repeat(65))), Some(68..69));
        assert_eq!(first_too_deep(&format!("a.b = {}", "[".repeat(64))), Some(69..70));
        assert!(first_too_deep(&"{a.a.a.a = ".repeat(20)).is_some());
    }

    #[test]
    fn what_stands_side_by_side_is_not_deep() {
        assert_eq!(first_too_deep(&"[a.b.c]\nx.y = [[1.5], [2.5]]\n".repeat(100)), None);
        assert_eq!(first_too_deep(&"]".repeat(100)), None);
    }
}
