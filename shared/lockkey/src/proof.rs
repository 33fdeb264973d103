//! What becomes of a level in whatever order keys are used.
//!
//! Passages can be walked both ways and taking a key never hurts, so all that matters is which locks have been
//! opened: from that follow the rooms within reach and the keys in hand. Every such state is visited. Opening a lock
//! uses a key up, so each chain of states ends; the level is safe if none ends before the exit is within reach.

use crate::difficulty::Stage;
use crate::grid::Cell;
use crate::level::{Colour, Fixture, Level};
use crate::reach::Reach;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// What was found out about every order of using keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "lowercase")]
pub enum ProofVerdict {
    /// Whatever the player does, the exit can still be reached.
    Safe {
        /// Sets of opened locks that the player can bring about, every one of them examined.
        states: usize,
        /// A shortest order of locks to open.
        solution: Vec<Fixture>,
    },
    /// The level can be solved, but a player can also lock themselves out.
    Trap {
        /// Sets of opened locks that the player can bring about.
        states: usize,
        /// A shortest order of locks to open.
        solution: Vec<Fixture>,
        /// Locks which, once opened in this order, leave no key for any lock that matters.
        trap: Vec<Fixture>,
    },
    /// No order leads to the exit.
    Unsolvable {
        /// Sets of opened locks that the player can bring about.
        states: usize,
    },
}

/// Opened locks, one bit each.
type Opened = u32;

impl Level {
    /// Examines every order in which keys can be used.
    pub fn verdict(&self) -> ProofVerdict {
        prove(self)
    }
}

pub(crate) fn prove(level: &Level) -> ProofVerdict {
    let rooms = Rooms::new(level);
    // Each state with the one it was first reached from; breadth first, so that paths are shortest.
    let mut reached_from = BTreeMap::from([(0, 0)]);
    let mut queue = VecDeque::from([0]);
    let (mut solved, mut stuck) = (None, None);
    while let Some(opened) = queue.pop_front() {
        let situation = rooms.situation(opened);
        if situation.exit_in_reach {
            solved = solved.or(Some(opened));
            continue;
        }
        let mut is_stuck = true;
        for lock in situation.openable() {
            is_stuck = false;
            let next = opened | 1 << lock;
            reached_from.entry(next).or_insert_with(|| {
                queue.push_back(next);
                opened
            });
        }
        if is_stuck {
            stuck = stuck.or(Some(opened));
        }
    }
    let states = reached_from.len();
    let order = |opened: Opened| order(level, &reached_from, opened);
    match (solved.map(order), stuck.map(order)) {
        (None, _) => ProofVerdict::Unsolvable { states },
        (Some(solution), None) => ProofVerdict::Safe { states, solution },
        (Some(solution), Some(trap)) => ProofVerdict::Trap { states, solution, trap },
    }
}

/// The locks opened on the way to a state, in order.
fn order(level: &Level, reached_from: &BTreeMap<Opened, Opened>, mut opened: Opened) -> Vec<Fixture> {
    let mut order = vec![];
    while opened != 0 {
        let before = reached_from[&opened];
        order.push(level.locks[(opened ^ before).trailing_zeros() as usize]);
        opened = before;
    }
    order.reverse();
    order
}

/// The parts into which closed locks divide a level.
struct Rooms<'a> {
    level: &'a Level,
    /// For each lock the rooms it leads to, one bit each.
    doors: Vec<u128>,
    /// For each lock the locks right beside it, one bit each.
    beside: Vec<Opened>,
    /// For each room its keys of each colour.
    keys: Vec<[u8; Colour::COUNT as usize]>,
    entry: u128,
    exit: u128,
}

/// What the player can do when certain locks are open.
struct Situation<'a> {
    exit_in_reach: bool,
    /// Closed locks one can walk up to.
    in_reach: Opened,
    in_hand: [i8; Colour::COUNT as usize],
    locks: &'a [Fixture],
}

impl Situation<'_> {
    fn openable(&self) -> impl Iterator<Item = usize> + '_ {
        let can = |lock: &usize| {
            self.in_reach >> lock & 1 == 1 && self.in_hand[self.locks[*lock].colour.index()] > 0
        };
        (0..self.locks.len()).filter(can)
    }
}

