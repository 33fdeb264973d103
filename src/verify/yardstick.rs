//! Measurements of champions, played again where their states are still kept.

use super::Findings;
use crate::failure::Failure;
use archipelago::job::{Job, strength};
use bytes::Bytes;
use rayon::prelude::*;
use run::RunId;
use run::reader::Reader;
use run::yardstick::job;
use store::Store;
use tournament::Tally;

/// One measurement, to be played again.
struct Measured {
    what: String,
    job: Job,
    state: Bytes,
    tally: Tally,
}

pub(super) async fn check(
    store: &Store,
    run: &RunId,
    reader: &Reader,
    pool: &worker::Pool,
    findings: &mut Findings,
) -> Result<(), Failure> {
    findings.problems.extend(reader.unmeasured.iter().map(ToString::to_string));
    let Some(strengths) = &reader.strengths else { return Ok(()) };
    let (text, keys) = (reader.experiment.to_toml(), strengths.keys());
    let mut wanted: Vec<Measured> = vec![];
    for ((epoch, island), opponent, tally) in strengths.measured() {
        if !reader.epochs(island).contains(&epoch) {
            continue;
        }
        let opponent = &strengths.opponents()[opponent];
        wanted.push(Measured {
            what: format!("island {island}, epoch {epoch}: games against {opponent}"),
            job: job(&text, keys, opponent),
            state: reader.stored().remains(store, run, island, epoch).await?.state.into(),
            tally: *tally,
        });
    }
    let play = |Measured { what, job, state, tally }: &Measured| {
        let again = job.compute(std::slice::from_ref(state)).map_err(|error| error.to_string());
        match again.map(|result| strength(&result, keys.pairs)) {
            Ok(Some(again)) if again == *tally => None,
            Ok(again) => Some(format!("{what}: expected {tally:?}, played {again:?}")),
            Err(reason) => Some(format!("{what}: {reason}")),
        }
    };
    let problems: Vec<Option<String>> = pool.install(|| wanted.par_iter().map(play).collect());
    findings.measured += wanted.len() as u64;
    findings.problems.extend(problems.into_iter().flatten());
    Ok(())
}
