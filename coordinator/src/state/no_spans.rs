//! What stands for traces of epochs without the feature `otlp`: nothing.

use super::leases::Token;
use super::{Moment, Receipt};
use proto::convert::Work;

/// Nothing.
#[derive(Debug, Default)]
pub(crate) struct Spans {}

#[allow(clippy::unused_self, clippy::needless_pass_by_ref_mut, reason = "as with the feature")]
impl Spans {
    pub(crate) fn is_on(&self) -> bool {
        false
    }

    pub(crate) fn granted(&mut self, _: (&Work, u64), _: (&str, String), _: Token, _: Moment) {}

    pub(crate) fn ended(&mut self, _: &Work, _: &str, _: &'static str, _: Moment) {}

    pub(crate) fn accepted(&mut self, _: (&Work, u64), _: &Receipt, _: u64, _: Moment) {}

    pub(crate) fn durable(&mut self, _: &Receipt, _: Moment) {}

    pub(crate) fn forget_run<'a>(&mut self, _: &str, _: impl IntoIterator<Item = &'a Receipt>) {}

    pub(crate) fn counts(&self) -> Option<(u64, u64)> {
        None
    }
}
