//! How values become bytes, in stores and on wires: the one place that knows `bincode`.
//!
//! Encoding the same value gives the same bytes, as long as its type holds no hash maps. Decoding trusts
//! nothing: every byte must be used, and a length that the input merely claims cannot make it allocate without
//! bound. The bound grows with the input:
//!
//! | bytes of input | memory for the value |
//! |----------------|----------------------|
//! | up to 16 KiB   | 1 MiB                |
//! | up to 256 KiB  | 16 MiB               |
//! | up to 4 MiB    | 256 MiB              |
//! | up to 256 MiB  | 4 GiB                |
//!
//! Two things follow for the types of bodies: a value may not need more memory than that, which is at least 16 times
//! its encoding (64 times up to 64 MiB), and there may be no lists of empty items (`Vec<()>`), which take no bytes
//! however many they are.

use bincode::config::{self, Configuration, Limit, LittleEndian, Varint};
use bincode::enc::write::Writer;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use bytes::Bytes;

/// The longest encoding of a value, in bytes.
pub const MAX_ENCODED: usize = 256 * MIB;

const MIB: usize = 1 << 20;

/// Why a value could not become bytes, or bytes a value.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// A type refused to be encoded.
    #[error("cannot be encoded: {0}")]
    Encode(EncodeError),
    /// The encoding is longer than any may be.
    #[error("is too large: {length} bytes, expected at most {MAX_ENCODED}")]
    TooLarge {
        /// The length of the encoding.
        length: usize,
    },
    /// The bytes end within a value.
    #[error("ends too early: at least {additional} bytes are missing of {length}")]
    EndsEarly {
        /// How many bytes more the next field needs.
        additional: usize,
        /// How many bytes there were.
        length: usize,
    },
    /// A length within the bytes claims more than they can hold.
    #[error("claims more items than {length} bytes can hold")]
    ClaimsTooMuch {
        /// How many bytes there were.
        length: usize,
    },
    /// The value has another encoding than the one that is written.
    #[error("is not in its usual encoding")]
    Unusual,
    /// A value was read, and bytes are left.
    #[error("has bytes after its value: expected {used}, found {length}")]
    BytesLeft {
        /// How many bytes the value took.
        used: usize,
        /// How many bytes there were.
        length: usize,
    },
    /// A field holds what its type cannot be.
    #[error("has an invalid field: {0}")]
    Invalid(DecodeError),
}

type Limited<const N: usize> = Configuration<LittleEndian, Varint, Limit<N>>;

const fn limited<const N: usize>() -> Limited<N> {
    config::standard().with_limit::<N>()
}

/// The bytes that hold `value`.
///
/// # Errors
/// If the value refuses to be encoded, or needs more than [`MAX_ENCODED`] bytes.
pub fn encode<T: Encode>(value: &T) -> Result<Bytes, CodecError> {
    let body = bincode::encode_to_vec(value, config::standard()).map_err(CodecError::Encode)?;
    check_length(body.len())?;
    Ok(body.into())
}

/// Whether the bytes are exactly those that [`encode`] makes of `value`: compared as they are made, so that nothing is allocated.
pub fn is_encoding<T: Encode>(value: &T, body: &[u8]) -> bool {
    let mut expected = Expected(body);
    let compared = bincode::encode_into_writer(value, &mut expected, config::standard());
    compared.is_ok() && expected.0.is_empty() && check_length(body.len()).is_ok()
}

/// The bytes that are still to be written.
struct Expected<'a>(&'a [u8]);

impl Writer for Expected<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0 = self.0.strip_prefix(bytes).ok_or(EncodeError::UnexpectedEnd)?;
        Ok(())
    }
}

/// The value that the bytes hold.
///
/// # Errors
/// If the bytes are not exactly the encoding of one value of this type.
pub fn decode<T: Decode<()>>(body: &[u8]) -> Result<T, CodecError> {
    let length = body.len();
    check_length(length)?;
    let (value, used) = decode_limited(body).map_err(|error| refusal(error, length))?;
    if used == length { Ok(value) } else { Err(CodecError::BytesLeft { used, length }) }
}

