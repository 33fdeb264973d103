//! Tournaments: checkers players by their names, and who meets whom.
//!
//! A file names players by where they come from: a run's champion, a file. When the tournament begins, each of them is
//! looked up once ([`Tournament::with_players`]), and from then on is what its digest says, wherever its games are
//! played.

mod keys;

pub use keys::{
    ConsultKey, DeckKey, DistanceKey, DrawKeys, FormatKey, NoiseKey, PlayerKeys, PublishedKeys, SpeciesKeys,
    SprtKeys, TournamentKeys,
};

use crate::document::{self, Diagnostic, Diagnostics, Document};
use crate::estimate::Estimate;
use crate::experiment::{SEMANTICS, allowed_name};
use checkers::{
    Consult, Database, DrawRules, EndgameError, Endgames, Knowledge, Limits, MAX_DEPTH, PlayerFile,
    PlayerSpec, Style,
};
use evolution::digest::Digest;
use problems::Ties;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tournament::{Contestant, EngineCommand, Format, Match, Schedule, Sprt};

/// The most batches of games: each is an object in the store.
const MAX_BATCHES: u64 = 100_000;
/// The maximum number of players: ratings invert a matrix with a row for each.
pub const MAX_PLAYERS: usize = 256;

/// The file of a tournament.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TournamentFile {
    /// What the tournament is called: lowercase letters, digits, `-`, `_` and `.`.
    #[schemars(length(min = 1, max = 60))]
    name: String,
    /// The seed of everything random in it.
    #[serde(default)]
    #[schemars(range(min = 0, max = 9_223_372_036_854_775_807u64))]
    seed: u64,
    /// Who plays, and how.
    tournament: TournamentKeys,
}

static SCHEMA: LazyLock<serde_json::Value> =
    LazyLock::new(|| schemars::schema_for!(TournamentFile).to_value());

/// A checked tournament.
#[derive(Clone, Debug)]
pub struct Tournament {
    file: TournamentFile,
    schedule: Schedule,
    text: String,
}

/// A player that cannot take part.
#[derive(Debug, thiserror::Error)]
pub enum ContestantError {
    /// It has not been looked up yet.
    #[error("player {0}: expected its player file, found none")]
    Unresolved(String),
    /// Its bytes are no player.
    #[error("player {name}: {error}")]
    File {
        /// What it is called.
        name: String,
        /// What is wrong.
        error: checkers::PlayerFileError,
    },
    /// There is no such database for it.
    #[error("player {name}: {error}")]
    Endgame {
        /// What it is called.
        name: String,
        /// What is wrong.
        error: EndgameError,
    },
    /// Here is no engine of this name.
    #[error("player {name}: expected an engine that this worker knows ({known}), found `{engine}`")]
    Engine {
        /// What the player is called.
        name: String,
        /// What the engine is called.
        engine: String,
        /// Those that are known.
        known: String,
    },
}

impl PlayerKeys {
    /// Its team: its own name unless it has one.
    pub fn team(&self) -> &str {
        self.team.as_deref().unwrap_or(&self.name)
    }

    /// Where it comes from: the run that evolved it, also shared by other players of that run; a file; or, of
    /// players that were not evolved, the player itself.
    pub fn origin(&self) -> &str {
        let Self { name, player, representatives, ensemble, .. } = self;
        let source = representatives.as_deref().or(ensemble.as_deref()).or(player.as_deref());
        match source {
            None | Some("material" | "random") => name,
            Some(source) => run_of(source),
        }
    }

    /// Whether it plays the same game again whenever it is played against the same way: networks, alone or several, leave
    /// nothing to chance.
    fn is_deterministic(&self) -> bool {
        self.is_looked_up() && self.ties != Some(Ties::Random) && self.book.is_none()
    }

    /// What it knows beside the position, and how it searches, if that is not the default.
    fn knowledge(&self, history: bool) -> Result<Option<Knowledge>, EndgameError> {
        let style = Style {
            history: self.history.unwrap_or(history),
            quiescence: self.quiescence.unwrap_or(true),
            ties: self.ties.unwrap_or(Ties::Order).of_games(),
        };
        let book = self.book.as_ref().and_then(|book| book.book().ok()).map(Arc::new);
        let knowledge = Knowledge { book, endgames: self.endgames()?, style };
        Ok((!knowledge.is_none()).then_some(knowledge))
    }

