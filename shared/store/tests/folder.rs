//! What only a folder on a disk can show: its own errors, strangers in it, left-overs, damage.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::time::Duration;
use store::{Created, Kind, ObjectDamage, Path, Store, StoreError};

fn record(epoch: u64) -> Path {
    Path::from(format!("runs/r/islands/0/{}", store::number::digits(epoch)))
}

#[tokio::test]
async fn a_file_is_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(Store::local(&file).await, Err(StoreError::NotAFolder { .. })));
    assert!(matches!(Store::existing(&file).await, Err(StoreError::NotAFolder { .. })));
    let below = Store::local(file.join("store")).await;
    assert!(matches!(below, Err(StoreError::Unusable { .. })), "{below:?}");
}

#[tokio::test]
async fn a_store_that_must_exist_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("typo");
    assert!(matches!(Store::existing(&missing).await, Err(StoreError::NoSuchFolder { .. })));
    assert!(!missing.exists());
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn an_unwritable_folder_is_told_at_once() {
    let error = Store::local("/proc/self/atoll").await.unwrap_err();
    assert!(matches!(error, StoreError::Unusable { .. }), "{error:?}");
    let existing_but_unwritable = Store::local("/proc/self").await.unwrap_err().to_string();
    assert!(
        existing_but_unwritable.starts_with("cannot use `/proc/self` as a store: "),
        "{existing_but_unwritable}"
    );
}

#[tokio::test]
async fn a_path_that_is_not_unicode_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(OsStr::from_bytes(b"odd-\xff"));
    assert!(matches!(Store::local(&odd).await, Err(StoreError::NotUnicode { .. })));
}

#[tokio::test]
async fn opening_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    Store::local(folder.path()).await.unwrap();
    Store::local(folder.path()).await.unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_store_that_stands_for_a_service_far_away_is_only_slower() {
    let folder = tempfile::tempdir().unwrap();
    let latency = Duration::from_millis(20);
    let store = Store::local(folder.path()).await.unwrap().delayed(latency);
    let start = std::time::Instant::now();
    assert_eq!(store.create(&record(0), Kind::Commit, "one").await.unwrap(), Created::New);
    assert_eq!(store.create(&record(0), Kind::Commit, "one").await.unwrap(), Created::Same);
    assert_eq!(store.read(&record(0), Kind::Commit).await.unwrap(), "one");
    assert_eq!(store.list(&Path::from("runs")).await.unwrap(), [record(0)]);
    store.delete(&record(0)).await.unwrap();
    assert!(start.elapsed() >= 6 * latency, "a create that finds something reads it");
    let plain = Store::existing(folder.path()).await.unwrap();
    assert!(plain.list(&Path::from("runs")).await.unwrap().is_empty(), "it is one place");
}

#[tokio::test]
async fn two_openings_see_one_store() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) =
        (Store::local(folder.path()).await.unwrap(), Store::existing(folder.path()).await.unwrap());
    assert_eq!(one.create(&record(1), Kind::Commit, "x").await.unwrap(), Created::New);
    assert_eq!(two.create(&record(1), Kind::Commit, "x").await.unwrap(), Created::Same);
    assert_eq!(two.list(&Path::default()).await.unwrap(), [record(1)]);
}

#[tokio::test]
async fn left_over_staging_files_are_ignored_and_swept() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path()).await.unwrap();
    store.create(&record(1), Kind::Commit, "whole").await.unwrap();
    for left in ["#1", "#2", "#17"] {
        fs::write(folder.path().join(format!("{}{left}", record(2))), "ATOLLO").unwrap();
    }
    fs::write(folder.path().join("runs/r/notes #1 of 3"), "mine").unwrap();

    let objects = store.list(&Path::from("runs/r/islands")).await.unwrap();
    assert_eq!(objects, [record(1)]);
    assert_eq!(store.create(&record(2), Kind::Commit, "whole too").await.unwrap(), Created::New);

    let young = store.sweep(&Path::default(), Duration::from_hours(1)).await.unwrap();
    assert_eq!(young, 0, "a file just written may be another writer's");
    assert_eq!(store.sweep(&Path::default(), Duration::ZERO).await.unwrap(), 3);
    assert_eq!(store.read(&record(2), Kind::Commit).await.unwrap(), "whole too");
    assert!(folder.path().join("runs/r/notes #1 of 3").exists());
}

#[tokio::test]
async fn strangers_in_the_folder_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path()).await.unwrap();
    store.create(&record(1), Kind::Commit, "whole").await.unwrap();
    let run = folder.path().join("runs/r");
    fs::write(run.join(OsStr::from_bytes(b"bad-\xff-name")), "").unwrap();
    fs::write(run.join("line\nbreak"), "").unwrap();
    fs::write(run.join("islands/0/notes.txt"), "").unwrap();
    fs::create_dir(run.join("empty")).unwrap();
    symlink(&run, run.join("loop")).unwrap();
    symlink("nowhere", run.join("broken")).unwrap();

    let listed = store.list(&Path::from("runs")).await.unwrap();
    assert!(listed.contains(&record(1)), "{listed:?}");
    assert!(listed.iter().all(|path| store::Path::parse(path.as_ref()).is_ok()), "{listed:?}");
    assert_eq!(store.folders(&Path::from("runs")).await.unwrap(), [Path::from("runs/r")]);
}

