//! A run on disk: where its objects lie, how they are written, and what reads them back.
//!
//! - [`layout`] names every object of a run, [`journal`] is its numbered list of events ([`RunEvent`]), and [`fold`]
//!   says what the events add up to ([`Recorded`]): the same for `runs`, `verify`, `report` and the coordinator.
//! - [`mod@open`] joins the islands of a run with the bookkeeping of its writes. The result is pure and `Clone`: note what
//!   is done, take a batch of objects ([`WriteBatch`]), write it outside of any lock, settle it. [`commit`] is the
//!   bookkeeping alone, [`schedule`] says which islands are due, [`pruning`] what retention does not keep.
//! - [`reader`] reads what can be read of a damaged run, [`epochs`] and [`states`] its islands, [`jobs`] the results of
//!   sweeps and tournaments, [`players`] the players of tournaments, [`export`] writes it as JSON and CSV.
//! - [`history`] and [`listing`] are what reports and the dashboard show of it, as plain data.
//! - [`stored`] reads a run of any kind, and is the one place that decides whether it is damaged; [`study`] is a study and
//!   its parts.
//! - [`labels`] are words that people give to runs; [`repair`] makes a damaged run fit together again, [`backup`] copies a run that may be worked on meanwhile.
//!
//! This crate deliberately reads no clock, draws nothing at random, computes no epoch, and opens no port.
//!
//! ```
//! use evolution::epoch;
//! use run::record::Labour;
//! use run::{Opening, Owner, RunId, Status};
//! use store::{Nonce, Store};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let text = r#"
//!     name = "ones"
//!     problem = { kind = "onemax", length = 8 }
//!     algorithm = { kind = "ga", population = 4 }
//!     islands = { count = 2 }
//!     budget = { generations = 4 }
//! "#;
//! let experiment::Plan::Single(experiment) = experiment::parse("ones.toml", text, None)? else { panic!() };
//! let (store, id) = (Store::memory(), RunId::new("ones")?);
//! let opening = Opening { nonce: Nonce(7), now: 0, owner: Owner::default(), claim: None };
//! let (mut open, mut journal) = run::create(&store, &id, &experiment, None, opening).await?;
//!
//! // The pure part: hand out epochs, note their outcomes, take batches.
//! while let Some(assignment) = open.assign() {
//!     let outcome = epoch::run(&*experiment.evolver(), &assignment.task)?;
//!     open.complete(&assignment.task, &outcome, Labour::default())?;
//!     let batch = open.take_everything();
//!     // The effect: it needs nothing but the store, and may be carried out anywhere.
//!     batch.write(&store).await?;
//!     open.settle(&batch);
//! }
//! let finished = open.finish(1, 1).expect("it has ended");
//! journal.append(&finished).await?;
//! open.note_finished();
//!
//! let head = run::RunHead::read(&store, &id).await?;
//! assert_eq!(head.recorded().status, Status::Finished);
//! # Ok(())
//! # }
//! ```

pub mod backup;
pub mod commit;
pub mod damage;
pub mod epochs;
pub mod event;
pub mod export;
pub mod finished;
pub mod fold;
pub mod head;
pub mod history;
pub mod jobs;
pub mod journal;
pub mod labels;
pub mod layout;
pub mod listing;
pub mod lock;
pub mod naming;
pub mod open;
pub mod plan;
pub mod players;
pub mod pruning;
pub mod reader;
pub mod record;
pub mod removal;
pub mod repair;
pub mod schedule;
pub mod states;
pub mod stored;
pub mod study;
pub mod summary;
pub mod write_batch;
pub mod yardstick;

pub use commit::{GroupCommit, WriteError};
pub use damage::Damage;
pub use event::{Owner, RunEvent};
pub use finished::FinishedRun;
pub use fold::{Recorded, Status};
pub use head::{RunError, RunHead};
pub use journal::{Journal, JournalError, JournalHead};
pub use labels::{LabelChange, LabelError, Labels};
pub use layout::{ArtifactName, Label, NameError, Place, RunId, StateName};
pub use lock::Lock;
pub use open::{Assignment, OpenRun, Opening, create, open, write_experiment};
pub use pruning::{Pruned, Pruning};
pub use repair::Repair;
pub use stored::StoredRun;
pub use study::StoredStudy;
pub use summary::Summary;
pub use write_batch::WriteBatch;
pub use yardstick::{Milestone, Strengths};
