//! Games of people in a browser: each request holds the whole game, so nothing is remembered between two of them.
//!
//! One search runs at a time, within bounds, in a thread of its own; another request waits for it, or is rejected after a while.

use super::result_text;
use crate::failure::Failure;
use crate::report::games::letters;
use checkers::{
    Database, DrawRules, EndgameResult, Game, Limits, MAX_DEPTH, Move, MoveError, Outcome, PdnGame,
    PlayerSpec, Position, Side, Square, Tag, Thought, openings, read_pdn,
};
use coordinator::dashboard::{PlayError, PlayTable};
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The most plies and seconds that a search is given.
pub(super) const DEEPEST: u32 = 24;
pub(super) const LONGEST: Duration = Duration::from_secs(20);
/// How long to wait for the search of another request.
const PATIENCE: Duration = Duration::from_secs(25);
/// The longest game, and the largest PDN that is read.
const MOST_MOVES: usize = 2000;
const LARGEST_PDN: usize = 48 << 10;
/// The pieces up to which a position is looked up where no larger database is at hand.
const LOOKED_UP: u32 = 4;

/// Finds the player of a name, with these limits of its search.
pub(crate) type FindPlayer =
    Arc<dyn Fn(String, Limits) -> BoxFuture<'static, Result<PlayerSpec, Failure>> + Send + Sync>;

/// What a page asks for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ask {
    action: Action,
    #[serde(default)]
    player: String,
    /// The position to start from, as FEN; the initial one if empty.
    #[serde(default)]
    start: String,
    #[serde(default)]
    moves: Vec<String>,
    /// The side of the person.
    #[serde(default)]
    side: Colour,
    #[serde(default)]
    depth: Option<u32>,
    #[serde(default)]
    seconds: Option<f64>,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    resigned: bool,
    /// A game to read.
    #[serde(default)]
    pdn: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    /// Show the game as it is.
    Look,
    /// Let the player move.
    Reply,
    /// What the player would play in the person's place.
    Hint,
    /// Read a game from PDN.
    Read,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Colour {
    #[default]
    Black,
    White,
}

impl Ask {
    fn person(&self) -> Side {
        match self.side {
            Colour::Black => Side::Black,
            Colour::White => Side::White,
        }
    }

    /// What a search may use: whatever is asked for, it ends.
    fn limits(&self) -> Limits {
        let seconds = self.seconds.filter(|seconds| seconds.is_finite() && *seconds > 0.0);
        let time =
            seconds.map_or(LONGEST, |seconds| Duration::from_secs_f64(seconds.min(1000.0)).min(LONGEST));
        let depth = match seconds {
            Some(_) => MAX_DEPTH,
            None => self.depth.unwrap_or(8).clamp(1, DEEPEST),
        };
        Limits { time: Some(time), ..Limits::depth(depth) }
    }
}

/// The table of a process.
#[derive(Clone)]
struct Table {
    find: FindPlayer,
    database: Option<Arc<Database>>,
    searching: Arc<Semaphore>,
}

/// A table at which people play against players that are found by name.
pub(crate) fn table(find: FindPlayer, database: Option<Arc<Database>>) -> PlayTable {
    let table = Table { find, database, searching: Arc::new(Semaphore::new(1)) };
    Arc::new(move |body| {
        let table = table.clone();
        Box::pin(async move { table.answer(body).await })
    })
}

fn bad(message: impl Into<String>) -> PlayError {
    PlayError { status: 400, message: message.into() }
}

