//! Studies: several experiments, one after the other, some with the champions of others as guests; and then the
//! tournament of those that they made, if there is one.

use crate::failure::Failure;
use crate::local::Ending;
use crate::progress::number;
use crate::run::{How, Which, announce, choose_id, drive, opening};
use crate::signals::Signals;
use crate::summary;
use crate::terminal::{out, write_out};
use crate::tournament::{self, Played};
use bytes::Bytes;
use coordinator::keeper::Keeper;
use evolution::digest::Digest;
use experiment::{Part, Study};
use std::collections::BTreeMap;
use std::process::ExitCode;
use store::Store;

pub(crate) async fn run(store: &Store, plan: &Study, which: &Which, how: &How) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    let mut states: BTreeMap<&str, Vec<Bytes>> = BTreeMap::new();
    let mut results = vec![];
    for part in &plan.parts {
        let Some(keeper) = run_part(store, part, &states, which, how, &mut signals).await? else {
            eprintln!("stopped in {}; run the same command again to go on", part.name);
            return Ok(ExitCode::from(signals.exit_code()));
        };
        let last = keeper.archipelago().final_states().expect("a finished run has states");
        states.insert(&part.name, last.into_iter().map(|(state, _)| state).collect());
        let digest = keeper.archipelago().digest().expect("a finished run has a digest");
        results.push((part.name.as_str(), keeper.run().clone(), summary::best(&keeper)?, digest));
    }
    let runs = results.iter().map(|(name, run, _, _)| ((*name).to_owned(), run.to_string())).collect();
    let games = match play(store, plan, runs, which, how).await? {
        Some(Played::Stopped(code)) => return Ok(code),
        Some(Played::Done(games)) => Some(games),
        None => None,
    };
    let played = games.as_ref().and_then(|games| games.progress.digest());
    let digests = results.iter().map(|(_, _, _, digest)| digest).chain(&played);
    let digest = Digest::of_parts("atoll study digest", digests.map(|digest| &digest.0[..]));
    if how.json {
        let parts: Vec<serde_json::Value> = results
            .iter()
            .map(|(name, run, best, digest)| {
                let best = summary::finite(best.champion.fitness);
                serde_json::json!({
                    "name": name, "run": run.as_str(), "best_fitness": best, "digest": digest.to_string(),
                })
            })
            .collect();
        let mut object =
            serde_json::json!({ "study": plan.name, "digest": digest.to_string(), "parts": parts });
        if let Some(games) = &games {
            object["tournament"] = games.object();
        }
        out!("{object}");
        return Ok(ExitCode::SUCCESS);
    }
    out!("| experiment | best fitness | island | generation | run |");
    out!("|---|---|---|---|---|");
    for (name, run, best, _) in &results {
        let champion = &best.champion;
        out!("| {name} | {} | {} | {} | {run} |", number(champion.fitness), best.island, champion.generation);
    }
    if let Some(games) = &games {
        write_out!("\n{}\n", games.markdown());
        out!(
            "the games are those of {}: `atoll tournament page {}{}`",
            games.run,
            games.run,
            how.store.flag()
        );
    }
    out!("digest {digest}");
    Ok(ExitCode::SUCCESS)
}

/// Plays the tournament that follows the experiments, whose runs go by their names in the study.
async fn play(
    store: &Store,
    plan: &Study,
    runs: BTreeMap<String, String>,
    which: &Which,
    how: &How,
) -> Result<Option<Played>, Failure> {
    let Some(games) = &plan.tournament else { return Ok(None) };
    let (games, files) = tournament::look_up(games, runs, how).await?;
    tournament::play(store, &games, &files, &which.of_parts(), how).await.map(Some)
}

/// One experiment, to its end; nothing if it was asked to stop.
async fn run_part(
    store: &Store,
    part: &Part,
    states: &BTreeMap<&str, Vec<Bytes>>,
    which: &Which,
    how: &How,
    signals: &mut Signals,
) -> Result<Option<Keeper>, Failure> {
    let guests = match &part.guests {
        None => None,
        Some(from) => {
            let states = &states[from.as_str()];
            let guests = part.experiment.evolver().guests(states);
            Some(guests.map_err(|error| Failure::Other(format!("the guests from {from}: {error}")))?)
        }
    };
    let experiment = match &guests {
        None => part.experiment.clone(),
        Some(guests) => part.experiment.with_guests(Digest::of(guests)),
    };
    let run = choose_id(store, &experiment.run_id(), &which.of_parts()).await?;
    let mut keeper = Keeper::create(store, &run, &experiment, guests, opening()).await?;
    if !matches!(which, Which::Worked(_)) {
        announce(&keeper, how);
    }
    let driven = drive(&mut keeper, how, signals).await?;
    Ok((driven.ending == Ending::Finished).then_some(keeper))
}
