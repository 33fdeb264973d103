//! What levels built from genes have in common, and what is proved of those with coloured keys.

// Whatever goes wrong beside the assertions should fail a test as well.

use lockkey::{
    Blueprint, BlueprintError, Builder, Cell, Colour, Difficulty, Fault, Fixture, Level, Maze, Method,
    ProofVerdict, Rater, Stream,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn figures(side: u8, pairs: u8) -> Vec<Difficulty> {
    let blueprint = Blueprint { width: side, height: side, pairs, ..Blueprint::default() };
    let mut builder = Builder::new(blueprint).unwrap();
    let mut rater = Rater::default();
    (0..300).map(|seed| rater.difficulty(builder.random(seed)).unwrap()).collect()
}

fn median(figures: &[Difficulty], figure: fn(&Difficulty) -> u32) -> f64 {
    let mut values: Vec<u32> = figures.iter().map(figure).collect();
    values.sort_unstable();
    f64::from(values[149] + values[150]) / 2.0
}

#[test]
fn difficulty_rises_with_size_and_pairs_as_published() {
    let expected = [(6, 2, 36.0), (8, 2, 54.0), (10, 2, 95.0), (10, 3, 107.0), (10, 4, 124.0)];
    let mut last = 0.0;
    for (side, pairs, expected) in expected {
        let figures = figures(side, pairs);
        let plain = median(&figures, |figure| figure.plain);
        assert!(
            (plain / expected - 1.0).abs() < 0.15,
            "{side}x{side}, {pairs} pairs: {plain} for {expected}"
        );
        assert!(plain > last, "{plain} after {last}");
        assert!(median(&figures, |figure| figure.optimised) < plain);
        last = plain;
    }
}

#[test]
fn a_seed_makes_the_same_level_for_ever() {
    let mut builder = Builder::new(Blueprint { width: 5, height: 4, ..Blueprint::default() }).unwrap();
    let level = builder.random(2024).to_string();
    assert_eq!(level, include_str!("data/seed-2024.txt"), "\n{level}");
}

/// Changes a gene at a time and keeps what comes nearer to the target: how near 20,000 levels come.
fn nearest(target: u32) -> u32 {
    let mut builder = Builder::new(Blueprint::default()).unwrap();
    let mut rater = Rater::default();
    let mut stream = Stream::new(target.into());
    let mut genes = vec![0; builder.blueprint().genes()];
    stream.fill(&mut genes);
    let mut nearest = u32::MAX;
    for _ in 0..20_000 {
        let draw = stream.next_u64();
        let at = (draw >> 32) as usize % genes.len();
        let before = std::mem::replace(&mut genes[at], draw as u8);
        let visited = rater.visited(builder.build(&genes).unwrap(), Method::Plain).unwrap();
        if visited.abs_diff(target) <= nearest {
            nearest = visited.abs_diff(target);
        } else {
            genes[at] = before;
        }
    }
    nearest
}

#[test]
fn small_changes_of_genes_lead_to_any_common_difficulty() {
    let mut plain: Vec<u32> = figures(10, 2).iter().map(|figure| figure.plain).collect();
    plain.sort_unstable();
    for target in [plain[15], plain[150], plain[285]] {
        let nearest = nearest(target);
        assert!(nearest * 50 <= target, "{nearest} away from {target}");
    }
}

fn any_blueprint() -> impl Strategy<Value = Blueprint> {
    let maze = prop_oneof![Just(Maze::DepthFirst), Just(Maze::Prim)];
    (2_u8..16, 2_u8..16, any::<u8>(), maze, any::<u16>(), any::<Option<u8>>()).prop_map(
        |(width, height, pairs, maze, loops, colours)| {
            let pairs = pairs % (((width + height - 3) / 2).min(16) + 1);
            let loops = loops % ((u16::from(width) - 1) * (u16::from(height) - 1) + 1);
            let colours = colours.map(|colours| 1 + colours % pairs.max(1));
            Blueprint { width, height, pairs, maze, loops, colours }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_genome_makes_a_solvable_level(blueprint in any_blueprint(), genes in prop::collection::vec(any::<u8>(), 800)) {
        let mut builder = Builder::new(blueprint).unwrap();
        let level = builder.build(&genes[..blueprint.genes()]).unwrap();
        prop_assert_eq!(level.validate(), Ok(()), "{}", level);
        prop_assert_eq!(level.locks().len(), usize::from(blueprint.pairs));
        let parts = level.locks().iter().chain(level.keys()).map(|fixture| fixture.cell);
        let cells: BTreeSet<Cell> = parts.chain([level.entry(), level.exit()]).collect();
        prop_assert_eq!(cells.len(), 2 + 2 * usize::from(blueprint.pairs), "parts share a cell: {}", level);
        prop_assert!(level.difficulty().is_ok());
        prop_assert_eq!(&level.to_string().parse::<Level>().unwrap(), level);
        if blueprint.colours.is_none() {
            prop_assert_eq!(level.idle_locks(), vec![], "{}", level);
        }
    }

    #[test]
    fn mazes_without_loops_are_trees(width in 2_u8..30, height in 2_u8..30, prim: bool, seed: u64) {
        let maze = if prim { Maze::Prim } else { Maze::DepthFirst };
        let mut builder = Builder::new(Blueprint { width, height, pairs: 0, maze, loops: 0, colours: None }).unwrap();
        let grid = builder.random(seed).grid();
        prop_assert_eq!(grid.passage_count(), grid.size() - 1);
        prop_assert_eq!(reachable(grid, Cell::new(0, 0), &BTreeSet::new()).len(), grid.size());
    }

    #[test]
    fn text_of_any_kind_is_read_or_refused(text in "[#.<>aAbB\n ]{0,80}") {
        if let Ok(level) = text.parse::<Level>() {
            prop_assert_eq!(level.to_string().parse::<Level>(), Ok(level));
        }
    }
}

fn reachable(grid: &lockkey::Grid, start: Cell, closed: &BTreeSet<Cell>) -> BTreeSet<Cell> {
    let mut reached = BTreeSet::from([start]);
    loop {
        let further: Vec<Cell> = reached.iter().flat_map(|&cell| grid.neighbours(cell)).collect();
        let before = reached.len();
        reached.extend(further.into_iter().filter(|cell| !closed.contains(cell)));
        if reached.len() == before {
            return reached;
        }
    }
}

/// Keys taken and locks opened, by index.
type State = (BTreeSet<usize>, BTreeSet<usize>);

/// A player who takes one key or opens one lock at a time.
struct Player<'a> {
    level: &'a Level,
    can_win: BTreeMap<State, bool>,
}

impl Player<'_> {
    fn reach(&self, (_, opened): &State) -> BTreeSet<Cell> {
        let locks = self.level.locks().iter().enumerate();
        let closed = locks.filter(|(index, _)| !opened.contains(index)).map(|(_, lock)| lock.cell).collect();
        reachable(self.level.grid(), self.level.entry(), &closed)
    }

    fn in_hand(&self, (taken, opened): &State, colour: Colour) -> bool {
        let count = |fixtures: &[Fixture], which: &BTreeSet<usize>| {
            which.iter().filter(|&&index| fixtures[index].colour == colour).count()
        };
        count(self.level.keys(), taken) > count(self.level.locks(), opened)
    }

    fn moves(&self, state: &State) -> Vec<State> {
        let reach = self.reach(state);
        let mut moves = vec![];
        for (index, key) in self.level.keys().iter().enumerate() {
            if reach.contains(&key.cell) && !state.0.contains(&index) {
                let mut next = state.clone();
                next.0.insert(index);
                moves.push(next);
            }
        }
        for (index, lock) in self.level.locks().iter().enumerate() {
            let beside = self.level.grid().neighbours(lock.cell).any(|cell| reach.contains(&cell));
            if beside && !state.1.contains(&index) && self.in_hand(state, lock.colour) {
                let mut next = state.clone();
                next.1.insert(index);
                moves.push(next);
            }
        }
        moves
    }

    fn explore(&mut self, state: &State) -> bool {
        if let Some(&known) = self.can_win.get(state) {
            return known;
        }
        let mut wins = self.reach(state).contains(&self.level.exit());
        if !wins {
            for next in self.moves(state) {
                wins |= self.explore(&next);
            }
        }
        self.can_win.insert(state.clone(), wins);
        wins
    }
}

/// A level with everything thrown in at random: often unsolvable, often a trap.
fn thrown_together(seed: u64) -> Level {
    let mut builder =
        Builder::new(Blueprint { width: 4, height: 4, pairs: 0, ..Blueprint::default() }).unwrap();
    let grid = builder.random(seed).grid().clone();
    let mut stream = Stream::new(seed);
    let mut cells: Vec<Cell> = grid.cells().collect();
    let mut draw = || {
        let index = (stream.next_u64() % cells.len() as u64) as usize;
        cells.swap_remove(index)
    };
    let (entry, exit) = (draw(), draw());
    let mut fixtures = |count: u8| -> Vec<Fixture> {
        (0..count).map(|index| Fixture { colour: Colour::new(index % 2).unwrap(), cell: draw() }).collect()
    };
    let (locks, keys) = (fixtures(4), fixtures(3 + (seed % 3) as u8));
    Level::new(grid, entry, exit, locks, keys).unwrap()
}

/// Opens locks in an order, taking every key within reach, and says whether that was possible.
fn replay(level: &Level, order: &[Fixture]) -> Option<State> {
    let player = Player { level, can_win: BTreeMap::new() };
    let mut state = State::default();
    let take_all = |state: &mut State| {
        let reach = player.reach(state);
        state.0.extend((0..level.keys().len()).filter(|&index| reach.contains(&level.keys()[index].cell)));
    };
    take_all(&mut state);
    for lock in order {
        let index = level.locks().iter().position(|other| other == lock)?;
        let mut next = state.clone();
        next.1.insert(index);
        state = player.moves(&state).into_iter().find(|possible| *possible == next)?;
        take_all(&mut state);
    }
    Some(state)
}

#[test]
fn verdicts_are_those_of_a_player_who_tries_everything() {
    let mut seen = [0; 3];
    for seed in 0..300 {
        let level = thrown_together(seed);
        let mut player = Player { level: &level, can_win: BTreeMap::new() };
        let solvable = player.explore(&State::default());
        let safe = player.can_win.values().all(|&wins| wins);
        let wins = |order: &[Fixture]| {
            let state = replay(&level, order).expect("an order that can be gone");
            player.reach(&state).contains(&level.exit())
        };
        match level.verdict() {
            ProofVerdict::Unsolvable { .. } => {
                assert!(!solvable, "{level}");
                assert!(level.validate().is_err());
                seen[0] += 1;
            }
            ProofVerdict::Trap { solution, trap, .. } => {
                assert!(solvable && !safe, "{level}");
                assert!(wins(&solution) && !wins(&trap), "{level}");
                let stuck = replay(&level, &trap).unwrap();
                assert!(!player.can_win.get(&stuck).copied().unwrap_or_else(|| player.explore(&stuck)));
                seen[1] += 1;
            }
            ProofVerdict::Safe { solution, .. } => {
                assert!(safe && wins(&solution), "{level}");
                assert!(level.difficulty().is_ok(), "{level}");
                seen[2] += 1;
            }
        }
    }
    assert!(seen.iter().all(|&count| count > 10), "one-sided: {seen:?}");
}

#[test]
fn a_key_spent_on_the_wrong_lock_is_a_trap() {
    let level: Level = "#############\n#..A.<.a.A.>#\n#############\n".parse().unwrap();
    let ProofVerdict::Trap { solution, trap, states } = level.verdict() else {
        panic!("{:?}", level.verdict())
    };
    assert_eq!((states, solution[0].cell, trap[0].cell), (3, Cell::new(4, 0), Cell::new(1, 0)));
    // Entry to key, key to lock, lock to exit.
    let figures = level.difficulty().unwrap();
    assert_eq!((figures.plain, figures.steps), (2 + 2 + 2, 3));
}

#[test]
fn faults_are_named() {
    let fault = |text: &str| text.parse::<Level>().unwrap().validate().unwrap_err();
    let cell = |x| Cell::new(x, 0);
    let a = Colour::new(0).unwrap();
    assert_eq!(fault("#########\n#<.A.>.a#\n#########\n"), Fault::KeyOutOfReach { colour: a, cell: cell(3) });
    assert_eq!(fault("#######\n#<.A.>#\n#######\n"), Fault::LockWithoutKey { colour: a, cell: cell(1) });
    assert_eq!(fault("#######\n#<.a#>#\n#######\n"), Fault::Unsolvable { cell: cell(2) });
    assert_eq!(fault("#####\n#<#>#\n#####\n"), Fault::ExitOutOfReach { cell: cell(1) });
    assert_eq!(
        fault("#########\n#<.A.>.a#\n#########\n").to_string(),
        "key `a` at (4, 1) is out of reach while its own and later locks are closed"
    );
    let idle: Level = "#########\n#A.a.<.>#\n#########\n".parse().unwrap();
    assert_eq!((idle.validate(), idle.idle_locks().len()), (Ok(()), 1));
}

#[test]
fn impossible_blueprints_are_refused() {
    let error = |blueprint: Blueprint| Builder::new(blueprint).unwrap_err().to_string();
    let default = Blueprint::default;
    assert_eq!(error(Blueprint { width: 1, ..default() }), "expected sides of 2 to 64, found `1x10`");
    assert_eq!(error(Blueprint { height: 65, ..default() }), "expected sides of 2 to 64, found `10x65`");
    assert_eq!(
        error(Blueprint { pairs: 9, ..default() }),
        "expected at most 8 pairs on a grid of this size, found `9`"
    );
    assert_eq!(
        error(Blueprint { loops: 82, ..default() }),
        "expected at most 81 loops on a grid of this size, found `82`"
    );
    assert_eq!(
        error(Blueprint { colours: Some(0), ..default() }),
        "expected 1 to 2 colours for as many pairs, found `0`"
    );
    let mut builder = Builder::new(default()).unwrap();
    assert_eq!(builder.build(&[1]), Err(BlueprintError::Genes { expected: 112, found: 1 }));
}

#[test]
fn the_largest_level_is_rated_too() {
    let blueprint = Blueprint { width: 64, height: 64, pairs: 16, loops: 100, ..Blueprint::default() };
    let mut builder = Builder::new(blueprint).unwrap();
    let figures = builder.random(1).difficulty().unwrap();
    assert!(figures.plain > figures.steps, "{figures:?}");
}
