//! The wall clock, read in one place.

use chrono::{DateTime, Datelike, Utc};
use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// A time as `2026-11-16 05:20:00` in UTC.
pub(crate) fn show(milliseconds: u64) -> String {
    calendar(milliseconds).format("%Y-%m-%d %H:%M:%S").to_string()
}

/// The same for programs, as `2026-11-16T05:20:00Z`.
pub(crate) fn iso(milliseconds: u64) -> String {
    calendar(milliseconds).format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The year, month and day of a time in UTC.
pub(crate) fn date(milliseconds: u64) -> (u64, u64, u64) {
    let date = calendar(milliseconds);
    (u64::from(date.year().unsigned_abs()), date.month().into(), date.day().into())
}

/// A time that is later than the calendar goes is its last.
fn calendar(milliseconds: u64) -> DateTime<Utc> {
    let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    DateTime::from_timestamp_millis(milliseconds).unwrap_or(DateTime::<Utc>::MAX_UTC)
}

#[cfg(test)]
mod tests {
    use super::{iso, show};

    #[test]
    fn known_times() {
        assert_eq!(show(0), "1970-01-01 00:00:00");
        assert_eq!(iso(1_234_567_890_000), "2009-02-13T23:31:30Z");
        assert_eq!(show(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(show(1_234_567_890_000), "2009-02-13 23:31:30");
        assert_eq!(show(4_107_542_399_000), "2100-02-28 23:59:59");
        assert_eq!(show(4_107_542_400_000), "2100-03-01 00:00:00");
    }
}
