//! A report before it is written: sections of text, tables, pictures and games, whatever it is about.

use crate::chart::Picture;
use crate::game::Game;

/// A whole report.
///
/// Texts are plain; what stands between backticks is shown as code. Whatever a text holds, no form lets it become
/// anything but text.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// What it is about.
    pub title: String,
    /// What came of it, in a sentence.
    pub headline: String,
    /// The figures that one looks for first.
    pub tiles: Vec<Tile>,
    /// Its sections, in order.
    pub sections: Vec<Section>,
    /// All the numbers behind it, each a file of its own.
    pub data: Vec<Data>,
    /// When and by what it was written: nothing else in it depends on the time.
    pub made: String,
    /// Seconds after which a page reloads, because the run is not finished.
    pub refresh: Option<u32>,
}

/// A figure at the head of a page.
#[derive(Clone, Debug)]
pub struct Tile {
    /// What it is.
    pub label: String,
    /// The figure.
    pub value: String,
    /// What else there is to say.
    pub note: String,
}

impl Tile {
    /// A figure with a remark, which may be empty.
    pub fn new(label: &str, value: impl Into<String>, note: impl Into<String>) -> Self {
        Self { label: label.to_owned(), value: value.into(), note: note.into() }
    }
}

/// A part of a report.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its name in links: lowercase letters and `-`, different from that of any other section.
    pub id: &'static str,
    /// What stands above it.
    pub title: String,
    /// What it holds.
    pub blocks: Vec<Block>,
}

impl Section {
    /// A section with these blocks.
    pub fn new(id: &'static str, title: &str, blocks: Vec<Block>) -> Self {
        Self { id, title: title.to_owned(), blocks }
    }
}

/// A piece of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// Something that the reader must not overlook.
    Notice(Vec<String>),
    /// Names and what they stand for.
    Facts(Vec<(String, String)>),
    /// A table.
    Table(Table),
    /// Commands, each with what it is for.
    Commands(Vec<Step>),
    /// A file as it is.
    Code {
        /// What it is.
        title: String,
        /// The text.
        text: String,
    },
    /// A picture, with the numbers behind it.
    Figure(Figure),
    /// Several small pictures side by side, with the numbers behind them.
    Gallery(Gallery),
    /// A game to step through.
    Game(Box<Game>),
    /// Two of these side by side where there is room, otherwise below each other.
    Beside(Box<[Block; 2]>),
}

impl Block {
    /// The block, or the two that it holds.
    pub(crate) fn each(&self) -> impl Iterator<Item = &Self> {
        match self {
            Self::Beside(two) => two.iter(),
            one => std::slice::from_ref(one).iter(),
        }
    }
}

/// A command and what it is for.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does.
    pub what: String,
    /// What to type.
    pub command: String,
}

impl Step {
    /// A command and what it is for.
    pub fn new(what: impl Into<String>, command: impl Into<String>) -> Self {
        Self { what: what.into(), command: command.into() }
    }
}

/// A picture in a report.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The picture.
    pub picture: Picture,
    /// What one sees on it.
    pub caption: String,
    /// The numbers behind it, for those who do not see it.
    pub numbers: Option<Table>,
}

/// Small pictures side by side.
#[derive(Clone, Debug)]
pub struct Gallery {
    /// What they have in common.
    pub title: String,
    /// What one sees on them.
    pub caption: String,
    /// The curves of all of them: the number of their colour, and what they are.
    pub legend: Vec<(usize, String)>,
    /// The pictures, each with what stands below it.
    pub pictures: Vec<(Picture, String)>,
    /// The numbers behind them.
    pub numbers: Option<Table>,
    /// Whether it is shown only to those who ask for it.
    pub folded: bool,
}

/// Rows and columns of text.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// A caption.
    pub caption: String,
    /// What stands above each column.
    pub columns: Vec<String>,
    /// The rows; each has a cell for each column.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these columns.
    pub fn new(caption: impl Into<String>, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { caption: caption.into(), columns, rows: vec![] }
    }

    /// The table with a row more.
    pub fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a cell for each column of {}", self.caption);
        self.rows.push(row);
    }
}

/// Numbers for programs, all of them.
#[derive(Clone, Debug)]
pub struct Data {
    /// The name of their file, without its ending.
    pub name: &'static str,
    /// The numbers; the caption is not written.
    pub table: Table,
}
