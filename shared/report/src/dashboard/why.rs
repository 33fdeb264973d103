//! Why a run makes no progress: one pure function of what its cluster knows, for pages and commands.

use crate::text::time;
use serde::{Deserialize, Serialize};

/// A write that takes longer than this makes the store slow.
const SLOW_STORE: u64 = 2_000;

/// The state of a run, as far as it decides about progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Its work is handed out.
    #[default]
    Active,
    /// Its work is held back.
    Paused,
    /// The same, in the process of the command that runs it, without a coordinator.
    PausedHere,
    /// The same, and no process has its store.
    PausedAlone,
    /// It is finished, for this reason.
    Finished(String),
    /// It was cancelled.
    Cancelled,
    /// It failed, for this reason.
    Failed(String),
    /// It is stopped: no process works on it.
    Stopped,
    /// Another process works on it; nothing else is known about that process.
    Elsewhere(String),
    /// What is stored of it cannot be read, for this reason.
    Damaged(String),
}

/// The number of workers, by their state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Responded within a lease, and not quarantined.
    pub connected: usize,
    /// Of those: holding work of any run.
    pub busy: usize,
    /// Of those: being drained.
    pub draining: usize,
    /// Of those: paused after repeated failures.
    pub resting: usize,
    /// No response within a lease.
    pub silent: usize,
    /// Quarantined.
    pub quarantined: usize,
    /// Why the first of those is quarantined.
    pub quarantine_reason: String,
}

/// What workers lack for the work of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MissingResource {
    /// Memory, as a worker reported.
    Memory(String),
    /// An engine, a database or a program, as a worker reported.
    Program(String),
}

/// A piece that has failed and is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failing {
    /// The piece.
    pub piece: String,
    /// On how many workers it failed.
    pub workers: usize,
    /// Why.
    pub reason: String,
    /// When it is tried again at the earliest, in milliseconds.
    pub retry_milliseconds: u64,
}

/// An island that waits for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// How many islands wait.
    pub islands: usize,
    /// The island that they wait for.
    pub island: u32,
    /// Its epoch.
    pub epoch: u64,
    /// The worker that computes it, by name; nothing if none does.
    pub worker: Option<String>,
}

/// A run that keeps workers busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// Its name.
    pub run: String,
    /// Whether its work is handed out before that of the run that waits.
    pub comes_first: bool,
}

/// The health of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreHealth {
    /// For how long the oldest write has waited, in milliseconds.
    pub oldest_write_milliseconds: u64,
    /// Whether that is so long that the store counts as silent.
    pub is_silent: bool,
}

/// What a cluster knows about the progress of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Situation {
    /// Its state.
    pub phase: Phase,
    /// The run that is paused, if it is another one: its study, or a part of it.
    pub paused: Option<String>,
    /// The workers.
    pub workers: WorkerCounts,
    /// Pieces of the run that workers hold.
    pub leases: usize,
    /// How many workers hold them.
    pub holders: usize,
    /// Pieces of the run that a worker could take now.
    pub ready: usize,
    /// A piece that makes no progress: which, on which worker, for how many milliseconds.
    pub stalled: Option<(String, String, u64)>,
    /// If all pieces are held by workers that are silent: the piece whose lease expires first, its worker, and in how many
    /// milliseconds.
    pub silent: Option<(String, String, u64)>,
    /// What all connected workers lack for it.
    pub missing: Option<MissingResource>,
    /// A piece that failed and is tried again.
    pub failing: Option<Failing>,
    /// An island that others wait for.
    pub waiting: Option<Waiting>,
    /// The run that keeps the workers busy that could take this one.
    pub ahead: Option<Ahead>,
    /// The health of the store.
    pub store: StoreHealth,
    /// Whether its last results are being written or audited.
    pub is_ending: bool,
}

/// Why a run makes no progress, or that it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It makes progress.
    #[default]
    Running,
    /// Work is ready, and workers are about to take it.
    Starting,
    /// Its last results are being written.
    Ending,
    /// Islands wait for a neighbour's epoch.
    WaitsForNeighbour,
    /// No worker is connected.
    NoWorker,
    /// Workers are busy with another run.
    BusyElsewhere,
    /// It is paused.
    Paused,
    /// No worker has enough memory.
    NoMemory,
    /// No worker has the engine or program.
    NoProgram,
    /// All workers are quarantined.
    Quarantined,
    /// The worker that holds the work is silent.
    SilentWorker,
    /// Work makes no progress.
    Stalled,
    /// The store is slow or silent.
    Store,
    /// A piece failed and is tried again later.
    BackingOff,
    /// All workers are being drained.
    Draining,
    /// It has ended.
    Ended,
    /// No process works on it.
    Stopped,
    /// Another process works on it.
    Elsewhere,
    /// What is stored of it cannot be read.
    Damaged,
}