impl Table {
    async fn answer(&self, body: Value) -> Result<Value, PlayError> {
        if !body.is_object() {
            return Err(bad("expected a JSON object with `action` and what it needs"));
        }
        let mut ask: Ask = serde_json::from_value(body).map_err(|error| bad(error.to_string()))?;
        if ask.action == Action::Read {
            read(&mut ask)?;
        }
        let mut game = replay(&ask)?;
        let mut thought = None;
        let is_over = ask.resigned || game.outcome().is_some();
        let is_asked = match ask.action {
            Action::Reply => game.position().side_to_move() != ask.person(),
            Action::Hint => true,
            Action::Look | Action::Read => false,
        };
        if is_asked && !is_over {
            let found = self.think(&ask, game.clone()).await?;
            if ask.action == Action::Reply {
                game.play(found.best).map_err(|error| bad(error.to_string()))?;
            }
            thought = Some(found);
        }
        let verdict = self.verdict(*game.position()).await;
        Ok(shown(&ask, &game, thought.as_ref(), verdict))
    }

    /// Lets a player think, apart from all requests, one at a time.
    async fn think(&self, ask: &Ask, game: Game) -> Result<Thought, PlayError> {
        let busy = || PlayError { status: 503, message: "another search is under way: try again".to_owned() };
        let permit = tokio::time::timeout(PATIENCE, self.searching.clone().acquire_owned()).await;
        let permit = permit.map_err(|_| busy())?.map_err(|_| busy())?;
        let (limits, seed) = (ask.limits(), ask.seed);
        let player = (self.find)(ask.player.clone(), limits).await;
        let player = player.map_err(|failure| PlayError { status: 404, message: failure.to_string() })?;
        let search = move || {
            // The search is bounded, and ends although its page was closed: until then there is no other.
            let _permit = permit;
            let mut player = player.build();
            player.new_game(seed);
            player.think(&game, &limits)
        };
        let found = tokio::task::spawn_blocking(search).await;
        let failed = || PlayError { status: 500, message: "the player found no move".to_owned() };
        found.ok().flatten().ok_or_else(failed)
    }

    /// What perfect play comes to, where that is known, for the side to move.
    async fn verdict(&self, position: Position) -> Option<EndgameResult> {
        let pieces = 32 - position.empty().count();
        let database = self.database.clone();
        if pieces > database.as_ref().map_or(LOOKED_UP, |database| database.pieces().max(LOOKED_UP)) {
            return None;
        }
        let probe = move || match database {
            Some(database) if database.pieces() >= pieces => database.probe(&position),
            _ => Database::shared(LOOKED_UP).ok()?.probe(&position),
        };
        tokio::task::spawn_blocking(probe).await.ok().flatten()
    }
}

/// Takes the first game of a PDN.
fn read(ask: &mut Ask) -> Result<(), PlayError> {
    if ask.pdn.len() > LARGEST_PDN {
        return Err(bad(format!("expected a game of at most {LARGEST_PDN} bytes")));
    }
    let games = read_pdn(&ask.pdn).map_err(|error| bad(error.to_string()))?;
    let game = games.into_iter().next().ok_or_else(|| bad("expected a game in PDN, found none"))?;
    ask.start = if game.start == Position::START { String::new() } else { game.start.to_string() };
    ask.moves = game.moves.iter().map(ToString::to_string).collect();
    ask.resigned = false;
    Ok(())
}

/// The game of a request, if all of it is legal.
fn replay(ask: &Ask) -> Result<Game, PlayError> {
    let start = match ask.start.as_str() {
        "" => Position::START,
        fen => fen.parse().map_err(|error| bad(format!("start: {error}")))?,
    };
    if ask.moves.len() > MOST_MOVES {
        return Err(bad(format!("expected at most {MOST_MOVES} moves")));
    }
    let mut game = Game::from_position(start, DrawRules::default());
    for text in &ask.moves {
        let mv = game.position().parse_move(text).map_err(|error| bad(explained(&error)))?;
        game.play(mv).map_err(|error| bad(error.to_string()))?;
    }
    Ok(game)
}

/// Why a move cannot be played.
fn explained(error: &MoveError) -> String {
    match error {
        MoveError::Illegal { position, .. } if position.must_capture() => {
            format!("{error}: captures are mandatory")
        }
        error => error.to_string(),
    }
}

