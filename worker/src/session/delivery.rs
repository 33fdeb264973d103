//! The way back to the coordinator: checkpoints, results, and what cannot be done.

use super::{Answer, PATIENCE, Session};
use crate::client::{Calls, Delivered};
use crate::held::Phase;
use archipelago::job::JobResult;
use bytes::Bytes;
use evolution::codec;
use evolution::epoch::EpochOutcome;
use proto::chunks;
use proto::convert::{Work, digest_bytes};
use proto::v1;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// How long a delivery may take.
const DELIVERY: Duration = Duration::from_mins(2);

impl Session {
    /// An epoch has stopped because it was asked to; its checkpoint goes out first.
    pub(super) fn stopped(&mut self, work: &Work) {
        let Some(held) = self.held.get_mut(work) else { return };
        held.phase = Phase::Stopped;
        if !held.uploading && held.checkpoint.is_none() {
            self.give_back(work, "");
        }
    }

    /// Sends the newest checkpoint, one at a time: those in between are not needed.
    pub(super) fn upload(&mut self, work: &Work) {
        let Some(held) = self.held.get_mut(work) else { return };
        if held.uploading {
            return;
        }
        let Some((standing, bytes)) = held.checkpoint.take() else {
            if held.phase == Phase::Stopped {
                self.give_back(work, "");
            }
            return;
        };
        held.uploading = true;
        let head = v1::CheckpointHead {
            worker: self.client.id(),
            piece: Some(work.into()),
            inputs: held.inputs.as_ref().map(digest_bytes).unwrap_or_default(),
            standing: Some((&standing).into()),
            length: bytes.len() as u64,
        };
        let (client, work) = (self.client.clone(), work.clone());
        self.answers.spawn(async move {
            let call = |client: Calls| {
                let (head, bytes) = (head.clone(), bytes.clone());
                async move { client.checkpoint(head, bytes).await }
            };
            let result = client.call(DELIVERY, call).await.map(|_| ());
            Answer::Kept { work, result }
        });
    }

    pub(super) fn deliver_epoch(&mut self, work: &Work, outcome: EpochOutcome, time: Duration) {
        let Some(inputs) = self.held.get(work).and_then(|held| held.inputs) else { return };
        let EpochOutcome { state, departure, digest, standing, statistics, .. } = outcome;
        let statistics = match codec::encode(&statistics) {
            Ok(statistics) => statistics,
            Err(error) => return self.give_back(work, &format!("its statistics {error}")),
        };
        let result = v1::EpochResult {
            inputs: digest_bytes(&inputs),
            digest: digest_bytes(&digest),
            standing: Some((&standing).into()),
            state_length: state.len() as u64,
            departure_length: departure.len() as u64,
            statistics_length: statistics.len() as u64,
        };
        self.deliver(work, time, v1::complete_head::What::Epoch(result), vec![state, departure, statistics]);
    }

    pub(super) fn deliver_cells(&mut self, work: &Work) {
        let Some(held) = self.held.get(work) else { return };
        let (results, time): (Vec<_>, _) =
            (held.cells.iter().flatten().cloned().collect(), held.begun.elapsed());
        if results.is_empty() {
            return self.give_back(work, "");
        }
        match codec::encode(&results) {
            Ok(body) => {
                let what = v1::complete_head::What::Cells(v1::CellsResult { length: body.len() as u64 });
                self.deliver(work, time, what, vec![body]);
            }
            Err(error) => self.give_back(work, &format!("its results {error}")),
        }
    }

    pub(super) fn deliver_job(&mut self, work: &Work, result: &JobResult) {
        let Some(held) = self.held.get(work) else { return };
        let (inputs, time) = (held.inputs, held.begun.elapsed());
        match (inputs, codec::encode(result)) {
            (Some(inputs), Ok(body)) => {
                let inputs = digest_bytes(&inputs);
                let what = v1::complete_head::What::Job(v1::JobResult { inputs, length: body.len() as u64 });
                self.deliver(work, time, what, vec![body]);
            }
            (None, _) => self.give_back(work, "expected the digest of its inputs, found none"),
            (_, Err(error)) => self.give_back(work, &format!("its result {error}")),
        }
    }

    /// Delivers a piece, and asks for another in its place unless the answer will take long.
    fn deliver(&mut self, work: &Work, time: Duration, what: v1::complete_head::What, bodies: Vec<Bytes>) {
        if let Some(held) = self.held.get_mut(work) {
            held.phase = Phase::Delivering;
        }
        let quick = bodies.iter().map(Bytes::len).sum::<usize>() <= chunks::CHUNK;
        let asked = if quick { self.free_slots() } else { 0 };
        self.asked += asked;
        let head = v1::CompleteHead {
            worker: self.client.id(),
            piece: Some(work.into()),
            milliseconds: self.spent.add(time),
            what: Some(what),
            slots: asked as u32,
        };
        let (client, work) = (self.client.clone(), work.clone());
        self.answers.spawn(async move {
            // A new coordinator has let this worker join again, and uses its own numbers: what counts is the session
            // of the last attempt.
            let attempted = AtomicU64::new(0);
            let call = |calls: Calls| {
                attempted.store(client.generation(), SeqCst);
                let (head, bodies) = (head.clone(), bodies.clone());
                async move { calls.complete(head, bodies).await }
            };
            let result = client.call(DELIVERY, call).await;
            let generation = attempted.load(SeqCst);
            if let Ok(reply) = &result {
                client.keep(generation, reply.delivery, Delivered { head, bodies });
            }
            Answer::Delivered { work, asked, generation, result }
        });
    }

    /// Gives a piece back, with the reason if it cannot be done.
    pub(super) fn give_back(&mut self, work: &Work, failure: &str) {
        if !failure.is_empty() {
            tracing::error!(%work, failure, "cannot be done here");
        }
        self.release(work, failure, (false, false));
    }

    /// Gives a piece back that needs more memory than there is, or a program that is missing.
    pub(super) fn refuse(&mut self, work: &Work, reason: &str, lacks_program: bool) {
        tracing::warn!(%work, reason, "cannot be done here");
        self.release(work, reason, (true, lacks_program));
    }

    fn release(&mut self, work: &Work, failure: &str, (unfit, lacks_program): (bool, bool)) {
        let Some(held) = self.held.get_mut(work) else { return };
        held.stop.ask();
        held.phase = Phase::Delivering;
        let request = v1::ReleaseRequest {
            worker: self.client.id(),
            piece: Some(work.into()),
            failure: failure.to_owned(),
            token: held.token,
            unfit,
            lacks_program,
        };
        let (client, work) = (self.client.clone(), work.clone());
        self.answers.spawn(async move {
            let call = |client: Calls| {
                let request = request.clone();
                async move { client.release(request).await }
            };
            let result = client.call(PATIENCE, call).await.map(|_| ());
            Answer::Returned { work, result }
        });
    }
}
