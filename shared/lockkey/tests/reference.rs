//! A* with ordinary containers, and the `pathfinding` crate, against the fast search.

// Whatever goes wrong beside the assertions should fail a test as well.

use lockkey::{AStar, Blueprint, Builder, Cell, Direction, Heuristic, Level, Maze, Method, Rater, Ties};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A level that opens up as its keys are found.
struct World<'a> {
    level: &'a Level,
    closed: BTreeSet<Cell>,
}

impl World<'_> {
    fn passages(&self, cell: Cell) -> Vec<Cell> {
        let grid = self.level.grid();
        let open = Direction::ALL.into_iter().filter(|&way| grid.is_open(cell, way));
        open.map(|way| grid.neighbour(cell, way).expect("passages lead somewhere")).collect()
    }

    fn neighbours(&self, cell: Cell) -> Vec<Cell> {
        self.passages(cell).into_iter().filter(|next| !self.closed.contains(next)).collect()
    }
}

/// The cells that a leg visits, and the length of its path.
type Visits = (Vec<Cell>, u32);

/// The goals of a paired level, in order, each with the lock that its predecessor's key opened.
fn goals(level: &Level) -> Vec<(Cell, Option<Cell>)> {
    let goals = level.keys().iter().map(|key| key.cell).chain([level.exit()]);
    let opened = [None].into_iter().chain(level.locks().iter().map(|lock| Some(lock.cell)));
    goals.zip(opened).collect()
}

