//! When a certificate expires: the one field of X.509 that is not in what rustls shows.

/// The tag of a sequence, of the version of a certificate, and of the two kinds of times.
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The end of a certificate's validity, in seconds since 1970; nothing if it cannot be read.
pub(crate) fn of(certificate: &[u8]) -> Option<u64> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut fields, _) = element(certificate)?;
    // A version, if there is one; a serial number, an algorithm and an issuer.
    let skipped = if *fields.first()? == VERSION { 4 } else { 3 };
    for _ in 0..skipped {
        fields = element(fields)?.2;
    }
    let (SEQUENCE, validity, _) = element(fields)? else { return None };
    let (_, _, rest) = element(validity)?;
    let (tag, text, _) = element(rest)?;
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    match tag {
        // Two digits of the year: RFC 5280 has them stand for 1950 to 2049.
        UTC_TIME if text.len() == 12 => {
            let year = number(text, 0, 2)?;
            seconds(if year < 50 { 2000 + year } else { 1900 + year }, &text[2..])
        }
        GENERALIZED_TIME if text.len() == 14 => seconds(number(text, 0, 4)?, &text[4..]),
        _ => None,
    }
}

/// The tag of the first element, its content, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

fn number(text: &str, from: usize, to: usize) -> Option<u64> {
    text.get(from..to)?.parse().ok()
}

/// Seconds since 1970 of a year and `MMDDHHMMSS`.
fn seconds(year: u64, rest: &str) -> Option<u64> {
    let part = |index: usize| number(rest, 2 * index, 2 * index + 2);
    let (month, day) = (part(0)?, part(1)?);
    let time = part(2)? * 3600 + part(3)? * 60 + part(4)?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || !(1970..10_000).contains(&year) {
        return None;
    }
    // Years that begin in March end with the leap day.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some((days - 719_468) * 86_400 + time)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate with nothing in it but the end of its validity.
    fn certificate(tag: u8, time: &str) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| [&[tag, content.len() as u8], content].concat();
        let times = [wrap(UTC_TIME, b"200101000000Z"), wrap(tag, time.as_bytes())].concat();
        let before = [vec![VERSION, 0], vec![2, 1, 1], vec![SEQUENCE, 0], vec![SEQUENCE, 0]].concat();
        wrap(SEQUENCE, &wrap(SEQUENCE, &[before, wrap(SEQUENCE, &times)].concat()))
    }

    #[test]
    fn the_end_of_validity_is_read() {
        for (tag, time, expected) in [
            (UTC_TIME, "700101000000Z", Some(0)),
            (UTC_TIME, "240229123456Z", Some(1_709_210_096)),
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (GENERALIZED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALIZED_TIME, "99991231235959Z", Some(253_402_300_799)),
            (GENERALIZED_TIME, "20501301000000Z", None),
            (UTC_TIME, "2402291234Z", None),
        ] {
            assert_eq!(of(&certificate(tag, time)), expected, "{time}");
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        let whole = certificate(UTC_TIME, "240229123456Z");
        for length in 0..whole.len() {
            assert_eq!(of(&whole[..length]), None);
        }
        for byte in 0..=255 {
            let _ = of(&[byte; 64]);
        }
    }
}
