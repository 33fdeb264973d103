//! Who went where, and whether it helped.

use super::Run;
use crate::chart::{Bars, Flow, Grid, LEVELS, NOTHING, Network, Stack, level};
use crate::document::{Block, Data, Figure, Section, Table};
use crate::text::{count, percent};
use evolution::statistics::Arrival;
use std::collections::BTreeMap;

/// Maximum numbers of islands and edges that are drawn one by one.
const NODES: usize = 40;
const WAYS: usize = 240;
/// Bars of a chart, ways of a table, blocks of islands along a side of the matrix.
const BARS: u64 = 60;
const LISTED: usize = 20;
const SIDE: u64 = 200;

/// Everything that went over each way, ways without migrants among them, by sender and receiver.
fn flows(run: &Run) -> Vec<Flow> {
    let mut flows: BTreeMap<(u32, u32), Flow> = BTreeMap::new();
    for &(from, to) in &run.topology.1 {
        flows.insert((from, to), Flow { from, to, ..Flow::default() });
    }
    for (to, arrival) in arrivals(run) {
        let (from, to) = (arrival.from, to as u32);
        let flow = flows.entry((from, to)).or_insert(Flow { from, to, ..Flow::default() });
        add(flow, arrival);
    }
    flows.into_values().collect()
}

fn arrivals(run: &Run) -> impl Iterator<Item = (usize, &Arrival)> {
    run.islands.iter().enumerate().flat_map(|(to, island)| {
        island.epochs.iter().flat_map(move |epoch| epoch.statistics.arrivals.iter().map(move |a| (to, a)))
    })
}

fn add(flow: &mut Flow, arrival: &Arrival) {
    flow.offered += u64::from(arrival.offered);
    flow.accepted += u64::from(arrival.accepted);
    flow.better += u64::from(arrival.better_than_best);
}

/// All migration together.
pub(super) fn total(run: &Run) -> Flow {
    arrivals(run).fold(Flow::default(), |mut flow, (_, arrival)| {
        add(&mut flow, arrival);
        flow
    })
}

pub(super) fn section(run: &Run) -> Option<Section> {
    // Where no epoch could be read, nothing is known of migrants.
    if run.topology.1.is_empty() || run.epochs() == 0 {
        return None;
    }
    let flows = flows(run);
    let mut blocks = vec![Block::Text(summary(run))];
    blocks.extend(bars(run).map(Block::Figure));
    blocks.push(Block::Figure(topology(run, &flows)));
    Some(Section::new("migration", "Migration", blocks))
}

fn summary(run: &Run) -> String {
    let all = total(run);
    let (mut helped, mut settled, mut idle) = (0u64, 0u64, 0u64);
    for (_, arrival) in arrivals(run) {
        match arrival {
            Arrival { better_than_best: 1.., .. } => helped += 1,
            Arrival { accepted: 1.., .. } => settled += 1,
            _ => idle += 1,
        }
    }
    format!(
        "{} groups of migrants arrived. In {} a migrant beat the best of the island, in {} others some were accepted, \
         in {} none. Of {} migrants {} were accepted.",
        count(helped + settled + idle),
        count(helped),
        count(settled),
        count(idle),
        count(all.offered),
        percent(all.accepted, all.offered)
    )
}

/// What became of migrants, epoch by epoch or several epochs together.
fn bars(run: &Run) -> Option<Figure> {
    let epochs = run.epochs();
    if epochs == 0 {
        return None;
    }
    // All bars but the last stand for as many epochs, or their heights could not be compared.
    let each = epochs.div_ceil(BARS);
    let bars = epochs.div_ceil(each);
    let mut sums = vec![Flow::default(); bars as usize];
    for epoch in run.islands.iter().flat_map(|island| &island.epochs) {
        let at = epoch.number / each;
        epoch.statistics.arrivals.iter().for_each(|arrival| add(&mut sums[at as usize], arrival));
    }
    let parts = |flow: &Flow| {
        let better = flow.better.min(flow.accepted);
        [better, flow.accepted - better, flow.offered.saturating_sub(flow.accepted)]
    };
    let columns = ["from epoch", "better than the best", "accepted", "rejected"];
    let mut table = Table::new("What became of migrants", &columns);
    let mut stacks = vec![];
    for (at, flow) in sums.iter().enumerate() {
        let first = at as u64 * each;
        let heights = parts(flow).map(|part| part as f64).to_vec();
        stacks.push(Stack { label: first.to_string(), heights });
        table.push([first].into_iter().chain(parts(flow)).map(count).collect());
    }
    let chart = Bars {
        name: "migration",
        title: "What became of migrants",
        description: &summary(run),
        across: "epoch",
        up: "migrants",
        parts: vec![
            ("f1", "better than the best of the island"),
            ("f0", "accepted"),
            ("f7 pale", "rejected"),
        ],
        stacks,
    };
    let several = if each > 1 { format!(" Each bar covers {each} epochs.") } else { String::new() };
    let caption = format!("Migrants that arrived at the start of each epoch, on all islands.{several}");
    Some(Figure { picture: chart.draw(), caption, numbers: Some(table) })
}

