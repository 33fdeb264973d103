//! What came out of a run, for people and for programs.

use crate::drive::Driven;
use crate::failure::Failure;
use crate::progress::{number, short};
use crate::run::How;
use crate::terminal::out;
use evolution::epoch::{ChampionView, Standing};
use experiment::duration;
use run::OpenRun;

/// The best champion of a finished run.
pub(crate) struct Best {
    pub(crate) island: usize,
    pub(crate) champion: ChampionView,
}

/// The best champion: the lowest island of equals.
pub(crate) fn best(keeper: &OpenRun) -> Result<Best, Failure> {
    let evolver = keeper.experiment().evolver();
    let states = keeper.archipelago().final_states().expect("a finished run has states");
    let mut best: Option<Best> = None;
    for (island, (state, _)) in states.iter().enumerate() {
        let champion = evolver.champion(state).map_err(|error| Failure::Other(format!("a state {error}")))?;
        if best.as_ref().is_none_or(|best| champion.fitness > best.champion.fitness) {
            best = Some(Best { island, champion });
        }
    }
    Ok(best.expect("there is at least one island"))
}

/// Prints the summary of a finished run: one JSON object, or a few lines.
pub(crate) fn print(keeper: &OpenRun, driven: &Driven, how: &How) -> Result<(), Failure> {
    let archipelago = keeper.archipelago();
    let end = archipelago.end().expect("a finished run has ended");
    let digest = archipelago.digest().expect("a finished run has a digest");
    let states = archipelago.final_states().expect("a finished run has states");
    let evaluations: u64 = states.iter().map(|(_, Standing { evaluations, .. })| evaluations).sum();
    let generations = archipelago.schedule().end_of(end.epoch).unwrap_or(0);
    let seconds = driven.time.as_secs_f64();
    let rate = if seconds > 0.0 { driven.evaluations as f64 / seconds } else { 0.0 };
    let Best { island, champion } = best(keeper)?;
    if how.json {
        let object = serde_json::json!({
            "run": keeper.run().as_str(),
            "digest": digest.to_string(),
            "best_fitness": finite(champion.fitness),
            "generations": generations,
            "evaluations": evaluations,
            "evaluations_per_second": rate,
            "seconds": seconds,
            "reason": end.reason.to_string(),
        });
        out!("{object}");
        return Ok(());
    }
    let (run, flag) = (keeper.run(), how.store.flag());
    out!("finished: {} after {generations} generations", end.reason);
    out!(
        "  best fitness  {} (island {island}, generation {})",
        number(champion.fitness),
        champion.generation
    );
    out!("  champion      {}", shortened(&keeper.experiment().file().problem.show(&champion.genome)));
    out!("  evaluations   {evaluations} ({} this time, {}/s)", driven.evaluations, short(rate));
    out!("  time          {}", duration::show(driven.time));
    out!("  digest        {digest}");
    out!("  stored in     {}", how.store.folder.join(run.folder().as_ref()).display());
    out!("next:");
    out!("  what it brought, as a page to look at     atoll report {run}{flag}");
    out!("  champions and statistics as JSON and CSV  atoll export {run}{flag}");
    out!("  check every object, compute epochs again  atoll verify {run}{flag}");
    let more = generations.max(1) * 2;
    out!("  go on from here                           atoll extend {run}{flag} --generations {more}");
    Ok(())
}

/// JSON has no infinities.
pub(crate) fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

/// As much of a text as fits on a line.
fn shortened(text: &str) -> String {
    const WIDTH: usize = 72;
    match text.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.trim_end().to_owned(),
    }
}
