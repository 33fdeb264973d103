//! The command as people use it: real processes, real files, real signals.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod bad_input;
mod chart_values;
mod checkers_command;
mod checkers_referees;
mod commands;
mod crashes;
mod damaged_runs;
mod deploy;
mod documentation;
mod endgame;
mod engine;
mod examples;
mod fuzz;
mod golden_store;
mod guarantees;
mod labels;
mod ladder;
mod level;
mod level_study;
mod licences;
mod maze;
mod maze_hybrid;
mod memory;
mod monitoring;
#[path = "../support/mutate.rs"]
mod mutate;
mod one_digest;
mod operations;
mod play;
#[path = "../support/referee.rs"]
mod referee;
mod release;
mod removal;
mod report;
mod shell;
mod signals;
mod species_command;
mod species_referees;
mod strength;
#[path = "../support/mod.rs"]
mod support;
mod terminal;
mod tournament;
mod tournament_referees;
mod verify;
mod verify_fields;
mod watching;
mod words;