fn topology(run: &Run, flows: &[Flow]) -> Figure {
    let islands = run.islands.len();
    let title = "Migration between islands";
    let description = format!("{} islands, {}, {} ways.", islands, run.topology.0, count(flows.len() as u64));
    let is_small = islands <= NODES && flows.len() <= WAYS;
    let picture = if is_small {
        let network = Network {
            name: "topology",
            title,
            description: &description,
            islands: islands as u32,
            flows: flows.to_vec(),
        };
        network.draw()
    } else {
        matrix(islands as u64, flows, title, &description)
    };
    let caption = if is_small {
        "Thicker arrows: more migrants accepted."
    } else {
        "Rows: receiving islands; columns: sending islands. Brighter: more migrants accepted."
    };
    let caption = format!("Topology: {}. {caption}", run.topology.0);
    Figure { picture, caption, numbers: Some(ways(flows)) }
}

/// Senders to the right, receivers down, in blocks of islands where there are many.
fn matrix(islands: u64, flows: &[Flow], title: &str, description: &str) -> crate::chart::Picture {
    let side = islands.min(SIDE);
    let mut sums = vec![vec![None::<u64>; side as usize]; side as usize];
    for flow in flows {
        let place = |island: u32| (u64::from(island) * side / islands) as usize;
        let sum = &mut sums[place(flow.to)][place(flow.from)];
        *sum = Some(sum.unwrap_or(0) + flow.accepted);
    }
    let most = sums.iter().flatten().filter_map(|sum| *sum).max().unwrap_or(0);
    let cell = |sum: &Option<u64>| sum.map_or(NOTHING, |sum| level(sum as f64, 0.0, most as f64));
    let kind = |at: usize, colour: &str| {
        let named =
            if at == 0 || at + 1 == LEVELS.len() { count(at as u64 * most / 9) } else { String::new() };
        (colour.to_owned(), named)
    };
    let grid = Grid {
        name: "topology",
        title,
        description,
        across: ("from island", (0, islands)),
        down: ("to island", islands),
        edges: None,
        kinds: LEVELS.iter().enumerate().map(|(at, colour)| kind(at, colour)).collect(),
        cells: sums.iter().map(|row| row.iter().map(cell).collect()).collect(),
    };
    grid.draw()
}

/// The ways over which most came that was better.
fn ways(flows: &[Flow]) -> Table {
    let mut flows = flows.to_vec();
    flows.sort_by_key(|flow| {
        (std::cmp::Reverse(flow.better), std::cmp::Reverse(flow.accepted), flow.from, flow.to)
    });
    let caption = if flows.len() > LISTED {
        format!(
            "The {LISTED} edges with most accepted migrants; all {} are in edges.csv",
            count(flows.len() as u64)
        )
    } else {
        "All edges, most accepted migrants first".to_owned()
    };
    let mut table =
        Table::new(caption, &["from", "to", "arrived", "accepted", "better than the best of the island"]);
    for Flow { from, to, offered, accepted, better } in flows.into_iter().take(LISTED) {
        let places = format!("{} ({})", count(accepted), percent(accepted, offered));
        table.push(vec![from.to_string(), to.to_string(), count(offered), places, count(better)]);
    }
    table
}

pub(super) fn data(run: &Run) -> Data {
    let mut table = Table::new("", &["from", "to", "offered", "accepted", "better_than_best"]);
    for Flow { from, to, offered, accepted, better } in flows(run) {
        let ends = [from.to_string(), to.to_string()];
        table.push(ends.into_iter().chain([offered, accepted, better].map(|n| n.to_string())).collect());
    }
    Data { name: "edges", table }
}
