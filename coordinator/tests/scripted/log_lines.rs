//! What workers can write to the coordinator's log.

use super::untrusted::refusal;
use super::*;
use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, PoisonError};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// The lines that were logged on this thread.
#[derive(Clone, Default)]
pub(super) struct LogLines(Arc<Mutex<Vec<String>>>);

impl LogLines {
    pub(super) fn containing(&self, text: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| line.contains(text)).cloned().collect()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl Subscriber for LogLines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Expects that most lines of a worker were left out, and that one line says so.
async fn expect_left_out(lines: &LogLines, of: &str, caused: usize) {
    let written = lines.containing(of).len();
    assert!((20..=100).contains(&written), "{written} of {caused} lines");
    assert_eq!(lines.containing("left out"), Vec::<String>::new(), "the period is not over");
    tokio::time::sleep(Duration::from_secs(15)).await;
    let told = lines.containing("left out");
    let number =
        told.first().and_then(|line| line.split("left_out=").nth(1)?.split(' ').next()?.parse().ok());
    assert!(told.len() == 1 && number.is_some_and(|number: usize| written + number >= caused), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn one_renewal_of_many_pieces_does_not_fill_the_log() {
    let lines = LogLines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let script = Script::new(&SWEEP.replace("repeats = 3", "repeats = 1000")).await;
    script.untrusted("noisy").join(join_request("noisy")).await.unwrap();
    let renewal = |first| v1::Renewal {
        piece: Some(v1::Piece {
            run: script.run.clone(),
            what: Some(v1::piece::What::Cells(v1::CellsPiece { first, count: 1 })),
        }),
        token: u64::from(first),
        ..v1::Renewal::default()
    };
    let renewals = (0..1000).map(renewal).collect();
    let request = v1::RenewRequest { worker: "noisy".to_owned(), renewals };
    let reply = script.untrusted("noisy").renew(request).await.unwrap();
    assert_eq!(reply.lost, Vec::<u64>::new(), "what a worker holds is no less its own");
    expect_left_out(&lines, "lease adopted again", 1000).await;
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_fails_all_the_time_does_not_fill_the_log_and_others_are_heard() {
    let lines = LogLines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let script = Script::new(EXPERIMENT).await;
    let grant = script.acquire_elsewhere("noisy", 1).await.remove(0);
    for _ in 0..500 {
        script.untrusted("noisy").release(refusal("noisy", &grant, "it broke", false)).await.unwrap();
    }
    let grant = script.acquire_elsewhere("honest", 1).await.remove(0);
    script.untrusted("honest").release(refusal("honest", &grant, "a lack of luck", false)).await.unwrap();
    assert_eq!(lines.containing("a lack of luck").len(), 1);
    // Ids that were never joined are no more than one caller.
    for number in 0..500 {
        let worker = format!("stranger-{number}");
        let request = v1::LeaveRequest { worker, reason: "a stranger".to_owned(), misconfigured: false };
        script.untrusted("stranger").leave(request).await.unwrap();
    }
    assert!(lines.containing("a stranger").len() <= 100);
    let noisy = lines.containing("it broke").len();
    assert!((20..=100).contains(&noisy), "{noisy}");
    tokio::time::sleep(Duration::from_secs(15)).await;
    let told = lines.containing("left out");
    assert_eq!(told.len(), 2, "one line for each: {told:?}");
}