/// Why a run makes no progress, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// The cause.
    pub cause: Cause,
    /// The state of the run, in a sentence.
    pub text: String,
    /// What to do about it; empty if nothing.
    pub advice: String,
}

impl Why {
    fn new(cause: Cause, text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { cause, text: text.into(), advice: advice.into() }
    }

    /// The sentence as part of another one: without its capital letter and its full stop.
    pub fn clause(&self) -> String {
        let text = self.text.strip_suffix('.').unwrap_or(&self.text);
        let mut letters = text.chars();
        letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
    }

    /// Whether an operator should look at it.
    pub fn is_trouble(&self) -> bool {
        !matches!(
            self.cause,
            Cause::Running
                | Cause::Starting
                | Cause::Ending
                | Cause::WaitsForNeighbour
                | Cause::Paused
                | Cause::BusyElsewhere
                | Cause::Ended
                | Cause::Elsewhere
        )
    }
}

/// Why a run makes no progress. What stops everything comes first, then what stops this run, then what delays it.
pub fn why(situation: &Situation) -> Why {
    of_phase(situation)
        .or_else(|| of_store(situation))
        .or_else(|| of_held_work(situation))
        .or_else(|| of_missing_workers(situation))
        .or_else(|| of_unfit_workers(situation))
        .unwrap_or_else(|| of_ready_work(situation))
}

/// A run that is not worked on at all.
fn of_phase(situation: &Situation) -> Option<Why> {
    Some(match &situation.phase {
        Phase::Active => return None,
        Phase::Paused => match &situation.paused {
            None => Why::new(Cause::Paused, "The run is paused.", "Resume it with `atoll pause RUN --off`."),
            Some(other) => Why::new(
                Cause::Paused,
                format!("The run is held back: `{other}` is paused."),
                format!("Resume that with `atoll pause {other} --off`."),
            ),
        },
        Phase::PausedHere => Why::new(
            Cause::Paused,
            situation.paused.as_ref().map_or("The run is paused.".to_owned(), |other| {
                format!("The run is held back: `{other}` is paused.")
            }),
            "Resume it on the dashboard of the command that runs it; or stop that command, then `atoll resume RUN`.",
        ),
        Phase::PausedAlone => Why::new(
            Cause::Paused,
            "The run is paused, and no coordinator has its store.",
            "Resume it with `atoll resume RUN`.",
        ),
        Phase::Finished(reason) => Why::new(Cause::Ended, format!("The run is finished: {reason}."), ""),
        Phase::Cancelled => {
            Why::new(Cause::Ended, "The run was cancelled.", "Submit it again to continue it.")
        }
        Phase::Failed(reason) => Why::new(
            Cause::Ended,
            format!("The run failed: {reason}."),
            "Remove the cause, then submit it again to continue it.",
        ),
        Phase::Stopped => Why::new(
            Cause::Stopped,
            "The run is stopped: no process works on it.",
            "Resume it with `atoll resume RUN`.",
        ),
        Phase::Elsewhere(process) => {
            Why::new(Cause::Elsewhere, format!("Another process works on the run: {process}."), "")
        }
        Phase::Damaged(reason) => Why::new(
            Cause::Damaged,
            format!("What is stored of the run cannot be read: {reason}."),
            "List the damage with `atoll verify RUN`; `atoll repair RUN` shows what can be kept.",
        ),
    })
}

fn of_store(Situation { store, .. }: &Situation) -> Option<Why> {
    let oldest = time(store.oldest_write_milliseconds);
    let advice = "Check the store: its disk, its network, its credentials.";
    match store {
        StoreHealth { is_silent: true, .. } => {
            let text = format!("The store is silent: a write has waited for {oldest}.");
            Some(Why::new(Cause::Store, text, advice))
        }
        store if store.oldest_write_milliseconds > SLOW_STORE => {
            let text = format!("The store is slow: a write has taken {oldest} so far.");
            Some(Why::new(Cause::Store, text, advice))
        }
        _ => None,
    }
}

