//! Epochs on a pool of threads.

use crate::gauge::Gauges;
use bytes::Bytes;
use evolution::activity::Activity;
use evolution::epoch::{EpochOutcome, EpochTask, Evolver, Evolving, Standing};
use experiment::CheckpointEvery;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A request to stop at the next generation, shared by all who should hear it.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Stops all threads.
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether a stop was requested.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// One epoch to be run.
pub struct EpochJob {
    /// What evolves the islands.
    pub evolver: Arc<dyn Evolver>,
    /// The epoch.
    pub task: EpochTask,
    /// Where to take it up.
    pub checkpoint: Option<Bytes>,
    /// How much a crash may cost.
    pub checkpoint_every: CheckpointEvery,
    /// When to leave off.
    pub stop: Stop,
    /// Where to show progress.
    pub gauges: Arc<Gauges>,
    /// Where evaluations are counted.
    pub activity: Activity,
}

/// What comes of a job. The last message is never a checkpoint.
#[derive(Debug)]
pub enum Message {
    /// The epoch has got so far.
    Checkpoint {
        /// The epoch.
        task: EpochTask,
        /// Where it stands.
        standing: Standing,
        /// All that is needed to take it up there.
        bytes: Bytes,
    },
    /// The epoch is done.
    Done {
        /// The epoch.
        task: EpochTask,
        /// Its result.
        outcome: Box<EpochOutcome>,
        /// How long it took.
        time: Duration,
    },
    /// It was asked to stop, and did; a checkpoint came before if there was anything to keep.
    Stopped {
        /// The epoch.
        task: EpochTask,
    },
    /// It cannot be done.
    Failed {
        /// The epoch.
        task: EpochTask,
        /// Why.
        reason: String,
    },
}

/// The threads could not be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {threads} threads: {reason}")]
pub struct PoolError {
    threads: usize,
    reason: String,
}

/// A pool of threads that runs epochs side by side, and each one's evaluations over all threads when they are worth it.
pub struct Pool {
    /// Nothing for a pool that does everything at once where it is asked, as simulations need.
    threads: Option<rayon::ThreadPool>,
}

impl Pool {
    /// A pool with this number of threads.
    pub fn new(threads: usize) -> Result<Self, PoolError> {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("evolve-{number}"))
            .build()
            .map(|threads| Self { threads: Some(threads) })
            .map_err(|error| PoolError { threads, reason: error.to_string() })
    }

    /// A pool without threads: the caller does the work, and waits until it is done.
    pub fn inline() -> Self {
        Self { threads: None }
    }

    /// Whether it has no threads of its own.
    pub fn is_inline(&self) -> bool {
        self.threads.is_none()
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.threads.as_ref().map_or(1, rayon::ThreadPool::current_num_threads)
    }

    /// Runs a job when a thread is free. `send` may block: the job then waits, rather than run ahead of what is kept.
    pub fn run(&self, job: EpochJob, send: impl Fn(Message) + Send + 'static) {
        self.spawn(move || {
            let message = guarded(|| job.activity.watch(|| job.run(&send)));
            send(message.unwrap_or_else(|reason| Message::Failed { task: job.task.clone(), reason }));
        });
    }

    /// Does something else on the pool, and waits for it.
    pub fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.threads {
            Some(threads) => threads.install(work),
            None => work(),
        }
    }

    /// Does something else when a thread is free.
    pub fn spawn(&self, work: impl FnOnce() + Send + 'static) {
        match &self.threads {
            Some(threads) => threads.spawn(work),
            None => work(),
        }
    }
}

/// Does a piece of work; a panic fails that piece, not the process.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let done = catch_unwind(AssertUnwindSafe(work));
    done.map_err(|panic| format!("it panicked: {}", panic_text(panic.as_ref())))
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("for no stated reason")
}

impl EpochJob {
    /// Runs the epoch to its end, or until it is asked to stop.
    fn run(&self, send: &impl Fn(Message)) -> Message {
        let task = self.task.clone();
        if self.stop.is_asked() {
            return Message::Stopped { task };
        }
        let begun = match &self.checkpoint {
            Some(checkpoint) => self.evolver.resume(&task, checkpoint),
            None => self.evolver.begin(&task),
        };
        let start = Instant::now();
        match begun.map_err(|error| error.to_string()).and_then(|epoch| self.evolve(epoch, send)) {
            Ok(Some(outcome)) => Message::Done { task, outcome: Box::new(outcome), time: start.elapsed() },
            Ok(None) => Message::Stopped { task },
            Err(reason) => Message::Failed { task, reason },
        }
    }

    fn evolve(
        &self,
        mut epoch: Box<dyn Evolving + '_>,
        send: &impl Fn(Message),
    ) -> Result<Option<EpochOutcome>, String> {
        let gauge = self.gauges.of(self.task.island);
        let mut kept = Kept { generation: epoch.standing().generation, at: Instant::now() };
        while epoch.generation() {
            let standing = epoch.standing();
            gauge.set(&standing);
            let last = standing.generation == self.task.until;
            let stopping = self.stop.is_asked();
            if !last && (stopping || kept.is_due(self.checkpoint_every, standing.generation)) {
                let bytes = epoch.checkpoint().map_err(|error| format!("its checkpoint {error}"))?;
                send(Message::Checkpoint { task: self.task.clone(), standing, bytes });
                kept = Kept { generation: standing.generation, at: Instant::now() };
            }
            if !last && stopping {
                return Ok(None);
            }
        }
        gauge.set(&epoch.standing());
        epoch.finish().map(Some).map_err(|error| format!("its state {error}"))
    }
}

/// What has been kept of an epoch so far.
struct Kept {
    generation: u64,
    at: Instant,
}

impl Kept {
    fn is_due(&self, every: CheckpointEvery, generation: u64) -> bool {
        match every {
            CheckpointEvery::Generations(count) => generation - self.generation >= count,
            // The epochs before this one are kept just as often: together they make the time that is allowed.
            CheckpointEvery::Time(time) => self.at.elapsed() >= time / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_piece_that_panics_fails_and_its_thread_does_the_next_one() {
        let pool = Pool::new(1).unwrap();
        let (sender, receiver) = mpsc::channel();
        for number in 0..3 {
            let sender = sender.clone();
            pool.spawn(move || {
                let compute = || if number == 1 { panic!("cell {number} on purpose") } else { number };
                sender.send(guarded(compute)).unwrap();
            });
        }
        drop(sender);
        let mut done: Vec<Result<u32, String>> = receiver.iter().collect();
        done.sort();
        assert_eq!(done, [Ok(0), Ok(2), Err("it panicked: cell 1 on purpose".to_owned())]);
    }
}
