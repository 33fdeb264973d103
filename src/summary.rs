//! What came out of a run, for people and for programs.

use crate::drive::Driven;
use crate::failure::Failure;
use crate::progress::short;
use crate::run::How;
use crate::terminal::out;
use evolution::epoch::Standing;
use report::text::number;
use run::FinishedRun;

/// Prints the summary of a finished run: one JSON object, or a few lines.
pub(crate) fn print(finished: &FinishedRun, driven: &Driven, how: &How) -> Result<(), Failure> {
    let FinishedRun { experiment, end, digest, .. } = finished;
    let Standing { generation: generations, evaluations, .. } = finished.standing();
    let seconds = driven.session().as_secs_f64();
    let this_time = evaluations.saturating_sub(driven.before);
    let rate = if seconds > 0.0 { this_time as f64 / seconds } else { 0.0 };
    let (island, champion) = finished.best()?;
    let run = &driven.run;
    if how.json {
        let object = serde_json::json!({
            "run": run.as_str(),
            "digest": digest.to_string(),
            "best_fitness": finite(champion.fitness),
            "generations": generations,
            "evaluations": evaluations,
            "evaluations_per_second": rate,
            "seconds": driven.total().as_secs_f64(),
            "session_seconds": seconds,
            "reason": end.reason.to_string(),
        });
        out!("{object}");
        return Ok(());
    }
    let flag = how.store.flag();
    let unit = if generations == 1 { "generation" } else { "generations" };
    out!("finished: {}, after {generations} {unit}", end.reason);
    out!(
        "  best fitness  {} (island {island}, generation {})",
        number(champion.fitness),
        champion.generation
    );
    out!("  champion      {}", shortened(&experiment.file().problem.show(&champion.genome)));
    // For a resumed run, the total and the share of this command are shown.
    if driven.before > 0 {
        out!("  evaluations   {evaluations} ({this_time} this time, {}/s)", short(rate));
    } else {
        out!("  evaluations   {evaluations} ({}/s)", short(rate));
    }
    out!("  time          {}", driven.shown_time());
    out!("  digest        {digest}");
    out!("  stored in     {}", how.store.folder().join(run.folder().as_ref()).display());
    out!("next:");
    out!("  open the report                           atoll report {run}{flag}");
    out!("  champions and statistics as JSON and CSV  atoll export {run}{flag}");
    out!("  verify stored data and recompute epochs   atoll verify {run}{flag}");
    let more = generations.max(1) * 2;
    out!("  continue from here                        atoll extend {run}{flag} --generations {more}");
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
