//! What checkers evolution has to show: how its champions fare against a player that never changes, games to step
//! through, what the champion looks at, and the species of its population.

use super::{Shown, read};
use crate::contender::network;
use crate::failure::Failure;
use checkers::{Architecture, DrawRules, Network, PlayerSpec, Squares, View};
use evolution::epoch::ChampionView;
use problems::Checkers;
use report::chart::{BoardWeights, Lines, Picture, Series, Size, Stretch, thinned};
use report::text::{count, number, plies};
use report::{Block, Figure, Gallery, Table};
use run::reader::Reader;
use species::{Dbscan, Distances, Noise, Projection};
use std::sync::Arc;
use tournament::{GameRecord, Interval, Match, Points, Tally, deck_pairs};

/// Plies that both sides look ahead, at most.
const DEPTH: u32 = 4;
/// Pairs of games with each milestone, milestones, games that are shown.
const PAIRS: usize = 24;
const MILESTONES: usize = 6;
const GAMES: usize = 3;
/// Differences in Elo that are drawn, at most.
const MOST_ELO: f64 = 800.0;
/// Champions that play each other, and pairs of games of each two.
const CROSSED: usize = 6;
const CROSS_PAIRS: usize = 6;
/// Players that the picture of species shows, at most.
const POPULATION: usize = 240;

pub(super) async fn blocks(
    spec: &Checkers,
    reader: &mut Reader,
    champions: &[Option<ChampionView>],
) -> Result<Shown, Failure> {
    let fittest = read::fittest(champions);
    let seat = Seat { spec, depth: spec.depth.min(DEPTH) };
    // Relative fitness compares the players of one island alone: games decide between islands.
    let contest = Contest::of(&fittest, &seat);
    let winner = contest.as_ref().map_or(fittest.first().copied(), |contest| Some(contest.winner));
    let Some((island, champion)) = winner else {
        return Ok(Shown::without_lead(vec![Block::Text("There is no champion yet.".to_owned())]));
    };
    let architecture = spec.architecture();
    let champion = Arc::new(network(architecture, &champion.genome)?);
    let knows = match spec.endgame.pieces {
        0 => String::new(),
        pieces => {
            format!(" Champions ask the endgame database of {pieces} pieces, as they did when they evolved.")
        }
    };
    let who = match &contest {
        Some(_) => format!("The champion of island {island}, winner of the round robin of champions,"),
        None => "The champion".to_owned(),
    };
    let mut blocks = vec![Block::Text(format!(
        "{who} against `material`, a player that counts pieces and never changes: both look {} ahead, from openings \
         of the deck, with colours swapped.{knows}",
        plies(seat.depth)
    ))];
    let milestones = milestones(reader, island, &seat).await;
    blocks.extend(elo_curve(&milestones, island));
    blocks.extend(contest.map(|contest| Block::Table(contest.table)));
    blocks.extend(games(&champion, island, &seat));
    blocks.extend(weights(&champion, island));
    blocks.extend(species_picture(reader, architecture).await);
    Ok(Shown { lead: lead(&who, &milestones), champion: Some(island), blocks })
}

/// What a reader wants to know first: how strong the champion is, and whether it became stronger.
fn lead(who: &str, milestones: &[Milestone]) -> Option<String> {
    let last = milestones.last()?;
    let Interval { low, high } = last.tally.interval();
    let score = last.tally.score();
    let now = format!("{who} scores {score:.2} against `material` ({low:.2} to {high:.2})");
    let [first, .., before, _] = milestones else {
        return Some(format!("{now}."));
    };
    let then = first.tally.interval();
    let change = if low > then.high {
        "stronger than"
    } else if high < then.low {
        "weaker than"
    } else {
        "not clearly different from"
    };
    let trend = match score - before.tally.score() {
        rise if rise > doubt(&last.tally, &before.tally) => ", still rising",
        rise if -rise > doubt(&last.tally, &before.tally) => ", falling since the last milestone",
        _ => ", no clear change since the last milestone",
    };
    let generation = count(first.generation);
    Some(format!(
        "{now}, {change} the champion of generation {generation} ({:.2}){trend}.",
        first.tally.score()
    ))
}

