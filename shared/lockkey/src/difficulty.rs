//! How hard it is to find one's way: the nodes that A* visits, leg by leg.

use crate::chosen_search::{AStar, ChosenSearch};
use crate::grid::Cell;
use crate::level::{Fault, Level};
use crate::proof;
use crate::search::{LegSearch, Search};
use serde::{Deserialize, Serialize};

/// Which nodes a player is taken to visit on the way to the next goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Each leg is searched afresh.
    Plain,
    /// Each leg begins with all nodes known from the legs before, and dead ends are closed for good.
    Optimised,
}

/// One leg of a player's way, as A* went it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Leg {
    /// Where it starts.
    pub from: Cell,
    /// Its goal: a key, a lock or the exit.
    pub to: Cell,
    /// The cells taken from the open list, in order, start and goal included.
    pub visited: Vec<Cell>,
    /// The way from start to goal, both included.
    pub path: Vec<Cell>,
}

/// How a level was searched from entry to exit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// How it was searched.
    pub method: Method,
    /// The way to each key, and to the exit.
    pub legs: Vec<Leg>,
}

/// The figures of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Difficulty {
    /// Nodes visited when each leg is searched afresh.
    pub plain: u32,
    /// Nodes visited when each leg uses what the legs before found out.
    pub optimised: u32,
    /// Steps from the entry over every goal to the exit.
    pub steps: u32,
    /// Cells with more than two passages.
    pub junctions: u32,
}

/// One stage of a plan: a lock to open first, if any, and where to go then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    pub(crate) opens: Option<usize>,
    pub(crate) goal: Cell,
}

/// Counts difficulties; its buffers are used again from level to level.
#[derive(Clone, Default)]
pub struct Rater {
    search: Search,
    /// In place of the fast one, where something other than the default is chosen.
    chosen: Option<ChosenSearch>,
    stages: Vec<Stage>,
}

/// The sums of all legs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    visited: u32,
    steps: u32,
}

impl Survey {
    /// Nodes visited, over all legs: the difficulty.
    pub fn visited(&self) -> usize {
        self.legs.iter().map(|leg| leg.visited.len()).sum()
    }

    /// Steps from the entry to the exit.
    pub fn steps(&self) -> usize {
        self.legs.iter().map(|leg| leg.path.len() - 1).sum()
    }
}

impl Level {
    /// The figures of this level.
    ///
    /// # Errors
    /// Why it cannot be solved.
    pub fn difficulty(&self) -> Result<Difficulty, Fault> {
        self.difficulty_by(AStar::default())
    }

    /// The figures of this level, with nodes chosen in another way.
    ///
    /// # Errors
    /// Why it cannot be solved.
    pub fn difficulty_by(&self, astar: AStar) -> Result<Difficulty, Fault> {
        self.validate()?;
        Rater::new(astar).difficulty(self).ok_or(Fault::Unsolvable { cell: self.exit })
    }

    /// The nodes visited and the way gone in each leg.
    ///
    /// # Errors
    /// Why it cannot be solved.
    pub fn survey(&self, method: Method) -> Result<Survey, Fault> {
        self.survey_by(method, AStar::default())
    }

    /// The nodes visited and the way gone in each leg, with nodes chosen in another way.
    ///
    /// # Errors
    /// Why it cannot be solved.
    pub fn survey_by(&self, method: Method, astar: AStar) -> Result<Survey, Fault> {
        self.validate()?;
        let mut legs = vec![];
        let mut rater = Rater::new(astar);
        let all = rater.go(self, method, |search, from, to| {
            legs.push(Leg { from, to, visited: search.visited().to_vec(), path: search.path(from, to) });
        });
        all.map(|_| Survey { method, legs }).ok_or(Fault::Unsolvable { cell: self.exit })
    }
}

impl Rater {
    /// A rater whose A* chooses nodes so.
    pub fn new(astar: AStar) -> Self {
        let chosen = (!astar.is_default()).then(|| ChosenSearch::new(astar));
        Self { chosen, ..Self::default() }
    }

    /// Nodes visited by this method; none when the level cannot be solved.
    ///
    /// ```
    /// use lockkey::{Blueprint, Builder, Method, Rater};
    /// let mut builder = Builder::new(Blueprint::default())?;
    /// let mut rater = Rater::default();
    /// let visited = rater.visited(builder.random(7), Method::Plain).expect("solvable by construction");
    /// assert!((10..400).contains(&visited));
    /// # Ok::<(), lockkey::BlueprintError>(())
    /// ```
    pub fn visited(&mut self, level: &Level, method: Method) -> Option<u32> {
        self.go(level, method, |_, _, _| ()).map(|sums| sums.visited)
    }

    /// All figures; none when the level cannot be solved.
    pub fn difficulty(&mut self, level: &Level) -> Option<Difficulty> {
        let plain = self.go(level, Method::Plain, |_, _, _| ())?;
        let optimised = self.visited(level, Method::Optimised)?;
        let is_junction = |open: &&u8| open.count_ones() > 2;
        let junctions = level.grid.passages.iter().filter(is_junction).count() as u32;
        Some(Difficulty { plain: plain.visited, optimised, steps: plain.steps, junctions })
    }

    fn go(
        &mut self,
        level: &Level,
        method: Method,
        each: impl FnMut(&dyn LegSearch, Cell, Cell),
    ) -> Option<Sums> {
        self.plan(level)?;
        match &mut self.chosen {
            None => go_by(&mut self.search, &self.stages, level, method, each),
            Some(search) => go_by(search, &self.stages, level, method, each),
        }
    }

    /// Key by key in a paired level; where colours repeat, by the shortest order in which locks can be opened.
    fn plan(&mut self, level: &Level) -> Option<()> {
        self.stages.clear();
        if !level.is_paired() {
            self.stages = proof::plan(level)?;
            return Some(());
        }
        let goals = level.keys.iter().map(|key| key.cell).chain([level.exit]);
        let stages = goals.enumerate().map(|(index, goal)| Stage { opens: index.checked_sub(1), goal });
        self.stages.extend(stages);
        Some(())
    }
}

fn go_by<S: LegSearch>(
    search: &mut S,
    stages: &[Stage],
    level: &Level,
    method: Method,
    mut each: impl FnMut(&dyn LegSearch, Cell, Cell),
) -> Option<Sums> {
    search.begin(level, method);
    let mut sums = Sums::default();
    let mut from = level.entry;
    for &Stage { opens, goal } in stages {
        if let Some(lock) = opens {
            search.open_lock(&level.grid, level.locks[lock]);
        }
        sums.steps += search.leg(&level.grid, from, goal, method)?;
        sums.visited += search.visited().len() as u32;
        each(search, from, goal);
        search.reached(goal);
        from = goal;
    }
    Some(sums)
}