fn side(side: Side) -> &'static str {
    match side {
        Side::Black => "black",
        Side::White => "white",
    }
}

fn squares(mv: &Move) -> Vec<u8> {
    mv.squares().map(Square::number).collect()
}

/// All that a page shows of a game.
fn shown(ask: &Ask, game: &Game, thought: Option<&Thought>, verdict: Option<EndgameResult>) -> Value {
    let (position, person) = (game.position(), ask.person());
    let outcome = if ask.resigned { Some(Outcome::Win(!person)) } else { game.outcome() };
    let legal = if outcome.is_some() { vec![] } else { position.legal_moves() };
    let moves: Vec<Value> = legal
        .iter()
        .map(|mv| {
            let captured: Vec<u8> = mv.captured().into_iter().map(Square::number).collect();
            json!({ "text": mv.to_string(), "squares": squares(mv), "captured": captured })
        })
        .collect();
    let opening = openings().iter().find(|opening| opening.moves == game.moves());
    let opening = opening.filter(|_| *game.start() == Position::START).map(ToString::to_string);
    json!({
        "board": letters(position),
        "turn": side(position.side_to_move()),
        "side": side(person),
        "legal": moves,
        "must_capture": outcome.is_none() && position.must_capture(),
        "played": game.moves().iter().map(ToString::to_string).collect::<Vec<_>>(),
        "last": game.moves().last().map(squares),
        "start": ask.start,
        "fen": position.to_string(),
        "outcome": outcome.map(|outcome| result_text(outcome, person, ask.resigned)),
        "opening": opening,
        "verdict": verdict.filter(|_| outcome.is_none()).map(|verdict| told(verdict, position.side_to_move())),
        "thought": thought.map(|thought| told_thought(ask, game, thought)),
        "pdn": record(ask, game, outcome).to_string(),
    })
}

fn told(verdict: EndgameResult, turn: Side) -> String {
    let winner = match verdict {
        EndgameResult::Draw => return "With perfect play the game is a draw.".to_owned(),
        EndgameResult::Win => turn,
        EndgameResult::Loss => !turn,
    };
    format!("With perfect play {} wins.", side(winner))
}

fn told_thought(ask: &Ask, game: &Game, thought: &Thought) -> Value {
    // The player that replied has moved since.
    let turn = game.position().side_to_move();
    let thinker = if ask.action == Action::Reply { !turn } else { turn };
    let for_black = if thinker == Side::Black { 1.0 } else { -1.0 };
    json!({
        "move": thought.best.to_string(),
        "squares": squares(&thought.best),
        "black": thought.score.map(|score| for_black * score.value()),
        "depth": thought.depth,
        "nodes": thought.nodes,
        "line": thought.line.iter().take(8).map(ToString::to_string).collect::<Vec<_>>(),
        "votes": thought.votes.iter().map(|(mv, count)| json!({ "move": mv.to_string(), "count": count })).collect::<Vec<_>>(),
    })
}

