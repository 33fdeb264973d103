//! Numbers of documents and of schemas, compared exactly.

use std::cmp::Ordering;
use std::fmt;

/// A TOML or JSON number. Integers fit into an `i64` or a `u64`, floats are finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    Integer(i128),
    Float(f64),
}

impl Number {
    pub(super) fn from_json(number: &serde_json::Number) -> Option<Self> {
        let signed = number.as_i64().map(i128::from);
        let integer = signed.or_else(|| number.as_u64().map(i128::from)).map(Self::Integer);
        integer.or_else(|| number.as_f64().map(Self::Float))
    }

    pub(super) fn to_json(self) -> serde_json::Value {
        match self {
            Self::Integer(value) => match i64::try_from(value) {
                Ok(signed) => signed.into(),
                Err(_) => (value as u64).into(),
            },
            Self::Float(value) => value.into(),
        }
    }

    /// Integers exactly, anything else as floats.
    pub(super) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(left), Self::Integer(right)) => left.cmp(&right),
            _ => self.as_float().total_cmp(&other.as_float()),
        }
    }

    fn as_float(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            // Without its sign, zero is equal to itself.
            Self::Float(value) => value + 0.0,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(formatter),
            Self::Float(value) => write!(formatter, "{value:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compares_across_kinds() {
        let big = Number::Integer(i128::from(u64::MAX));
        assert_eq!(big.compare(Number::Integer(i128::from(u64::MAX) - 1)), Ordering::Greater);
        assert_eq!(Number::Integer(1).compare(Number::Float(1.5)), Ordering::Less);
        assert_eq!(Number::Float(-0.0).compare(Number::Integer(0)), Ordering::Equal);
    }

    #[test]
    fn json_keeps_all_64_bits() {
        for value in [i128::from(i64::MIN), -1, 0, i128::from(u64::MAX)] {
            let json = Number::Integer(value).to_json();
            assert_eq!(json.as_number().and_then(Number::from_json), Some(Number::Integer(value)));
        }
    }
}
