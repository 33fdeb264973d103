//! Reports of runs: HTML pages, Markdown and CSV from plain data.
//!
//! Plain data goes in, text comes out: a [`Run`](run::Run) (or [several to compare](compare), or a
//! [sweep](sweep::Sweep)) becomes a [`Document`] of sections, tables and [charts](chart), and that becomes
//! [HTML](html::render), [Markdown](markdown::render) and [CSV](csv::files). What a problem has to show beside that
//! (boards, levels, games) is handed in as sections of its own.
//!
//! The crate deliberately reads no store, no file and no clock, and knows no problem: the same data gives the same
//! bytes. The time at which a report is made is a text that is handed in, and stands in one place.
//!
//! ```
//! use report::{Block, Document, Section, Table};
//!
//! let mut table = Table::new("Two islands", &["island", "best"]);
//! table.push(vec!["0".to_owned(), "<b>359</b>".to_owned()]);
//! let section = Section::new("islands", "Islands", vec![Block::Table(table)]);
//! let document = Document { title: "a run".to_owned(), sections: vec![section], ..Document::default() };
//! assert!(report::html::render(&document).contains("&lt;b&gt;359&lt;/b&gt;"), "names stay text");
//! ```

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod chart;
pub mod compare;
pub mod csv;
pub mod dashboard;
mod document;
mod game;
pub mod html;
pub mod markdown;
mod ranks;
pub mod run;
pub mod sweep;
pub mod text;

pub use document::{Block, Data, Document, Figure, Gallery, Section, Step, Table, Tile};
pub use game::{Game, Ply};