fn legs(level: &Level, mut search: impl FnMut(&World<'_>, Cell, Cell) -> Visits) -> Vec<Visits> {
    let mut world = World { level, closed: level.locks().iter().map(|lock| lock.cell).collect() };
    let mut from = level.entry();
    let mut legs = vec![];
    for (goal, opened) in goals(level) {
        if let Some(lock) = opened {
            assert!(world.closed.remove(&lock));
        }
        legs.push(search(&world, from, goal));
        from = goal;
    }
    legs
}

/// What the fast search says of each leg.
fn found(level: &Level, method: Method) -> Vec<Visits> {
    let survey = level.survey(method).unwrap();
    survey.legs.into_iter().map(|leg| (leg.visited, leg.path.len() as u32 - 1)).collect()
}

/// The open node with the smallest f, then h, then cell, and its g.
fn take_best(open: &mut BTreeMap<Cell, u32>, goal: Cell) -> Option<(Cell, u32)> {
    let key = |(&cell, &g): (&Cell, &u32)| (g + cell.distance(goal), cell.distance(goal), cell);
    let (_, _, cell) = open.iter().map(key).min()?;
    open.remove_entry(&cell)
}

fn plain(world: &World<'_>, start: Cell, goal: Cell) -> Visits {
    let mut open = BTreeMap::from([(start, 0)]);
    let mut visited = vec![];
    while let Some((cell, g)) = take_best(&mut open, goal) {
        visited.push(cell);
        if cell == goal {
            return (visited, g);
        }
        for next in world.neighbours(cell).into_iter().filter(|next| !visited.contains(next)) {
            let known = open.entry(next).or_insert(g + 1);
            *known = (*known).min(g + 1);
        }
    }
    panic!("no way from {start} to {goal}");
}

/// A plain A* that looks through its whole open list for the next node, by another heuristic and tie-break.
fn plain_by(astar: AStar) -> impl Fn(&World<'_>, Cell, Cell) -> Visits {
    move |world, start, goal| {
        let h = |cell: Cell| {
            let dx = (i32::from(cell.x()) - i32::from(goal.x())).abs();
            let dy = (i32::from(cell.y()) - i32::from(goal.y())).abs();
            match astar.heuristic {
                Heuristic::Manhattan => f64::from(dx + dy),
                Heuristic::Euclidean => f64::from(dx * dx + dy * dy).sqrt(),
                Heuristic::Chebyshev => f64::from(dx.max(dy)),
                Heuristic::None => 0.0,
            }
        };
        // Each open node with its g; the order of this list is the order in which they were opened.
        let mut open: Vec<(Cell, u32)> = vec![(start, 0)];
        let mut visited = vec![];
        while !open.is_empty() {
            let mut best = 0;
            for other in 1..open.len() {
                let key = |index: usize| {
                    let (cell, g) = open[index];
                    (f64::from(g) + h(cell), h(cell))
                };
                let (this, that) = (key(best), key(other));
                let is_better = match that.partial_cmp(&this).unwrap() {
                    std::cmp::Ordering::Less => true,
                    std::cmp::Ordering::Greater => false,
                    std::cmp::Ordering::Equal => match astar.ties {
                        Ties::LowCell => open[other].0 < open[best].0,
                        Ties::HighCell => open[other].0 > open[best].0,
                        Ties::Oldest => false,
                        Ties::Newest => true,
                    },
                };
                if is_better {
                    best = other;
                }
            }
            let (cell, g) = open.remove(best);
            visited.push(cell);
            if cell == goal {
                return (visited, g);
            }
            for next in world.neighbours(cell).into_iter().filter(|next| !visited.contains(next)) {
                match open.iter().position(|(other, _)| *other == next) {
                    Some(known) if open[known].1 <= g + 1 => {}
                    Some(known) => {
                        open.remove(known);
                        open.push((next, g + 1));
                    }
                    None => open.push((next, g + 1)),
                }
            }
        }
        panic!("no way from {start} to {goal}");
    }
}

fn any_astar() -> impl Strategy<Value = AStar> {
    let heuristics = [Heuristic::Manhattan, Heuristic::Euclidean, Heuristic::Chebyshev, Heuristic::None];
    let ties = [Ties::LowCell, Ties::HighCell, Ties::Oldest, Ties::Newest];
    (0_usize..4, 0_usize..4).prop_map(move |(h, t)| AStar { heuristic: heuristics[h], ties: ties[t] })
}

/// What the optimised search remembers from leg to leg.
#[derive(Default)]
struct Memory {
    known: BTreeSet<Cell>,
    entered: BTreeSet<Cell>,
    dead: BTreeSet<Cell>,
    past: BTreeSet<Cell>,
}

impl Memory {
    fn search(&mut self, world: &World<'_>, start: Cell, goal: Cell) -> Visits {
        self.past.insert(start);
        let mut open = self.distances(world, start);
        let mut visited: Vec<Cell> = vec![];
        while let Some((cell, g)) = take_best(&mut open, goal) {
            visited.push(cell);
            self.entered.insert(cell);
            self.known.insert(cell);
            if cell == goal {
                return (visited, g);
            }
            for next in world.neighbours(cell) {
                self.known.insert(next);
                if !visited.contains(&next) && !self.dead.contains(&next) {
                    let known = open.entry(next).or_insert(g + 1);
                    *known = (*known).min(g + 1);
                }
            }
            self.close_dead_ends(world, cell, start, goal);
            open.retain(|cell, _| !self.dead.contains(cell));
        }
        panic!("no way from {start} to {goal}");
    }

    /// Steps to each known live cell through such cells.
    fn distances(&self, world: &World<'_>, start: Cell) -> BTreeMap<Cell, u32> {
        let mut found = BTreeMap::from([(start, 0)]);
        loop {
            let border: Vec<(Cell, u32)> = found
                .iter()
                .flat_map(|(&cell, &g)| world.neighbours(cell).into_iter().map(move |next| (next, g + 1)))
                .filter(|(next, _)| self.known.contains(next) && !self.dead.contains(next))
                .filter(|(next, g)| found.get(next).is_none_or(|old| old > g))
                .collect();
            if border.is_empty() {
                return found;
            }
            for (next, g) in border {
                let known = found.entry(next).or_insert(g);
                *known = (*known).min(g);
            }
        }
    }

    fn close_dead_ends(&mut self, world: &World<'_>, cell: Cell, start: Cell, goal: Cell) {
        let level = world.level;
        let awaited = level.keys().iter().map(|key| key.cell).filter(|cell| !self.past.contains(cell));
        let kept: BTreeSet<Cell> = awaited.chain([level.exit(), start, goal]).collect();
        let mut corridor = Some(cell);
        while let Some(cell) = corridor {
            let around = world.passages(cell);
            let alive: Vec<Cell> = around.iter().copied().filter(|next| !self.dead.contains(next)).collect();
            let beside_lock = around.iter().any(|next| world.closed.contains(next));
            if kept.contains(&cell) || beside_lock || alive.len() > 1 || !self.entered.contains(&cell) {
                return;
            }
            self.dead.insert(cell);
            corridor = alive.first().copied();
        }
    }
}

fn any_level() -> impl Strategy<Value = Level> {
    let maze = prop_oneof![Just(Maze::DepthFirst), Just(Maze::Prim)];
    (4_u8..14, 4_u8..14, 0_u8..=2, maze, 0_u16..9, any::<u64>()).prop_map(
        |(width, height, pairs, maze, loops, seed)| {
            let blueprint = Blueprint { width, height, pairs, maze, loops, colours: None };
            Builder::new(blueprint).unwrap().random(seed).clone()
        },
    )
}

/// The level turned by half a turn: the order of its cells is reversed.
fn mirror(level: &Level) -> Level {
    let rows: Vec<String> = level.to_string().lines().rev().map(|row| row.chars().rev().collect()).collect();
    rows.join("\n").parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_plain_search_visits_what_a_plain_a_star_visits(level in any_level()) {
        let found = found(&level, Method::Plain);
        let count: usize = found.iter().map(|(visited, _)| visited.len()).sum();
        prop_assert_eq!(Rater::default().visited(&level, Method::Plain), Some(count as u32));
        prop_assert_eq!(found, legs(&level, plain), "{}", level);
    }

    #[test]
    fn any_heuristic_and_tie_break_visits_what_a_plain_a_star_visits(level in any_level(), astar in any_astar()) {
        let survey = level.survey_by(Method::Plain, astar).unwrap();
        let visits = |leg: &lockkey::Leg| (leg.visited.clone(), leg.path.len() as u32 - 1);
        let found: Vec<Visits> = survey.legs.iter().map(visits).collect();
        prop_assert_eq!(found, legs(&level, plain_by(astar)), "{:?}\n{}", astar, level);
        // What is remembered from leg to leg shortens no way.
        let optimised = level.survey_by(Method::Optimised, astar).unwrap();
        prop_assert_eq!(optimised.steps(), survey.steps());
    }

    #[test]
    fn the_default_choice_is_the_fast_search_in_both_methods(level in any_level()) {
        // `high-cell` on the mirror image is `low-cell`: so the slow search is compared with the fast one.
        let mirrored = mirror(&level);
        let astar = AStar { ties: Ties::HighCell, ..AStar::default() };
        for method in [Method::Plain, Method::Optimised] {
            let turned = mirrored.survey_by(method, astar).unwrap();
            prop_assert_eq!(turned.visited(), level.survey(method).unwrap().visited(), "{}", level);
        }
    }

    #[test]
    fn letters_can_be_given_to_pairs_in_any_order(level in any_level()) {
        let swapped: String = level.to_string().chars().map(|mark| match mark {
            'a' => 'b', 'b' => 'a', 'A' => 'B', 'B' => 'A', other => other,
        }).collect();
        let swapped: Level = swapped.parse().unwrap();
        prop_assert_eq!(swapped.validate(), Ok(()));
        if level.keys().len() == 2 && level.idle_locks().is_empty() {
            prop_assert_eq!(swapped.difficulty().unwrap(), level.difficulty().unwrap(), "{}", level);
        }
    }

    #[test]
    fn the_optimised_search_visits_what_one_with_sets_visits(level in any_level()) {
        let found = found(&level, Method::Optimised);
        let mut memory = Memory::default();
        let expected = legs(&level, |world, from, to| memory.search(world, from, to));
        prop_assert_eq!(found, expected, "{}", level);
    }

    #[test]
    fn paths_are_the_shortest_and_walkable(level in any_level()) {
        let shortest = legs(&level, |world, from, goal| {
            let neighbours = |cell: &Cell| world.neighbours(*cell).into_iter().map(|next| (next, 1_u32));
            let estimate = |cell: &Cell| cell.distance(goal);
            pathfinding::prelude::astar(&from, neighbours, estimate, |cell| *cell == goal).unwrap()
        });
        for method in [Method::Plain, Method::Optimised] {
            let survey = level.survey(method).unwrap();
            for (leg, (_, length)) in survey.legs.iter().zip(&shortest) {
                prop_assert_eq!(leg.path.len() as u32 - 1, *length);
                prop_assert_eq!((leg.path[0], *leg.path.last().unwrap()), (leg.from, leg.to));
                for step in leg.path.windows(2) {
                    prop_assert!(level.grid().neighbours(step[0]).any(|next| next == step[1]));
                }
            }
        }
    }

    #[test]
    fn one_rater_serves_levels_of_all_sizes(levels in prop::collection::vec(any_level(), 5)) {
        let mut rater = Rater::default();
        for level in &levels {
            prop_assert_eq!(rater.difficulty(level), Rater::default().difficulty(level));
        }
    }
}

#[test]
fn a_level_counted_by_hand() {
    let level: Level = "#########\n#a.<.A.>#\n#########\n".parse().unwrap();
    let survey = level.survey(Method::Plain).unwrap();
    let cells = |cells: &[u8]| cells.iter().map(|&x| Cell::new(x, 0)).collect::<Vec<_>>();
    assert_eq!(survey.legs[0].visited, cells(&[1, 0]));
    assert_eq!(survey.legs[1].visited, cells(&[0, 1, 2, 3]));
    assert_eq!(survey.legs[1].path, cells(&[0, 1, 2, 3]));
    assert_eq!((survey.visited(), survey.steps()), (6, 4));
}

#[test]
fn the_optimised_search_goes_on_where_it_is_nearest() {
    // From the key the plain search walks back; the optimised one takes up the entry, which it knows, beside the lock.
    let level: Level = "\
###########
#..<.A.>#.#
#.#.#####.#
#a#.......#
###########
"
    .parse()
    .unwrap();
    let (plain, optimised) = (found(&level, Method::Plain), found(&level, Method::Optimised));
    let visits = |legs: &[Visits]| legs.iter().map(|leg| leg.0.len()).collect::<Vec<_>>();
    assert_eq!((visits(&plain), visits(&optimised)), (vec![3, 5], vec![3, 3]));
}
