//! What every store must do, whatever lies beneath: one suite, run against each.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use codec::Digest;
use std::time::Duration;
use store::number::digits;
use store::promises::{BrokenPromise, Trial, try_out};
use store::{Claim, Created, Kind, Location, Nonce, ObjectDamage, Path, Store, StoreError};
use tokio::task::JoinSet;

#[path = "../../../tests/support/s3.rs"]
mod s3;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn memory_conforms() {
    conforms(Store::memory()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_local_folder_conforms() {
    let folder = tempfile::tempdir().unwrap();
    conforms(Store::local(folder.path().join("not/there/yet")).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_bucket_conforms() {
    let server = s3::Server::start();
    for location in ["s3://conformance/deep/prefix", "s3://conformance"] {
        let location = Location::parse(location.as_ref()).unwrap();
        let store = Store::open_with(&location, server.variables()).await.unwrap();
        conforms(store).await;
    }
}

#[tokio::test]
async fn a_bucket_that_cannot_be_used_is_told_at_once() {
    let server = s3::Server::start();
    let open = async |location: &str, variables: Vec<(String, String)>| {
        let location = Location::parse(location.as_ref()).unwrap();
        Store::open_with(&location, variables).await.unwrap_err().to_string()
    };
    let missing = open("s3://not-there/x", server.variables()).await;
    assert!(
        missing.starts_with("cannot use `s3://not-there/x` as a store") && missing.contains("bucket"),
        "{missing}"
    );
    let mut without = server.variables();
    without.retain(|(name, _)| name != "AWS_ALLOW_HTTP");
    let plain = open("s3://conformance", without).await;
    assert!(plain.contains("expected an endpoint that begins with `https://`"), "{plain}");
    assert!(plain.contains("AWS_ALLOW_HTTP=true"), "{plain}");
}

#[tokio::test]
async fn a_service_that_breaks_its_promises_is_found_out() {
    for way in ["races", "ignores"] {
        let server = s3::Server::careless(way);
        let location = Location::parse("s3://careless/prefix".as_ref()).unwrap();
        let store = Store::open_with(&location, server.variables()).await.unwrap();
        let broken = try_out(&store, Nonce(1), Trial::SHORT).await;
        let Err(BrokenPromise::Winners { winners, writers: 8 }) = broken else { panic!("{way}: {broken:?}") };
        assert!(winners > 1, "{way}");
        assert_eq!(store.list(&Path::default()).await.unwrap(), [], "{way}: a trial leaves nothing behind");
    }
}

async fn conforms(store: Store) {
    what_is_created_is_read_back(&store).await;
    creating_again_is_same_or_an_error(&store).await;
    missing_objects_are_told(&store).await;
    the_kind_is_checked(&store).await;
    values_and_bodies_are_told_apart(&store).await;
    texts_are_plain_and_limited(&store).await;
    listing_is_sorted_and_by_folder(&store).await;
    deleting_is_idempotent(&store).await;
    large_bodies_are_kept(&store).await;
    of_many_writers_one_wins(&store).await;
    of_many_equal_writers_one_creates(&store).await;
    sweeping_takes_no_object(&store).await;
    the_last_claim_stands(&store).await;
    of_many_claims_one_stands(&store).await;
    it_keeps_its_promises(&store).await;
}

async fn the_last_claim_stands(store: &Store) {
    // One that no other could follow is nobody's.
    let stray = Path::from(format!("claims/{}", digits(u64::MAX)));
    store.create(&stray, Kind::Claim, "stray").await.unwrap();
    let first = Claim::take(store, Nonce(1), "one:7440").await.unwrap();
    let owner = Claim::owner(store).await.unwrap().unwrap();
    assert_eq!((owner.number, owner.address.as_str()), (first.number(), "one:7440"));
    assert!(first.stands().await.unwrap());
    let second = Claim::take(store, Nonce(2), "").await.unwrap();
    assert_eq!(second.number(), first.number() + 1);
    assert!(!first.stands().await.unwrap() && second.stands().await.unwrap());
}

async fn of_many_claims_one_stands(store: &Store) {
    let mut claiming = JoinSet::new();
    for owner in 10..18 {
        let store = store.clone();
        claiming.spawn(async move { Claim::take(&store, Nonce(owner), "").await.unwrap() });
    }
    let mut standing = vec![];
    for claim in claiming.join_all().await {
        if claim.stands().await.unwrap() {
            standing.push(claim.number());
        }
    }
    assert_eq!(standing.len(), 1);
}

async fn it_keeps_its_promises(store: &Store) {
    let before = store.list(&Path::default()).await.unwrap();
    let tried = try_out(store, Nonce(7), Trial { writers: 16, rounds: 3 }).await.unwrap();
    assert!(tried.clock_ahead.abs() < 60.0, "{tried:?}");
    assert_eq!(store.list(&Path::default()).await.unwrap(), before, "a trial leaves nothing behind");
}

async fn what_is_created_is_read_back(store: &Store) {
    let path = Path::from("basic/object");
    for (name, body) in [("empty", ""), ("short", "x"), ("long", &"abc".repeat(1000))] {
        let path = path.clone().join(name);
        assert_eq!(store.create(&path, Kind::Jobs, body.to_string()).await.unwrap(), Created::New);
        assert_eq!(store.read(&path, Kind::Jobs).await.unwrap(), body);
        assert_eq!(store.read_optional(&path, Kind::Jobs).await.unwrap().unwrap(), body);
        assert_eq!(store.size(&path).await.unwrap(), body.len() as u64 + 52);
    }
}

async fn creating_again_is_same_or_an_error(store: &Store) {
    let path = Path::from("again/object");
    assert_eq!(store.create(&path, Kind::Summary, "first").await.unwrap(), Created::New);
    assert_eq!(store.create(&path, Kind::Summary, "first").await.unwrap(), Created::Same);
    match store.create(&path, Kind::Summary, "second").await {
        Err(StoreError::Differs { path: named, kept, offered }) => {
            assert_eq!((named, kept, offered), (path.clone(), Digest::of(b"first"), Digest::of(b"second")));
        }
        other => panic!("{other:?}"),
    }
    let other_kind = store.create(&path, Kind::Jobs, "first").await;
    assert!(matches!(other_kind, Err(StoreError::Damaged { damage: ObjectDamage::WrongKind { .. }, .. })));
    assert_eq!(store.read(&path, Kind::Summary).await.unwrap(), "first");
}

async fn missing_objects_are_told(store: &Store) {
    let path = Path::from("missing/object");
    assert!(store.read(&path, Kind::Jobs).await.unwrap_err().is_missing());
    assert!(store.read_text(&path, 100).await.unwrap_err().is_missing());
    assert!(store.size(&path).await.unwrap_err().is_missing());
    assert_eq!(store.read_optional(&path, Kind::Jobs).await.unwrap(), None);
    assert!(store.list(&Path::from("missing")).await.unwrap().is_empty());
    assert!(store.folders(&Path::from("missing")).await.unwrap().is_empty());
}

async fn the_kind_is_checked(store: &Store) {
    let path = Path::from("kinds/object");
    store.create(&path, Kind::Checkpoint, "body").await.unwrap();
    let error = store.read(&path, Kind::IslandState).await.unwrap_err().to_string();
    assert!(
        error.starts_with("object `kinds/object` holds `checkpoint`, expected `island state`"),
        "{error}"
    );
    let text = Path::from("kinds/text");
    store.create_text(&text, "not an object, though longer than a header of one would be").await.unwrap();
    let error = store.read(&text, Kind::Jobs).await.unwrap_err().to_string();
    assert!(error.starts_with("object `kinds/text` is not an Atoll object"), "{error}");
}

async fn values_and_bodies_are_told_apart(store: &Store) {
    let path = Path::from("values/object");
    let value = vec![(1u32, "one".to_string()), (2, "two".to_string())];
    store.create_value(&path, Kind::Artifact, &value).await.unwrap();
    let back: Vec<(u32, String)> = store.read_value(&path, Kind::Artifact).await.unwrap();
    assert_eq!(back, value);
    let error = store.read_value::<u8>(&path, Kind::Artifact).await.unwrap_err().to_string();
    assert_eq!(error, "body of object `values/object` has bytes after its value: expected 1, found 11");
}

async fn texts_are_plain_and_limited(store: &Store) {
    let path = Path::from("texts/report.md");
    let text = "# Käfer\n";
    assert_eq!(store.create_text(&path, text).await.unwrap(), Created::New);
    assert_eq!(store.create_text(&path, text).await.unwrap(), Created::Same);
    assert!(matches!(store.create_text(&path, "other").await, Err(StoreError::Differs { .. })));
    assert_eq!(store.size(&path).await.unwrap(), text.len() as u64);
    assert_eq!(store.read_text(&path, text.len() as u64).await.unwrap(), text);
    let too_large = store.read_text(&path, text.len() as u64 - 1).await;
    assert!(matches!(too_large, Err(StoreError::TooLarge { size: 9, limit: 8, .. })), "{too_large:?}");

    let binary = Path::from("texts/object");
    store.create(&binary, Kind::Jobs, [255u8; 9].to_vec()).await.unwrap();
    assert!(matches!(store.read_text(&binary, 1000).await, Err(StoreError::NotText { .. })));
}

async fn listing_is_sorted_and_by_folder(store: &Store) {
    let path = |run: &str, number: u64| Path::from(format!("runs/{run}/records/{}", digits(number)));
    for number in [10, 9, 2, 100] {
        store.create(&path("listed", number), Kind::Commit, "record").await.unwrap();
        store.create(&path("listed-too", number), Kind::Commit, "record").await.unwrap();
    }
    store.create_text(&Path::from("runs/listed/experiment.toml"), "seed = 1").await.unwrap();

    let listed = store.list(&Path::from("runs/listed/records")).await.unwrap();
    assert_eq!(listed, [2, 9, 10, 100].map(|number| path("listed", number)));
    assert_eq!(store.list(&Path::from("runs/listed")).await.unwrap().len(), 5);
    assert_eq!(store.list(&Path::from("runs/list")).await.unwrap(), []);
    let runs = store.folders(&Path::from("runs")).await.unwrap();
    assert_eq!(runs, ["runs/listed", "runs/listed-too"].map(Path::from));
}

async fn deleting_is_idempotent(store: &Store) {
    let path = Path::from("deleted/object");
    store.create(&path, Kind::Jobs, "body").await.unwrap();
    store.delete(&path).await.unwrap();
    assert_eq!(store.read_optional(&path, Kind::Jobs).await.unwrap(), None);
    assert_eq!(store.list(&Path::from("deleted")).await.unwrap(), []);
    store.delete(&path).await.unwrap();
    assert_eq!(store.create(&path, Kind::Jobs, "other").await.unwrap(), Created::New);
}

async fn large_bodies_are_kept(store: &Store) {
    let path = Path::from("large/object");
    let body: Vec<u8> = (0..20u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    assert_eq!(store.create(&path, Kind::IslandState, body.clone()).await.unwrap(), Created::New);
    assert_eq!(store.create(&path, Kind::IslandState, body.clone()).await.unwrap(), Created::Same);
    assert_eq!(store.read(&path, Kind::IslandState).await.unwrap(), body);
}

async fn of_many_writers_one_wins(store: &Store) {
    for round in 0..10 {
        let path = Path::from(format!("race/{round}/object"));
        let results = race(store, &path, |writer| format!("body of {writer}")).await;
        let winners: Vec<_> = results.iter().filter(|(_, result)| result.is_ok()).collect();
        assert_eq!(winners.len(), 1, "{results:?}");
        let expected = format!("body of {}", winners[0].0);
        assert_eq!(store.read(&path, Kind::Event).await.unwrap(), expected);
        for (_, result) in results.iter().filter(|(writer, _)| *writer != winners[0].0) {
            let Err(StoreError::Differs { kept, .. }) = result else { panic!("{result:?}") };
            assert_eq!(*kept, Digest::of(expected.as_bytes()));
        }
    }
}

async fn of_many_equal_writers_one_creates(store: &Store) {
    let path = Path::from("race/equal");
    let results = race(store, &path, |_| "the same".repeat(10_000)).await;
    let new = results.iter().filter(|(_, result)| matches!(result, Ok(Created::New))).count();
    let same = results.iter().filter(|(_, result)| matches!(result, Ok(Created::Same))).count();
    assert_eq!((new, same), (1, results.len() - 1));
}

async fn race(
    store: &Store,
    path: &Path,
    body: fn(usize) -> String,
) -> Vec<(usize, Result<Created, StoreError>)> {
    let mut writers = JoinSet::new();
    for writer in 0..24 {
        let (store, path) = (store.clone(), path.clone());
        writers.spawn(async move { (writer, store.create(&path, Kind::Event, body(writer)).await) });
    }
    writers.join_all().await
}

async fn sweeping_takes_no_object(store: &Store) {
    let before = store.list(&Path::default()).await.unwrap();
    assert!(before.len() > 20);
    assert_eq!(store.sweep(&Path::default(), Duration::ZERO).await.unwrap(), 0);
    assert_eq!(store.list(&Path::default()).await.unwrap(), before);
}