impl<'a> Rooms<'a> {
    /// Only rooms with a door are distinguished, and the entry's: sixteen locks have 64 doors at most, so 65 rooms.
    fn new(level: &'a Level) -> Self {
        let mut rooms = Self { level, doors: vec![], beside: vec![], keys: vec![], entry: 0, exit: 0 };
        let mut room_of = BTreeMap::new();
        rooms.explore(level.entry, &mut room_of);
        rooms.entry = 1;
        for lock in &level.locks {
            let (mut doors, mut beside) = (0, 0);
            for cell in level.grid.neighbours(lock.cell) {
                match level.locks.iter().position(|other| other.cell == cell) {
                    Some(other) => beside |= 1 << other,
                    None => doors |= 1 << rooms.explore(cell, &mut room_of),
                }
            }
            rooms.doors.push(doors);
            rooms.beside.push(beside);
        }
        rooms.exit = room_of.get(&level.exit).map_or(0, |room| 1 << room);
        rooms
    }

    fn explore(&mut self, cell: Cell, room_of: &mut BTreeMap<Cell, usize>) -> usize {
        if let Some(&room) = room_of.get(&cell) {
            return room;
        }
        let room = self.keys.len();
        let mut reach = Reach::default();
        reach.flood(&self.level.grid, cell, &self.level.locks);
        room_of.extend(reach.cells.iter().map(|&cell| (cell, room)));
        let mut keys = [0; Colour::COUNT as usize];
        for key in self.level.keys.iter().filter(|key| reach.contains(key.cell)) {
            keys[key.colour.index()] += 1;
        }
        self.keys.push(keys);
        room
    }

    fn situation(&self, opened: Opened) -> Situation<'_> {
        let (rooms, passed) = self.reach(opened);
        let mut in_hand = [0_i8; Colour::COUNT as usize];
        for (_, keys) in self.keys.iter().enumerate().filter(|(room, _)| rooms >> room & 1 == 1) {
            in_hand.iter_mut().zip(keys).for_each(|(sum, &keys)| *sum += keys as i8);
        }
        let mut in_reach = 0;
        for (lock, fixture) in self.level.locks.iter().enumerate() {
            if opened >> lock & 1 == 1 {
                in_hand[fixture.colour.index()] -= 1;
            } else if self.doors[lock] & rooms != 0 || self.beside[lock] & passed != 0 {
                in_reach |= 1 << lock;
            }
        }
        Situation { exit_in_reach: rooms & self.exit != 0, in_reach, in_hand, locks: &self.level.locks }
    }

    /// Rooms within reach, and opened locks one can stand on.
    fn reach(&self, opened: Opened) -> (u128, Opened) {
        let (mut rooms, mut passed) = (self.entry, 0);
        loop {
            let before = (rooms, passed);
            for lock in (0..self.doors.len()).filter(|lock| opened >> lock & 1 == 1) {
                if self.doors[lock] & rooms != 0 || self.beside[lock] & passed != 0 {
                    rooms |= self.doors[lock];
                    passed |= 1 << lock;
                }
            }
            if (rooms, passed) == before {
                return before;
            }
        }
    }
}

/// The legs of a shortest solution: to the nearest key that is needed, to its lock, and so on, to the exit.
pub(crate) fn plan(level: &Level) -> Option<Vec<Stage>> {
    let solution = match prove(level) {
        ProofVerdict::Safe { solution, .. } | ProofVerdict::Trap { solution, .. } => solution,
        ProofVerdict::Unsolvable { .. } => return None,
    };
    let mut reach = Reach::default();
    let mut closed = level.locks.clone();
    let mut keys = level.keys.clone();
    let mut stages = vec![];
    let mut here = level.entry;
    for lock in solution {
        reach.flood(&level.grid, here, &closed);
        // Cells are flooded in the order of their distance.
        let nearest = reach
            .cells
            .iter()
            .find_map(|&cell| keys.iter().position(|key| key.cell == cell && key.colour == lock.colour))?;
        stages.push(Stage { opens: None, goal: keys.remove(nearest).cell });
        stages.push(Stage { opens: level.locks.iter().position(|other| *other == lock), goal: lock.cell });
        closed.retain(|other| *other != lock);
        here = lock.cell;
    }
    stages.push(Stage { opens: None, goal: level.exit });
    Some(stages)
}
