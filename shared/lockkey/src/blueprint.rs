//! Levels from genomes: flat byte slices. Every genome makes a solvable level.

use crate::grid::{Cell, Direction, Grid};
use crate::level::{Colour, Level};
use crate::maze::{Carver, Maze};
use crate::placement::{Choices, Placer};
use crate::random::Stream;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What kind of levels to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Blueprint {
    /// Columns.
    #[cfg_attr(feature = "schema", schemars(range(min = 2, max = 64)))]
    pub width: u8,
    /// Rows.
    #[cfg_attr(feature = "schema", schemars(range(min = 2, max = 64)))]
    pub height: u8,
    /// Pairs of lock and key.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 16)))]
    pub pairs: u8,
    /// How passages are laid out.
    pub maze: Maze,
    /// Passages opened beyond the spanning tree; each makes a loop.
    pub loops: u16,
    /// Colours of the pairs. Default: one colour for each pair, which makes the level paired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colours: Option<u8>,
}

/// Why a blueprint is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BlueprintError {
    /// A side too short or too long.
    #[error("expected sides of 2 to {longest}, found `{width}x{height}`", longest = Grid::LONGEST)]
    Size {
        /// Columns asked for.
        width: u8,
        /// Rows asked for.
        height: u8,
    },
    /// More pairs than always fit.
    #[error("expected at most {most} pairs on a grid of this size, found `{found}`")]
    Pairs {
        /// How many there may be.
        most: u8,
        /// How many were asked for.
        found: u8,
    },
    /// No colours, or more than pairs.
    #[error("expected 1 to {most} colours for as many pairs, found `{found}`")]
    Colours {
        /// How many there may be.
        most: u8,
        /// How many were asked for.
        found: u8,
    },
    /// More loops than walls.
    #[error("expected at most {most} loops on a grid of this size, found `{found}`")]
    Loops {
        /// How many there may be.
        most: u16,
        /// How many were asked for.
        found: u16,
    },
    /// A genome of another length.
    #[error("expected {expected} genes, found `{found}`")]
    Genes {
        /// What [`Blueprint::genes`] says.
        expected: usize,
        /// How many were given.
        found: usize,
    },
}

impl Default for Blueprint {
    fn default() -> Self {
        Self { width: 10, height: 10, pairs: 2, maze: Maze::DepthFirst, loops: 0, colours: None }
    }
}

impl Blueprint {
    /// Checks that levels can be made by this blueprint.
    ///
    /// # Errors
    /// The first [`BlueprintError`] found.
    pub fn check(&self) -> Result<(), BlueprintError> {
        let (width, height) = (self.width, self.height);
        let possible = 2..=Grid::LONGEST;
        if !possible.contains(&width) || !possible.contains(&height) {
            return Err(BlueprintError::Size { width, height });
        }
        let most = self.most_pairs();
        if self.pairs > most {
            return Err(BlueprintError::Pairs { most, found: self.pairs });
        }
        let most = self.pairs.max(1);
        if let Some(found) = self.colours.filter(|colours| !(1..=most).contains(colours)) {
            return Err(BlueprintError::Colours { most, found });
        }
        let most = (u16::from(width) - 1) * (u16::from(height) - 1);
        if self.loops > most {
            return Err(BlueprintError::Loops { most, found: self.loops });
        }
        Ok(())
    }

    /// A way between opposite corners has room for these, however it winds.
    fn most_pairs(self) -> u8 {
        ((self.width + self.height - 3) / 2).min(Level::MOST_LOCKS as u8)
    }

    /// The colour of each pair, from the last to the first.
    pub(crate) fn colours_from_last(self) -> impl Iterator<Item = Colour> {
        let colours = self.colours.unwrap_or(self.pairs);
        (0..self.pairs).rev().map(move |pair| Colour(pair % colours))
    }

    fn cells(self) -> usize {
        usize::from(self.width) * usize::from(self.height)
    }

    /// The length of a genome: one gene a cell for the maze, then two for each loop, the entry, the exit, and each lock
    /// and key from the last pair back to the first.
    pub fn genes(&self) -> usize {
        self.cells() + 2 * usize::from(self.loops) + 4 + 4 * usize::from(self.pairs)
    }
}

/// Makes levels by a blueprint; its buffers are used again from level to level.
#[derive(Clone, Debug)]
pub struct Builder {
    blueprint: Blueprint,
    level: Level,
    carver: Carver,
    placer: Placer,
    genes: Vec<u8>,
}

/// How often choices that leave no room are varied before a plain arrangement is used.
const ATTEMPTS: u16 = 64;

impl Builder {
    /// Prepares to build.
    ///
    /// # Errors
    /// What [`Blueprint::check`] finds.
    pub fn new(blueprint: Blueprint) -> Result<Self, BlueprintError> {
        blueprint.check()?;
        let grid = Grid::new(blueprint.width, blueprint.height);
        let corner = Cell::new(0, 0);
        Ok(Self {
            blueprint,
            level: Level { grid, entry: corner, exit: corner, locks: vec![], keys: vec![] },
            carver: Carver::default(),
            placer: Placer::default(),
            genes: vec![],
        })
    }

    /// The blueprint.
    pub fn blueprint(&self) -> &Blueprint {
        &self.blueprint
    }

    /// The level of a genome; it can always be solved, and every lock of a paired one is needed.
    ///
    /// # Errors
    /// When the genome is not as long as [`Blueprint::genes`] says.
    pub fn build(&mut self, genes: &[u8]) -> Result<&Level, BlueprintError> {
        let expected = self.blueprint.genes();
        if genes.len() != expected {
            return Err(BlueprintError::Genes { expected, found: genes.len() });
        }
        self.build_from(genes);
        Ok(&self.level)
    }

    fn build_from(&mut self, genes: &[u8]) {
        let (maze, rest) = genes.split_at(self.blueprint.cells());
        let (loops, places) = rest.split_at(2 * usize::from(self.blueprint.loops));
        self.carver.carve(&mut self.level.grid, self.blueprint.maze, maze);
        self.open_loops(loops);
        if !self.place(places) {
            self.carver.carve(&mut self.level.grid, self.blueprint.maze, maze);
            self.placer.place_in_line(&mut self.level, self.blueprint);
        }
    }

    /// The level of a genome drawn at random.
    pub fn random(&mut self, seed: u64) -> &Level {
        let mut genes = std::mem::take(&mut self.genes);
        genes.resize(self.blueprint.genes(), 0);
        Stream::new(seed).fill(&mut genes);
        self.build_from(&genes);
        self.genes = genes;
        &self.level
    }

    fn open_loops(&mut self, genes: &[u8]) {
        let mut choices = Choices::new(genes, 0);
        for _ in 0..self.blueprint.loops {
            let grid = &mut self.level.grid;
            let is_wall = |&(cell, way): &(Cell, Direction)| {
                grid.neighbour(cell, way).is_some() && !grid.is_open(cell, way)
            };
            let ways = [Direction::East, Direction::South];
            let walls: Vec<(Cell, Direction)> =
                grid.cells().flat_map(|cell| ways.map(|way| (cell, way))).filter(is_wall).collect();
            let (cell, direction) = walls[choices.choose(walls.len())];
            grid.open(cell, direction);
        }
    }

    fn place(&mut self, genes: &[u8]) -> bool {
        (0..ATTEMPTS).any(|attempt| {
            let mut choices = Choices::new(genes, attempt);
            self.placer.place(&mut self.level, self.blueprint, &mut choices)
        })
    }
}
