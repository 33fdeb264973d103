//! What a tournament comes to does not depend on the order in which its results arrive.

use archipelago::Progress;
use archipelago::cell::{CellPlan, CellResult};
use experiment::Plan;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const GAMES: &str = r#"
    name = "games"
    seed = 5
    [tournament]
    depth = 1
    sprt = { elo0 = 0, elo1 = 120 }
    players = [
        { name = "near", player = "material" },
        { name = "nearly", player = "material" },
        { name = "gambler", player = "random" },
    ]
"#;

fn plan() -> CellPlan {
    let plan = experiment::parse("games", GAMES, None).expect("it is a tournament");
    assert!(matches!(plan, Plan::Tournament(_)));
    CellPlan::of(plan).expect("nobody has to be looked up")
}

/// Every cell, whether a sequential test needs it or not.
static CELLS: LazyLock<Vec<CellResult>> = LazyLock::new(|| {
    let (plan, engines) = (plan(), BTreeMap::new());
    let CellPlan::Tournament(games) = &plan else { unreachable!("it is a tournament") };
    let players = games.contestants(&BTreeMap::<_, Vec<u8>>::new(), &engines).expect("they need no files");
    let compute = |number| plan.compute(number, &players, || false).expect("it can be").expect("it went on");
    (0..plan.len()).map(compute).collect()
});

/// Adds results in an order, as long as something is wanted.
fn arrive(order: impl IntoIterator<Item = usize>) -> Progress {
    let mut progress = Progress::new(plan());
    for number in order {
        let result = CELLS[number].clone();
        assert!(progress.plan().fits(number as u32, &result));
        assert!(progress.add(number as u32, result.clone()));
        assert!(!progress.add(number as u32, result), "it is there already");
    }
    progress
}

/// As one who computes what is wanted, cell by cell.
fn one_by_one() -> Progress {
    let mut progress = Progress::new(plan());
    while let Some(number) = progress.next(0) {
        progress.add(number, CELLS[number as usize].clone());
    }
    progress
}

#[test]
fn what_is_decided_is_not_played_any_more() {
    let progress = one_by_one();
    assert!(progress.is_complete());
    assert!(progress.done().len() < CELLS.len(), "something was decided early");
    let decided: Vec<bool> = progress.races().iter().map(|race| race.verdict.is_some()).collect();
    assert!(decided[1] && decided[2], "a gambler is worse than who looks ahead: {decided:?}");
    let counted: u64 = progress.races().iter().map(|race| race.tally.games()).sum();
    assert_eq!(2 * progress.games().count() as u64, counted);
}

#[test]
fn results_of_another_kind_do_not_fit() {
    let plan = plan();
    let CellResult::Played(pairs) = &CELLS[0] else { unreachable!("games were played") };
    assert!(!plan.fits(0, &CellResult::Played(pairs[1..].to_vec())), "a pair is missing");
    assert!(!plan.fits(plan.len(), &CELLS[0]), "there is no such cell");
}

proptest! {
    #[test]
    fn every_order_of_arrival_comes_to_the_same(order in Just((0..36usize).collect::<Vec<_>>()).prop_shuffle()) {
        prop_assert_eq!(CELLS.len(), 36);
        let (some, expected) = (arrive(order), one_by_one());
        prop_assert!(some.is_complete());
        prop_assert_eq!(some.digest(), expected.digest());
        prop_assert_eq!(some.races(), expected.races());
        prop_assert_eq!(some.cross_table(), expected.cross_table());
    }

    #[test]
    fn nothing_is_complete_before_its_prefix_is(missing in 0..3usize) {
        let progress = arrive((0..36).filter(|number| *number != missing));
        prop_assert!(!progress.is_complete());
        prop_assert_eq!(progress.digest(), None);
        prop_assert_eq!(progress.next(0), Some(missing as u32));
    }
}
