use super::quarantine::WATCHED;
use super::*;

#[test]
fn words_of_others_stay_on_one_line_and_short() {
    assert_eq!(shown("1.0\n2026 INFO forged\x1b[31m"), "1.0 2026 INFO forged [31m");
    assert_eq!(shown(&"é".repeat(1_500_000)), "é".repeat(100));
}

#[test]
fn deliveries_are_durable_up_to_the_first_that_is_not() {
    let mut workers = Workers::default();
    workers.join("a", "a", ("a", "1"), 1, Duration::ZERO).unwrap();
    let numbers: Vec<u64> = (0..4).map(|_| workers.receive("a")).collect();
    assert_eq!((numbers, workers.durable("a")), (vec![1, 2, 3, 4], 0));
    workers.settle("a", 2);
    workers.settle("a", 3);
    assert_eq!(workers.durable("a"), 0, "the first one is not");
    workers.settle("a", 1);
    assert_eq!(workers.durable("a"), 3);
    workers.settle("a", 4);
    assert_eq!(workers.durable("a"), 4);
    assert_eq!(workers.durable("b"), 0);
}

#[test]
fn a_quarantined_worker_does_not_return_under_another_id_unless_its_principal_has_other_workers() {
    let mut workers = Workers::default();
    let join = |workers: &mut Workers, worker: &str, principal: &str| {
        workers.join(worker, principal, (worker, "1"), 1, Duration::ZERO).is_ok()
    };
    for (worker, principal) in [("a", "one"), ("b", "two"), ("c", "two")] {
        assert!(join(&mut workers, worker, principal));
    }
    workers.quarantine("a", "one", "it lies", Duration::ZERO);
    assert!(!join(&mut workers, "a", "one"));
    assert!(!join(&mut workers, "d", "one"), "an id is self-chosen");
    assert!(join(&mut workers, "a2", "three"));
    assert!(!workers.is_watched("two"));
    workers.quarantine("b", "two", "it lies", Duration::ZERO);
    assert!(workers.is_watched("two"), "others of it may lie too");
    assert!(!join(&mut workers, "b", "two"));
    assert!(join(&mut workers, "c", "two"), "it shares an address with the other one");
    let connected: Vec<&str> = workers.connected(Duration::ZERO).map(|identity| identity.worker).collect();
    assert_eq!(connected, ["a2", "c"]);
    for _ in 1..WATCHED {
        assert!(workers.is_watched("two"));
    }
    assert!(!workers.is_watched("two"));
}

#[test]
fn who_is_back_under_ever_other_ids_waits_longer_each_time_and_others_of_its_principal_go_on() {
    let mut workers = Workers::default();
    let join = |workers: &mut Workers, worker: &str, now: u64| {
        workers.join(worker, "one", (worker, "1"), 1, Duration::from_secs(now))
    };
    join(&mut workers, "honest", 0).unwrap();
    workers.receive("honest");
    for id in ["a", "b", "c", "waiting"] {
        join(&mut workers, id, 0).unwrap();
    }
    let quarantine = |workers: &mut Workers, worker: &str, now: u64| {
        workers.quarantine(worker, "one", "garbage", Duration::from_secs(now));
    };
    quarantine(&mut workers, "a", 0);
    quarantine(&mut workers, "b", 0);
    join(&mut workers, "d", 0).unwrap();
    quarantine(&mut workers, "c", 0);
    for id in ["d", "waiting"] {
        assert_eq!(workers.see(id, Duration::ZERO), Err(WorkerRejection::Unknown(id.to_owned())));
    }
    assert_eq!(join(&mut workers, "d", 9), Err(WorkerRejection::Later("d".to_owned())));
    assert_eq!((join(&mut workers, "honest", 9), workers.admits("honest")), (Ok(()), Ok(())));
    workers.join("e", "two", ("e", "1"), 1, Duration::ZERO).unwrap();
    join(&mut workers, "d", 10).unwrap();
    quarantine(&mut workers, "d", 10);
    assert!(join(&mut workers, "f", 29).is_err() && join(&mut workers, "f", 30).is_ok(), "twice as long");
}

#[test]
fn one_principal_cannot_have_all_places() {
    let mut workers = Workers::default();
    let mut join = |worker: &str, principal: &str| {
        workers.make_room(principal);
        workers.join(worker, principal, ("name", "1"), 1, Duration::ZERO)
    };
    join("honest", "another").unwrap();
    for number in 1..MOST {
        join(&format!("flood-{number:05}"), "mallory").unwrap();
    }
    assert_eq!(join("one-more", "mallory"), Err(WorkerRejection::TooMany));
    for worker in ["first", "second", "third"] {
        join(worker, worker).unwrap();
    }
    join("fourth", "another").unwrap();
    assert_eq!(join("one-more", "mallory"), Err(WorkerRejection::TooMany));
    for worker in ["honest", "first", "second", "third", "fourth"] {
        assert_eq!(workers.admits(worker), Ok(()));
    }
    assert_eq!(workers.count(), MOST);
}