/// The same of a value that others have sent, which may take less memory: 4 times its encoding, rounded up to the next power
/// of 4 MiB, or 1 MiB up to 256 KiB. Lists of items that are far shorter encoded than in memory, such as empty lists, do not fit.
///
/// # Errors
/// As for [`decode`].
pub fn decode_dense<T: Decode<()>>(body: &[u8]) -> Result<T, CodecError> {
    let length = body.len();
    check_length(length)?;
    let decoded = match length {
        0..=0x4_0000 => bincode::decode_from_slice(body, limited::<MIB>()),
        0x4_0001..=0x10_0000 => bincode::decode_from_slice(body, limited::<{ 4 * MIB }>()),
        0x10_0001..=0x40_0000 => bincode::decode_from_slice(body, limited::<{ 16 * MIB }>()),
        0x40_0001..=0x100_0000 => bincode::decode_from_slice(body, limited::<{ 64 * MIB }>()),
        0x100_0001..=0x400_0000 => bincode::decode_from_slice(body, limited::<{ 256 * MIB }>()),
        _ => bincode::decode_from_slice(body, limited::<{ 1024 * MIB }>()),
    };
    let (value, used) = decoded.map_err(|error| refusal(error, length))?;
    if used == length { Ok(value) } else { Err(CodecError::BytesLeft { used, length }) }
}

/// The value that the bytes begin with, whatever follows it. It must be one of fixed or small size.
///
/// # Errors
/// If the bytes do not begin with the encoding of a value of this type.
pub fn decode_prefix<T: Decode<()>>(body: &[u8]) -> Result<T, CodecError> {
    let length = body.len();
    let decoded = bincode::decode_from_slice(body, limited::<MIB>());
    decoded.map(|(value, _)| value).map_err(|error| refusal(error, length))
}

fn check_length(length: usize) -> Result<(), CodecError> {
    if length > MAX_ENCODED { Err(CodecError::TooLarge { length }) } else { Ok(()) }
}

/// The limit is a constant of the decoder's type, hence this ladder of limits instead of one that is computed.
fn decode_limited<T: Decode<()>>(body: &[u8]) -> Result<(T, usize), DecodeError> {
    match body.len() {
        0..=0x4000 => bincode::decode_from_slice(body, limited::<MIB>()),
        0x4001..=0x4_0000 => bincode::decode_from_slice(body, limited::<{ 16 * MIB }>()),
        0x4_0001..=0x40_0000 => bincode::decode_from_slice(body, limited::<{ 256 * MIB }>()),
        _ => bincode::decode_from_slice(body, limited::<{ 4096 * MIB }>()),
    }
}