    /// What it knows of endings.
    fn endgames(&self) -> Result<Option<Endgames>, EndgameError> {
        let Some(pieces) = self.endgame else { return Ok(None) };
        let database = Database::shared(pieces)?;
        let consult = match (self.consult, self.unsure.as_deref()) {
            (Some(ConsultKey::Always), _) => Consult::Always,
            (_, Some(&[from, to])) => Consult::Unsure { from: from as f32, to: to as f32 },
            _ => Consult::default(),
        };
        Ok(Some(Endgames { database, consult }))
    }

    /// Whether it has to be looked up in a store or a file before it can play.
    pub fn is_looked_up(&self) -> bool {
        let plain = matches!(self.player.as_deref(), Some("material" | "random"));
        self.engine.is_none() && !plain
    }

    /// The digest of its player file, if it was looked up.
    pub fn digest(&self) -> Option<Digest> {
        self.digest.as_ref()?.parse().ok()
    }
}

/// The run that a player is named by; the whole text where it is no reference to a run.
fn run_of(source: &str) -> &str {
    let rest = match source.rsplit_once('@') {
        Some((rest, epoch)) if epoch.parse::<u64>().is_ok() => rest,
        _ => source,
    };
    match rest.rsplit_once('/') {
        Some((run, island)) if island.parse::<u32>().is_ok() => run,
        Some(_) => source,
        None => rest,
    }
}

impl Tournament {
    /// Checks a document with a `[tournament]` table.
    pub(crate) fn check(document: &Document) -> Result<Self, Diagnostics> {
        let file: TournamentFile = document.decode(&SCHEMA)?;
        Self::checked(document, file)
    }

    /// Checks the `[tournament]` table of a study.
    pub(crate) fn of_study(document: &Document, name: &str, seed: u64) -> Result<Option<Self>, Diagnostics> {
        if document.get(&crate::key("tournament")).is_none() {
            return Ok(None);
        }
        let mut own = document.without("study");
        for key in own.to_json().as_object().into_iter().flat_map(|table| table.keys()) {
            if !["name", "seed", "tournament"].contains(&key.as_str()) {
                own = own.without(key);
            }
        }
        let file: TournamentFile = own.decode(&SCHEMA)?;
        let file = TournamentFile { name: format!("{name}-tournament"), seed, ..file };
        Self::checked(&own, file).map(Some)
    }

