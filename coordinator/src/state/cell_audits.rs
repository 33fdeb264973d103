//! Audits of cells, as of epochs: a share is computed again by another worker, the coordinator decides what differs, and
//! what liars have delivered is taken back.

use super::auditing::why_retracted;
use super::cells::{CellAuditOutcome, Cells, whole};
use super::{Author, Body, ClusterState, Effect, Moment, Step};
use crate::rejection::Rejection;
use archipelago::cell::CellResult;
use proto::convert::{Piece, Work};

/// The most cells that one offer is made of.
const TOGETHER: usize = 16;

fn cell_of(run: &str, number: u32) -> Work {
    Work { run: run.to_owned(), piece: Piece::Cells { first: number, count: 1 } }
}

impl ClusterState {
    pub(super) fn cells(&mut self, run: &str) -> Option<&mut Cells> {
        match &mut self.runs.get_mut(run)?.body {
            Body::Cells(cells) => Some(cells),
            _ => None,
        }
    }

    /// Takes results that are stored: those that are chosen are computed again.
    pub(super) fn completed_cells(&mut self, run: &str, stored: Vec<(u32, CellResult)>, now: Moment) {
        let audit = self.rules.audit;
        let (mut chosen, mut disputed) = (vec![], vec![]);
        for (number, result) in stored {
            let Some(cells) = self.cells(run) else { return };
            let author = cells.complete(number, result);
            if cells.is_being_audited(number) {
                disputed.push(number);
                continue;
            }
            let Some(author) = author.filter(|_| audit.is_on()) else { continue };
            let is_drawn = audit.chooses(&cells.inputs(number));
            if is_drawn || self.workers.is_watched(&author.principal) {
                chosen.push(number);
            }
        }
        for &number in &chosen {
            if let Some(cells) = self.cells(run) {
                cells.begin_audit(number, now.elapsed);
            }
        }
        for number in chosen {
            self.leases.offer(&cell_of(run, number));
        }
        for number in disputed {
            self.decide_cell(run, number);
        }
    }

    /// Notes that cells were computed again by others, and came out the same.
    pub(super) fn confirmed_cells(&mut self, run: &str, cells: &[u32]) {
        self.counters.audited += cells.len() as u64;
        for &number in cells {
            self.leases.remove(&cell_of(run, number));
        }
    }

    /// Has the coordinator compute a cell itself.
    pub(super) fn decide_cell(&mut self, run: &str, number: u32) {
        let Some(cells) = self.cells(run).filter(|cells| cells.is_being_audited(number)) else { return };
        if cells.decide(number) {
            let (run, plan, files) = (run.to_owned(), cells.plan(), cells.files().clone());
            self.leases.remove(&cell_of(&run, number));
            self.effects.push(Effect::RecomputeCell { run, number, plan, files });
        }
    }

    /// Has the last cell of each worker computed again, once all are done.
    pub(super) fn begin_final_cell_audits(&mut self, run: &str, now: Moment) {
        if !self.rules.audit.is_on() {
            return;
        }
        let last = self.cells(run).map(|cells| cells.begin_final(now.elapsed));
        for number in last.unwrap_or_default() {
            self.leases.offer(&cell_of(run, number));
        }
    }

    /// Takes what the coordinator has computed itself.
    pub(super) fn recomputed_cell(
        &mut self,
        run: &str,
        number: u32,
        computed: Result<CellResult, String>,
        now: Moment,
    ) {
        let piece = Piece::Cells { first: number, count: 1 };
        let Some(cells) = self.cells(run) else { return };
        let outcome = match computed {
            Ok(computed) => cells.conclude(number, &whole(&computed)),
            Err(reason) => {
                cells.abandon(number);
                self.note_unaudited(run, &piece, &reason);
                None
            }
        };
        let owned = |wrong: Vec<std::sync::Arc<Author>>| -> Vec<Author> {
            wrong.iter().map(|author| (**author).clone()).collect()
        };
        match outcome {
            None => {}
            Some(CellAuditOutcome::Again) => self.decide_cell(run, number),
            Some(CellAuditOutcome::Undecided) => {
                self.note_unaudited(run, &piece, "the coordinator has two different results itself");
            }
            Some(CellAuditOutcome::Right { wrong }) => {
                self.counters.audited += 1;
                let reason = format!("run {run}, {piece}: it delivered a wrong result");
                self.blame_all(&owned(wrong), &reason, now);
            }
            Some(CellAuditOutcome::Wrong { author, wrong }) => {
                self.counters.audits_failed += 1;
                // Also without audits: what is known to be wrong does not stay.
                let why = format!("{piece} was computed again and is wrong");
                self.retract_cells(run, &[number], why, now);
                let reason = format!("run {run}, {piece}: an audit found its result wrong");
                self.blame_all(&owned(author.into_iter().chain(wrong).collect()), &reason, now);
            }
        }
        self.advance(run, now);
    }

    /// Takes back what a principal has delivered to a run of cells and was not audited.
    pub(super) fn retract_cells_of(&mut self, run: &str, principal: &str, now: Moment) {
        let own = self.cells(run).map(|cells| cells.unaudited_of(principal));
        if let Some(own) = own.filter(|own| !own.is_empty()) {
            self.retract_cells(run, &own, why_retracted(principal), now);
        }
    }

    pub(super) fn retract_cells(&mut self, run: &str, cells: &[u32], reason: String, now: Moment) {
        if !self.is_open(run) || self.succeeded {
            return;
        }
        if self.is_ending(run) {
            tracing::error!(run, reason, "it ends with results of a quarantined worker: verify it");
            // If its end cannot be written, there is still time to take them back.
            if let Some(known) = self.cells(run) {
                known.note_wrong(reason, cells);
            }
            return;
        }
        let cells = self.cells(run).map(|known| known.begin_retracting(cells)).unwrap_or_default();
        if cells.is_empty() {
            return;
        }
        tracing::error!(run, count = cells.len(), reason, "results are taken back and computed again");
        self.counters.retracted += 1;
        for &number in &cells {
            self.leases.remove(&cell_of(run, number));
        }
        self.step(run, Step::RetractCells { cells, reason, at: now.unix });
    }

    /// Takes what became of taking results back.
    pub(super) fn retracted_cells(
        &mut self,
        run: &str,
        (cells, reason): (Vec<u32>, String),
        stored: Vec<(u32, CellResult)>,
        result: Result<(), Rejection>,
        now: Moment,
    ) {
        self.completed_cells(run, stored, now);
        if let Err(error) = result {
            self.counters.store_errors += 1;
            tracing::error!(run, %error, "cannot be written; trying again");
            if !self.succeeded && self.is_open(run) {
                self.step(run, Step::RetractCells { cells, reason, at: now.unix });
            }
            if let Rejection::Keep(error) = error {
                self.note_trouble(run, Err(error), now);
            }
            return;
        }
        if let Some(known) = self.cells(run) {
            known.retract(&cells);
        }
        for together in cells.chunk_by(|one, next| one + 1 == *next).flat_map(|row| row.chunks(TOGETHER)) {
            let piece = Piece::Cells { first: together[0], count: together.len() as u32 };
            self.leases.offer(&Work { run: run.to_owned(), piece });
        }
        self.advance(run, now);
    }
}