/// By how much two scores differ by chance: the interval of their difference, of independent games.
fn doubt(one: &Tally, other: &Tally) -> f64 {
    let half = |tally: &Tally| {
        let Interval { low, high } = tally.interval();
        (high - low) / 2.0
    };
    half(one).hypot(half(other))
}

/// A champion of the past, and what it scored.
struct Milestone {
    epoch: u64,
    generation: u64,
    tally: Tally,
}

/// How champions play here: with what they knew when they evolved, but looking no farther than a report has time for.
struct Seat<'a> {
    spec: &'a Checkers,
    depth: u32,
}

impl Seat<'_> {
    fn player(&self, network: &Arc<Network>) -> PlayerSpec {
        self.spec.informed(PlayerSpec::Network { network: network.clone(), depth: self.depth })
    }

    fn duel(&self, network: &Arc<Network>) -> Match {
        between(self.player(network), PlayerSpec::Material { depth: self.depth })
    }
}

fn between(one: PlayerSpec, other: PlayerSpec) -> Match {
    let players = [one, other].map(Into::into);
    Match { players, rules: DrawRules::default(), limits: None, seed: 1 }
}

/// The champions of the fittest islands against each other: fitness does not show which of them is better.
struct Contest<'a> {
    /// The island with the best score, and its champion.
    winner: (u32, &'a ChampionView),
    table: Table,
}