/// Work that workers hold: it makes progress, stands still, or is held by workers that are silent.
fn of_held_work(situation: &Situation) -> Option<Why> {
    let Situation { leases, holders, .. } = *situation;
    if leases == 0 {
        return None;
    }
    if let Some((piece, worker, expires)) = &situation.silent {
        let text = format!(
            "Worker `{worker}` is silent; its lease of {piece} expires in {}, and then another worker takes it.",
            time(*expires)
        );
        return Some(Why::new(Cause::SilentWorker, text, "If the worker is gone, start another one."));
    }
    if let Some((piece, worker, age)) = &situation.stalled {
        let text = format!(
            "Work stands still: {piece} has made no progress on worker `{worker}` for {}.",
            time(*age)
        );
        return Some(Why::new(Cause::Stalled, text, "Look at that worker; restart it if it hangs."));
    }
    let idle = situation.workers.connected.saturating_sub(situation.workers.busy);
    if let Some(Waiting { islands, island, epoch, worker }) = &situation.waiting
        && idle > 0
        && situation.ready == 0
    {
        let by =
            worker.as_ref().map_or(String::new(), |worker| format!(", which worker `{worker}` computes"));
        let who = if *islands == 1 { "1 island waits".to_owned() } else { format!("{islands} islands wait") };
        let text = format!("{who} for epoch {epoch} of island {island}{by}.");
        return Some(Why::new(Cause::WaitsForNeighbour, text, ""));
    }
    let pieces = if leases == 1 { "1 piece".to_owned() } else { format!("{leases} pieces") };
    let on = if holders == 1 { "1 worker".to_owned() } else { format!("{holders} workers") };
    Some(Why::new(
        Cause::Running,
        format!("The run makes progress: {on} computes {pieces} of it.")
            .replace("workers computes", "workers compute"),
        "",
    ))
}

/// No worker could take anything.
fn of_missing_workers(Situation { workers, is_ending, .. }: &Situation) -> Option<Why> {
    if *is_ending {
        return Some(Why::new(
            Cause::Ending,
            "The run is about to end: its last results are being written.",
            "",
        ));
    }
    let start = "Start a worker with `atoll worker --coordinator URL`.";
    match workers {
        WorkerCounts { connected: 0, quarantined, quarantine_reason, silent, .. } if *quarantined > 0 => {
            let text = match (*quarantined, *silent) {
                (1, 0) => format!("The only worker is quarantined: {quarantine_reason}."),
                (all, 0) => format!("All {all} workers are quarantined: {quarantine_reason}."),
                (some, silent) => {
                    let are = |count| if count == 1 { "1 is".to_owned() } else { format!("{count} are") };
                    format!(
                        "No worker is connected: {} silent, and {} quarantined ({quarantine_reason}).",
                        are(silent),
                        are(some)
                    )
                }
            };
            Some(Why::new(Cause::Quarantined, text, "Replace the worker: its results cannot be trusted."))
        }
        WorkerCounts { connected: 0, silent, .. } if *silent > 0 => {
            let text = match silent {
                1 => "No worker is connected; 1 that was is silent.".to_owned(),
                silent => format!("No worker is connected; {silent} that were are silent."),
            };
            Some(Why::new(Cause::NoWorker, text, start))
        }
        WorkerCounts { connected: 0, .. } => {
            Some(Why::new(Cause::NoWorker, "No worker is connected.", start))
        }
        WorkerCounts { connected, draining, .. } if connected == draining => {
            let advice = "Start another worker, or end the drain.";
            Some(Why::new(Cause::Draining, "All connected workers are being drained.", advice))
        }
        _ => None,
    }
}

