//! Numbers and names as people read them, and texts that stay texts.

/// Writes into a string, which takes whatever is written.
macro_rules! put {
    ($text:expr, $($argument:tt)*) => {{
        use std::fmt::Write as _;
        write!($text, $($argument)*).expect("a string takes whatever is written")
    }};
}
pub(crate) use put;

/// A number with as many digits as tell it from its neighbours; a dash where there is none.
pub fn number(number: f64) -> String {
    if !number.is_finite() {
        "–".to_owned()
    } else if number == 0.0 {
        // Without the sign that a zero may have.
        "0".to_owned()
    } else if number.fract() == 0.0 && number.abs() < 1e15 {
        format!("{number}")
    } else if number.abs() >= 1e-3 && number.abs() < 1e9 {
        let digits = match number.abs() {
            size if size >= 1000.0 => 1,
            size if size >= 10.0 => 4,
            _ => 6,
        };
        let text = format!("{number:.digits$}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        format!("{number:.3e}")
    }
}

/// A measured number, such as a deviation, with no more digits than it means.
pub fn rounded(value: f64, digits: usize) -> String {
    let text = format!("{value:.*e}", digits.saturating_sub(1));
    number(text.parse().unwrap_or(value))
}

/// A number of things: `1 epoch`, `2 epochs`.
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// How often something happened: `1 time`, `2 times`.
pub fn times(number: u64) -> String {
    counted(number, "time")
}

/// How far a search looks: `1 ply`, `2 plies`.
pub fn plies(number: u32) -> String {
    if number == 1 { "1 ply".to_owned() } else { format!("{} plies", count(number.into())) }
}

/// A count with its thousands apart: `12 345`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A share in percent.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "–".to_owned() } else { format!("{:.1} %", 100.0 * part as f64 / whole as f64) }
}

/// A time as `1h 02m`, `3m 07s`, `4.2s` or `35ms`.
pub fn time(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0 => format!("{milliseconds}ms"),
        1..=59 => format!("{:.1}s", milliseconds as f64 / 1000.0),
        60..=3599 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

/// A point in time, in milliseconds since 1970, as `2026-11-16 05:20:00` in UTC.
pub fn moment(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (days, second) = ((seconds / 86_400) as i64, seconds % 86_400);
    // Years begin in March here, so that the day that leap years have more is their last.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// The reverse of [`moment()`]: also with a `T` between date and time, and without seconds.
pub fn parse_moment(text: &str) -> Option<u64> {
    let (date, time) = text.trim_end_matches('Z').split_once([' ', 'T'])?;
    let numbers = |text: &str, separator: char| -> Option<Vec<u64>> {
        let parts = text.split(separator);
        parts.map(|part| part.parse().ok().filter(|_| (1..=4).contains(&part.len()))).collect()
    };
    let (date, time) = (numbers(date, '-')?, numbers(time, ':')?);
    let ([year, month, day], [hour, minute, rest @ ..]) = (date.as_slice(), time.as_slice()) else {
        return None;
    };
    let second = match rest {
        [] => 0,
        [second] => *second,
        _ => return None,
    };
    let is_time = *hour < 24 && *minute < 60 && second < 60;
    if !is_time || !(1..=12).contains(month) || !(1..=31).contains(day) || *year < 1970 {
        return None;
    }
    let years = if *month <= 2 { year - 1 } else { *year };
    let (era, year_of_era) = (years / 400, years % 400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let seconds = days.checked_sub(719_468)? * 86_400 + hour * 3600 + minute * 60 + second;
    let milliseconds = seconds * 1000;
    // The 31st of a month that has 30 days is none.
    moment(milliseconds).starts_with(&format!("{year:04}-{month:02}-{day:02} ")).then_some(milliseconds)
}

/// As much of a text as there is room for, in characters.
pub fn shortened(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A text of others on one line of a terminal: whatever steers a terminal, or turns the direction of writing, is a blank.
pub fn plain(text: &str) -> String {
    let steers = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().map(|c| if steers(c) { ' ' } else { c }).collect()
}

/// A text that HTML and SVG show as it is. What XML cannot hold at all becomes a replacement character.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(character),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The parts of a text in turn: plain, code, plain and so on.
pub(crate) fn spans(text: &str) -> impl Iterator<Item = (bool, &str)> {
    text.split('`').enumerate().map(|(at, span)| (at % 2 == 1, span)).filter(|(_, span)| !span.is_empty())
}

/// A name as code within a text, whatever it holds.
pub fn code(name: &str) -> String {
    format!("`{}`", name.replace('`', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_others_steer_no_terminal() {
        assert_eq!(plain("a\x1b[31mb\nc\u{9b}d\u{202e}e é"), "a [31mb c d e é");
    }
    use proptest::prelude::*;

    #[test]
    fn singular_and_plural_are_right() {
        assert_eq!([0, 1, 2, 12_345].map(times), ["0 times", "1 time", "2 times", "12\u{202f}345 times"]);
        assert_eq!([1, 4].map(plies), ["1 ply", "4 plies"]);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!([number(359.0), number(0.5), number(-1e-9)], ["359", "0.5", "-1.000e-9"]);
        assert_eq!([number(0.999_999_96), number(-0.5)], ["1", "-0.5"], "no point without digits behind it");
        assert_eq!(number(0.999_994), "0.999994", "nearly all is not all");
        assert_eq!(
            [rounded(0.345_678_9, 3), rounded(5.656_854, 3), rounded(77.0, 3)],
            ["0.346", "5.66", "77"]
        );
        assert_eq!([rounded(f64::NAN, 3), rounded(-0.000_123_456, 3)], ["–", "-1.230e-4"]);
        assert_eq!([number(1234.5678), number(f64::NEG_INFINITY), number(-0.0)], ["1234.6", "–", "0"]);
        assert_eq!(
            [count(7), count(1000), count(32_016_000)],
            ["7", "1\u{202f}000", "32\u{202f}016\u{202f}000"]
        );
        assert_eq!(
            [time(35), time(4200), time(187_000), time(3_720_000)],
            ["35ms", "4.2s", "3m 07s", "1h 02m"]
        );
        assert_eq!([percent(1, 4), percent(1, 0)], ["25.0 %", "–"]);
    }

    #[test]
    fn points_in_time_are_those_of_the_calendar() {
        assert_eq!(moment(0), "1970-01-01 00:00:00");
        assert_eq!(moment(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(moment(1_234_567_890_999), "2009-02-13 23:31:30");
        assert_eq!(
            [moment(4_107_542_399_000), moment(4_107_542_400_000)],
            ["2100-02-28 23:59:59", "2100-03-01 00:00:00"]
        );
    }

    #[test]
    fn times_are_read_as_they_are_written() {
        for at in [0, 951_782_400_000, 1_234_567_890_000, 4_107_542_400_000] {
            assert_eq!(parse_moment(&moment(at)), Some(at));
        }
        assert_eq!(parse_moment("2009-02-13T23:31"), Some(1_234_567_860_000));
        for bad in [
            "",
            "2026-02-30 00:00:00",
            "2026-13-01T00:00",
            "1969-01-01T00:00",
            "2026-01-01",
            "99999-01-01T00:00",
        ] {
            assert_eq!(parse_moment(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_escaped_holds_no_markup(text in any::<String>()) {
            let escaped = escaped(&text);
            prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
        }
    }
}