impl<'a> Contest<'a> {
    fn of(fittest: &[(u32, &'a ChampionView)], seat: &Seat<'_>) -> Option<Self> {
        let architecture = seat.spec.architecture();
        let player = |champion: &ChampionView| {
            Some(seat.player(&Arc::new(network(architecture, &champion.genome).ok()?)))
        };
        let champions = fittest.iter().take(CROSSED);
        let players: Vec<((u32, &ChampionView), PlayerSpec)> =
            champions.filter_map(|&entry| Some((entry, player(entry.1)?))).collect();
        if players.len() < 2 {
            return None;
        }
        let pairs = deck_pairs(CROSS_PAIRS, 1);
        let mut scores = vec![vec![None; players.len()]; players.len()];
        for one in 0..players.len() {
            for other in one + 1..players.len() {
                let score = between(players[one].1.clone(), players[other].1.clone()).play(&pairs).score();
                (scores[one][other], scores[other][one]) = (Some(score), Some(1.0 - score));
            }
        }
        let islands: Vec<u32> = players.iter().map(|((island, _), _)| *island).collect();
        let order = order(&scores);
        Some(Self { winner: players[*order.first()?].0, table: standings(&islands, &scores, &order) })
    }
}

/// The mean score of a player against all others.
fn total(scores: &[Option<f64>]) -> f64 {
    scores.iter().flatten().sum::<f64>() / (scores.len() - 1) as f64
}

/// Players by their scores, the best first; of equals the fittest, which stands first.
fn order(scores: &[Vec<Option<f64>>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&one, &other| total(&scores[other]).total_cmp(&total(&scores[one])).then(one.cmp(&other)));
    order
}

/// The score of each player against each other, in this order.
fn standings(islands: &[u32], scores: &[Vec<Option<f64>>], order: &[usize]) -> Table {
    let show = |score: f64| format!("{score:.3}");
    let row = |&at: &usize| {
        let against = order.iter().map(|&other| scores[at][other].map_or("–".to_owned(), show));
        [islands[at].to_string(), show(total(&scores[at]))].into_iter().chain(against).collect()
    };
    let against = order.iter().map(|&at| format!("against {}", islands[at]));
    Table {
        caption: format!(
            "Champions of the fittest islands against each other, {} games each: points for a game, a draw counting half",
            2 * CROSS_PAIRS
        ),
        columns: ["island".to_owned(), "score".to_owned()].into_iter().chain(against).collect(),
        rows: order.iter().map(row).collect(),
    }
}

/// The champions of an island in the states that are kept, the last among them.
async fn milestones(reader: &mut Reader, island: u32, seat: &Seat<'_>) -> Vec<Milestone> {
    let (epochs, architecture) = (reader.epochs(island), seat.spec.architecture());
    let pairs = deck_pairs(PAIRS, 1);
    let mut milestones = vec![];
    for epoch in thinned(epochs.len(), MILESTONES).into_iter().map(|at| epochs[at]) {
        let Some(view) = reader.champion_at(island, epoch).await else { continue };
        let Ok(network) = network(architecture, &view.genome) else { continue };
        let record = reader.record(island, epoch);
        let generation = record.map_or(view.generation, |record| record.mark.standing.generation);
        milestones.push(Milestone { epoch, generation, tally: seat.duel(&Arc::new(network)).play(&pairs) });
    }
    milestones
}

fn elo_curve(milestones: &[Milestone], island: u32) -> Option<Block> {
    let last = milestones.last()?;
    let columns =
        ["epoch", "generation", "won", "drawn", "lost", "score", "95 % from", "to", "Elo above `material`"];
    let mut table = Table::new(format!("Champions of island {island} against `material`"), &columns);
    for Milestone { epoch, generation, tally } in milestones {
        let Interval { low, high } = tally.interval();
        let counts = [*epoch, *generation, tally.wins, tally.draws, tally.losses].map(count);
        let scores = [tally.score(), low, high].map(|score| format!("{score:.3}"));
        table.push(counts.into_iter().chain(scores).chain([elo(tally.score())]).collect());
    }
    if milestones.len() < 2 {
        return Some(Block::Table(table));
    }
    let curve = |name, title, up, value: &dyn Fn(f64) -> f64, reach: Vec<f64>| {
        let points =
            milestones.iter().map(|each| (each.generation as f64, value(each.tally.score()))).collect();
        let band = milestones.iter().map(|each| {
            let Interval { low, high } = each.tally.interval();
            (value(low), value(high))
        });
        let series = Series { band: band.collect(), ends: true, ..Series::curve(up, 0, points) };
        let description = format!("The last one has {}.", number(value(last.tally.score())));
        let chart = Lines {
            name,
            title,
            description: &description,
            across: "generation",
            up,
            stretch: Stretch::Linear,
            size: Size::Half,
            series: vec![series],
            reach: [vec![], reach],
        };
        chart.draw()
    };
    let score = curve(
        "milestones",
        "Score of the champions against material",
        "score",
        &|score| (score * 1000.0).round() / 1000.0,
        vec![0.0, 1.0],
    );
    let rating = curve("elo", "Elo of the champions above material", "Elo", &elo_within, vec![0.0]);
    let caption = format!(
        "Points for each game, a draw counting half, of {} games each; the band is the 95 % confidence interval.",
        2 * PAIRS
    );
    let score = Figure { picture: score, caption, numbers: Some(table) };
    let caption = format!(
        "The score of the next chart as Elo, cut at ±{MOST_ELO:.0}. For a finer curve keep more milestones \
         (`retention.milestones`); for a narrower band play more games with `atoll checkers match`."
    );
    let rating = Figure { picture: rating, caption, numbers: None };
    Some(Block::Beside(Box::new([Block::Figure(rating), Block::Figure(score)])))
}

/// The difference in Elo of a score, rounded, within what these few games can show.
fn elo_within(score: f64) -> f64 {
    // Without a loss, or without a win, the difference has no bound.
    let share = score.clamp(1e-9, 1.0 - 1e-9);
    (400.0 * (share / (1.0 - share)).log10()).clamp(-MOST_ELO, MOST_ELO).round()
}

/// The difference in Elo of a score, for people.
fn elo(score: f64) -> String {
    match score {
        score if score <= 0.0 => "below −800".to_owned(),
        score if score >= 1.0 => "above 800".to_owned(),
        score => format!("{:+.0}", 400.0 * (score / (1.0 - score)).log10()),
    }
}

/// A game that was won, one that was lost and one that was drawn, as far as there are such.
fn games(champion: &Arc<Network>, island: u32, seat: &Seat<'_>) -> Vec<Block> {
    let pairs = seat.duel(champion).games(&deck_pairs(PAIRS, 1));
    let played = || pairs.iter().flatten();
    let of_points = |points: Points| played().find(|game| game.points == points);
    let mut chosen: Vec<&GameRecord> =
        [Points::Win, Points::Loss, Points::Draw].into_iter().filter_map(of_points).collect();
    let others = played().filter(|game| !chosen.contains(game)).collect::<Vec<_>>();
    chosen.extend(others.into_iter().take(GAMES - chosen.len()));
    let players = [format!("the champion of island {island}"), "material".to_owned()];
    let shown =
        |game: &GameRecord| super::games::shown(game, players.each_ref().map(String::as_str), verdict(game));
    chosen.into_iter().filter_map(|game| shown(game).ok()).map(|game| Block::Game(Box::new(game))).collect()
}

fn verdict(game: &GameRecord) -> &'static str {
    match game.points {
        Points::Win => "A win",
        Points::Draw => "A draw",
        Points::Loss => "A loss",
    }
}

/// Squares of a board: row, column, weight.
type Weighed = Vec<(usize, usize, f64)>;

/// What the nodes that see the board make of its squares: all of a size together, and each of them.
fn weights(champion: &Network, island: u32) -> [Block; 2] {
    let views = champion.views();
    let mut sizes: Vec<usize> = views.iter().map(|view| view.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let together: Vec<(String, Weighed)> = sizes
        .iter()
        .map(|&size| {
            let alike: Vec<&View> = views.iter().filter(|view| view.size == size).collect();
            (format!("{} of {size} × {size}", alike.len()), mean_weights(&alike))
        })
        .collect();
    let each = views.iter().map(|view| (format!("{size} × {size}", size = view.size), squares(view)));
    let each: Vec<(String, Weighed)> = each.collect();
    let title = format!("Weights of the champion of island {island}");
    let caption = "Mean weight of each square in the first layer, by sub-board size, seen by the player at the top. Blue: positive; orange: negative.";
    [
        board_gallery(&title, caption, &together, false),
        board_gallery("Each node", "The weights of the first layer, node by node.", &each, true),
    ]
}

fn squares(view: &View) -> Weighed {
    view.squares.iter().map(|(square, weight)| (square.row(), square.column(), f64::from(*weight))).collect()
}

fn mean_weights(views: &[&View]) -> Weighed {
    let weigh = |square| {
        let own = views.iter().flat_map(|view| &view.squares).filter(|(other, _)| *other == square);
        let (sum, count) =
            own.fold((0.0, 0), |(sum, count), (_, weight)| (sum + f64::from(*weight), count + 1));
        (count > 0).then(|| (square.row(), square.column(), sum / f64::from(count)))
    };
    Squares::ALL.into_iter().filter_map(weigh).collect()
}

fn board_gallery(title: &str, caption: &str, boards: &[(String, Weighed)], folded: bool) -> Block {
    let most =
        boards.iter().flat_map(|(_, squares)| squares).map(|square| square.2.abs()).fold(0.0, f64::max);
    let draw = |(title, squares): &(String, Weighed)| {
        (BoardWeights { title, squares: squares.clone(), most }.draw(), String::new())
    };
    let caption = format!("{caption} Full colour is a weight of {most:.2}.");
    let pictures = boards.iter().map(draw).collect();
    Block::Gallery(Gallery {
        title: title.to_owned(),
        caption,
        legend: vec![],
        pictures,
        numbers: None,
        folded,
    })
}

/// All players of the last states in two dimensions, by their weights.
async fn species_picture(reader: &mut Reader, architecture: Architecture) -> Option<Block> {
    let mut players: Vec<(String, f64, Vec<f32>)> = vec![];
    let islands = reader.islands();
    let most = (POPULATION / islands.max(1) as usize).max(1);
    for island in 0..islands.min(POPULATION as u32) {
        let Some(state) = reader.newest_state(island).await else { continue };
        for at in thinned(state.residents.len(), most) {
            let resident = &state.residents[at];
            let weights: Vec<f32> = resident.genome.iter().map(|&gene| gene as f32).collect();
            if weights.len() == architecture.weight_count() {
                players.push((format!("{island}/{at}"), resident.fitness, weights));
            }
        }
    }
    let points: Vec<&[f32]> = players.iter().map(|(_, _, weights)| weights.as_slice()).collect();
    if points.len() < 3 {
        return None;
    }
    let distances = Distances::euclidean(&points).ok()?;
    let min_points = ensembles::SpeciationSettings::default().min_points;
    let dbscan = Dbscan { epsilon: species::epsilon(&distances, min_points), min_points };
    let species = dbscan.cluster(&distances).species(Noise::Drop, &distances);
    let fittest = |members: &Vec<usize>| {
        members
            .iter()
            .copied()
            .min_by(|&a, &b| players[b].1.total_cmp(&players[a].1).then(a.cmp(&b)))
            .unwrap_or(0)
    };
    let representatives: Vec<usize> = species.members().iter().map(fittest).collect();
    let names: Vec<String> = players.iter().map(|(name, _, _)| name.clone()).collect();
    let picture = species::Picture {
        title: "Players by their weights",
        projection: &Projection::new(&distances),
        species: &species,
        representatives: &representatives,
        names: &names,
    };
    let title =
        format!("{} species among {} players", count(species.count() as u64), count(players.len() as u64));
    let picture = Picture::sealed("species", &title, &picture.to_svg(), 940.0);
    let caption = "Players by the distance of their weights, in two dimensions; names are island and place, rings mark the \
                   fittest of each species. `atoll checkers species` lets them play, and makes an ensemble of the best."
        .to_owned();
    Some(Block::Gallery(Gallery {
        title,
        caption,
        legend: vec![],
        pictures: vec![(picture, String::new())],
        numbers: None,
        folded: false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use problems::Endgame;

    fn milestone(generation: u64, wins: u64, losses: u64) -> Milestone {
        let mut tally = Tally::default();
        for _ in 0..wins / 2 {
            tally.add(&[1, 1]);
        }
        for _ in 0..losses / 2 {
            tally.add(&[-1, -1]);
        }
        Milestone { epoch: generation, generation, tally }
    }

    #[test]
    fn the_lead_says_how_strong_the_champion_is_and_whether_it_rose() {
        let early_of = |wins| milestone(10, wins, 48 - wins);
        let early = early_of(2);
        assert!(lead("The champion", &[]).is_none());
        let alone = lead("The champion", std::slice::from_ref(&early)).unwrap();
        assert!(alone.starts_with("The champion scores 0.04 against `material` (0.0"), "{alone}");
        let risen = lead("The champion", &[early, milestone(20, 24, 24), milestone(30, 40, 8)]).unwrap();
        assert!(
            risen.ends_with(", stronger than the champion of generation 10 (0.04), still rising."),
            "{risen}"
        );
        let level =
            lead("The champion", &[milestone(10, 24, 24), milestone(20, 26, 22), milestone(30, 26, 22)])
                .unwrap();
        assert!(level.contains("not clearly different from") && level.contains("no clear change"), "{level}");
        // Two games more of 48 are chance.
        let noise =
            lead("The champion", &[early_of(2), milestone(20, 24, 24), milestone(30, 26, 22)]).unwrap();
        assert!(noise.ends_with(", no clear change since the last milestone."), "{noise}");
        assert_eq!([elo(0.5), elo(0.75), elo(0.0), elo(1.0)], ["+0", "+191", "below −800", "above 800"]);
    }

    #[test]
    fn who_scored_most_comes_first() {
        let scores = [
            vec![None, Some(0.25), Some(0.5)],
            vec![Some(0.75), None, Some(1.0)],
            vec![Some(0.5), Some(0.0), None],
        ];
        assert_eq!(order(&scores), [1, 0, 2], "of equals the first");
        let table = standings(&[7, 8, 9], &scores, &order(&scores));
        assert_eq!(table.rows[0], ["8", "0.875", "–", "0.750", "1.000"]);
        assert_eq!(table.rows[2], ["9", "0.250", "0.000", "0.500", "–"]);
    }

    #[test]
    fn champions_play_with_what_they_knew_when_they_evolved() {
        let weights = vec![0.01; checkers::NodeKind::Sum.weight_count()];
        let network = Arc::new(Network::new(checkers::NodeKind::Sum, &weights).unwrap());
        let plain = Checkers { history: false, ..Checkers::default() };
        let endgame = Endgame { pieces: 2, ..Endgame::default() };
        let knowing = Checkers { endgame, ..Checkers::default() };
        let player = |spec| Seat { spec, depth: 1 }.player(&network);
        assert!(matches!(player(&plain), PlayerSpec::Network { .. }));
        assert!(matches!(player(&knowing), PlayerSpec::Knowing { .. }));
        assert!(matches!(player(&Checkers::default()), PlayerSpec::Knowing { .. }));
    }
}
