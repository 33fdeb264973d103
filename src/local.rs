//! A run on this machine: the coordinator's keeper and the worker's pool, joined without a network.

use crate::clock;
use crate::failure::Failure;
use crate::progress::Progress;
use coordinator::keeper::Keeper;
use evolution::activity::Activity;
use evolution::epoch::Evolver;
use experiment::CheckpointEvery;
use run::Assignment;
use run::record::Labour;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use worker::{Gauges, Job, Message, Pool, Stop};

/// How often progress is shown and the clock is looked at.
const TICK: Duration = Duration::from_millis(100);
/// How long a generation may go on after somebody asked to stop, before it is abandoned.
pub(crate) const PATIENCE: Duration = Duration::from_secs(8);

/// How a drive came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The run is finished.
    Finished,
    /// Somebody asked to stop; what was done is kept.
    Stopped,
}

/// A message, and what is dropped when it has been kept: the job that sent it may be waiting for that.
type Delivery = (Message, oneshot::Sender<()>);

/// A run being driven to its end.
pub(crate) struct Drive<'a> {
    keeper: &'a mut Keeper,
    pool: &'a Pool,
    evolver: Arc<dyn Evolver>,
    gauges: Arc<Gauges>,
    stop: Stop,
    sender: mpsc::Sender<Delivery>,
    messages: mpsc::Receiver<Delivery>,
    running: usize,
    start: Instant,
    flushed: Instant,
}

impl<'a> Drive<'a> {
    /// A run on a pool.
    pub(crate) fn new(keeper: &'a mut Keeper, pool: &'a Pool) -> Self {
        let evolver = keeper.experiment().evolver();
        let gauges = Arc::new(Gauges::new(keeper.experiment().setting().islands.len()));
        // A full channel makes jobs wait for what they sent to be kept.
        let (sender, messages) = mpsc::channel(2 * pool.threads());
        let (start, flushed) = (Instant::now(), Instant::now());
        let stop = Stop::default();
        for island in 0..keeper.experiment().setting().islands.len() as u32 {
            if let Some(standing) = keeper.archipelago().standing(island) {
                gauges.of(island).set(&standing);
            }
        }
        Self { keeper, pool, evolver, gauges, stop, sender, messages, running: 0, start, flushed }
    }

    /// Where the islands stand just now.
    pub(crate) fn gauges(&self) -> Arc<Gauges> {
        self.gauges.clone()
    }

    /// Drives the run until it is finished, or `stop` says so.
    pub(crate) async fn run(
        mut self,
        progress: &mut Progress,
        stop: &mut crate::signals::Signals,
    ) -> Result<Ending, Failure> {
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut deadline = None;
        loop {
            self.hand_out();
            if self.running == 0 {
                break;
            }
            tokio::select! {
                delivery = self.messages.recv() => self.take(delivery.expect("we hold a sender")).await?,
                _ = tick.tick() => {
                    progress.show(&self.gauges.total());
                    self.look_at_the_clock().await?;
                }
                () = stop.asked_or_again(deadline.is_some()) => {
                    if deadline.is_some() {
                        // Whoever asks twice does not want to wait.
                        break;
                    }
                    self.stop.ask();
                    deadline = Some(tokio::time::Instant::now() + PATIENCE);
                    progress.say("stopping at the next generation …");
                }
                () = until(deadline) => break,
            }
            if self.keeper.archipelago().end().is_some() {
                self.stop.ask();
            }
        }
        self.keeper.flush().await?;
        progress.show(&self.gauges.total());
        let elapsed = self.elapsed();
        let finished = self.keeper.finish(clock::now(), elapsed).await?;
        Ok(if finished.is_some() { Ending::Finished } else { Ending::Stopped })
    }

    /// Keeps every thread busy, with one epoch more in waiting.
    fn hand_out(&mut self) {
        while self.running <= self.pool.threads() && !self.stop.is_asked() {
            let Some(Assignment { task, checkpoint }) = self.keeper.assign() else { return };
            let job = Job {
                evolver: self.evolver.clone(),
                task,
                checkpoint,
                checkpoint_every: self.keeper.experiment().checkpoint_every(),
                stop: self.stop.clone(),
                gauges: self.gauges.clone(),
                activity: Activity::default(),
            };
            let sender = self.sender.clone();
            self.pool.run(job, move |message| deliver(&sender, message));
            self.running += 1;
        }
    }

    async fn take(&mut self, (message, _kept): Delivery) -> Result<(), Failure> {
        match message {
            Message::Checkpoint { task, standing, bytes } => {
                let elapsed = self.elapsed();
                if self.keeper.archipelago().end().is_none() {
                    self.keeper.checkpoint(&task, standing, &bytes, elapsed).await?;
                }
                return Ok(());
            }
            Message::Done { task, outcome, time } => {
                let elapsed = self.elapsed();
                let milliseconds = time.as_millis() as u64;
                let labour = Labour { worker: "local".to_owned(), milliseconds, elapsed };
                self.keeper.complete(&task, &outcome, labour)?;
                if self.is_flush_due() {
                    self.flush().await?;
                }
            }
            Message::Stopped { .. } => {}
            Message::Failed { task, reason } => {
                return Err(Failure::Epoch { island: task.island, epoch: task.epoch, reason });
            }
        }
        self.running -= 1;
        Ok(())
    }

    /// Whether epochs that are done have to be written now, so that a crash in the next one costs no more than allowed.
    fn is_flush_due(&self) -> bool {
        let experiment = self.keeper.experiment();
        if self.keeper.commit().is_heavy() {
            return true;
        }
        match experiment.checkpoint_every() {
            CheckpointEvery::Generations(limit) => self.keeper.at_stake() + experiment.interval() > limit,
            // An epoch that goes on for longer than the other half has checkpoints of its own.
            CheckpointEvery::Time(time) => self.flushed.elapsed() >= time / 2,
        }
    }

    async fn flush(&mut self) -> Result<(), Failure> {
        self.flushed = Instant::now();
        Ok(self.keeper.flush().await?)
    }

    async fn look_at_the_clock(&mut self) -> Result<(), Failure> {
        if self.keeper.at_stake() > 0 && self.is_flush_due() {
            self.flush().await?;
        }
        let limit = self.keeper.archipelago().budget().wall_time;
        if limit.is_some_and(|limit| Duration::from_millis(self.elapsed()) >= limit) {
            self.keeper.end_now(clock::now()).await?;
        }
        Ok(())
    }

    /// For how long the run has been worked on, in milliseconds, restarts included.
    fn elapsed(&self) -> u64 {
        self.keeper.elapsed_before() + self.start.elapsed().as_millis() as u64
    }
}

/// Delivers a message, and a checkpoint until it is kept: evolution does not run ahead of what a crash may cost.
fn deliver(sender: &mpsc::Sender<Delivery>, message: Message) {
    let is_checkpoint = matches!(message, Message::Checkpoint { .. });
    let (kept, until_kept) = oneshot::channel();
    // Nobody listens any more when a stuck generation was abandoned.
    if sender.blocking_send((message, kept)).is_ok() && is_checkpoint {
        let _ = until_kept.blocking_recv();
    }
}

/// Waits until a deadline, if there is one; otherwise for ever.
pub(crate) async fn until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
