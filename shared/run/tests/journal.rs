//! The journal over both stores: order, one winner, fencing, retries.

use run::journal::{Event, Journal, JournalError, JournalHead, read_all, read_on};
use run::{Place, RunId};
use store::{Kind, Nonce, Store, StoreError};
use tokio::task::JoinSet;

fn run() -> RunId {
    RunId::new("journal").unwrap()
}

async fn stores() -> (tempfile::TempDir, [Store; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let local = Store::local(folder.path()).await.unwrap();
    (folder, [Store::memory(), local])
}

async fn open(store: &Store, writer: u128) -> (Journal, Vec<Event<String>>) {
    Journal::open(store, &run(), Nonce(writer)).await.unwrap()
}

async fn bodies(store: &Store) -> Vec<String> {
    read_all(store, &run()).await.unwrap().into_iter().map(|event| event.body).collect()
}

#[tokio::test]
async fn events_come_back_in_order_with_their_writers() {
    let (_folder, stores) = stores().await;
    for store in stores {
        let (mut first, events) = open(&store, 1).await;
        assert_eq!(events, []);
        for number in 0..40 {
            assert_eq!(first.append(&format!("event {number}")).await.unwrap(), number);
        }
        let (mut second, events) = open(&store, 2).await;
        assert_eq!((events.len(), second.head().events), (40, 40));
        second.append(&"event 40".to_string()).await.unwrap();

        let all: Vec<Event<String>> = read_all(&store, &run()).await.unwrap();
        for (number, event) in all.iter().enumerate() {
            let writer = Nonce(if number < 40 { 1 } else { 2 });
            let Event { number: found, writer: by, body, .. } = event;
            assert_eq!((*found, *by, body), (number as u64, writer, &format!("event {number}")));
        }
        assert_eq!(all.len(), 41);
    }
}

#[tokio::test]
async fn a_later_writer_fences_an_earlier_one() {
    let (_folder, stores) = stores().await;
    for store in stores {
        let (mut old, _) = open(&store, 1).await;
        old.append(&"old term".to_string()).await.unwrap();
        let (mut new, _) = open(&store, 2).await;
        new.append(&"new term".to_string()).await.unwrap();
        for _ in 0..2 {
            match old.append(&"zombie".to_string()).await {
                Err(JournalError::Fenced { number: 1, winner: Nonce(2), .. }) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(bodies(&store).await, ["old term", "new term"]);
    }
}

#[tokio::test]
async fn equal_events_of_two_writers_are_not_confused() {
    let (_folder, stores) = stores().await;
    for store in stores {
        let ((mut one, _), (mut two, _)) = (open(&store, 1).await, open(&store, 2).await);
        one.append(&"paused".to_string()).await.unwrap();
        let lost = two.append(&"paused".to_string()).await;
        assert!(matches!(lost, Err(JournalError::Fenced { number: 0, winner: Nonce(1), .. })), "{lost:?}");
    }
}

#[tokio::test]
async fn a_retried_append_recognises_its_own_event() {
    let (_folder, stores) = stores().await;
    for store in stores {
        // A second handle of the same writer stands for the first one after a create whose answer was lost.
        let ((mut sent, _), (mut retried, _)) = (open(&store, 1).await, open(&store, 1).await);
        assert_eq!(sent.append(&"decided".to_string()).await.unwrap(), 0);
        assert_eq!(retried.append(&"decided".to_string()).await.unwrap(), 0);
        assert_eq!(retried.head().events, 1);
        assert_eq!(bodies(&store).await, ["decided"]);

        sent.append(&"finished".to_string()).await.unwrap();
        assert_eq!(retried.append(&"cancelled".to_string()).await.unwrap(), 2, "it goes after what was lost");
        assert_eq!(bodies(&store).await, ["decided", "finished", "cancelled"]);
        let fenced = sent.append(&"paused".to_string()).await.unwrap();
        assert_eq!(fenced, 3, "and the lost one's own writer goes after both");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_writers_one_gets_each_number() {
    let (_folder, stores) = stores().await;
    for store in stores {
        let mut opened_together = Vec::new();
        for writer in 0..16 {
            opened_together.push((open(&store, writer).await.0, writer));
        }
        let mut writers = JoinSet::new();
        for (mut journal, writer) in opened_together {
            writers.spawn(async move { (Nonce(writer), journal.append(&writer.to_string()).await) });
        }
        let results = writers.join_all().await;
        let winners: Vec<Nonce> =
            results.iter().filter(|(_, result)| result.is_ok()).map(|(writer, _)| *writer).collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        for (_, result) in results.iter().filter(|(writer, _)| *writer != winners[0]) {
            let Err(JournalError::Fenced { number: 0, winner, .. }) = result else { panic!("{result:?}") };
            assert_eq!(*winner, winners[0]);
        }
        assert_eq!(bodies(&store).await, [winners[0].0.to_string()]);
    }
}

#[tokio::test]
async fn gaps_strangers_and_short_events_are_told() {
    let (_folder, stores) = stores().await;
    for store in stores {
        let (mut journal, _) = open(&store, 1).await;
        for body in ["a", "b", "c"] {
            journal.append(&body.to_string()).await.unwrap();
        }
        store.create_text(&run().events().join("notes.txt"), "not an event").await.unwrap();
        assert_eq!(bodies(&store).await, ["a", "b", "c"]);

        store.delete(&Place::Event(1).in_run(&run())).await.unwrap();
        let gap = read_all::<String>(&store, &run()).await;
        assert!(matches!(gap, Err(JournalError::Gap { number: 1, .. })), "{gap:?}");

        store.create(&Place::Event(1).in_run(&run()), Kind::Event, "too short").await.unwrap();
        let short = read_all::<String>(&store, &run()).await;
        assert!(matches!(short, Err(JournalError::Store(StoreError::Body { .. }))), "{short:?}");
    }
}

#[tokio::test]
async fn events_of_another_type_are_an_error() {
    let store = Store::memory();
    let (mut journal, _) = open(&store, 1).await;
    journal.append(&"text".to_string()).await.unwrap();
    let error = read_all::<bool>(&store, &run()).await.unwrap_err().to_string();
    assert!(error.starts_with("body of object `runs/journal/events/00000000000000000000`"), "{error}");
}

#[tokio::test]
async fn what_is_known_of_a_journal_is_not_read_again() {
    let (_folder, stores) = stores().await;
    for store in stores {
        let (mut journal, _) = open(&store, 1).await;
        for number in 0..3 {
            journal.append(&format!("event {number}")).await.unwrap();
        }
        let known = journal.head();
        let new = |known: JournalHead| {
            let store = store.clone();
            async move { read_on::<String>(&store, &run(), known).await.unwrap() }
        };
        assert_eq!(new(known).await, Some(vec![]));
        assert_eq!(new(JournalHead::empty(&run())).await.unwrap().len(), 3);
        journal.append(&"event 3".to_string()).await.unwrap();
        // Only the newest is read: the first could not be read any more.
        let first = Place::Event(0).in_run(&run());
        store.delete(&first).await.unwrap();
        store.create(&first, Kind::Event, "damaged").await.unwrap();
        let found = new(known).await.unwrap();
        assert_eq!((found.len(), found[0].number, found[0].body.as_str()), (1, 3, "event 3"));
    }
}

#[tokio::test]
async fn a_journal_that_was_begun_anew_is_told_apart() {
    for events in [1, 2, 3] {
        let (old, new) = (Store::memory(), Store::memory());
        let (mut journal, _) = open(&old, 1).await;
        for _ in 0..2 {
            journal.append(&"same".to_string()).await.unwrap();
        }
        let (mut other, _) = open(&new, 2).await;
        for _ in 0..events {
            other.append(&"same".to_string()).await.unwrap();
        }
        assert_eq!(read_on::<String>(&new, &run(), journal.head()).await.unwrap(), None, "{events} events");
    }
}
