//! English checkers: the rules, a search, and the neural evaluator of Chellapilla and Fogel.
//!
//! A library of its own: positions on bitboards with [`Position::legal_moves`], FEN, move notation and PDN;
//! games with their draw rules ([`Game`]); an exact search ([`Search`]) over any [`Evaluator`]; networks
//! ([`Network`]) that judge a position alike on every machine, to the last bit; what is known beside that, the deck of
//! openings ([`openings`]), [`Book`]s and the endgame [`Database`]; and [`Player`]s made of these, alone or as an
//! [`Ensemble`] that votes.
//!
//! It deliberately knows nothing of evolution, starts threads only to build a database or where a playing search asks for
//! several, never draws randomness but from seeds it was given, and looks at a clock only where a search has a time
//! limit.
//!
//! ```
//! use checkers::{DrawRules, Game, Outcome, PlayerSpec, Side};
//!
//! let mut thinker = PlayerSpec::Material { depth: 4 }.build();
//! let mut gambler = PlayerSpec::Random.build();
//! thinker.new_game(1);
//! gambler.new_game(2);
//! let mut game = Game::new(DrawRules::default());
//! let outcome = game.play_out(&mut *thinker, &mut *gambler);
//! assert_eq!(outcome, Outcome::Win(Side::Black));
//! ```

#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod behaviour;
mod book;
mod endgame;
mod ensemble;
mod evaluator;
mod fen;
mod game;
mod knowledge;
mod moves;
mod network;
mod notation;
mod openings;
mod pdn;
mod perft;
mod player;
mod player_file;
mod playing_player;
mod position;
mod race;
mod random;
mod score;
mod search;
mod squares;
mod style;
mod table;
mod thought;

pub use behaviour::{behaviour, sample_positions};
pub use book::{Book, BookError, BookMove};
pub use endgame::{BuildStep, Counts, Database, EndgameError, EndgameResult, PieceCounts};
pub use ensemble::{Ensemble, EnsembleError, EnsemblePlayer, Votes};
pub use evaluator::{Evaluator, Material, RandomOpinion};
pub use fen::{FenError, FenReason};
pub use game::{DrawReason, DrawRules, Game, Outcome, PlayError};
pub use knowledge::{Consult, Endgames, Knowing, KnowingPlayer, Knowledge};
pub use moves::Move;
pub use network::{
    Architecture, Learner, Lesson, Moments, Network, NetworkError, NetworkEvaluator, NetworkShape, NodeKind,
    SimdPath, View,
};
pub use notation::MoveError;
pub use openings::{
    Opening, SharpStart, eleven_man_starts, initial_opening, opening_of, openings, sharp_openings, sharpest,
    stratified_openings, try_start,
};
pub use pdn::{Comment, PdnError, PdnGame, PdnReason, PdnResult, Tag, read_pdn};
pub use perft::{perft, perft_merged};
pub use player::{MaterialPlayer, NetworkPlayer, Player, PlayerSpec, RandomPlayer, SearchPlayer};
pub use player_file::{PlayerFile, PlayerFileError};
pub use playing_player::PlayingPlayer;
pub use position::{InvalidPosition, Piece, Position, Side};
pub use race::Race;
pub use score::Score;
pub use search::{Found, Limits, Line, MAX_DEPTH, PlaySettings, PlayingSearch, Reuse, Search, Watch};
pub use squares::{Square, Squares, SquaresIter};
pub use style::{Style, Ties};
pub use table::{Labels, Table};
pub use thought::Thought;
