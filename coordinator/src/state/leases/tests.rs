//! Leases: who holds what, for how long, and when work is poison.

use super::*;

fn work(island: u32) -> Work {
    Work { run: "r".to_owned(), piece: Piece::Epoch { island, epoch: 0 } }
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn leases() -> Leases {
    Leases::new(Terms::default(), 7)
}

/// A worker that answers for itself.
fn identity(worker: &str) -> WorkerIdentity<'_> {
    WorkerIdentity { worker, principal: worker, joined: seconds(0) }
}

/// Has a piece granted to a worker and fail there.
fn fail(leases: &mut Leases, identity: WorkerIdentity<'_>, now: Duration) {
    let token = leases.grant(&work(0), identity.worker, now);
    assert!(leases.fail(&work(0), identity, token, "it broke", now));
}

fn is_poison(leases: &Leases, connected: &[WorkerIdentity<'_>]) -> bool {
    is_poison_at(leases, connected, seconds(0))
}

fn is_poison_at(leases: &Leases, connected: &[WorkerIdentity<'_>], now: Duration) -> bool {
    leases.retry_decision(&work(0), connected.iter().copied(), now) != RetryDecision::Retry
}

fn waiting(leases: &Leases, worker: &str, now: Duration) -> Option<Work> {
    leases.waiting_for(worker, "r", now, |_| true)
}

#[test]
fn a_lease_runs_out_unless_it_is_renewed() {
    let mut leases = leases();
    let token = leases.grant(&work(0), "a", seconds(0));
    let lost = leases.grant(&work(1), "b", seconds(0));
    assert!(leases.renew(&work(0), identity("a"), token, 1, seconds(10)));
    let (worker, held) = ("b".to_owned(), seconds(15));
    let expected = Expired { work: work(1), worker, token: lost, held };
    assert_eq!(leases.expire(seconds(15)), [expected], "the other one was renewed");
    assert_eq!(waiting(&leases, "c", seconds(15)), Some(work(1)));
    assert_eq!(leases.expire(seconds(25)).len(), 1);
}

#[test]
fn a_worker_that_was_away_takes_its_lease_up_again() {
    let mut leases = leases();
    let token = leases.grant(&work(0), "a", seconds(0));
    leases.expire(seconds(20));
    leases.grant(&work(0), "b", seconds(20));
    assert!(leases.renew(&work(0), identity("a"), token, 3, seconds(21)));
    assert_eq!(leases.count("r"), 2);
    let mut next = Leases::new(Terms::default(), 1000);
    assert!(next.renew(&work(0), identity("a"), token, 3, seconds(0)), "and so does the next coordinator");
    assert!(next.release(&work(0), "a", token));
}

#[test]
fn what_is_late_from_one_lease_does_not_touch_the_next() {
    let mut leases = leases();
    let old = leases.grant(&work(0), "a", seconds(0));
    leases.expire(seconds(20));
    let new = leases.grant(&work(0), "a", seconds(20));
    assert_ne!(old, new);
    assert!(!leases.renew(&work(0), identity("a"), old, 1, seconds(21)));
    assert!(!leases.release(&work(0), "a", old));
    assert!(!leases.fail(&work(0), identity("a"), old, "it broke", seconds(21)));
    assert_eq!(leases.count("r"), 1);
    assert!(leases.renew(&work(0), identity("a"), new, 1, seconds(22)));
    assert!(!leases.release(&work(0), "b", new), "it is not its own");
    assert!(leases.release(&work(0), "a", new));
}

#[test]
fn an_answer_that_was_lost_is_given_again_with_its_token() {
    let mut leases = leases();
    let token = leases.grant(&work(0), "a", seconds(0));
    assert_eq!(leases.grant(&work(0), "a", seconds(10)), token);
    assert_eq!(leases.expire(seconds(20)), [], "it was prolonged");
}

#[test]
fn long_work_keeps_its_lease_and_is_reported_once_when_it_stands_still() {
    let mut leases = leases();
    let token = leases.grant(&work(0), "a", seconds(0));
    for now in (0..100_000).step_by(14) {
        assert!(leases.renew(&work(0), identity("a"), token, now / 500, seconds(now)));
        assert_eq!((leases.expire(seconds(now + 13)), leases.find_stalled(seconds(now))), (vec![], vec![]));
    }
    for now in (100_000..110_000).step_by(14) {
        assert!(leases.renew(&work(0), identity("a"), token, 200, seconds(now)), "its worker is there");
    }
    assert_eq!(leases.find_stalled(seconds(110_000)).len(), 1);
    assert_eq!(leases.find_stalled(seconds(110_001)), [], "once");
    assert_eq!(leases.stalled("r"), Some((&work(0), "a")));
    assert_eq!(leases.stalled("q"), None);
    leases.renew(&work(0), identity("a"), token, 201, seconds(110_002));
    assert_eq!(leases.stalled("r"), None, "it goes on");
}

#[test]
fn what_usually_takes_long_may_stand_still_for_longer() {
    let mut leases = leases();
    leases.grant(&work(0), "a", seconds(0));
    leases.complete(&work(0), identity("a"), seconds(600));
    let token = leases.grant(&work(1), "a", seconds(600));
    for now in (600..6600).step_by(10) {
        assert!(leases.renew(&work(1), identity("a"), token, 0, seconds(now)));
        assert_eq!(leases.find_stalled(seconds(now)), []);
    }
    assert_eq!(leases.find_stalled(seconds(6601)).len(), 1);
}

#[test]
fn an_idle_worker_repeats_the_oldest_lease_once() {
    let mut leases = leases();
    leases.grant(&work(1), "a", seconds(0));
    leases.grant(&work(0), "a", seconds(1));
    assert_eq!(leases.hedge("b", seconds(9), |_| true), None, "it is too young");
    assert_eq!(leases.hedge("b", seconds(12), |_| false), None, "the run is paused");
    assert_eq!(leases.hedge("a", seconds(12), |_| true), None, "it is its own");
    assert_eq!(leases.hedge("b", seconds(12), |_| true), Some(work(1)));
    leases.grant(&work(1), "b", seconds(12));
    assert_eq!(leases.hedge("c", seconds(12), |_| true), Some(work(0)), "two are enough");
}

#[test]
fn a_piece_is_not_repeated_within_twice_the_usual_time_of_its_run() {
    let mut leases = leases();
    let other = Work { run: "s".to_owned(), ..work(0) };
    leases.grant(&work(0), "a", seconds(0));
    // Granted before it is known how long such pieces take.
    leases.grant(&work(1), "a", seconds(1));
    leases.complete(&work(0), identity("a"), seconds(20));
    leases.grant(&work(2), "a", seconds(20));
    leases.grant(&other, "a", seconds(22));
    let mut hedge = |now| {
        leases.put_off_repeats(seconds(now));
        leases.hedge("b", seconds(now), |_| true)
    };
    assert_eq!(hedge(31), None, "40 s have not passed");
    assert_eq!(hedge(32), Some(other.clone()), "nothing is known of its run");
    let mut due = |now| {
        leases.put_off_repeats(seconds(now));
        leases.hedge("b", seconds(now), |work| *work != other)
    };
    assert_eq!((due(40), due(41), due(61)), (None, Some(work(1)), Some(work(1))));
    leases.remove(&work(1));
    leases.put_off_repeats(seconds(60));
    assert_eq!(leases.hedge("b", seconds(59), |work| *work != other), None);
    assert_eq!(leases.hedge("b", seconds(60), |work| *work != other), Some(work(2)));
}

#[test]
fn clients_that_only_renew_do_not_keep_a_piece_from_others() {
    let mut leases = leases();
    let tokens = ["a", "b"].map(|worker| (worker, leases.grant(&work(0), worker, seconds(0))));
    for now in (10..=600).step_by(10) {
        for (worker, token) in tokens {
            assert!(leases.renew(&work(0), identity(worker), token, 7, seconds(now)));
        }
        leases.find_stalled(seconds(now));
        assert_eq!(waiting(&leases, "c", seconds(now)), None, "they may still get further");
    }
    assert_eq!(leases.find_stalled(seconds(611)).len(), 2);
    assert_eq!(waiting(&leases, "a", seconds(611)), None, "it has it");
    assert_eq!(waiting(&leases, "c", seconds(611)), Some(work(0)));
    let token = leases.grant(&work(0), "c", seconds(611));
    assert_eq!(waiting(&leases, "d", seconds(611)), None, "a worker tries");
    assert!(leases.renew(&work(0), identity("c"), token, 1, seconds(620)));
    assert_eq!(leases.count("r"), 3, "and those that renew keep their leases, as long as the work may take");
}

#[test]
fn clients_that_make_progress_up_do_not_keep_a_piece_from_idle_workers() {
    let mut leases = leases();
    let tokens = ["a", "b"].map(|worker| (worker, leases.grant(&work(0), worker, seconds(0))));
    for now in (10..=600).step_by(10) {
        for (worker, token) in tokens {
            assert!(leases.renew(&work(0), identity(worker), token, now, seconds(now)));
        }
    }
    assert_eq!(leases.find_stalled(seconds(601)), []);
    assert_eq!(leases.hedge("c", seconds(599), |_| true), None);
    assert_eq!(leases.hedge("c", seconds(601), |_| true), Some(work(0)));
}

#[test]
fn poison_is_what_fails_on_three_workers_and_on_all_that_could_take_it() {
    let mut leases = leases();
    let all = ["a", "b", "c", "d"].map(identity);
    for (failed, worker) in ["a", "b", "c"].into_iter().enumerate() {
        assert!(!is_poison(&leases, &all[..failed]));
        fail(&mut leases, identity(worker), seconds(0));
    }
    assert!(!is_poison(&leases, &all), "one worker has not tried");
    assert!(!is_poison(&leases, &[]), "nobody is there");
    let RetryDecision::Poison(reason) = leases.retry_decision(&work(0), all[..3].iter().copied(), seconds(0))
    else {
        panic!("three workers are enough")
    };
    assert_eq!(reason, "run r, island 0, epoch 0 failed 3 times on 3 workers: it broke");
    fail(&mut leases, identity("d"), seconds(0));
    assert!(is_poison(&leases, &all));
    leases.advanced(&work(0));
    assert!(!is_poison(&leases, &all), "it got further");
}

#[test]
fn with_fewer_workers_poison_is_what_fails_five_times() {
    let mut leases = leases();
    for times in 0..5 {
        assert!(!is_poison(&leases, &[identity("a")]));
        fail(&mut leases, identity("a"), seconds(100 * times));
    }
    assert!(!is_poison(&leases, &[identity("a"), identity("b")]), "another has not tried");
    assert!(is_poison(&leases, &[identity("a")]));
}

#[test]
fn ids_are_self_chosen_so_principals_are_counted() {
    let mut leases = leases();
    let one = |worker| WorkerIdentity { worker, principal: "one", joined: seconds(0) };
    for worker in ["a", "b", "c", "d"] {
        fail(&mut leases, one(worker), seconds(0));
    }
    assert!(!is_poison(&leases, &["a", "b", "c", "d"].map(one)));
    assert!(!is_poison(&leases, &[identity("honest")]));
}

#[test]
fn lack_of_memory_is_no_failure() {
    let mut leases = leases();
    for round in 0..20 {
        let now = seconds(100 * round);
        let token = leases.grant(&work(0), "small", now);
        leases.refuse(&work(0), identity("small"), token, ("at most 1 MiB", false), now);
        assert!(!is_poison(&leases, &[identity("small")]));
        assert!(leases.is_unfit("small", "r", now), "others first");
        assert!(!leases.is_unfit("large", "r", now) && waiting(&leases, "large", now) == Some(work(0)));
        assert!(!leases.is_unfit("small", "r", now + seconds(60)), "pieces differ");
    }
    assert_eq!(leases.why_unfit("r", ["small"]), Some(("at most 1 MiB", false)));
    assert_eq!(leases.why_unfit("r", ["small", "large"]), None);
    for worker in ["a", "b", "c"] {
        fail(&mut leases, identity(worker), seconds(0));
    }
    let all = ["a", "b", "c", "small"].map(identity);
    assert!(is_poison_at(&leases, &all, seconds(1959)), "it could not take it");
    assert!(!is_poison_at(&leases, &all, seconds(1960)), "it may have memory by now, and has not tried");
    leases.fits("small", "r");
    assert!(!is_poison(&leases, &["a", "b", "c", "small"].map(identity)));
}

#[test]
fn only_a_holder_can_fail_work() {
    let mut leases = leases();
    let token = leases.grant(&work(0), "a", seconds(0));
    for worker in ["x", "y", "z"] {
        assert!(!leases.fail(&work(0), identity(worker), token, "made up", seconds(0)));
    }
    assert!(!is_poison(&leases, &["x", "y", "z"].map(identity)));
    assert_eq!(leases.count("r"), 1);
}

#[test]
fn what_failed_here_is_tried_elsewhere_first_and_here_later() {
    let mut leases = leases();
    fail(&mut leases, identity("a"), seconds(0));
    assert_eq!(waiting(&leases, "a", seconds(0)), None);
    assert_eq!(leases.hedge("a", seconds(0), |_| true), None);
    assert_eq!(waiting(&leases, "b", seconds(0)), Some(work(0)));
    assert_eq!(waiting(&leases, "a", seconds(1)), Some(work(0)));
    fail(&mut leases, identity("a"), seconds(1));
    assert_eq!(waiting(&leases, "a", seconds(2)), None, "twice as long as before");
    assert_eq!(waiting(&leases, "a", seconds(3)), Some(work(0)));
}

/// Has workers vanish with a piece, one after the other.
fn vanish(leases: &mut Leases, rounds: std::ops::Range<u64>, worker: impl Fn(u64) -> String) {
    for round in rounds {
        let (worker, now) = (worker(round), 100 * round);
        leases.grant(&work(0), &worker, seconds(now));
        assert_eq!(leases.expire(seconds(now + 50)).len(), 1);
        let identity = WorkerIdentity { worker: &worker, principal: "machine", joined: seconds(now) };
        leases.vanished(&work(0), identity, seconds(now));
    }
}

#[test]
fn vanishing_workers_are_poison_only_while_nothing_gets_further_and_nobody_else_is_there() {
    let mut leases = leases();
    let returned = WorkerIdentity { worker: "new", principal: "machine", joined: seconds(1801) };
    let steady = WorkerIdentity { worker: "steady", principal: "machine", joined: seconds(1799) };
    let life = |round| format!("life {round}");
    vanish(&mut leases, 0..9, life);
    leases.advanced(&work(0));
    vanish(&mut leases, 9..18, life);
    assert!(!is_poison(&leases, &[returned]));
    vanish(&mut leases, 18..19, life);
    assert!(is_poison(&leases, &[returned]), "ten lives of one machine");
    assert!(!is_poison(&leases, &[returned, identity("other")]), "another has not tried");
    assert!(
        !is_poison(&leases, &[returned, steady]),
        "nor has one of the same machine that was there all the time"
    );
    assert!(!is_poison(&leases, &[]));
}

#[test]
fn a_worker_that_returns_had_not_vanished() {
    let mut leases = leases();
    vanish(&mut leases, 0..30, |_| "a".to_owned());
    assert!(!is_poison(&leases, &[WorkerIdentity { worker: "a", principal: "machine", joined: seconds(0) }]));
}

#[test]
fn a_pause_of_the_coordinator_ends_no_lease() {
    let mut leases = leases();
    leases.grant(&work(0), "a", seconds(0));
    leases.postpone(seconds(100));
    assert_eq!(leases.expire(seconds(101)), []);
    assert_eq!(leases.expire(seconds(115)).len(), 1);
}

#[test]
fn a_worker_that_makes_up_pieces_has_no_more_than_a_worker_can() {
    let mut leases = leases();
    let piece = |first| Work { run: "r".to_owned(), piece: Piece::Cells { first, count: 1 } };
    let most = MOST_HELD as u32;
    assert!((0..most).all(|first| leases.renew(
        &piece(first),
        identity("a"),
        u64::from(first),
        0,
        seconds(0)
    )));
    assert!(!leases.renew(&piece(most), identity("a"), 0, 0, seconds(0)));
    assert!(!leases.knows(&piece(most)), "nothing of it is remembered");
    assert!(leases.renew(&piece(0), identity("a"), 0, 1, seconds(1)), "what it has it keeps");
    assert!(leases.renew(&piece(most), identity("b"), 0, 0, seconds(0)));
}

#[test]
fn one_principal_makes_up_no_more_pieces_under_many_ids_and_none_that_overlap() {
    let mut leases = leases();
    let piece = |first, count| Work { run: "r".to_owned(), piece: Piece::Cells { first, count } };
    let mut adopted = 0;
    for id in 0..100_u32 {
        let worker = format!("mallory-{id}");
        let mallory = WorkerIdentity { worker: &worker, principal: "mallory", joined: seconds(0) };
        let all = (0..MOST_HELD as u32).map(|at| piece(id * MOST_HELD as u32 + at, 1));
        adopted += all.filter(|work| leases.renew(work, mallory, 0, 0, seconds(0))).count();
    }
    assert_eq!(adopted, MOST_ADOPTED, "they are one caller");
    let other = Work { run: "s".to_owned(), ..piece(10, 20) };
    assert!(leases.renew(&other, identity("honest"), 1, 0, seconds(0)), "others do not suffer");
    for (first, count, is_possible) in [
        (0, 11, false),
        (0, 10, true),
        (29, 2, false),
        (30, 2, true),
        (12, 3, false),
        (0, 64, false),
        (12, 1, true),
        (u32::MAX, 64, true),
    ] {
        let work = Work { run: "s".to_owned(), ..piece(first, count) };
        let is_taken = leases.renew(&work, identity("honest"), 1, 0, seconds(0));
        assert_eq!(is_taken, is_possible, "{first}, {count}");
    }
    assert!(leases.renew(&other, identity("second"), 2, 0, seconds(0)), "two may have the same");
    leases.expire(seconds(100));
    let mallory = WorkerIdentity { worker: "mallory", principal: "mallory", joined: seconds(0) };
    assert!(leases.renew(&piece(0, 1), mallory, 0, 0, seconds(100)), "what has run out counts no more");
}

/// A worker that renews what it has been given and delivers nothing is no reason to wait longer for the next piece.
#[test]
fn what_others_do_after_a_worker_that_only_renews_takes_as_long_as_they_need() {
    let mut leases = leases();
    for round in 0..100 {
        let start = seconds(100 * round);
        let token = leases.grant(&work(0), "idle", start);
        assert!(leases.renew(&work(0), identity("idle"), token, round, start + seconds(5)));
        assert_eq!(leases.hedge("honest", start + seconds(9), |_| true), None);
        let later = start + seconds(10);
        assert_eq!(leases.hedge("honest", later, |_| true), Some(work(0)), "round {round}");
        leases.grant(&work(0), "honest", later);
        let outrun = leases.complete(&work(0), identity("honest"), later + seconds(1));
        assert_eq!(outrun, ["idle"]);
        assert_eq!(leases.usual("r"), seconds(1), "round {round}");
    }
}

/// A worker that does what it is given, but delivers just before others would repeat it.
#[test]
fn one_principal_alone_does_not_say_how_long_pieces_take() {
    let mut leases = leases();
    let mut now = seconds(0);
    for round in 0..100 {
        let mallory = WorkerIdentity { worker: "slow", principal: "mallory", joined: seconds(0) };
        leases.grant(&work(0), "slow", now);
        leases.grant(&work(1), "honest", now);
        assert_eq!(leases.complete(&work(1), identity("honest"), now + seconds(6)), [""; 0]);
        now += seconds(10).max(2 * leases.usual("r"));
        leases.complete(&work(0), mallory, now);
        assert_eq!(leases.usual("r"), seconds(6), "round {round}");
    }
}

#[test]
fn who_works_on_a_run_and_lacks_memory_for_a_piece_just_now_keeps_it_from_failing() {
    let mut leases = leases();
    leases.grant(&work(1), "honest", seconds(0));
    let token = leases.grant(&work(0), "honest", seconds(0));
    leases.refuse(&work(0), identity("honest"), token, ("too small", false), seconds(0));
    let mut connected = vec![identity("honest")];
    for id in ["a", "b", "c", "d", "e"] {
        let mallory = WorkerIdentity { worker: id, principal: "mallory", joined: seconds(0) };
        fail(&mut leases, mallory, seconds(0));
        connected.push(mallory);
    }
    assert!(!is_poison(&leases, &connected), "it still works on another piece");
    leases.complete(&work(1), identity("honest"), seconds(0));
    assert!(is_poison(&leases, &connected), "it could not do this one");
}
