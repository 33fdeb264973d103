//! The dashboard: what a store or a coordinator holds, as plain data, and the pages that show it.
//!
//! [`data`] is what the pages and the JSON API show. [`why()`] explains why a run makes no progress, from the
//! [`Situation`] of its cluster. [`page`] holds the pages as pure functions: the same data gives the same bytes.

pub mod data;
pub mod page;
mod why;

pub use data::{
    ArtifactView, ChampionRow, EpochView, EventView, History, IslandState, IslandView, LeaseView,
    Predecessor, RunRow, RunView, RunsPage, RunsQuery, StatisticsPoint, StrengthView, WorkerState,
    WorkerView, WorkersPage, parts, predecessor,
};
pub use page::{PlayForm, PlayStrength};
pub use why::{
    Ahead, Cause, Failing, MissingResource, Phase, Situation, StoreHealth, Waiting, Why, WorkerCounts, why,
};

/// The style of the dashboard's pages.
pub fn style() -> String {
    format!("{}{}", crate::html::style(), include_str!("dashboard/dashboard.css"))
}

/// What the pages do where scripts run: they refresh themselves, and send actions.
pub const SCRIPT: &str = include_str!("dashboard/dashboard.js");

/// What lets games be stepped through, on pages that hold some.
pub const GAMES_SCRIPT: &str = include_str!("page.js");

/// What people play with in a browser.
pub const PLAY_SCRIPT: &str = include_str!("dashboard/play.js");