fn refusal(error: DecodeError, length: usize) -> CodecError {
    match error {
        DecodeError::UnexpectedEnd { additional } => CodecError::EndsEarly { additional, length },
        DecodeError::LimitExceeded => CodecError::ClaimsTooMuch { length },
        other => CodecError::Invalid(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// One field of every shape that bodies are made of.
    #[derive(Debug, Clone, PartialEq, Encode, Decode)]
    struct Sample {
        number: u64,
        weights: Vec<f32>,
        name: String,
        scores: BTreeMap<u16, Option<f64>>,
        nested: Vec<Vec<u32>>,
        shape: Shape,
    }

    #[derive(Debug, Clone, PartialEq, Encode, Decode)]
    enum Shape {
        Point,
        Line { from: i32, to: i32 },
        Text(String),
    }

    fn shape() -> impl Strategy<Value = Shape> {
        prop_oneof![
            Just(Shape::Point),
            any::<(i32, i32)>().prop_map(|(from, to)| Shape::Line { from, to }),
            ".{0,8}".prop_map(Shape::Text),
        ]
    }

    prop_compose! {
        fn sample()(
            number: u64,
            weights in prop::collection::vec(-1e30f32..1e30, 0..20),
            name in ".{0,12}",
            scores in prop::collection::btree_map(any::<u16>(), prop::option::of(-1e9f64..1e9), 0..6),
            nested in prop::collection::vec(prop::collection::vec(any::<u32>(), 0..4), 0..6),
            shape in shape(),
        ) -> Sample {
            Sample { number, weights, name, scores, nested, shape }
        }
    }

    #[test]
    fn the_encoding_is_pinned() {
        let sample = Sample {
            number: 300,
            weights: vec![1.0],
            name: "ab".into(),
            scores: BTreeMap::from([(7, None)]),
            nested: vec![vec![], vec![5]],
            shape: Shape::Line { from: -1, to: 1 },
        };
        let expected = [251, 44, 1, 1, 0, 0, 128, 63, 2, b'a', b'b', 1, 7, 0, 2, 0, 1, 5, 1, 1, 2];
        assert_eq!(encode(&sample).unwrap(), expected.as_slice());
        assert_eq!(decode::<Sample>(&expected).unwrap(), sample);
    }

    #[test]
    fn claimed_lengths_are_not_believed() {
        let length = [&[253][..], &u64::MAX.to_le_bytes()].concat();
        assert!(matches!(decode::<Vec<u64>>(&length), Err(CodecError::ClaimsTooMuch { length: 9 })));
        assert!(matches!(decode::<Vec<u8>>(&length), Err(CodecError::ClaimsTooMuch { .. })));
        assert!(matches!(decode::<String>(&length), Err(CodecError::ClaimsTooMuch { .. })));
        assert!(matches!(decode::<Vec<Vec<u8>>>(&length), Err(CodecError::ClaimsTooMuch { .. })));
        assert!(matches!(decode::<BTreeMap<u64, u64>>(&length), Err(CodecError::ClaimsTooMuch { .. })));
    }

    #[test]
    fn a_small_body_cannot_claim_much_memory() {
        let two_mebibytes = [&[252][..], &(2u32 << 20).to_le_bytes()].concat();
        assert!(matches!(decode::<Vec<u8>>(&two_mebibytes), Err(CodecError::ClaimsTooMuch { length: 5 })));
        let within_the_bound = [&[252][..], &1000u32.to_le_bytes()].concat();
        assert!(matches!(decode::<Vec<u8>>(&within_the_bound), Err(CodecError::EndsEarly { .. })));
    }

    #[test]
    fn what_others_send_takes_little_more_memory_than_its_bytes() {
        for count in [200_000, 3_000_000, 5_000_000] {
            let empty = encode(&vec![Vec::<u8>::new(); count]).unwrap();
            assert!(decode::<Vec<Vec<u8>>>(&empty).is_ok(), "{count}");
            let dense = decode_dense::<Vec<Vec<u8>>>(&empty);
            assert!(matches!(dense, Err(CodecError::ClaimsTooMuch { .. })), "{count}");
            let full = vec![1e9; count / 4];
            assert_eq!(decode_dense::<Vec<f64>>(&encode(&full).unwrap()).unwrap(), full);
        }
        assert!(matches!(decode_dense::<u8>(&[1, 2]), Err(CodecError::BytesLeft { .. })));
    }

    #[test]
    fn a_body_that_is_too_long_is_refused_unread() {
        let zeros = vec![0; MAX_ENCODED + 1];
        assert!(matches!(decode::<Vec<u8>>(&zeros), Err(CodecError::TooLarge { .. })));
    }

    #[test]
    fn errors_tell_short_from_long_from_wrong() {
        assert!(matches!(decode::<(u8, u8)>(&[1]), Err(CodecError::EndsEarly { length: 1, .. })));
        assert!(matches!(decode::<u8>(&[1, 2]), Err(CodecError::BytesLeft { used: 1, length: 2 })));
        assert!(matches!(decode::<bool>(&[2]), Err(CodecError::Invalid(_))));
        assert!(matches!(decode::<Shape>(&[3]), Err(CodecError::Invalid(_))));
        assert!(matches!(decode::<String>(&[1, 255]), Err(CodecError::Invalid(_))));
    }

    #[test]
    fn large_values_pass_every_rung_of_the_ladder() {
        for items in [10, 20_000, 300_000, 5_000_000] {
            let sparse = vec![0u64; items];
            assert_eq!(decode::<Vec<u64>>(&encode(&sparse).unwrap()).unwrap(), sparse);
        }
        let empty_lists: Vec<Vec<u8>> = vec![vec![]; 2_000_000];
        assert_eq!(decode::<Vec<Vec<u8>>>(&encode(&empty_lists).unwrap()).unwrap(), empty_lists);
    }

    proptest! {
        #[test]
        fn values_come_back(sample in sample()) {
            prop_assert_eq!(decode::<Sample>(&encode(&sample).unwrap()).unwrap(), sample);
        }

        #[test]
        fn a_value_has_one_encoding(sample in sample(), at: prop::sample::Index, change in 1u8..) {
            let body = encode(&sample).unwrap();
            prop_assert!(is_encoding(&sample, &body));
            prop_assert!(!is_encoding(&sample, &body[..body.len() - 1]));
            prop_assert!(!is_encoding(&sample, &[&body[..], &[change]].concat()));
            let mut altered = body.to_vec();
            altered[at.index(body.len())] ^= change;
            prop_assert!(!is_encoding(&sample, &altered));
        }

        #[test]
        fn cut_encodings_are_refused(sample in sample()) {
            let body = encode(&sample).unwrap();
            for len in 0..body.len() {
                prop_assert!(decode::<Sample>(&body[..len]).is_err());
            }
        }

        #[test]
        fn random_bytes_give_a_value_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(sample) = decode::<Sample>(&bytes) {
                prop_assert!(encode(&sample).unwrap().len() <= bytes.len());
            }
        }

        #[test]
        fn altered_encodings_give_a_value_or_an_error(sample in sample(), at: prop::sample::Index, byte: u8) {
            let mut body = encode(&sample).unwrap().to_vec();
            let at = at.index(body.len());
            body[at] = byte;
            if let Ok(other) = decode::<Sample>(&body) {
                prop_assert!(encode(&other).unwrap().len() <= body.len());
            }
        }
    }
}
