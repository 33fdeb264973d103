//! Times as people write them: `30s`, `8h`, `1h 30m`.

use std::time::Duration;

/// A text that is no time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a time such as `30s`, `90m` or `1h 30m`, found `{0}`")]
pub struct DurationError(String);

/// The time that a text spells, at most about 30 years.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let error = || DurationError(text.chars().take(60).collect());
    let mut milliseconds = 0u64;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(error());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(error)?;
        let number: u64 = rest[..digits].parse().map_err(|_| error())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit: u64 = match &rest[..letters] {
            "ms" => 1,
            "s" => 1000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(error()),
        };
        let part = number.checked_mul(unit).ok_or_else(error)?;
        milliseconds = milliseconds.checked_add(part).ok_or_else(error)?;
        rest = rest[letters..].trim_start();
    }
    if milliseconds > 1_000_000_000_000 { Err(error()) } else { Ok(Duration::from_millis(milliseconds)) }
}

/// A time in few words: `1h 05m`, `12.3s`.
pub fn show(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.1}s", time.as_secs_f64()),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h {:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d {:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_are_understood() {
        assert_eq!(parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("1h 30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse(" 1h30m5s "), Ok(Duration::from_secs(5405)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        for wrong in
            ["", "  ", "s", "5", "5 s", "-3s", "1.5h", "3 fortnights", "99999999999999999999s", "9e9h"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_shown() {
        assert_eq!(show(Duration::from_millis(1234)), "1.2s");
        assert_eq!(show(Duration::from_secs(3905)), "1h 05m");
        assert_eq!(show(Duration::from_secs(90_000)), "1d 01h");
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*") {
            let _ = parse(&text);
        }
    }
}