/// Workers are connected, but the work does not succeed with them.
fn of_unfit_workers(situation: &Situation) -> Option<Why> {
    match &situation.missing {
        Some(MissingResource::Memory(reason)) => {
            let text = format!("No connected worker has enough memory: {reason}.");
            return Some(Why::new(Cause::NoMemory, text, "Start a worker with more memory."));
        }
        Some(MissingResource::Program(reason)) => {
            let text =
                format!("No connected worker has a program or a database that the run needs: {reason}.");
            return Some(Why::new(
                Cause::NoProgram,
                text,
                "Start a worker that has it: `--engines FILE` names programs, `--endgame DIR` a folder of databases.",
            ));
        }
        None => {}
    }
    if let Some(Failing { piece, workers, reason, retry_milliseconds }) = &situation.failing {
        let on = if *workers == 1 { "1 worker".to_owned() } else { format!("{workers} workers") };
        let again = match retry_milliseconds {
            0 => "it is tried again now".to_owned(),
            rest => format!("it is tried again in {}", time(*rest)),
        };
        let text = format!("{piece} failed on {on}, and {again}: {reason}.");
        return Some(Why::new(Cause::BackingOff, text, "Look at the log of the worker."));
    }
    let WorkerCounts { connected, draining, resting, .. } = situation.workers;
    if resting > 0 && resting + draining >= connected {
        let text = "All connected workers failed repeatedly and are backing off.";
        return Some(Why::new(Cause::BackingOff, text, "Look at the logs of the workers."));
    }
    None
}

