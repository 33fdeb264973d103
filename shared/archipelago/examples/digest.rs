//! Evolves an experiment, read from standard input, in memory and prints its digest: the smallest program that computes a
//! whole run. The tests build it optimised and compare it with the command.

use std::error::Error;
use std::io::{self, Read};

/// The longest text that is read.
const MAX_TEXT: u64 = 1 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    io::stdin().take(MAX_TEXT).read_to_string(&mut text)?;
    let experiment::Plan::Single(experiment) = experiment::parse("stdin", &text, None)? else {
        return Err("expected a single experiment".into());
    };
    let outcome = archipelago::solo::evolve(&experiment, || false)?.ok_or("it never stops by itself")?;
    println!("{}", outcome.digest);
    Ok(())
}
