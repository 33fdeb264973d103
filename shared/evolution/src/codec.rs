//! How values become bytes, in stores and on wires: the only place that calls `bincode`.

use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use bincode::{Decode, Encode};

/// The largest value that is read: without a limit a hostile length would be believed.
pub const LIMIT: usize = 1 << 30;

const CONFIG: Configuration<LittleEndian, Fixint, Limit<LIMIT>> =
    bincode::config::standard().with_little_endian().with_fixed_int_encoding().with_limit::<LIMIT>();

/// Bytes that are not what they should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// They do not spell the value.
    #[error("expected {expected}, found bytes that do not decode: {reason}")]
    Malformed {
        /// The type that was expected.
        expected: &'static str,
        /// What `bincode` says.
        reason: String,
    },
    /// Something follows the value.
    #[error("expected {expected} of {used} bytes, found {found} bytes")]
    Trailing {
        /// The type that was expected.
        expected: &'static str,
        /// The bytes that the value takes.
        used: usize,
        /// The bytes there are.
        found: usize,
    },
}

/// The bytes of a value.
pub fn encode<T: Encode>(value: &T) -> Vec<u8> {
    let unlimited = CONFIG.with_no_limit();
    bincode::encode_to_vec(value, unlimited).expect("writing into memory fails for no value of ours")
}

/// The value that all of the bytes spell.
pub fn decode<T: Decode<()>>(bytes: &[u8]) -> Result<T, DecodeError> {
    let expected = std::any::type_name::<T>();
    let (value, used) = bincode::decode_from_slice(bytes, CONFIG)
        .map_err(|error| DecodeError::Malformed { expected, reason: error.to_string() })?;
    if used == bytes.len() {
        Ok(value)
    } else {
        Err(DecodeError::Trailing { expected, used, found: bytes.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_come_back(value: (u64, Vec<u8>, Option<String>, Vec<f64>)) {
            prop_assume!(value.3.iter().all(|number| !number.is_nan()));
            let bytes = encode(&value);
            prop_assert_eq!(decode(&bytes), Ok(value));
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes: Vec<u8>) {
            let _ = decode::<(Vec<u64>, Vec<String>, Option<Vec<f64>>)>(&bytes);
        }
    }

    #[test]
    fn hostile_lengths_are_refused() {
        let bytes = u64::MAX.to_le_bytes();
        assert!(matches!(decode::<Vec<u64>>(&bytes), Err(DecodeError::Malformed { .. })));
        let bytes = (LIMIT as u64 / 8 - 10).to_le_bytes();
        assert!(matches!(decode::<Vec<u64>>(&bytes), Err(DecodeError::Malformed { .. })));
    }

    #[test]
    fn trailing_bytes_are_refused() {
        let mut bytes = encode(&7u32);
        bytes.push(0);
        assert!(matches!(decode::<u32>(&bytes), Err(DecodeError::Trailing { used: 4, found: 5, .. })));
    }
}