/// Workers could take its work.
fn of_ready_work(situation: &Situation) -> Why {
    match &situation.ahead {
        Some(Ahead { run, comes_first: true }) => Why::new(
            Cause::BusyElsewhere,
            format!("All workers that could take it are busy with `{run}`, which comes first."),
            "Raise the priority of this run (`atoll submit --priority N`), or start more workers.",
        ),
        Some(Ahead { run, comes_first: false }) => Why::new(
            Cause::BusyElsewhere,
            format!(
                "This run comes next: all workers that could take it are still computing epochs or jobs of `{run}`."
            ),
            "Start more workers if it cannot wait.",
        ),
        None if situation.ready > 0 => {
            Why::new(Cause::Starting, "Work is ready: workers are about to take it.", "")
        }
        None => Why::new(Cause::Ending, "Nothing is left to hand out: results are being written.", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected(connected: usize) -> WorkerCounts {
        WorkerCounts { connected, ..WorkerCounts::default() }
    }

    fn ahead_of(comes_first: bool) -> Ahead {
        Ahead { run: "other".to_owned(), comes_first }
    }

    #[test]
    fn a_cause_has_several_sentences() {
        let ready = Situation { ready: 1, workers: connected(1), ..Situation::default() };
        let next = why(&Situation { ahead: Some(ahead_of(false)), ..ready });
        assert_eq!(next.cause, Cause::BusyElsewhere);
        assert!(
            next.text.starts_with("This run comes next") && !next.advice.contains("priority"),
            "{next:?}"
        );
        let study = Some("study-1".to_owned());
        let part = why(&Situation { phase: Phase::Paused, paused: study, ..Situation::default() });
        assert_eq!(part.text, "The run is held back: `study-1` is paused.");
        assert_eq!(part.advice, "Resume that with `atoll pause study-1 --off`.");
        let here = why(&Situation { phase: Phase::PausedHere, ..Situation::default() });
        assert_eq!((here.cause, here.text.as_str()), (Cause::Paused, "The run is paused."));
        assert!(!here.advice.contains("atoll pause"), "that needs a coordinator: {here:?}");
        let alone = why(&Situation { phase: Phase::PausedAlone, ..Situation::default() });
        assert_eq!(alone.cause, Cause::Paused);
        assert!(alone.advice.contains("atoll resume RUN"), "`pause --off` needs a coordinator: {alone:?}");
        let text = |quarantined, silent| {
            let quarantine_reason = "it lies".to_owned();
            let workers = WorkerCounts { silent, quarantined, quarantine_reason, ..WorkerCounts::default() };
            why(&Situation { ready: 1, workers, ..Situation::default() }).text
        };
        assert_eq!(text(1, 0), "The only worker is quarantined: it lies.");
        let both = text(1, 2);
        assert_eq!(both, "No worker is connected: 2 are silent, and 1 is quarantined (it lies).");
        assert_eq!(text(0, 1), "No worker is connected; 1 that was is silent.");
    }

    /// One situation for each cause, and a word of its explanation.
    fn situations() -> Vec<(Cause, &'static str, Situation)> {
        let waiting = Waiting { islands: 3, island: 2, epoch: 7, worker: Some("w".to_owned()) };
        let failing = Failing {
            piece: "island 1, epoch 2".to_owned(),
            workers: 2,
            reason: "x".to_owned(),
            retry_milliseconds: 3000,
        };
        let held = Situation {
            leases: 1,
            holders: 1,
            workers: WorkerCounts { connected: 2, busy: 1, ..WorkerCounts::default() },
            ..Situation::default()
        };
        let ready = Situation { ready: 1, workers: connected(1), ..Situation::default() };
        let store =
            |is_silent, oldest_write_milliseconds| StoreHealth { oldest_write_milliseconds, is_silent };
        vec![
            (
                Cause::WaitsForNeighbour,
                "3 islands wait for epoch 7 of island 2",
                Situation { waiting: Some(waiting), ..held.clone() },
            ),
            (Cause::NoWorker, "No worker", Situation { ready: 1, ..Situation::default() }),
            (
                Cause::BusyElsewhere,
                "busy with `other`",
                Situation { ahead: Some(ahead_of(true)), ..ready.clone() },
            ),
            (Cause::Paused, "paused", Situation { phase: Phase::Paused, ..ready.clone() }),
            (
                Cause::NoMemory,
                "enough memory: 4 MiB",
                Situation { missing: Some(MissingResource::Memory("4 MiB".to_owned())), ..ready.clone() },
            ),
            (
                Cause::NoProgram,
                "needs: scan",
                Situation { missing: Some(MissingResource::Program("scan".to_owned())), ..ready.clone() },
            ),
            (
                Cause::Quarantined,
                "quarantined: it lies",
                Situation {
                    workers: WorkerCounts {
                        quarantined: 1,
                        quarantine_reason: "it lies".to_owned(),
                        ..WorkerCounts::default()
                    },
                    ..ready.clone()
                },
            ),
            (
                Cause::SilentWorker,
                "expires in 4.0s",
                Situation {
                    silent: Some(("island 0, epoch 1".to_owned(), "w".to_owned(), 4000)),
                    ..held.clone()
                },
            ),
            (
                Cause::Stalled,
                "no progress on worker `w`",
                Situation {
                    stalled: Some(("island 0, epoch 1".to_owned(), "w".to_owned(), 600_000)),
                    ..held.clone()
                },
            ),
            (
                Cause::Store,
                "silent: a write has waited for 12.0s",
                Situation { store: store(true, 12_000), ..held.clone() },
            ),
            (Cause::BackingOff, "again in 3.0s", Situation { failing: Some(failing), ..ready.clone() }),
            (
                Cause::Ended,
                "finished: 10 generations",
                Situation { phase: Phase::Finished("10 generations".to_owned()), ..ready.clone() },
            ),
            (Cause::Running, "1 worker computes 1 piece", held.clone()),
            (Cause::Starting, "about to take it", ready.clone()),
            (Cause::Store, "slow", Situation { store: store(false, 3_000), ..held }),
            (
                Cause::Draining,
                "drained",
                Situation {
                    workers: WorkerCounts { connected: 1, draining: 1, ..WorkerCounts::default() },
                    ..ready.clone()
                },
            ),
            (Cause::Ending, "last results", Situation { is_ending: true, ..ready }),
            (
                Cause::Damaged,
                "cannot be read: cut short",
                Situation { phase: Phase::Damaged("cut short".to_owned()), ..Situation::default() },
            ),
            (Cause::Stopped, "no process", Situation { phase: Phase::Stopped, ..Situation::default() }),
        ]
    }

    #[test]
    fn each_cause_is_told_from_the_others() {
        for (cause, word, situation) in situations() {
            let why = why(&situation);
            assert_eq!(why.cause, cause, "{situation:?}");
            assert!(why.text.contains(word), "expected {word} in {}", why.text);
        }
    }

    #[test]
    fn what_stops_everything_comes_first() {
        let silent = StoreHealth { is_silent: true, oldest_write_milliseconds: 20_000 };
        for (cause, _, situation) in situations() {
            let of_run = matches!(cause, Cause::Paused | Cause::Ended | Cause::Stopped | Cause::Damaged);
            let answer = why(&Situation { store: silent, ..situation.clone() }).cause;
            assert_eq!(answer, if of_run { cause } else { Cause::Store });
            let paused = why(&Situation { phase: Phase::Paused, ..situation }).cause;
            assert_eq!(paused, Cause::Paused);
        }
    }
}
