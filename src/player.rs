//! Checkers players as people name them on the command line.

use crate::contender;
use crate::endgame::{self, Folder};
use crate::failure::Failure;
use crate::store_argument::StoreArgument;
use checkers::{
    Book, BookError, Consult, Database, EndgameError, Endgames, Knowledge, Limits, MAX_DEPTH, PlaySettings,
    PlayerSpec, Style,
};
use clap::ValueEnum;
use std::path::Path;
use std::sync::Arc;

/// Which player, and what it knows.
#[derive(clap::Args)]
pub(crate) struct PlayerArguments {
    #[arg(help = contender::HELP)]
    pub(crate) player: String,
    /// Plies to search
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_DEPTH)))]
    pub(crate) depth: u32,
    #[command(flatten)]
    knowledge: KnowledgeArguments,
    #[command(flatten)]
    playing: PlayingArguments,
    #[command(flatten)]
    store: StoreArgument,
}

/// How a player that plays for people and programs searches.
#[derive(clap::Args)]
pub(crate) struct PlayingArguments {
    /// Threads that search together
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: u32,
    /// Entries of the transposition table, as a power of two of 16 bytes each [default: by the time for a move]
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(10..=26))]
    table_bits: Option<u32>,
    /// Value of a draw to the player, in men below zero; above 0 it avoids draws in equal positions
    #[arg(long, value_name = "MEN", default_value_t = 0.0, allow_negative_numbers = true)]
    contempt: f32,
    /// Do not count positions of the game so far as draws in the search
    #[arg(long)]
    no_history: bool,
}

/// What a player knows beside its own judgement.
#[derive(clap::Args)]
pub(crate) struct KnowledgeArguments {
    /// Use the endgame database with up to this many pieces
    #[arg(long, value_name = "PIECES", value_parser = endgame::pieces())]
    endgame: Option<u32>,
    /// When to query the endgame database
    #[arg(long, value_enum, default_value_t = When::Unsure)]
    consult: When,
    /// The player is unsure while its evaluation is between these values, for either side (one man is 0.25 for `material`)
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], default_values_t = [0.25, 0.75])]
    unsure: Vec<f32>,
    #[command(flatten)]
    folder: Folder,
    /// Play the first moves from a book: `deck`, the three-move openings, or the path of a book file
    #[arg(long)]
    book: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum When {
    /// Whenever it contains the position
    Always,
    /// Only when the player's own value is unsure
    Unsure,
}

/// Why there is no such player.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlayerError {
    /// Its book.
    #[error("--book {path}: {error}")]
    Book { path: String, error: BookError },
    /// Its database.
    #[error("--endgame: {0}")]
    Endgame(#[from] EndgameError),
}

impl PlayerArguments {
    /// The player with the playing search, within limits for each move.
    pub(crate) async fn load(&self, limits: Limits) -> Result<PlayerSpec, Failure> {
        let player = contender::load(&self.player, self.depth, &self.store).await?;
        let PlayingArguments { threads, table_bits, contempt, no_history } = self.playing;
        let knowledge = self.knowledge.load(!no_history)?;
        let player = PlayerSpec::Knowing { player: Box::new(player), knowledge };
        let settings = PlaySettings { threads, table_bits, contempt: contempt.clamp(-10.0, 10.0) };
        Ok(PlayerSpec::Playing { player: Box::new(player), limits, settings })
    }
}

impl PlayerArguments {
    /// The endgame database that it may look at, if one is named.
    pub(crate) fn database(&self) -> Result<Option<Arc<Database>>, PlayerError> {
        Ok(self.knowledge.load_endgames()?.map(|endgames| endgames.database))
    }
}

impl KnowledgeArguments {
    /// The player with this knowledge, and perhaps with that of the game so far.
    pub(crate) fn inform(&self, player: PlayerSpec, history: bool) -> Result<PlayerSpec, PlayerError> {
        let knowledge = self.load(history)?;
        if knowledge.is_none() {
            return Ok(player);
        }
        Ok(PlayerSpec::Knowing { player: Box::new(player), knowledge })
    }

    pub(crate) fn load(&self, history: bool) -> Result<Knowledge, PlayerError> {
        let style = Style { history, ..Style::default() };
        Ok(Knowledge { book: self.load_book()?, endgames: self.load_endgames()?, style })
    }

    fn load_book(&self) -> Result<Option<Arc<Book>>, PlayerError> {
        let book = match self.book.as_deref() {
            None => return Ok(None),
            Some("deck") => Ok(Book::deck()),
            Some(path) => Book::load(Path::new(path)),
        };
        let path = self.book.clone().unwrap_or_default();
        book.map(|book| Some(Arc::new(book))).map_err(|error| PlayerError::Book { path, error })
    }

    fn load_endgames(&self) -> Result<Option<Endgames>, PlayerError> {
        let Some(pieces) = self.endgame else { return Ok(None) };
        let consult = match (self.consult, self.unsure.as_slice()) {
            (When::Unsure, [from, to]) => Consult::Unsure { from: *from, to: *to },
            _ => Consult::Always,
        };
        let database = Arc::new(endgame::open(&self.folder, pieces)?);
        Ok(Some(Endgames { database, consult }))
    }
}
