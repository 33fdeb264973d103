//! The text form of a level, as [`Level`] describes it.

use crate::grid::{Cell, Direction, Grid};
use crate::level::{Colour, Fixture, Level, LevelError};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Why a text is no level.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TextError {
    /// The map is too small or too large, or its sides are even.
    #[error("expected an odd number of {what} from 3 to {longest}, found `{found}`", longest = 2 * Grid::LONGEST + 1)]
    Size {
        /// Lines or characters of a line.
        what: &'static str,
        /// How many there are.
        found: usize,
    },
    /// A line longer or shorter than the first.
    #[error("expected {expected} characters in line {line}, found `{found}`")]
    Ragged {
        /// The line, from 1.
        line: usize,
        /// Characters of the first.
        expected: usize,
        /// Characters of this one.
        found: usize,
    },
    /// A character where it cannot be.
    #[error("expected {expected} in line {line}, column {column}, found `{found}`")]
    Character {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What may stand there.
        expected: &'static str,
        /// What stands there.
        found: char,
    },
    /// No entry or exit, or more than one.
    #[error("expected one {part}, found `{found}`")]
    Ends {
        /// Entry or exit.
        part: &'static str,
        /// How many there are.
        found: usize,
    },
    /// What was drawn makes no level.
    #[error(transparent)]
    Level(#[from] LevelError),
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows().iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}

impl Level {
    /// The lines of its text form.
    pub fn rows(&self) -> Vec<String> {
        let (width, height) = (usize::from(self.grid.width()), usize::from(self.grid.height()));
        let mut map = vec![vec!['#'; 2 * width + 1]; 2 * height + 1];
        for cell in self.grid.cells() {
            let (x, y) = place(cell);
            map[y][x] = '.';
            for (way, x, y) in [(Direction::East, x + 1, y), (Direction::South, x, y + 1)] {
                if self.grid.is_open(cell, way) {
                    map[y][x] = '.';
                }
            }
        }
        for (cell, character) in self.characters() {
            let (x, y) = place(cell);
            map[y][x] = character;
        }
        map.iter().map(|row| row.iter().collect()).collect()
    }

    fn characters(&self) -> impl Iterator<Item = (Cell, char)> + '_ {
        let keys = self.keys.iter().map(|key| (key.cell, key.colour.key_letter()));
        let locks = self.locks.iter().map(|lock| (lock.cell, lock.colour.lock_letter()));
        [(self.entry, '<'), (self.exit, '>')].into_iter().chain(keys).chain(locks)
    }
}

/// Column and row of a cell in the map.
fn place(cell: Cell) -> (usize, usize) {
    (2 * usize::from(cell.x()) + 1, 2 * usize::from(cell.y()) + 1)
}

impl FromStr for Level {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        let longest = 2 * usize::from(Grid::LONGEST) + 1;
        // One line more than there may be, so as to notice it and read no further.
        Level::from_rows(text.trim().lines().map(str::trim_end).take(longest + 1))
    }
}

impl Level {
    /// Reads the lines of a text form.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn from_rows<'a>(rows: impl IntoIterator<Item = &'a str>) -> Result<Self, TextError> {
        let rows: Vec<&str> = rows.into_iter().collect();
        let length = rows.first().map_or(0, |row| row.chars().count());
        let width = cells_along(length, "characters in a line")?;
        let height = cells_along(rows.len(), "lines")?;
        let mut reader = Reader { grid: Grid::new(width, height), ..Reader::default() };
        for (y, row) in rows.iter().enumerate() {
            let found = row.chars().count();
            if found != length {
                return Err(TextError::Ragged { line: y + 1, expected: length, found });
            }
            for (x, character) in row.chars().enumerate() {
                reader.read(x, y, character)?;
            }
        }
        reader.finish()
    }
}

fn cells_along(length: usize, what: &'static str) -> Result<u8, TextError> {
    let longest = 2 * usize::from(Grid::LONGEST) + 1;
    if length % 2 == 1 && (3..=longest).contains(&length) {
        Ok((length / 2) as u8)
    } else {
        Err(TextError::Size { what, found: length })
    }
}

/// What was read so far.
struct Reader {
    grid: Grid,
    entries: Vec<Cell>,
    exits: Vec<Cell>,
    locks: Vec<Fixture>,
    keys: Vec<Fixture>,
}

impl Default for Reader {
    fn default() -> Self {
        Self { grid: Grid::new(1, 1), entries: vec![], exits: vec![], locks: vec![], keys: vec![] }
    }
}

