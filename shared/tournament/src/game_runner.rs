//! Plays the games of a match.

use crate::contestant::Contestant;
use crate::record::{Forfeit, GameRecord};
use checkers::{DrawRules, Game, Limits, Move, Opening, Player, PlayerSpec, Side, Table};
use hub::{HubEngine, HubError};
use std::process::Command;

/// Plays the games of one match: a table for our own players, and the engines that are running.
pub struct GameRunner {
    rules: DrawRules,
    limits: Option<Limits>,
    table: Table,
    /// Of each of the two players, if it is an engine and runs.
    engines: [Option<HubEngine>; 2],
}

/// A game to be played.
pub(crate) struct Meeting<'a> {
    pub(crate) opening: &'static Opening,
    pub(crate) players: &'a [Contestant; 2],
    pub(crate) seeds: [u64; 2],
    /// Which of the two players is Black.
    pub(crate) black: usize,
}

impl GameRunner {
    pub(crate) fn new(rules: DrawRules, limits: Option<Limits>) -> Self {
        Self { rules, limits, table: Table::new(rules, limits), engines: [None, None] }
    }

    pub(crate) fn play(&mut self, game: &Meeting<'_>) -> GameRecord {
        match game.players {
            [Contestant::Ours(first), Contestant::Ours(second)] => self.play_ours(game, [first, second]),
            _ => self.play_engines(game),
        }
    }

    fn play_ours(&mut self, game: &Meeting<'_>, players: [&PlayerSpec; 2]) -> GameRecord {
        let sides = [game.black, 1 - game.black];
        let (players, seeds) = (sides.map(|seat| players[seat]), sides.map(|seat| game.seeds[seat]));
        self.table.play(game.opening.position, players, seeds);
        GameRecord::of(game.opening.number, game.black == 0, self.table.game(), None)
    }

    /// A game with an engine in it. One that fails has lost, and is started again for its next game.
    fn play_engines(&mut self, game: &Meeting<'_>) -> GameRecord {
        let mut ours = [0, 1].map(|seat| match &game.players[seat] {
            Contestant::Ours(spec) => Some(spec.build()),
            Contestant::Engine { .. } => None,
        });
        for (player, seed) in ours.iter_mut().zip(game.seeds) {
            if let Some(player) = player {
                player.new_game(seed);
            }
        }
        let mut board = Game::from_position(game.opening.position, self.rules);
        let mut forfeit = self.greet(game);
        while forfeit.is_none() && board.outcome().is_none() {
            let side = board.position().side_to_move();
            let seat = if side == Side::Black { game.black } else { 1 - game.black };
            let chosen = match &mut ours[seat] {
                Some(player) => self.ask(&mut **player, &board),
                None => self.ask_engine(&game.players[seat], seat, &board),
            };
            let played = chosen.and_then(|mv| board.play(mv).map_err(|_| Forfeit::IllegalMove));
            forfeit = played.err().map(|why| (side, why));
        }
        GameRecord::of(game.opening.number, game.black == 0, &board, forfeit)
    }

    /// Makes the engines ready for a new game; Black's comes first, and forfeits first.
    fn greet(&mut self, game: &Meeting<'_>) -> Option<(Side, Forfeit)> {
        for (side, seat) in [(Side::Black, game.black), (Side::White, 1 - game.black)] {
            let Contestant::Engine { command, .. } = &game.players[seat] else { continue };
            let engine = &mut self.engines[seat];
            let ready = match engine {
                Some(engine) => engine.new_game(),
                None => start(command).map(|started| *engine = Some(started)),
            };
            if let Err(error) = ready {
                *engine = None;
                return Some((side, forfeit(&error)));
            }
        }
        None
    }

    fn ask(&self, player: &mut dyn Player, game: &Game) -> Result<Move, Forfeit> {
        let chosen = match &self.limits {
            None => player.choose(game),
            Some(limits) => player.think(game, limits).map(|thought| thought.best),
        };
        chosen.ok_or(Forfeit::Crash)
    }

    fn ask_engine(&mut self, player: &Contestant, seat: usize, game: &Game) -> Result<Move, Forfeit> {
        let own = match player {
            Contestant::Engine { depth, .. } => Limits::depth(*depth),
            Contestant::Ours(_) => Limits::depth(1),
        };
        let engine = self.engines[seat].as_mut().ok_or(Forfeit::Crash)?;
        let chosen = engine.choose(game, &self.limits.unwrap_or(own));
        chosen.map_err(|error| {
            self.engines[seat] = None;
            forfeit(&error)
        })
    }
}

fn start(command: &crate::EngineCommand) -> Result<HubEngine, HubError> {
    let nothing = || HubError::Start(std::io::Error::other("expected a program, found nothing"));
    let (program, arguments) = command.command.split_first().ok_or_else(nothing)?;
    let mut engine = HubEngine::start(Command::new(program).args(arguments), command.patience)?;
    engine.new_game()?;
    Ok(engine)
}

fn forfeit(error: &HubError) -> Forfeit {
    match error {
        HubError::Hung { .. } => Forfeit::Time,
        HubError::Move(_) => Forfeit::IllegalMove,
        HubError::Start(_) | HubError::Gone { .. } | HubError::Complaint(_) | HubError::Over => {
            Forfeit::Crash
        }
    }
}