    fn checked(document: &Document, file: TournamentFile) -> Result<Self, Diagnostics> {
        let mut problems = check_players(document, &file.tournament.players);
        if !allowed_name(&file.name) {
            let message =
                format!("expected lowercase letters, digits, `-`, `_` and `.`, found `{}`", file.name);
            problems.push(document.problem("name", message, None));
        }
        problems.extend(check_sprt(document, file.tournament.sprt.as_ref()));
        if file.tournament.adjudicate == 1 {
            let message = "expected a database of 2 to 4 pieces, or 0 for none, found `1`";
            problems.push(document.problem("tournament.adjudicate", message, None));
        }
        problems.extend(check_published(document, &file.tournament));
        document.conclude(problems)?;
        let schedule = schedule(&file);
        document.conclude(check_schedule(document, &file, &schedule))?;
        let text = toml::to_string_pretty(&file).expect("every tournament can be written as TOML");
        Ok(Self { file, schedule, text })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Its keys, with all defaults filled in.
    pub fn keys(&self) -> &TournamentKeys {
        &self.file.tournament
    }

    /// Who plays.
    pub fn players(&self) -> &[PlayerKeys] {
        &self.file.tournament.players
    }

    /// Who meets whom.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The text from which it can be read again.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tournament of these keys.
    pub fn new(name: &str, seed: u64, tournament: TournamentKeys) -> Result<Self, Diagnostics> {
        let file = TournamentFile { name: name.to_owned(), seed, tournament };
        let text = toml::to_string_pretty(&file).expect("every tournament can be written as TOML");
        Self::check(&document::parse(name, &text)?)
    }

    /// The same tournament with these players.
    pub fn with_players(&self, players: Vec<PlayerKeys>) -> Result<Self, Diagnostics> {
        let TournamentFile { name, seed, tournament } = &self.file;
        Self::new(name, *seed, TournamentKeys { players, ..tournament.clone() })
    }

    /// Whether all players that must be looked up have been.
    pub fn is_resolved(&self) -> bool {
        self.players().iter().all(|player| !player.is_looked_up() || player.digest().is_some())
    }

    /// The digest of everything that it depends on.
    pub fn digest(&self) -> Digest {
        Digest::of_parts("atoll tournament", [&SEMANTICS.to_le_bytes()[..], self.text.as_bytes()])
    }

    /// The name of its run. It must be resolved: the players are part of the name.
    pub fn run_id(&self) -> String {
        format!("{}-{}", self.file.name, &self.digest().to_string()[..8])
    }

    /// The sequential test, if there is one.
    pub fn sprt(&self) -> Option<Sprt> {
        let SprtKeys { elo0, elo1, alpha, beta } = self.file.tournament.sprt?;
        Some(Sprt { elo0, elo1, alpha, beta })
    }

    /// Whether the games of a pairing depend on the plan alone: neither on an engine nor on a clock.
    pub fn is_pure(&self, pairing: usize) -> bool {
        let players = self.schedule.pairings()[pairing];
        let engine = |player: usize| self.players()[player].engine.is_some();
        self.file.tournament.milliseconds.is_none() && !players.into_iter().any(engine)
    }

    /// Whether those of its players can be read whose files are given.
    pub fn check_files<B: AsRef<[u8]>>(&self, files: &BTreeMap<Digest, B>) -> Result<(), ContestantError> {
        for player in self.players() {
            if let Some(bytes) = player.digest().and_then(|digest| files.get(&digest)) {
                read_player(&player.name, bytes.as_ref())?;
            }
        }
        Ok(())
    }

    /// The players themselves, from the bytes of their files and the engines that there are.
    pub fn contestants<B: AsRef<[u8]>>(
        &self,
        files: &BTreeMap<Digest, B>,
        engines: &BTreeMap<String, EngineCommand>,
    ) -> Result<Vec<Contestant>, ContestantError> {
        self.players().iter().map(|player| self.contestant(player, files, engines)).collect()
    }

    /// Whether all engines that play are among those that there are.
    pub fn check_engines(&self, engines: &BTreeMap<String, EngineCommand>) -> Result<(), ContestantError> {
        for player in self.players() {
            if let Some(engine) = &player.engine {
                find_engine(&player.name, engine, engines)?;
            }
        }
        Ok(())
    }

    fn contestant<B: AsRef<[u8]>>(
        &self,
        player: &PlayerKeys,
        files: &BTreeMap<Digest, B>,
        engines: &BTreeMap<String, EngineCommand>,
    ) -> Result<Contestant, ContestantError> {
        let (name, depth) = (player.name.clone(), player.depth.unwrap_or(self.file.tournament.depth));
        if let Some(engine) = &player.engine {
            let command = find_engine(&name, engine, engines)?.clone();
            return Ok(Contestant::Engine { command, depth });
        }
        let own = match player.player.as_deref() {
            Some("material") => PlayerSpec::Material { depth },
            Some("random") => PlayerSpec::Random,
            _ => {
                let bytes = player.digest().and_then(|digest| files.get(&digest));
                let bytes = bytes.ok_or_else(|| ContestantError::Unresolved(name.clone()))?;
                read_player(&name, bytes.as_ref())?.player(depth)
            }
        };
        let history = self.file.tournament.history;
        let knowledge =
            player.knowledge(history).map_err(|error| ContestantError::Endgame { name, error })?;
        Ok(match knowledge {
            None => own.into(),
            Some(knowledge) => PlayerSpec::Knowing { player: Box::new(own), knowledge }.into(),
        })
    }

    /// When its games are drawn.
    pub fn rules(&self) -> DrawRules {
        let DrawKeys { repetitions, quiet_plies, max_plies } = self.file.tournament.draw;
        let some = |limit: u32| (limit > 0).then_some(limit);
        let adjudicate = self.file.tournament.adjudicate;
        DrawRules { repetitions: some(repetitions), quiet_plies: some(quiet_plies), max_plies, adjudicate }
    }

    /// The match of a pairing.
    pub fn duel(&self, pairing: usize, players: &[Contestant]) -> Match {
        let seed = Digest::of_parts(
            "atoll pairing",
            [&self.file.seed.to_le_bytes()[..], &(pairing as u64).to_le_bytes()[..]],
        );
        let seed = seed.0[..8].iter().fold(0, |seed, &byte| seed << 8 | u64::from(byte));
        let players = self.schedule.pairings()[pairing].map(|player| players[player].clone());
        Match { players, rules: self.rules(), limits: self.limits(), seed }
    }

    /// Limits in place of a depth.
    fn limits(&self) -> Option<Limits> {
        let TournamentKeys { nodes, milliseconds, .. } = self.file.tournament;
        (nodes.is_some() || milliseconds.is_some()).then_some(Limits {
            depth: MAX_DEPTH,
            nodes,
            time: milliseconds.map(Duration::from_millis),
            lines: 1,
        })
    }

    /// About how long a batch takes.
    pub fn batch_time(&self) -> Duration {
        let TournamentKeys { depth, nodes, milliseconds, .. } = self.file.tournament;
        let deepest = self.players().iter().filter_map(|player| player.depth).fold(depth, u32::max);
        // A game has some 60 moves, a position takes some 250 ns, and a ply takes some three times as many.
        let by_depth = 8_000_000 * 3u64.saturating_pow(deepest.min(40)) / 81;
        let by_nodes = nodes.map(|nodes| nodes.saturating_mul(60 * 250));
        let by_time = milliseconds.map(|milliseconds| milliseconds.saturating_mul(60_000_000));
        let game = [by_nodes, by_time].into_iter().flatten().min().unwrap_or(by_depth);
        Duration::from_nanos(game.saturating_mul(2 * Schedule::BATCH as u64))
    }

    /// Its approximate cost on this number of threads.
    pub fn estimate(&self, threads: usize) -> Estimate {
        let batches = self.schedule.len();
        let time = self.batch_time().saturating_mul(batches as u32) / threads.max(1) as u32;
        let disk = batches * (2 * Schedule::BATCH as u64 * 90 + 100);
        let memory = (8 << 20) + ((self.players().len() as u64 * 200) << 10) + disk;
        Estimate { evaluations: Some(self.schedule.games()), time: Some(time), disk, memory }
    }
}

fn read_player(name: &str, bytes: &[u8]) -> Result<PlayerFile, ContestantError> {
    PlayerFile::from_bytes(bytes).map_err(|error| ContestantError::File { name: name.to_owned(), error })
}

fn schedule(file: &TournamentFile) -> Schedule {
    let keys = &file.tournament;
    let teams: Vec<&str> = keys.players.iter().map(PlayerKeys::team).collect();
    let format = match keys.format {
        FormatKey::RoundRobin => Format::RoundRobin,
        FormatKey::Gauntlet => Format::Gauntlet,
        FormatKey::Paired => Format::Paired,
    };
    let deck = match keys.deck {
        DeckKey::Deck => checkers::openings(),
        DeckKey::Sharp => checkers::sharp_openings(),
        DeckKey::Start => checkers::initial_opening(),
    };
    Schedule::new(&teams, format, deck, keys.openings as usize, keys.rounds as usize, file.seed)
}

fn check_players(document: &Document, players: &[PlayerKeys]) -> Vec<Diagnostic> {
    let mut problems = vec![];
    let mut names = BTreeSet::new();
    if players.len() > MAX_PLAYERS {
        let message = format!("expected at most {MAX_PLAYERS} players, found {}", players.len());
        problems.push(document.problem("tournament.players", message, None));
    }
    for (at, player) in players.iter().enumerate() {
        let place = format!("tournament.players[{at}]");
        problems.extend(check_knowledge(document, &place, player));
        let PlayerKeys { name, player, representatives, ensemble, engine, team, digest, .. } = player;
        if !names.insert(name) {
            let message = format!("expected each name once, found `{name}` again");
            problems.push(document.problem(&format!("{place}.name"), message, None));
        }
        problems.extend(check_name(document, &format!("{place}.name"), name));
        problems.extend(team.as_ref().and_then(|team| check_name(document, &format!("{place}.team"), team)));
        let kinds = [player, representatives, ensemble, engine].iter().filter(|kind| kind.is_some()).count();
        if kinds != 1 {
            let message = format!(
                "expected one of `player`, `representatives`, `ensemble` and `engine`, found {kinds} of them"
            );
            problems.push(document.problem(&place, message, None));
        }
        if let Some(error) = digest.as_ref().and_then(|digest| digest.parse::<Digest>().err()) {
            problems.push(document.problem(&format!("{place}.digest"), error.to_string(), None));
        }
    }
    problems
}

/// Names stand in tables, in games as PDN and on pages: what has a meaning there is left out.
fn check_name(document: &Document, place: &str, name: &str) -> Option<Diagnostic> {
    let is_plain = |c: char| !c.is_control() && !"\"\\|<>&`".contains(c);
    let message =
        || format!("expected a name without quotes, backticks, `|`, `<`, `>`, `&` and `\\`, found `{name}`");
    (!name.chars().all(is_plain)).then(|| document.problem(place, message(), None))
}

fn check_knowledge(document: &Document, place: &str, player: &PlayerKeys) -> Vec<Diagnostic> {
    let PlayerKeys { engine, endgame, consult, unsure, history, quiescence, ties, book, .. } = player;
    let mut problems = vec![];
    let mut problem = |key: &str, message: &str, help| {
        problems.push(document.problem(&format!("{place}.{key}"), message, help));
    };
    if engine.is_some() && endgame.is_some() {
        problem(
            "endgame",
            "expected one of our own players to ask the endgame database, found an engine",
            None,
        );
    }
    for (key, is_given) in [("consult", consult.is_some()), ("unsure", unsure.is_some())] {
        if is_given && endgame.is_none() {
            let message = "expected a player that asks the endgame database, found none";
            problem(key, message, Some("add `endgame = 4`"));
        }
    }
    let style = [
        ("history", history.is_some()),
        ("quiescence", quiescence.is_some()),
        ("ties", ties.is_some()),
        ("book", book.is_some()),
    ];
    for (key, is_given) in style {
        if is_given && engine.is_some() {
            problem(key, "expected one of our own players, found an engine", None);
        }
    }
    if let Some(Err(error)) = book.as_ref().map(problems::BookKey::book) {
        problem("book", &error.to_string(), None);
    }
    if let Some([from, to]) = unsure.as_deref()
        && from >= to
    {
        problem("unsure", &format!("expected more than the first, which is {from}, found `{to}`"), None);
    }
    problems
}

fn check_sprt(document: &Document, sprt: Option<&SprtKeys>) -> Option<Diagnostic> {
    let SprtKeys { elo0, elo1, .. } = *sprt.filter(|sprt| sprt.elo0 >= sprt.elo1)?;
    let message = format!("expected more than `elo0`, which is {elo0}, found `{elo1}`");
    Some(document.problem("tournament.sprt.elo1", message, None))
}

fn check_published(document: &Document, keys: &TournamentKeys) -> Vec<Diagnostic> {
    let teams: BTreeSet<&str> = keys.players.iter().map(PlayerKeys::team).collect();
    let known: Vec<&str> = teams.iter().copied().collect();
    let mut problems = vec![];
    for (at, published) in keys.published.iter().enumerate() {
        if published.source.chars().any(char::is_control) {
            let message = format!("expected a text on one line, found {:?}", published.source);
            problems.push(document.problem(&format!("tournament.published[{at}].source"), message, None));
        }
        for team in published.teams.iter().filter(|team| !teams.contains(team.as_str())) {
            let message = format!("expected a team of the tournament ({}), found `{team}`", known.join(", "));
            problems.push(document.problem(&format!("tournament.published[{at}].teams"), message, None));
        }
    }
    problems
}

/// Two players who leave nothing to chance play the same games again in every round, which proves nothing.
fn check_rounds(document: &Document, keys: &TournamentKeys, schedule: &Schedule) -> Option<Diagnostic> {
    if keys.rounds == 1 || keys.milliseconds.is_some() {
        return None;
    }
    let fixed = |pairing: &&[usize; 2]| pairing.iter().all(|&player| keys.players[player].is_deterministic());
    let [one, other] = schedule.pairings().iter().find(fixed)?.map(|player| &keys.players[player].name);
    let rounds = keys.rounds;
    let message = format!(
        "expected `1`, found `{rounds}`: `{one}` and `{other}` leave nothing to chance, and would play the same games again"
    );
    let help = match keys.deck {
        DeckKey::Start => "`ties = \"random\"` or a `book` makes new games from the initial position",
        DeckKey::Deck | DeckKey::Sharp => "more `openings`, 156 at most, are new games",
    };
    Some(document.problem("tournament.rounds", message, Some(help)))
}

fn check_schedule(document: &Document, file: &TournamentFile, schedule: &Schedule) -> Vec<Diagnostic> {
    if let Some(problem) = check_rounds(document, &file.tournament, schedule) {
        return vec![problem];
    }
    let several = |player: &PlayerKeys| player.representatives.is_some() && player.digest.is_none();
    let message = match schedule.len() {
        // Who several are is known only when they are looked up, and they are of one team by then.
        0 if !file.tournament.players.iter().any(several) => {
            "expected players of two teams, found one".to_owned()
        }
        batches if batches > MAX_BATCHES => {
            format!("expected at most {} games, found {}", MAX_BATCHES * 26, schedule.games())
        }
        _ => return vec![],
    };
    vec![document.problem("tournament.players", message, None)]
}

/// The engine that a player names.
fn find_engine<'a>(
    name: &str,
    engine: &str,
    engines: &'a BTreeMap<String, EngineCommand>,
) -> Result<&'a EngineCommand, ContestantError> {
    engines.get(engine).ok_or_else(|| {
        let known = match engines.len() {
            0 => "there is none".to_owned(),
            _ => engines.keys().cloned().collect::<Vec<_>>().join(", "),
        };
        ContestantError::Engine { name: name.to_owned(), engine: engine.to_owned(), known }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkers::{Book, Game, Network, NodeKind, Side};
    use tournament::GameRecord;

    fn network(seed: u32) -> Vec<u8> {
        let weight = |at: usize| ((at as u32).wrapping_mul(0x9e37_79b1 ^ seed) % 401) as f32 / 1000.0 - 0.2;
        let weights: Vec<f32> = (0..NodeKind::Sum.weight_count()).map(weight).collect();
        Network::new(NodeKind::Sum, &weights).expect("weights of a network").to_player_file()
    }

    /// Two networks that meet at the initial position, `rounds` times.
    fn from_the_start(rounds: u32, change: impl Fn(&mut [PlayerKeys; 2])) -> Result<Tournament, Diagnostics> {
        let player = |seed: u32| PlayerKeys {
            name: seed.to_string(),
            player: Some(format!("{seed}.acp")),
            digest: Some(Digest::of(&network(seed)).to_string()),
            ..PlayerKeys::default()
        };
        let mut players = [1, 2].map(player);
        change(&mut players);
        let keys = TournamentKeys::new(players.to_vec());
        Tournament::new("start", 5, TournamentKeys { deck: DeckKey::Start, depth: 3, rounds, ..keys })
    }

    fn games(tournament: &Tournament) -> Vec<GameRecord> {
        let files: BTreeMap<Digest, Vec<u8>> =
            [1, 2].map(|seed| (Digest::of(&network(seed)), network(seed))).into();
        let contestants = tournament.contestants(&files, &BTreeMap::new()).expect("both are there");
        tournament.duel(0, &contestants).games(tournament.schedule().pairs()).into_iter().flatten().collect()
    }

    #[test]
    fn a_book_is_played_by_its_owner_alone() {
        let tournament = from_the_start(12, |players| {
            players[0].book = Some(problems::BookKey::Named(problems::NamedBook::Deck));
            for player in players.iter_mut() {
                player.history = Some(false);
            }
        });
        let (book, mut bare) =
            (Book::deck(), read_player("2", &network(2)).expect("a player").player(3).build());
        let mut openings = BTreeSet::new();
        for record in games(&tournament.expect("one of the two leaves something to chance")) {
            let owner = if record.first_is_black { Side::Black } else { Side::White };
            let mut game = Game::new(DrawRules::default());
            bare.new_game(0);
            let moves = record.moves().expect("legal moves");
            assert_eq!(record.opening, 0);
            for mv in &moves[..moves.len().min(12)] {
                let choices = book.moves(game.position());
                if game.position().side_to_move() != owner {
                    assert_eq!(bare.choose(&game), Some(*mv), "the opponent plays its own moves");
                } else if !choices.is_empty() {
                    assert!(choices.iter().any(|choice| choice.mv == *mv), "{mv} is not in the book");
                }
                game.play(*mv).expect("a legal move");
            }
            openings.insert(moves[..3].iter().map(ToString::to_string).collect::<Vec<_>>());
        }
        assert!(openings.len() > 3, "{openings:?}");
    }

    #[test]
    fn random_ties_make_many_games_from_one_position() {
        let error = from_the_start(4, |_| {}).expect_err("all games would be the same").to_string();
        assert!(error.contains("leave nothing to chance") && error.contains("ties = \"random\""), "{error}");
        // Moves in another order lead to the same leaves, so that the best of them are often equal.
        let tournament = from_the_start(10, |players| {
            for player in players.iter_mut() {
                player.ties = Some(Ties::Random);
            }
        });
        let tournament = tournament.expect("ties are left to chance");
        let different: BTreeSet<Vec<String>> = games(&tournament)
            .iter()
            .map(|game| game.moves().expect("legal").iter().map(ToString::to_string).collect())
            .collect();
        assert!(different.len() > 2, "{} different games", different.len());
        let by_order: BTreeSet<Vec<String>> = games(&from_the_start(1, |_| {}).expect("one round"))
            .iter()
            .map(|game| game.moves().expect("legal").iter().map(ToString::to_string).collect())
            .collect();
        assert_eq!(by_order.len(), 2, "one game for each colour");
    }

    #[test]
    fn members_of_a_species_search_as_the_file_says() {
        let keys: SpeciesKeys = toml::from_str("quiescence = false\nties = \"random\"").expect("keys");
        assert_eq!((keys.quiescence, keys.history, keys.ties), (false, false, Ties::Random));
        let plain = serde_json::to_string(&SpeciesKeys::default()).expect("plain data");
        assert!(
            !["quiescence", "ties", "race"].iter().any(|key| plain.contains(key)),
            "old digests stay: {plain}"
        );
    }

    #[test]
    fn players_of_one_run_have_one_origin() {
        let player = |player: &str| PlayerKeys {
            name: "somebody".to_owned(),
            player: Some(player.to_owned()),
            ..PlayerKeys::default()
        };
        for (named, origin) in [
            ("es-1", "es-1"),
            ("es-1/3", "es-1"),
            ("es-1/3@7", "es-1"),
            ("es-1@7", "es-1"),
            ("players/es.acp", "players/es.acp"),
            ("es@1.acp", "es@1.acp"),
            ("material", "somebody"),
        ] {
            assert_eq!(player(named).origin(), origin, "{named}");
        }
        let representatives = Some("speciated-2/0".to_owned());
        let one = PlayerKeys { representatives, ..PlayerKeys::default() };
        let ensemble = PlayerKeys { ensemble: Some("speciated-2".to_owned()), ..PlayerKeys::default() };
        assert_eq!(one.origin(), ensemble.origin());
    }
}
