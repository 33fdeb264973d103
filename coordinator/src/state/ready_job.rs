//! A job whose inputs are there, and digested: that may take a while, and is done before the state gets it.

use super::reply_budget::ReplyBudget;
use archipelago::job::Job;
use bytes::Bytes;
use evolution::codec;
use evolution::digest::Digest;
use proto::convert::{digest_bytes, named_body};
use proto::v1;

pub(crate) struct ReadyJob {
    job: Job,
    inputs: Vec<(Digest, Bytes)>,
    digest: Digest,
}

impl ReadyJob {
    pub(crate) fn new(job: Job, inputs: Vec<Bytes>) -> Self {
        let digest = job.inputs(&inputs);
        let inputs = inputs.into_iter().map(|input| (Digest::of(&input), input)).collect();
        Self { job, inputs, digest }
    }

    pub(crate) fn job(&self) -> &Job {
        &self.job
    }

    /// Whether these are its inputs, as far as they are known.
    pub(crate) fn is_of(&self, inputs: Option<&Digest>) -> bool {
        inputs.is_none_or(|inputs| *inputs == self.digest)
    }

    /// The job as it is granted to a worker.
    pub(crate) fn task(&self, budget: &mut ReplyBudget) -> Option<v1::JobTask> {
        let named = |(digest, input): &(Digest, Bytes)| named_body(input, digest, budget.takes(input.len()));
        let inputs = self.inputs.iter().map(named).collect();
        let job = codec::encode(&self.job).ok()?;
        Some(v1::JobTask { inputs_digest: digest_bytes(&self.digest), job, inputs })
    }

    /// An input that a grant only named.
    pub(crate) fn input(&self, digest: &Digest) -> Option<Bytes> {
        self.inputs.iter().find(|(known, _)| known == digest).map(|(_, input)| input.clone())
    }

    /// The job and its inputs.
    pub(crate) fn into_parts(self) -> (Job, Vec<Bytes>) {
        (self.job, self.inputs.into_iter().map(|(_, input)| input).collect())
    }
}
