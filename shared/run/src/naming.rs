//! Runs as people name them: by their ids, the beginning of one, the name of what was run, or `latest`.

use crate::head::RunError;
use crate::layout::{self, RunId};
use crate::players::Reference;
use crate::removal::study_of;
use crate::{listing, stored};
use experiment::document::nearest;
use store::Store;

/// The run that was created last.
const LATEST: &str = "latest";
/// What lists the runs of a store.
const LIST: &str = "atoll runs";

/// A run that there is.
pub struct Known {
    /// Its name.
    pub id: String,
    /// When it was created, by the clock of its journal.
    pub created: u64,
    /// Whether it is a part of a study, which is named for it.
    pub is_part: bool,
}

/// Why a text stands for no run of a store.
#[derive(Debug, thiserror::Error)]
pub enum NamingError {
    /// Several begin so.
    #[error("{0}")]
    Several(String),
    /// None is called so.
    #[error("{0}")]
    Missing(String),
    /// The store, or what it holds.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// What a text stands for.
#[derive(Debug, PartialEq, Eq)]
pub enum Choice<'a> {
    /// This run.
    One(&'a str),
    /// All of these begin so.
    Several(Vec<&'a str>),
    /// None, but perhaps this one was meant.
    None(Option<&'a str>),
}

/// Resolves the name of a run.
pub fn choose<'a>(text: &str, runs: &'a [Known]) -> Choice<'a> {
    if let Some(exact) = runs.iter().find(|run| run.id == text) {
        return Choice::One(&exact.id);
    }
    if text == LATEST
        && let Some(latest) = runs.iter().filter(|run| !run.is_part).max_by_key(|run| run.created)
    {
        return Choice::One(&latest.id);
    }
    // Every name begins with it.
    if text.is_empty() {
        return Choice::None(None);
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
            let latest = || nearest(text, &[LATEST]).filter(|_| !ids.is_empty() && text != LATEST);
            Choice::None(nearest(text, &ids).or_else(by_name).or_else(latest))
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

/// Why a text is no run, for people; `place` is where it was looked for, and `list` lists what is there.
pub fn refusal(text: &str, choice: &Choice<'_>, place: &str, list: &str) -> String {
    match choice {
        _ if text.is_empty() => {
            format!("expected the name of a run, found an empty one; `{list}` lists the runs")
        }
        Choice::Several(runs) => format!(
            "expected one run, found {} that begin with `{text}`: {}; name one of them, or `latest`",
            runs.len(),
            runs.join(", ")
        ),
        Choice::None(Some(near)) => format!("there is no run `{text}` {place}; did you mean `{near}`?"),
        _ => format!("there is no run `{text}` {place}; `{list}` lists those there are"),
    }
}

/// The run of a store that a text stands for.
///
/// # Errors
/// If there is none, or several, or the store fails.
pub async fn find(store: &Store, text: &str) -> Result<RunId, NamingError> {
    let literal = RunId::new(text).map_err(RunError::from);
    // A run that cannot be read exists too; reading it reports the error.
    if let Ok(literal) = &literal
        && stored::is_run(store, literal).await.unwrap_or(true)
    {
        return Ok(literal.clone());
    }
    let runs = known(store, text == LATEST).await?;
    match choose(text, &runs) {
        Choice::One(run) => Ok(RunId::new(run).map_err(RunError::from)?),
        choice @ Choice::Several(_) => {
            Err(NamingError::Several(refusal(text, &choice, "in this store", LIST)))
        }
        choice @ Choice::None(near) => {
            // What can be no id may still be nearly the name of a run.
            if near.is_none() {
                literal?;
            }
            Err(NamingError::Missing(refusal(text, &choice, "in this store", LIST)))
        }
    }
}

/// A champion's run, named in the same ways.
///
/// # Errors
/// As for [`find`].
pub async fn complete(store: &Store, reference: Reference) -> Result<Reference, NamingError> {
    let run = find(store, &reference.run).await?;
    Ok(Reference { run: run.to_string(), ..reference })
}

/// All runs of a store.
///
/// # Errors
/// If the store fails.
pub async fn all(store: &Store) -> Result<Vec<RunId>, RunError> {
    let folders = store.folders(&layout::runs()).await?;
    let mut runs = vec![];
    for run in folders.iter().filter_map(layout::run_of_folder) {
        // A run that cannot be read exists too; reading it reports the error.
        if stored::is_run(store, &run).await.unwrap_or(true) {
            runs.push(run);
        }
    }
    Ok(runs)
}

/// The runs of a store; when they were created only if that is asked for, because it takes a look at each.
async fn known(store: &Store, with_age: bool) -> Result<Vec<Known>, RunError> {
    let mut runs = vec![];
    for run in all(store).await? {
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
        assert_eq!(found("Swep"), Choice::None(Some("sweep-22222222")), "what can be no id");
        assert_eq!(found("SWEEP"), Choice::None(Some("sweep-22222222")));
        assert_eq!(found("lates"), Choice::None(Some("latest")));
        assert_eq!(found("latestt"), Choice::None(Some("latest")));
        assert_eq!(found("nothing-like-it"), Choice::None(None));
        assert_eq!(found(""), Choice::None(None));
        assert_eq!(choose("", &runs[..1]), Choice::None(None), "not even the only one");
        assert_eq!(choose("latest", &[]), Choice::None(None));
    }
}
