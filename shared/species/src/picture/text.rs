//! Text that may stand in a picture.

/// Text as XML has it; characters that XML cannot hold at all become the replacement character.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Text of at most `length` characters; what is left out shows as an ellipsis.
pub(super) fn shortened(text: &str, length: usize) -> String {
    if text.chars().count() <= length {
        return text.to_owned();
    }
    text.chars().take(length - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_element() {
        assert_eq!(escaped("</text>&\"\u{0}\u{ffff}é"), "&lt;/text&gt;&amp;&quot;\u{fffd}\u{fffd}é");
    }

    #[test]
    fn long_text_is_shortened_by_characters() {
        assert_eq!(shortened("ünïcödé", 7), "ünïcödé");
        assert_eq!(shortened("ünïcödés", 7), "ünïcöd…");
    }
}
