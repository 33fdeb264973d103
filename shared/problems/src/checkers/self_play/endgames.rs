//! Which endgame databases players may ask, and what happens where one is not on the machine.

use super::super::{Checkers, Consult, DatabaseDigest, Endgame};
use crate::ProblemSpec;
use evolution::algorithm::{Algorithm, Es};
use evolution::epoch::EpochTask;
use evolution::island::{IslandSetting, Setting};
use evolution::migration::Policy;

#[test]
fn endings_that_nobody_can_know_are_refused() {
    for endgame in [Endgame { pieces: 1, ..Endgame::default() }, Endgame { from: 0.8, ..Endgame::default() }]
    {
        assert!(Checkers { endgame, ..Checkers::default() }.problem().is_err());
    }
}

/// Six pieces are no data of the run: each machine has its own file, or does nothing.
#[test]
fn a_database_that_is_not_here_is_missing_and_nothing_is_computed_without_it() {
    let digest = "0".repeat(64);
    let six = Endgame {
        pieces: 6,
        digest: Some(digest.clone().try_into().unwrap()),
        consult: Consult::Always,
        ..Endgame::default()
    };
    let keys = Checkers { endgame: six, adjudicate: 6, ..Checkers::default() };
    let own =
        IslandSetting { algorithm: Algorithm::Es(Es::default()), policy: Policy::default(), exploits: false };
    let setting = Setting { seed: 5, islands: vec![own], edges: vec![], opponents: vec![] };
    let evolver = ProblemSpec::Checkers(keys).evolver(setting).unwrap();
    let missing = evolver.missing().expect("no folder was named");
    assert!(missing.contains("ATOLL_ENDGAME"), "{missing}");
    let task = EpochTask { island: 0, epoch: 0, until: 2, state: None, packets: vec![] };
    let Err(refusal) = evolver.begin(&task) else { panic!("it would be another result") };
    assert!(refusal.to_string().contains("6 pieces"), "{refusal}");
    assert_eq!(DatabaseDigest::try_from(digest.clone()).unwrap().to_string(), digest);
    assert!(DatabaseDigest::try_from("0A".repeat(32)).is_err());

    let five = Endgame { pieces: 5, digest: None, ..six };
    for (endgame, adjudicate, is_sound) in [
        (Endgame { digest: None, ..six }, 0, false),
        (Endgame { pieces: 5, ..six }, 0, false),
        (five, 6, false),
        (five, 5, true),
        (Endgame::default(), 5, true),
    ] {
        let keys = Checkers { endgame, adjudicate, ..Checkers::default() };
        assert_eq!(keys.problem().is_ok(), is_sound, "{endgame:?} {adjudicate}");
    }
}
