//! The summaries of a run that has ended, compared with what they summarise.

use super::Findings;
use crate::failure::Failure;
use archipelago::End;
use evolution::epoch::Standing;
use run::journal::Event;
use run::summary::RunKind;
use run::{Place, RunEvent, RunId, Summary};
use store::{Kind, Store};

/// What is known of a run without its summaries.
pub(super) struct Facts<'a> {
    pub(super) kind: RunKind,
    /// Islands, jobs or parts.
    pub(super) islands: u32,
    /// The generations, jobs or parts that it is to have now.
    pub(super) goal: Option<u64>,
    /// Where it stood when it finished, if that is still known.
    pub(super) standing: &'a (dyn Fn(Option<&End>) -> Option<Standing> + Sync),
}

pub(super) async fn check(
    store: &Store,
    run: &RunId,
    events: &[Event<RunEvent>],
    facts: &Facts<'_>,
    findings: &mut Findings,
) -> Result<(), Failure> {
    for path in store.list(&run.summaries()).await? {
        let Some((_, Place::Summary(number))) = Place::of(&path) else { continue };
        let summary: Summary = store.read_value(&path, Kind::Summary).await?;
        if let Some(field) = differing(&summary, number, events, facts) {
            findings.problems.push(format!("object `{path}`: its {field} is not that of the run"));
        }
    }
    Ok(())
}

/// The first field that is not what it should be.
fn differing(
    summary: &Summary,
    number: u64,
    events: &[Event<RunEvent>],
    facts: &Facts<'_>,
) -> Option<&'static str> {
    if let Some(field) = summary.contradicts(number, events) {
        return Some(field);
    }
    let (known, since) = events.split_at(number as usize);
    let last = known.last()?;
    let outline = &summary.outline;
    if (outline.kind, outline.islands) != (facts.kind, facts.islands) {
        return Some("kind");
    }
    // The budget may have been changed since.
    if since.is_empty() && outline.goal != facts.goal {
        return Some("goal");
    }
    // What was taken back since need not come to the same again: in asynchronous mode, and in games of engines.
    let is_taken_back = |event: &Event<RunEvent>| {
        matches!(event.body, RunEvent::Retracted { .. } | RunEvent::RetractedJobs { .. })
    };
    if let RunEvent::Finished { end, .. } = &last.body
        && !since.iter().any(is_taken_back)
        && let Some(standing) = (facts.standing)(end.as_ref())
        && outline.standing != Some(standing)
    {
        return Some("standing");
    }
    None
}
