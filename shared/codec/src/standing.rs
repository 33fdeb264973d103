//! Where an island stands.

use crate::encoding::{CodecError, decode_prefix};
use bincode::{Decode, Encode};
use std::hash::{Hash, Hasher};

/// Where an island stands: what stopping rules look at.
#[derive(Clone, Copy, Debug, PartialEq, Encode, Decode)]
pub struct Standing {
    /// The generations it has lived through.
    pub generation: u64,
    /// The evaluations it has spent.
    pub evaluations: u64,
    /// The fitness of its champion; never NaN.
    pub best: f64,
}

impl Standing {
    /// The standing of an island before its founding.
    pub const UNFOUNDED: Self = Self { generation: 0, evaluations: 0, best: f64::NEG_INFINITY };
}

impl Standing {
    /// The standing that an island's state, or a checkpoint inside an epoch, begins with.
    ///
    /// # Errors
    /// If the bytes are none, or the fitness is not a number.
    pub fn of_state(state: &[u8]) -> Result<Self, CodecError> {
        let standing: Self = decode_prefix(state)?;
        if standing.best.is_nan() {
            let nan = bincode::error::DecodeError::Other("a fitness that is not a number");
            return Err(CodecError::Invalid(nan));
        }
        Ok(standing)
    }
}

impl Eq for Standing {}

impl Hash for Standing {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // Adding zero makes one of the two zeros, which are equal.
        (self.generation, self.evaluations, (self.best + 0.0).to_bits()).hash(hasher);
    }
}
