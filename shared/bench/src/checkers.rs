//! Checkers: move generation, the network on the leaves of real searches, and whole searches.

use crate::{Bench, Figure, rate, rates};
use checkers::{
    Architecture, Database, EndgameResult, Evaluator, Learner, Lesson, Limits, Material, Network,
    NetworkEvaluator, NetworkShape, NodeKind, PlaySettings, PlayingSearch, Position, Reuse, Score, Search,
    Side, SimdPath, Square, Squares, Style, Watch, perft, sample_positions,
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

pub(crate) fn benches() -> Vec<Bench> {
    let mut benches: Vec<Bench> = vec![
        ("checkers.perft", measure_perft),
        ("checkers.eval_weighted", || measure_evaluations(NodeKind::Weighted, SimdPath::best())),
        ("checkers.eval_sum", || measure_evaluations(NodeKind::Sum, SimdPath::best())),
        ("checkers.eval_wide", || measure_evaluations(weighted(NetworkShape::Wide), SimdPath::best())),
        ("checkers.eval_phases", || measure_evaluations(weighted(NetworkShape::Phases), SimdPath::best())),
        ("checkers.search_weighted", measure_search),
        ("checkers.search_timed", measure_timed_search),
        ("checkers.learn", measure_learning),
        ("checkers.probe", measure_probes),
    ];
    if SimdPath::Avx2.is_available() {
        benches.push(("checkers.eval_weighted_avx2", || {
            measure_evaluations(NodeKind::Weighted, SimdPath::Avx2)
        }));
    }
    benches
}

/// Leaves a second, against a perft that plays every last move and keeps its moves on the heap.
fn measure_perft() -> Figure {
    let fast = rate(|| perft(&Position::START, 8));
    let plain = rate(|| plain_perft(&Position::START, 6));
    Figure::new("leaves", fast, plain)
}

fn plain_perft(position: &Position, depth: u32) -> u64 {
    if depth == 0 {
        return 1;
    }
    position.legal_moves().iter().map(|mv| plain_perft(&position.play(mv), depth - 1)).sum()
}

/// Evaluations a second over the leaves of real searches, those of one parent asked for together, against the
/// plain reference.
fn measure_evaluations(architecture: impl Into<Architecture>, path: SimdPath) -> Figure {
    let network = network(architecture);
    let families = families(&network);
    let mut evaluator = NetworkEvaluator::on_path(network.clone(), path).expect("asked for where available");
    let mut plain = Plain(network);
    let (fast, slow) = rates(
        || families.iter().map(|family| family.evaluate(&mut evaluator)).sum(),
        || families.iter().take(100).map(|family| family.evaluate(&mut plain)).sum(),
    );
    Figure::new("evaluations", fast, slow)
}

/// Nodes a second of searches six plies deep, against the same searches with the plain reference at the leaves.
fn measure_search() -> Figure {
    let network = network(NodeKind::Weighted);
    let positions = positions();
    let mut search = Search::new(Search::SMALL_TABLE, Reuse::EqualDepth);
    let mut run = |evaluator: &mut dyn FnMut(&mut Search, &Position) -> u64, positions: &[Position]| {
        rate(|| {
            positions
                .iter()
                .map(|position| {
                    search.forget();
                    evaluator(&mut search, position)
                })
                .sum()
        })
    };
    let mut evaluator = NetworkEvaluator::new(network.clone());
    let fast = run(&mut |search, position| nodes(search, &mut evaluator, position), &positions);
    let mut plain = Plain(network);
    let slow = run(&mut |search, position| nodes(search, &mut plain, position), &positions[..4]);
    Figure::new("nodes", fast, slow)
}

fn nodes(search: &mut Search, evaluator: &mut impl Evaluator, position: &Position) -> u64 {
    search.run(evaluator, position, &Limits::depth(6)).map_or(0, |found| found.nodes)
}

/// Searches 12 plies deep a second by the playing search, against the exact one with a table as large.
fn measure_timed_search() -> Figure {
    const DEPTH: u32 = 12;
    const TABLE_BITS: u32 = 18;
    let mut evaluator = NetworkEvaluator::new(network(NodeKind::Weighted));
    let positions: Vec<Position> = positions().into_iter().take(6).collect();
    let settings = PlaySettings { table_bits: Some(TABLE_BITS), ..PlaySettings::default() };
    let mut playing = PlayingSearch::new(settings, Style::default());
    let mut exact = Search::new(TABLE_BITS, Reuse::EqualDepth);
    let mut place = 0;
    let mut next = || {
        place += 1;
        positions[place % positions.len()]
    };
    let mut other = evaluator.clone();
    let mut place = 0;
    let mut again = || {
        place += 1;
        positions[place % positions.len()]
    };
    let (fast, slow) = rates(
        || {
            playing.forget();
            let mut watch = Watch { stop: &AtomicBool::new(false), report: &mut |_, _, _| {} };
            u64::from(playing.run(&mut evaluator, &next(), &Limits::depth(DEPTH), &mut watch).is_some())
        },
        || {
            exact.forget();
            u64::from(exact.run(&mut other, &again(), &Limits::depth(DEPTH)).is_some())
        },
    );
    Figure::new("searches", fast, slow)
}

/// Positions a second that a network learns from, against plain code.
fn measure_learning() -> Figure {
    let network = network(NodeKind::Weighted);
    let lessons: Vec<Lesson> = sample_positions(1, 256)
        .into_iter()
        .enumerate()
        .map(|(number, position)| Lesson { position, target: (number % 3) as f32 - 1.0 })
        .collect();
    let mut best = Learner::new(&network);
    let mut plain = Learner::on_path(&network, SimdPath::Plain).expect("plain code runs everywhere");
    let (fast, slow) = rates(
        || {
            best.step(&lessons, 1e-4);
            lessons.len() as u64
        },
        || {
            plain.step(&lessons[..64], 1e-4);
            64
        },
    );
    Figure::new("positions", fast, slow)
}

/// Random probes of four pieces a second, against asking for every successor instead.
fn measure_probes() -> Figure {
    let database = Database::compute(Database::ON_DEMAND).expect("as many pieces as can be built on demand");
    let positions: Vec<Position> = (0..1 << 16).filter_map(scattered).collect();
    let fast = rate(|| probe_all(&positions, |position| database.probe(position)));
    let slow = rate(|| probe_all(&positions[..1 << 10], |position| by_successors(&database, position)));
    Figure::new("probes", fast, slow)
}

fn probe_all(positions: &[Position], probe: impl Fn(&Position) -> Option<EndgameResult>) -> u64 {
    let wins = positions.iter().filter(|position| probe(position) == Some(EndgameResult::Win)).count();
    std::hint::black_box(wins);
    positions.len() as u64
}

fn by_successors(database: &Database, position: &Position) -> Option<EndgameResult> {
    let after = |mv: &checkers::Move| database.probe(&position.play(mv)).map(EndgameResult::turned);
    let verdicts: Vec<Option<EndgameResult>> = position.legal_moves().iter().map(after).collect();
    let best =
        [EndgameResult::Win, EndgameResult::Draw].into_iter().find(|best| verdicts.contains(&Some(*best)));
    best.or(Some(EndgameResult::Loss))
}

/// Two kings and two men on squares that follow from a number, if these are four.
fn scattered(number: u64) -> Option<Position> {
    let bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let square = |place: u32| Square::new((bits >> (44 + 5 * place) & 31) as u8 + 1).map(Squares::from);
    let [a, b, c, d] = [square(0)?, square(1)?, square(2)?, square(3)?];
    let side = if number.is_multiple_of(2) { Side::Black } else { Side::White };
    let position = Position::new(a | b, c | d, a | c, side).ok()?;
    ((a | b).count() + (c | d).count() == 4).then_some(position)
}

fn weighted(shape: NetworkShape) -> Architecture {
    Architecture { nodes: NodeKind::Weighted, shape }
}

/// Weights as evolution starts with them.
fn network(architecture: impl Into<Architecture>) -> Arc<Network> {
    let architecture = architecture.into();
    let mut bits = 1_u64;
    let mut weights: Vec<f32> = (0..architecture.weight_count())
        .map(|_| {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((bits >> 40) as f32 / (1 << 23) as f32 - 1.0) * 0.2
        })
        .collect();
    if let Some(king) = weights.last_mut() {
        *king = 2.0;
    }
    Arc::new(Network::new(architecture, &weights).expect("as many numbers as it wants"))
}

/// Every third position of a game between piece counters.
fn positions() -> Vec<Position> {
    let mut search = Search::new(Search::SMALL_TABLE, Reuse::EqualDepth);
    let mut evaluator = Material { seed: 1 };
    let mut position = Position::START;
    let mut positions = vec![position];
    for ply in 1..60 {
        let Some(found) = search.run(&mut evaluator, &position, &Limits::depth(4)) else { break };
        position = position.play(&found.best);
        if ply % 3 == 0 {
            positions.push(position);
        }
    }
    positions
}

/// A position one move before the leaves, and all the leaves that follow.
struct Family {
    parent: Position,
    leaves: Vec<Position>,
}

impl Family {
    fn of(parent: Position) -> Self {
        let children = parent.legal_moves().into_iter().map(|mv| parent.play(&mv));
        Self { parent, leaves: children.filter(|child| !child.must_capture() && !child.is_lost()).collect() }
    }

    fn evaluate(&self, evaluator: &mut impl Evaluator) -> u64 {
        let mut scores = [Score::EVEN; 64];
        evaluator.evaluate_children(&self.parent, &self.leaves, &mut scores[..self.leaves.len()]);
        std::hint::black_box(&scores);
        self.leaves.len() as u64
    }
}

/// The families that searches four plies deep looked at, as in evolution.
fn families(network: &Arc<Network>) -> Vec<Family> {
    let mut recorder = Recorder { evaluator: NetworkEvaluator::new(network.clone()), parents: Vec::new() };
    let mut search = Search::new(Search::SMALL_TABLE, Reuse::EqualDepth);
    for position in positions() {
        search.forget();
        search.run(&mut recorder, &position, &Limits::depth(4));
    }
    recorder.parents.into_iter().map(Family::of).collect()
}

/// Writes down whose children it is asked for.
struct Recorder {
    evaluator: NetworkEvaluator,
    parents: Vec<Position>,
}

impl Evaluator for Recorder {
    fn evaluate(&mut self, position: &Position) -> Score {
        self.evaluator.evaluate(position)
    }

    fn evaluate_children(&mut self, parent: &Position, children: &[Position], scores: &mut [Score]) {
        self.evaluator.evaluate_children(parent, children, scores);
        if !children.is_empty() && self.parents.last() != Some(parent) {
            self.parents.push(*parent);
        }
    }
}

/// The plain reference as an evaluator.
struct Plain(Arc<Network>);

impl Evaluator for Plain {
    fn evaluate(&mut self, position: &Position) -> Score {
        Score::from_value(self.0.reference_value(position))
    }
}