#[tokio::test]
async fn a_folder_in_an_objects_place_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path()).await.unwrap();
    fs::create_dir_all(folder.path().join(record(1).as_ref())).unwrap();
    let created = store.create(&record(1), Kind::Commit, "x").await;
    assert!(matches!(created, Err(StoreError::Obstructed { .. })), "{created:?}");
    assert!(store.read(&record(1), Kind::Commit).await.unwrap_err().is_missing());
}

/// The bytes of a damaged object, and whether a [`ObjectDamage`] describes what is wrong with them.
type Case<'a> = (&'a [u8], fn(&ObjectDamage) -> bool);

#[tokio::test]
async fn damage_on_the_disk_is_named_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path()).await.unwrap();
    store.create(&record(1), Kind::Commit, "a body of some length").await.unwrap();
    let file = folder.path().join(record(1).as_ref());
    let whole = fs::read(&file).unwrap();

    let mut altered = whole.clone();
    altered[60] ^= 4;
    let longer = [&whole[..], b"!"].concat();
    let cases: [Case<'_>; 4] = [
        (&[], |damage| matches!(damage, ObjectDamage::CutShort { expected: 52, found: 0 })),
        (&whole[..whole.len() - 1], |damage| {
            matches!(damage, ObjectDamage::CutShort { expected: 73, found: 72 })
        }),
        (&altered, |damage| matches!(damage, ObjectDamage::Altered { .. })),
        (&longer, |damage| matches!(damage, ObjectDamage::TrailingBytes { expected: 73, found: 74 })),
    ];
    for (bytes, is_told) in cases {
        fs::write(&file, bytes).unwrap();
        let read = store.read(&record(1), Kind::Commit).await.unwrap_err();
        let StoreError::Damaged { path, damage } = &read else { panic!("{read:?}") };
        assert!(*path == record(1) && is_told(damage), "{read}");
        assert!(read.to_string().starts_with(&format!("object `{}` ", record(1))), "{read}");
        let created = store.create(&record(1), Kind::Commit, "a body of some length").await;
        assert!(matches!(created, Err(StoreError::Damaged { .. })), "{created:?}");
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }
}

#[tokio::test]
async fn a_huge_file_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path()).await.unwrap();
    let file = folder.path().join("huge");
    fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
    let path = Path::from("huge");
    assert!(matches!(store.read(&path, Kind::Jobs).await, Err(StoreError::TooLarge { .. })));
    assert!(matches!(store.create_text(&path, "x").await, Err(StoreError::TooLarge { .. })));
}

/// Opening a pipe waits for its writer, and a device may never end.
#[tokio::test]
async fn pipes_and_devices_in_place_of_objects_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::local(folder.path()).await.unwrap();
    fs::create_dir_all(folder.path().join("runs/r")).unwrap();
    let pipe = folder.path().join("runs/r/experiment.toml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    symlink("/dev/zero", folder.path().join("runs/r/event")).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(folder.path().join("runs/r/state")).unwrap();
    let text = store.read_text(&Path::from("runs/r/experiment.toml"), 1 << 20).await;
    assert!(matches!(text, Err(StoreError::NotAFile { .. })), "{text:?}");
    for name in ["event", "state", "experiment.toml"] {
        let path = Path::from("runs/r").join(name);
        let read = store.read(&path, Kind::Event).await;
        assert!(matches!(read, Err(StoreError::NotAFile { .. })), "{name}: {read:?}");
        assert!(matches!(store.size(&path).await, Err(StoreError::NotAFile { .. })), "{name}");
        let created = store.create(&path, Kind::Event, "body").await;
        assert!(matches!(created, Err(StoreError::NotAFile { .. })), "{name}: {created:?}");
    }
    drop(listener);
}

#[tokio::test]
async fn what_is_set_aside_is_elsewhere_as_it_was_and_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for store in [Store::local(folder.path()).await.unwrap(), Store::memory()] {
        let [from, to] = [Path::from("runs/r/events/1"), Path::from("runs/r/dropped/1/events/1")];
        store.create_text(&from, "not an event").await.unwrap();
        store.set_aside(&from, &to).await.unwrap();
        assert_eq!(store.read_text(&to, 100).await.unwrap(), "not an event");
        assert!(store.read_text(&from, 100).await.unwrap_err().is_missing());
        store.create_text(&from, "another").await.unwrap();
        store.set_aside(&from, &to).await.unwrap_err();
        assert_eq!(store.read_text(&to, 100).await.unwrap(), "not an event");
        assert_eq!(store.read_text(&from, 100).await.unwrap(), "another");
    }
}
