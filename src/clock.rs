//! The wall clock, read in one place.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}

/// A time as `2026-11-16 05:20:00` in UTC.
pub(crate) fn show(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The year, month and day of a time in UTC.
pub(crate) fn date(milliseconds: u64) -> (u64, u64, u64) {
    civil(milliseconds / 86_400_000)
}

/// The date of a day since 1970 in the Gregorian calendar: whole 400-year cycles first, then years from March, so
/// that the leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let from_march_0 = days + 719_468;
    let (cycle, day_of_cycle) = (from_march_0 / 146_097, from_march_0 % 146_097);
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36_524 - day_of_cycle / 146_096) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (cycle * 400 + year_of_cycle + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::show;

    #[test]
    fn known_times() {
        assert_eq!(show(0), "1970-01-01 00:00:00");
        assert_eq!(show(951_782_400_000), "2000-02-29 00:00:00");
        assert_eq!(show(1_234_567_890_000), "2009-02-13 23:31:30");
        assert_eq!(show(4_107_542_399_000), "2100-02-28 23:59:59");
        assert_eq!(show(4_107_542_400_000), "2100-03-01 00:00:00");
    }
}