impl Reader {
    fn read(&mut self, x: usize, y: usize, character: char) -> Result<(), TextError> {
        let wrong =
            |expected| TextError::Character { line: y + 1, column: x + 1, expected, found: character };
        let is_edge = x == 0
            || y == 0
            || x == 2 * usize::from(self.grid.width())
            || y == 2 * usize::from(self.grid.height());
        match (x % 2 == 1, y % 2 == 1) {
            (true, true) => {
                let cell = Cell::new((x / 2) as u8, (y / 2) as u8);
                self.read_cell(cell, character).ok_or_else(|| wrong("`.`, `<`, `>` or a letter"))
            }
            _ if character == '#' => Ok(()),
            (false, false) => Err(wrong("the wall `#`")),
            _ if is_edge => Err(wrong("the outer wall `#`")),
            _ if character != '.' => Err(wrong("`#` or `.`")),
            (is_below, _) => {
                let (before, way) =
                    if is_below { ((x, y - 1), Direction::South) } else { ((x - 1, y), Direction::East) };
                self.grid.open(Cell::new((before.0 / 2) as u8, (before.1 / 2) as u8), way);
                Ok(())
            }
        }
    }

    fn read_cell(&mut self, cell: Cell, character: char) -> Option<()> {
        let fixture = |first: u8| Fixture { colour: Colour(character as u8 - first), cell };
        match character {
            '.' => {}
            '<' => self.entries.push(cell),
            '>' => self.exits.push(cell),
            'a'..='z' => self.keys.push(fixture(b'a')),
            'A'..='Z' => self.locks.push(fixture(b'A')),
            _ => return None,
        }
        Some(())
    }

    fn finish(self) -> Result<Level, TextError> {
        let only = |part, cells: &[Cell]| match cells {
            [cell] => Ok(*cell),
            _ => Err(TextError::Ends { part, found: cells.len() }),
        };
        let entry = only("entry `<`", &self.entries)?;
        let exit = only("exit `>`", &self.exits)?;
        Ok(Level::new(self.grid, entry, exit, self.locks, self.keys)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = "\
#######
#<.A.>#
#.#####
#....a#
#######
";

    #[test]
    fn text_comes_back_as_it_was() {
        let level: Level = SMALL.parse().unwrap();
        assert_eq!((level.grid().width(), level.grid().height()), (3, 2));
        assert_eq!((level.entry(), level.exit()), (Cell::new(0, 0), Cell::new(2, 0)));
        assert_eq!(level.locks(), [Fixture { colour: Colour(0), cell: Cell::new(1, 0) }]);
        assert_eq!(level.keys(), [Fixture { colour: Colour(0), cell: Cell::new(2, 1) }]);
        assert_eq!(level.grid().passage_count(), 5);
        assert_eq!(level.to_string(), SMALL);
    }

    #[test]
    fn malformed_text_is_refused_where_it_is_wrong() {
        let error = |text: &str| text.parse::<Level>().unwrap_err().to_string();
        assert_eq!(error(""), "expected an odd number of characters in a line from 3 to 129, found `0`");
        assert_eq!(
            error("####\n####\n####\n"),
            "expected an odd number of characters in a line from 3 to 129, found `4`"
        );
        assert_eq!(error("###\n#<#\n"), "expected an odd number of lines from 3 to 129, found `2`");
        assert_eq!(
            error(&"###\n".repeat(9_999)),
            "expected an odd number of lines from 3 to 129, found `130`"
        );
        assert_eq!(error("#####\n#<.>\n#####\n"), "expected 5 characters in line 2, found `4`");
        assert_eq!(
            error("#####\n#<.?#\n#####\n"),
            "expected `.`, `<`, `>` or a letter in line 2, column 4, found `?`"
        );
        assert_eq!(error("#####\n#<x>#\n#####\n"), "expected `#` or `.` in line 2, column 3, found `x`");
        assert_eq!(
            error("#####\n#<.>.\n#####\n"),
            "expected the outer wall `#` in line 2, column 5, found `.`"
        );
        assert_eq!(
            error("#.###\n#<.>#\n#####\n"),
            "expected the outer wall `#` in line 1, column 2, found `.`"
        );
        assert_eq!(error("##.##\n#<.>#\n#####\n"), "expected the wall `#` in line 1, column 3, found `.`");
        assert_eq!(error("#####\n#<.<#\n#####\n"), "expected one entry `<`, found `2`");
        assert_eq!(error("#####\n#<..#\n#####\n"), "expected one exit `>`, found `0`");
        assert_eq!(
            error("#####\n#é.>#\n#####\n"),
            "expected `.`, `<`, `>` or a letter in line 2, column 2, found `é`"
        );
    }

    #[test]
    fn too_many_locks_are_refused() {
        let row =
            |middle: &str| format!("#{}#", middle.chars().map(String::from).collect::<Vec<_>>().join("."));
        let cells = format!("<{}>", "A".repeat(17));
        let wall = "#".repeat(2 * cells.len() + 1);
        let text = format!("{wall}\n{}\n{wall}\n", row(&cells));
        assert_eq!(text.parse::<Level>().unwrap_err().to_string(), "expected at most 16 locks, found `17`");
    }
}
