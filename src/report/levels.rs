//! What a search for levels has to show: the fittest level near each target.

use super::Shown;
use crate::failure::Failure;
use crate::level::ladder;
use problems::ProblemSpec;
use report::chart::Picture;
use report::text::number;
use report::{Block, Gallery, Table};
use run::reader::Reader;

/// Levels that are drawn.
const SHOWN: usize = 24;

pub(super) async fn blocks(problem: &ProblemSpec, reader: &mut Reader) -> Result<Shown, Failure> {
    let mut states = vec![];
    for island in 0..reader.islands() {
        states.extend(reader.newest_state(island).await.map(|state| (island, state)));
    }
    let levels = ladder::best(problem, states)?;
    if levels.is_empty() {
        return Ok(Shown::without_lead(vec![Block::Text("There is no level to draw yet.".to_owned())]));
    }
    let mut table =
        Table::new("The fittest level near each target", &["target", "reached", "fitness", "island"]);
    let mut pictures = vec![];
    for level in levels.iter().take(SHOWN) {
        let (target, measure) = (number(level.target), reached(level));
        let title = format!("the level for the target {target}");
        pictures.push((
            Picture::sealed("level", &title, &level.svg, 300.0),
            format!("target {target}, reached {measure}"),
        ));
    }
    for level in &levels {
        let fitness = number(level.fitness);
        table.push(vec![number(level.target), reached(level), fitness, level.island.to_string()]);
    }
    let caption = match problem {
        ProblemSpec::LockKey(_) => {
            "Targets are nodes that a search visits. The warmer a cell, the more often it was visited; lines are the way."
        }
        _ => {
            "Targets are the share of plays that pass, estimated here from few plays: `atoll level ladder` plays more."
        }
    };
    let gallery = Gallery {
        title: "The ladder".to_owned(),
        caption: caption.to_owned(),
        legend: vec![],
        pictures,
        numbers: Some(table),
        folded: false,
    };
    Ok(Shown { lead: Some(lead(&levels)), champion: None, blocks: vec![Block::Gallery(gallery)] })
}

/// How near the levels come to their targets.
fn lead(levels: &[ladder::Best]) -> String {
    let miss = |level: &ladder::Best| (level.measure - level.target).abs();
    let worst = levels.iter().max_by(|one, other| miss(one).total_cmp(&miss(other)));
    let count = if levels.len() == 1 { "1 level".to_owned() } else { format!("{} levels", levels.len()) };
    match worst {
        Some(worst) if miss(worst) > 0.0 => {
            let (target, reached) = (number(worst.target), reached(worst));
            format!("{count} found; the one farthest from its target {target} reaches {reached}.")
        }
        Some(_) if levels.len() == 1 => format!("{count} found, exactly at its target."),
        _ => format!("{count} found, all exactly at their targets."),
    }
}

/// What a level reaches, with its standard error where that is an estimate.
fn reached(level: &ladder::Best) -> String {
    match level.error {
        Some(error) => format!("{:.3} ± {error:.3}", level.measure),
        None => number(level.measure),
    }
}