#[test]
fn who_takes_the_id_of_a_worker_of_another_principal_is_another_worker() {
    let mut workers = Workers::default();
    for principal in ["one", "two"] {
        workers.join("a", principal, ("a", "1"), 1, Duration::ZERO).unwrap();
    }
    assert_eq!(workers.key("a", "one"), "a");
    let other = workers.key("a", "two");
    assert_ne!(other, "a");
    workers.quarantine(&other, "two", "it lies", Duration::ZERO);
    assert!(workers.see("a", Duration::ZERO).is_ok());
    assert!(workers.see(&other, Duration::ZERO).is_err());
    assert!(workers.see(&workers.key("a", "three"), Duration::ZERO).is_err(), "it has not joined");
    workers.leave("a");
    assert_eq!(workers.key("a", "two"), other);
}

#[test]
fn who_knows_a_principal_cannot_take_the_id_that_its_worker_would_be_given() {
    let mut workers = Workers::default();
    let join = |workers: &mut Workers, worker: &str, principal: &str| {
        workers.join(worker, principal, ("a", "1"), 1, Duration::ZERO)
    };
    join(&mut workers, "a", "stranger").unwrap();
    let of_victim = workers.key("a", "victim");
    let squatted = join(&mut workers, &of_victim, "squatter");
    assert_eq!(squatted, Err(WorkerRejection::Id(of_victim.clone())));
    join(&mut workers, "a", "victim").unwrap();
    workers.quarantine(&workers.key(&of_victim, "squatter"), "squatter", "it lies", Duration::ZERO);
    assert!(workers.see(&workers.key("a", "victim"), Duration::ZERO).is_ok());
}

#[test]
fn a_machine_whose_secrets_are_replaced_stays_one_principal() {
    let mut workers = Workers::default();
    let join = |workers: &mut Workers, worker: &str, principal: &str, session: &[u8]| {
        workers.continue_session(worker, principal, session);
        workers.join(worker, principal, (worker, "1"), 1, Duration::ZERO)?;
        let key = workers.key(worker, principal);
        Ok::<_, WorkerRejection>((workers.session(&key, b"secret").unwrap(), key))
    };
    let (session, _) = join(&mut workers, "a", "10.0.0.1 old", &[]).unwrap();
    assert_eq!(join(&mut workers, "a", "10.0.0.1 old", &[]).unwrap().0, session, "it calls again");
    assert_eq!(workers.receive("a"), 1);
    // Neither a stranger nor another machine continues it.
    let (other, key) = join(&mut workers, "a", "10.0.0.1 guess", &[7; 32]).unwrap();
    assert!(other != session && key != "a", "{key}");
    let (_, key) = join(&mut workers, "a", "10.0.0.2 new", &session.0).unwrap();
    assert_ne!(key, "a");
    // Who has workers of its own stays another.
    let (_, key) = join(&mut workers, "a", "10.0.0.1 guess", &session.0).unwrap();
    assert_ne!(key, "a");

    let (continued, key) = join(&mut workers, "a", "10.0.0.1 new", &session.0).unwrap();
    assert_eq!((continued, key.as_str(), workers.receive("a")), (session, "a", 2));
    assert_eq!(workers.key("a", "10.0.0.1 old"), "a", "calls that were under way");
    join(&mut workers, "b", "10.0.0.1 new", &[]).unwrap();
    assert_eq!(workers.identity("b").principal, "10.0.0.1 old", "one machine has one voice");
    let (again, _) = join(&mut workers, "a", "10.0.0.1 newest", &session.0).unwrap();
    assert_eq!((again, workers.identity("a").principal), (session, "10.0.0.1 old"));

    for worker in ["a", "b"] {
        workers.quarantine(worker, "10.0.0.1 old", "it lies", Duration::ZERO);
    }
    assert!(join(&mut workers, "a", "10.0.0.1 new", &session.0).is_err(), "blame stays");
    assert!(join(&mut workers, "c", "10.0.0.1 newest", &[]).is_err());
    assert!(join(&mut workers, "a", "10.0.0.1 last", &session.0).is_err());
}

