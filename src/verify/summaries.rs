//! The summaries of a run that has ended, compared with what they summarise.

use super::Findings;
use crate::failure::Failure;
use archipelago::End;
use evolution::epoch::Standing;
use run::journal::Event;
use run::summary::{RunKind, ended_by};
use run::{Place, Recorded, RunEvent, RunId, Summary};
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
    let known = usize::try_from(number).ok().and_then(|number| events.get(..number));
    let (Some(known), Some(last)) = (known, known.and_then(<[_]>::last)) else { return Some("number") };
    if (summary.journal.events, summary.journal.last) != (number, last.digest) {
        return Some("journal");
    }
    if ended_by(&last.body, facts.kind).is_none_or(|ended| !ended.is_same(&summary.ended)) {
        return Some("end");
    }
    if Recorded::of(known.iter().map(|event| &event.body)).priority != summary.priority {
        return Some("priority");
    }
    let outline = &summary.outline;
    if (outline.kind, outline.islands) != (facts.kind, facts.islands) {
        return Some("kind");
    }
    // The budget may have been changed since.
    if known.len() == events.len() && outline.goal != facts.goal {
        return Some("goal");
    }
    if let RunEvent::Finished { end, .. } = &last.body
        && let Some(standing) = (facts.standing)(end.as_ref())
        && outline.standing != Some(standing)
    {
        return Some("standing");
    }
    None
}
