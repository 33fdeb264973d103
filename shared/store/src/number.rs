//! Numbers in the names of objects.

/// Digits of a number in a name, so that names sort as numbers do.
const DIGITS: usize = 20;

/// A number as it stands in a name.
pub fn digits(number: u64) -> String {
    format!("{number:0DIGITS$}")
}

/// The number that a name holds: only exactly what [`digits`] writes, so that no two names mean one number.
pub fn parse(name: &str) -> Option<u64> {
    let is_canonical = name.len() == DIGITS && name.bytes().all(|b| b.is_ascii_digit());
    is_canonical.then(|| name.parse().ok())?
}
