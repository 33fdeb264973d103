//! Runs as people name them: by their ids, the beginning of one, the name of what was run, or `latest`.

use crate::failure::Failure;
use crate::store_argument::run_id;
use experiment::Plan;
use experiment::document::nearest;
use run::players::Reference;
use run::removal::study_of;
use run::{RunId, listing};
use store::Store;

/// The run that was created last.
const LATEST: &str = "latest";

/// A run that there is.
pub(crate) struct Known {
    pub(crate) id: String,
    /// When it was created, by the clock of its journal.
    pub(crate) created: u64,
    /// Whether it is a part of a study, which is named for it.
    pub(crate) is_part: bool,
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

/// Resolves the name of a run.
pub(crate) fn choose<'a>(text: &str, runs: &'a [Known]) -> Choice<'a> {
    if let Some(exact) = runs.iter().find(|run| run.id == text) {
        return Choice::One(&exact.id);
    }
    if text == LATEST
        && let Some(latest) = runs.iter().filter(|run| !run.is_part).max_by_key(|run| run.created)
    {
        return Choice::One(&latest.id);
    }
    let ids: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    // The parts of a study begin like the study itself: they are meant only where no other run begins so.
    let beginning = |is_part: bool| {
        let runs = runs.iter().filter(move |run| run.is_part == is_part && run.id.starts_with(text));
        runs.map(|run| run.id.as_str()).collect::<Vec<_>>()
    };
    let begin = Some(beginning(false)).filter(|runs| !runs.is_empty()).unwrap_or_else(|| beginning(true));
    // Of `maze` and `maze-large` the shorter is meant by its whole name.
    let has_name = |run: &&Known| !run.is_part && name_of(&run.id) == text;
    let named: Vec<&str> = runs.iter().filter(has_name).map(|run| run.id.as_str()).collect();
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

/// The name of the experiment: the id without the digits of its seed and the number of a `--fresh` run.
fn name_of(id: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let first = id.rsplit_once('.').filter(|(_, number)| is_number(number)).map_or(id, |(first, _)| first);
    match first.rsplit_once('-') {
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
    // A run that cannot be read exists too; reading it reports the error.
    if run::stored::is_run(store, &literal).await.unwrap_or(true) {
        return Ok(literal);
    }
    let runs = known(store, text == LATEST).await?;
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

/// The runs of a store; when they were created only if that is asked for, because it takes a look at each.
async fn known(store: &Store, with_age: bool) -> Result<Vec<Known>, Failure> {
    let mut runs = vec![];
    for run in crate::runs::all(store).await? {
        let created = if with_age { created(store, &run).await } else { 0 };
        let is_part = run.as_str().contains('.') && matches!(study_of(store, &run).await, Ok(Some(_)));
        runs.push(Known { id: run.to_string(), created, is_part });
    }
    Ok(runs)
}

/// When a run was created. Times of files change when a store is copied, its journal does not.
async fn created(store: &Store, run: &RunId) -> u64 {
    let recorded = listing::recorded(store, run).await.ok();
    recorded.and_then(|recorded| recorded.created).map_or(0, |created| created.at)
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
            ("study-33333333", 3),
            ("study-33333333.first-33333333", 10),
            ("study-33333333.7", 11),
            ("anew-44444444", 1),
            ("anew-44444444.2", 2),
        ];
        let runs = runs.map(|(id, created)| {
            let is_part = id.starts_with("study-33333333.");
            Known { id: id.to_owned(), created, is_part }
        });
        let found = |text| choose(text, &runs);
        assert_eq!(found("maze-0a1b2c3d"), Choice::One("maze-0a1b2c3d"));
        assert_eq!(found("maze"), Choice::One("maze-0a1b2c3d"), "its whole name");
        assert_eq!(found("maze-l"), Choice::One("maze-large-11111111"));
        assert_eq!(found("sw"), Choice::One("sweep-22222222"));
        assert_eq!(found("latest"), Choice::One("maze-large-11111111"), "parts of a study are not meant");
        assert_eq!(found("study"), Choice::One("study-33333333"), "a study, not its parts");
        assert_eq!(found("stu"), Choice::One("study-33333333"), "by a prefix, which its parts share");
        assert_eq!(found("study-33333333.f"), Choice::One("study-33333333.first-33333333"));
        assert_eq!(
            found("study-33333333."),
            Choice::Several(vec!["study-33333333.first-33333333", "study-33333333.7"])
        );
        assert_eq!(found("anew"), Choice::Several(vec!["anew-44444444", "anew-44444444.2"]));
        assert_eq!(found("games"), Choice::Several(vec!["games-1", "games-2"]));
        assert_eq!(found("maze-0a1b2c3e"), Choice::None(Some("maze-0a1b2c3d")));
        assert_eq!(found("swep"), Choice::None(Some("sweep-22222222")), "by its name");
        assert_eq!(found("nothing-like-it"), Choice::None(None));
        assert_eq!(choose("latest", &[]), Choice::None(None));
    }
}
