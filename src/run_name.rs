//! Runs as people name them: by their ids, the beginning of one, the name of what was run, or `latest`.

use crate::failure::Failure;
use crate::store_argument::run_id;
use experiment::Plan;
use experiment::document::nearest;
use run::players::Reference;
use run::{Place, RunId, layout};
use std::time::SystemTime;
use store::Store;

/// The run that was created last.
const LATEST: &str = "latest";

/// A run that there is.
pub(crate) struct Known {
    pub(crate) id: String,
    /// When it was created, by any clock.
    pub(crate) created: u64,
}

/// What a text stands for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice<'a> {
    One(&'a str),
    /// All of these begin so.
    Several(Vec<&'a str>),
    /// None, but perhaps this one was meant.
    None(Option<&'a str>),
}

/// The run of a plan, unless another one is begun beside it.
pub(crate) fn of(plan: &Plan) -> Result<RunId, Failure> {
    run_id(&match plan {
        Plan::Single(experiment) => experiment.run_id(),
        Plan::Sweep(sweep) => sweep.run_id(),
        Plan::Study(study) => study.run_id(),
        Plan::Tournament(games) => games.run_id(),
    })
}

/// The run that a text stands for.
pub(crate) fn choose<'a>(text: &str, runs: &'a [Known]) -> Choice<'a> {
    if let Some(exact) = runs.iter().find(|run| run.id == text) {
        return Choice::One(&exact.id);
    }
    if text == LATEST
        && let Some(latest) = runs.iter().max_by_key(|run| run.created)
    {
        return Choice::One(&latest.id);
    }
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    let begin: Vec<&str> = ids.iter().copied().filter(|id| id.starts_with(text)).collect();
    // Of `maze` and `maze-large` the shorter is meant by its whole name.
    let named: Vec<&str> = begin.iter().copied().filter(|id| name_of(id) == text).collect();
    match (begin.as_slice(), named.as_slice()) {
        ([one], _) | (_, [one]) => Choice::One(one),
        ([], _) => {
            let names: Vec<&str> = ids.iter().map(|id| name_of(id)).collect();
            let by_name = || {
                let name = nearest(text, &names)?;
                ids.iter().copied().find(|id| name_of(id) == name)
            };
            Choice::None(nearest(text, &ids).or_else(by_name))
        }
        _ => Choice::Several(begin),
    }
}

/// The name of what was run, without the digits that tell seeds apart.
fn name_of(id: &str) -> &str {
    match id.rsplit_once('-') {
        Some((name, digits)) if digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            name
        }
        _ => id,
    }
}

/// Why a text is no run, for people; `place` is where it was looked for.
pub(crate) fn refusal(text: &str, choice: &Choice<'_>, place: &str) -> String {
    match choice {
        Choice::Several(runs) => format!(
            "expected one run, found {} that begin with `{text}`: {}; name one of them, or `latest`",
            runs.len(),
            runs.join(", ")
        ),
        Choice::None(Some(near)) => format!("there is no run `{text}` {place}; did you mean `{near}`?"),
        _ => format!("there is no run `{text}` {place}; `atoll runs` lists those there are"),
    }
}

/// The run of a store that a text stands for.
pub(crate) async fn find(store: &Store, text: &str) -> Result<RunId, Failure> {
    let literal = RunId::new(text)?;
    // What cannot be read is there, and whoever reads it says what is wrong with it.
    if run::stored::is_run(store, &literal).await.unwrap_or(true) {
        return Ok(literal);
    }
    let runs = known(store).await?;
    match choose(text, &runs) {
        Choice::One(run) => Ok(RunId::new(run)?),
        choice @ Choice::Several(_) => Err(Failure::Usage(refusal(text, &choice, "in this store"))),
        choice @ Choice::None(_) => Err(Failure::Other(refusal(text, &choice, "in this store"))),
    }
}

/// A champion's run, named in the same ways.
pub(crate) async fn complete(store: &Store, reference: Reference) -> Result<Reference, Failure> {
    let run = find(store, &reference.run).await?;
    Ok(Reference { run: run.to_string(), ..reference })
}

async fn known(store: &Store) -> Result<Vec<Known>, Failure> {
    let mut runs = vec![];
    for run in store.folders(&layout::runs()).await?.iter().filter_map(layout::run_of_folder) {
        // What has no experiment is no run.
        if let Ok(written) = store.written_at(&Place::Experiment.in_run(&run)).await {
            let created =
                written.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
            runs.push(Known { id: run.to_string(), created });
        }
    }
    Ok(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_by_beginnings_names_and_age() {
        let runs = [
            ("maze-0a1b2c3d", 5),
            ("maze-large-11111111", 9),
            ("sweep-22222222", 7),
            ("games-1", 1),
            ("games-2", 2),
        ];
        let runs = runs.map(|(id, created)| Known { id: id.to_owned(), created });
        let found = |text| choose(text, &runs);
        assert_eq!(found("maze-0a1b2c3d"), Choice::One("maze-0a1b2c3d"));
        assert_eq!(found("maze"), Choice::One("maze-0a1b2c3d"), "its whole name");
        assert_eq!(found("maze-l"), Choice::One("maze-large-11111111"));
        assert_eq!(found("sw"), Choice::One("sweep-22222222"));
        assert_eq!(found("latest"), Choice::One("maze-large-11111111"));
        assert_eq!(found("games"), Choice::Several(vec!["games-1", "games-2"]));
        assert_eq!(found("maze-0a1b2c3e"), Choice::None(Some("maze-0a1b2c3d")));
        assert_eq!(found("swep"), Choice::None(Some("sweep-22222222")), "by its name");
        assert_eq!(found("nothing-like-it"), Choice::None(None));
        assert_eq!(choose("latest", &[]), Choice::None(None));
    }
}