fn record(ask: &Ask, game: &Game, outcome: Option<Outcome>) -> PdnGame {
    let name =
        |side| if side == ask.person() { "Person".to_owned() } else { format!("Atoll ({})", ask.player) };
    let tag = |name: &str, value| Tag { name: name.to_owned(), value };
    PdnGame {
        tags: vec![
            tag("Event", "Atoll".to_owned()),
            tag("Black", name(Side::Black)),
            tag("White", name(Side::White)),
        ],
        start: *game.start(),
        moves: game.moves().to_vec(),
        comments: vec![],
        result: outcome.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(body: &Value) -> Result<Value, PlayError> {
        let find: FindPlayer = Arc::new(|name, limits| {
            Box::pin(async move {
                match name.as_str() {
                    "random" => Ok(PlayerSpec::Random),
                    "material" => Ok(PlayerSpec::Material { depth: limits.depth }),
                    other => Err(Failure::Usage(format!("there is no player `{other}`"))),
                }
            })
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(table(find, None)(body.clone()))
    }

    #[test]
    fn a_game_is_shown_with_all_that_may_be_played() {
        let shown = ask(&json!({ "action": "look" })).unwrap();
        assert_eq!(shown["board"], format!("{}........{}", "b".repeat(12), "w".repeat(12)));
        assert_eq!((shown["legal"].as_array().unwrap().len(), &shown["turn"]), (7, &json!("black")));
        assert_eq!(shown["must_capture"], false);
        let shown = ask(&json!({ "action": "look", "moves": ["11-15", "22-18"] })).unwrap();
        assert_eq!((&shown["must_capture"], &shown["legal"][0]["captured"]), (&json!(true), &json!([18])));
        let refused = ask(&json!({ "action": "look", "moves": ["11-15", "22-18", "8-11"] })).unwrap_err();
        assert!(
            refused.status == 400 && refused.message.contains("captures are mandatory"),
            "{}",
            refused.message
        );
    }

    #[test]
    fn a_player_replies_hints_and_says_what_it_thinks() {
        let shown =
            ask(&json!({ "action": "reply", "player": "material", "moves": ["11-15"], "depth": 3 })).unwrap();
        assert_eq!(shown["played"].as_array().unwrap().len(), 2);
        assert_eq!((&shown["turn"], &shown["thought"]["depth"]), (&json!("black"), &json!(3)));
        assert_eq!(shown["thought"]["move"], shown["played"][1]);
        let hint = ask(&json!({ "action": "hint", "player": "material", "depth": 2 })).unwrap();
        assert!(hint["played"].as_array().unwrap().is_empty() && hint["thought"]["move"].is_string());
        let own = ask(&json!({ "action": "reply", "player": "material" })).unwrap();
        assert!(own["thought"].is_null(), "it is the person's turn");
        assert_eq!(ask(&json!({ "action": "hint", "player": "/etc/passwd" })).unwrap_err().status, 404);
    }

    #[test]
    fn searches_are_bounded_whatever_is_asked_for() {
        let limits = |depth: Option<u32>, seconds: Option<f64>| {
            let ask = json!({ "action": "hint", "depth": depth, "seconds": seconds });
            serde_json::from_value::<Ask>(ask).unwrap().limits()
        };
        assert_eq!((limits(Some(1000), None).depth, limits(Some(0), None).depth), (DEEPEST, 1));
        for seconds in [1e300, 21.0] {
            assert_eq!(limits(None, Some(seconds)).time, Some(LONGEST));
        }
        assert_eq!(limits(None, Some(-1.0)), limits(None, None));
    }

    #[test]
    fn games_are_written_and_read_as_pdn() {
        let shown = ask(&json!({ "action": "look", "moves": ["11-15", "22-18", "15x22"], "resigned": true }))
            .unwrap();
        assert_eq!((&shown["outcome"], &shown["legal"]), (&json!("You resigned. Atoll wins."), &json!([])));
        let pdn = shown["pdn"].as_str().unwrap();
        assert!(pdn.contains("15x22") && pdn.contains("[Result \"1-0\"]"), "{pdn}");
        let read = ask(&json!({ "action": "read", "pdn": pdn })).unwrap();
        assert_eq!(read["played"], shown["played"]);
        for bad in ["1. 11-19", "", "[FEN \"nonsense\"]"] {
            assert_eq!(ask(&json!({ "action": "read", "pdn": bad })).unwrap_err().status, 400, "{bad}");
        }
    }

    #[test]
    fn few_pieces_are_looked_up() {
        let shown = ask(&json!({ "action": "look", "start": "B:WK32:BK1,K2,K3" })).unwrap();
        assert_eq!(shown["verdict"], "With perfect play black wins.");
        assert!(ask(&json!({ "action": "look" })).unwrap()["verdict"].is_null());
    }
}
