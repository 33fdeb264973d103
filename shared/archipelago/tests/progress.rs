//! What a tournament comes to does not depend on the order in which its results arrive.

use archipelago::CellProgress;
use archipelago::cell::{CellPlan, CellResult, Evolved};
use experiment::Plan;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::LazyLock;
use tournament::{Forfeit, GameEnding, GameRecord, Points};

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
fn arrive(order: impl IntoIterator<Item = usize>) -> CellProgress {
    let mut progress = CellProgress::new(plan());
    for number in order {
        let result = CELLS[number].clone();
        assert!(progress.plan().fits(number as u32, &result));
        assert!(progress.add(number as u32, result.clone()));
        assert!(!progress.add(number as u32, result), "it is there already");
    }
    progress
}

/// As one who computes what is wanted, cell by cell.
fn one_by_one() -> CellProgress {
    let mut progress = CellProgress::new(plan());
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
    let mut other_openings = pairs.clone();
    other_openings.swap(0, 1);
    assert!(!plan.fits(0, &CellResult::Played(other_openings)), "pairs in another order");
    let mut other_colours = pairs.clone();
    other_colours[0].swap(0, 1);
    assert!(!plan.fits(0, &CellResult::Played(other_colours)), "games in another order");
}

#[test]
fn games_that_were_not_played_are_not_believed() {
    let plan = plan();
    for (number, result) in (0..).zip(CELLS.iter()) {
        assert!(plan.is_sound(number, result), "cell {number}");
    }
    let CellResult::Played(pairs) = &CELLS[0] else { unreachable!("games were played") };
    let altered = |alter: &dyn Fn(&mut GameRecord)| {
        let mut pairs = pairs.clone();
        alter(&mut pairs[3][1]);
        CellResult::Played(pairs)
    };
    let turned = |points| if points == Points::Win { Points::Loss } else { Points::Win };
    let claims = altered(&|game| game.points = turned(game.points));
    assert!(plan.fits(0, &claims) && !plan.is_sound(0, &claims), "a result that its moves do not show");
    let forfeited = altered(&|game| game.ending = GameEnding::Forfeit(Forfeit::Crash));
    assert!(!plan.is_sound(0, &forfeited), "our own players do not forfeit");
}

#[test]
fn cells_of_a_sweep_that_no_run_comes_to_are_not_believed() {
    let text = "name = \"swept\"\nproblem = { kind = \"onemax\", length = 10 }\n\
                algorithm = { kind = \"ga\", population = 4 }\nbudget = { generations = 2 }\n\
                sweep = { repeats = 2, axis = [{ keys = [\"problem.length\"], values = [10, 12] }] }";
    let plan = CellPlan::of(experiment::parse("cells.toml", text, None).unwrap()).unwrap();
    for number in 0..plan.len() {
        let result = plan.compute(number, &[], || false).unwrap().unwrap();
        assert!(plan.is_sound(number, &result), "cell {number}");
        let CellResult::Evolved(evolved) = result else { unreachable!("it is a sweep") };
        let altered = |alter: &dyn Fn(&mut Evolved)| {
            let mut evolved = evolved.clone();
            alter(&mut evolved);
            CellResult::Evolved(evolved)
        };
        let wrong: [(&str, CellResult); 6] = [
            ("no number", altered(&|evolved| evolved.best = f64::NAN)),
            ("more generations than its budget", altered(&|evolved| evolved.generations = 3)),
            ("no evaluations", altered(&|evolved| evolved.evaluations = 0)),
            ("more genes", altered(&|evolved| evolved.genome.resize(1_000_000, 0.0))),
            ("no genes", altered(&|evolved| evolved.genome.clear())),
            ("genes that are no numbers", altered(&|evolved| evolved.genome[3] = f64::NAN)),
        ];
        for (what, wrong) in wrong {
            assert!(!plan.is_sound(number, &wrong), "cell {number}: {what}");
        }
    }
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

/// The most memory that this process ever held, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is told");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("a number") << 10
}

/// Each against each of a hundred, from the whole deck: a million and a half games, as long as gamblers play.
#[test]
fn all_games_of_a_hundred_players_fit_into_a_gibibyte() {
    let mut text = "name = \"hundred\"\n[tournament]\ndepth = 1\n".to_owned();
    for number in 0..100 {
        write!(text, "[[tournament.players]]\nname = \"{number}\"\nplayer = \"random\"\n")
            .expect("a string takes whatever is written");
    }
    let plan = CellPlan::of(experiment::parse("hundred", &text, None).expect("it is a tournament"));
    let plan = plan.expect("nobody has to be looked up");
    let players = vec![checkers::PlayerSpec::Random.into(); 100];
    let batch = plan.compute(0, &players, || false).expect("it can be").expect("it went on");
    let mut progress = CellProgress::new(plan);
    for number in 0..progress.plan().len() {
        progress.add(number, batch.clone());
    }
    assert!(progress.is_complete());
    let ratings = tournament::Ratings::of(&progress.cross_table());
    assert!(
        ratings.of_player(0).elo >= ratings.of_player(99).elo,
        "the first is always the first of its pairings"
    );
    let mebibytes = peak() >> 20;
    println!("{mebibytes} MiB for {} games", 2 * progress.games().count());
    assert!((50..1024).contains(&mebibytes), "{mebibytes} MiB");
}