#[test]
fn a_worker_that_fails_does_not_begin_anew_under_another_id() {
    let mut workers = Workers::default();
    let join = |workers: &mut Workers, worker: &str, principal: &str| {
        workers.join(worker, principal, (worker, "1"), 1, Duration::ZERO).unwrap();
    };
    join(&mut workers, "a", "one");
    for _ in 0..TIRED_AFTER {
        workers.note_failure("a", Duration::ZERO);
    }
    workers.leave("a");
    join(&mut workers, "b", "one");
    join(&mut workers, "c", "two");
    assert!(workers.is_resting("b", Duration::ZERO) && !workers.is_resting("c", Duration::ZERO));
    workers.note_failure("b", Duration::from_secs(1));
    assert!(workers.is_resting("b", Duration::from_secs(2)), "twice as long");
    workers.note_success("b");
    join(&mut workers, "d", "one");
    assert!(!workers.is_resting("d", Duration::ZERO));
}

#[test]
fn losses_of_a_principal_are_written_down_ever_less_often_until_it_delivers_something() {
    let mut workers = Workers::default();
    workers.join("a", "one", ("a", "1"), 1, Duration::ZERO).unwrap();
    let mut heard = 0;
    for second in 0..3600 {
        let now = Duration::from_secs(second);
        if !workers.is_ignored("one", now) {
            workers.note_losses("one", now);
            heard += 1;
        }
    }
    assert!((60..80).contains(&heard), "{heard} in an hour");
    let now = Duration::from_secs(3600);
    workers.note_losses("one", now);
    assert!(workers.is_ignored("one", now) && !workers.is_ignored("two", now));
    workers.note_success("a");
    assert!(!workers.is_ignored("one", now));
}

#[test]
fn a_slow_worker_is_told_from_the_fleet_in_the_runs_that_they_share() {
    let mut workers = Workers::default();
    for worker in ["a", "b", "c", "d"] {
        workers.join(worker, worker, (worker, "1"), 1, Duration::ZERO).unwrap();
        workers.note_work(worker, "shared", if worker == "c" { 500 } else { 1000 }, 1000);
    }
    workers.note_work("d", "alone", 1_000_000, 1000);
    let paces = |workers: &Workers| -> Vec<f64> {
        let views = workers.views(Duration::ZERO, Duration::ZERO);
        views.into_iter().map(|view| view.pace.unwrap()).collect()
    };
    assert_eq!(paces(&workers), [1.0, 1.0, 0.5, 1.0]);
    for _ in 0..50 {
        workers.note_work("c", "shared", 1000, 1000);
    }
    assert!((paces(&workers)[2] - 1.0).abs() < 0.01, "what it does now counts");
    for liar in ["c", "d"] {
        workers.note_work(liar, "shared", 1_000_000_000, 1);
        workers.quarantine(liar, liar, "it lies", Duration::ZERO);
    }
    assert!(paces(&workers)[0] > 0.9, "what a liar reports of itself is no measure");
    workers.join("e", "e", ("e", "1"), 1, Duration::from_secs(9)).unwrap();
    workers.note_work("e", "shared", 1000, 1000);
    let views = workers.views(Duration::from_secs(9), Duration::from_secs(9));
    assert!(views.iter().all(|view| view.pace.is_none()), "silent ones are none either");
    workers.forget_run("shared");
    assert!(workers.views(Duration::ZERO, Duration::ZERO).iter().all(|view| view.pace.is_none()));
}

#[test]
fn a_worker_that_fails_whatever_it_is_given_rests() {
    let mut workers = Workers::default();
    workers.join("a", "a", ("a", "1"), 1, Duration::ZERO).unwrap();
    let second = Duration::from_secs(1);
    workers.note_failure("a", Duration::ZERO);
    workers.note_failure("a", Duration::ZERO);
    assert!(!workers.is_resting("a", Duration::ZERO));
    workers.note_failure("a", Duration::ZERO);
    assert!(workers.is_resting("a", Duration::ZERO));
    assert!(!workers.is_resting("a", second));
    workers.note_failure("a", second);
    assert!(workers.is_resting("a", 2 * second), "twice as long");
    workers.note_success("a");
    assert!(!workers.is_resting("a", second));
}

#[test]
fn what_one_principal_says_of_its_threads_does_not_decide_how_many_workers_are_wanted() {
    let mut workers = Workers::default();
    assert_eq!(workers.usual_threads(), 0);
    for (worker, threads) in [("a", 8), ("b", 8), ("c", 4)] {
        workers.join(worker, worker, (worker, "1"), threads, Duration::ZERO).unwrap();
    }
    for number in 0..9 {
        let id = format!("mallory-{number}");
        workers.join(&id, "mallory", (&id, "1"), u32::MAX, Duration::ZERO).unwrap();
    }
    assert_eq!(workers.usual_threads(), 8);
    for worker in ["a", "b"] {
        workers.quarantine(worker, worker, "it lies", Duration::ZERO);
    }
    assert_eq!(workers.usual_threads(), 4);
}
