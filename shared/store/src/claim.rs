//! The claim to a whole store: of many coordinators the last one that began keeps its runs.
//!
//! Claims are numbered objects that are only ever created, as events are. Who begins creates the number after the
//! highest; a coordinator that finds a number above its own has been succeeded, and stops. A coordinator that writes something
//! and then finds its claim still standing knows that its successor, who claims before it reads, will see it.

use crate::error::StoreError;
use crate::number;
use crate::object::Kind;
use crate::store::{Created, Store};
use object_store::path::Path;
use std::fmt;

const CLAIMS: &str = "claims";

/// Identifies one writer; each that claims a store or opens a journal draws one at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nonce(pub u128);

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

fn claim_path(number: u64) -> Path {
    Path::from(CLAIMS).join(number::digits(number))
}

fn claim_number(path: &Path) -> Option<u64> {
    let number = number::parse(path.as_ref().strip_prefix(CLAIMS)?.strip_prefix('/')?);
    // No claim could follow the last number there is: nobody has made that one.
    number.filter(|number| *number < u64::MAX)
}

/// The longest address that a claim holds.
const LONGEST_ADDRESS: usize = 300;

/// The number of the last claim.
async fn last(store: &Store) -> Result<Option<u64>, StoreError> {
    let claims = store.list(&Path::from(CLAIMS)).await?;
    Ok(claims.iter().filter_map(claim_number).max())
}

/// Who has a store, as far as the claims say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimOwner {
    /// The number of its claim.
    pub number: u64,
    /// Identifies it; its events carry it too.
    pub nonce: Nonce,
    /// Where it can be reached, as `HOST:PORT`; empty if it did not say.
    pub address: String,
}

/// The claim of one coordinator.
#[derive(Clone, Debug)]
pub struct Claim {
    store: Store,
    number: u64,
}

impl Claim {
    /// Claims a store: from now on, earlier claims are void. Others find the owner at its address, if it has one.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn take(store: &Store, owner: Nonce, address: &str) -> Result<Self, StoreError> {
        let address = if address.len() <= LONGEST_ADDRESS { address } else { "" };
        let mut number = last(store).await?.map_or(0, |last| last + 1);
        loop {
            let body = [&owner.0.to_le_bytes(), address.as_bytes()].concat();
            match store.create(&claim_path(number), Kind::Claim, body).await {
                Ok(Created::New | Created::Same) => return Ok(Self { store: store.clone(), number }),
                // Another coordinator began at the same time: the second one is the last.
                Err(StoreError::Differs { .. }) => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Who has claimed the store last.
    ///
    /// # Errors
    /// If the store fails. An address that cannot be read is none.
    pub async fn owner(store: &Store) -> Result<Option<ClaimOwner>, StoreError> {
        let Some(number) = last(store).await? else { return Ok(None) };
        let body = store.read_optional(&claim_path(number), Kind::Claim).await?.unwrap_or_default();
        let nonce = body.first_chunk().map_or(Nonce(0), |nonce| Nonce(u128::from_le_bytes(*nonce)));
        let address = body.get(16..).filter(|address| address.len() <= LONGEST_ADDRESS).unwrap_or_default();
        let address = std::str::from_utf8(address).unwrap_or_default().to_owned();
        Ok(Some(ClaimOwner { number, nonce, address }))
    }

    /// Which claim to the store this is; the first is 0.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether no other coordinator has claimed the store since.
    ///
    /// # Errors
    /// If the store fails: then it is unknown.
    pub async fn stands(&self) -> Result<bool, StoreError> {
        match self.store.size(&claim_path(self.number + 1)).await {
            Ok(_) => Ok(false),
            Err(error) if error.is_missing() => Ok(true),
            Err(error) => Err(error),
        }
    }
}
