//! What a run's figures suggest to do next.

use super::{Run, fitness_curves, migration, work};
use crate::text::{count, percent, time};

/// Sentences about what stands out, the most useful first.
pub(super) fn advice(run: &Run) -> Vec<String> {
    [progress(run), diversity(run), migrants(run), waiting(run), unjudgeable(run)]
        .into_iter()
        .flatten()
        .collect()
}

/// Whether the best came early, or was still rising. Where fitness is relative, neither is known.
fn progress(run: &Run) -> Option<String> {
    let (island, _) = run.best().filter(|_| run.absolute)?;
    let found = run.islands[island].champion.as_ref()?.generation;
    let all = run.generations();
    let (shown, of) = (count(found), count(all));
    if all >= 20 && found <= all / 2 {
        return Some(format!(
            "The best was found in generation {shown} of {of}, and nothing better after it: `budget.stagnation` ends such a run earlier, and another seed or more diversity may find more."
        ));
    }
    (all >= 20 && found >= all - all / 10)
        .then(|| format!("The best was found in generation {shown} of {of}: fitness was still rising at the end, so extend the run."))
}

fn diversity(run: &Run) -> Option<String> {
    let (first, last) = fitness_curves::diversity_ends(run)?;
    (last < 0.02 * first).then(|| {
        "At the end the individuals of most islands are nearly alike, and only mutation brings anything new: larger \
         populations, more mutation, rarer migration or the algorithm `crowding` keep them apart."
            .to_owned()
    })
}

fn migrants(run: &Run) -> Option<String> {
    let flow = migration::total(run);
    if flow.offered == 0 || 20 * flow.accepted >= flow.offered {
        return None;
    }
    let share = percent(flow.accepted, flow.offered);
    Some(format!(
        "Only {share} of the migrants were accepted: migrate less often, or send fewer, at no loss."
    ))
}

fn waiting(run: &Run) -> Option<String> {
    let (waited, computed) = (work::waiting(run), work::computing(run));
    (waited > computed && waited > 60_000).then(|| {
        format!(
            "Islands waited {} in total and computed {}: more workers or threads would shorten the run.",
            time(waited),
            time(computed)
        )
    })
}

fn unjudgeable(run: &Run) -> Option<String> {
    let epochs = run.islands.iter().filter_map(|island| island.epochs.last());
    let most = epochs.map(|epoch| epoch.statistics.unjudgeable).sum::<u64>();
    (most > 0).then(|| format!("{} evaluations returned no valid fitness and were ranked last.", count(most)))
}
