//! `atoll engine`: a checkers player for programs that speak Hub.

use crate::failure::Failure;
use crate::player::PlayerArguments;
use checkers::Limits;
use std::io::{self, BufReader};
use std::path::Path;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    player: PlayerArguments,
    /// Seed of the player's random choices
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let limits = Limits::depth(arguments.player.depth);
    let mut player = arguments.player.load(limits).await?.build();
    let named = Path::new(&arguments.player.player).file_stem().unwrap_or_default();
    let settings = hub::EngineSettings {
        name: format!("Atoll {}", named.to_string_lossy()),
        depth: arguments.player.depth,
        seed: arguments.seed,
        ..hub::EngineSettings::default()
    };
    match hub::serve(BufReader::new(io::stdin()), io::stdout(), &mut *player, &settings) {
        // The program that drove it closed the pipe.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        served => served.map(|()| ExitCode::SUCCESS).map_err(|error| Failure::Other(error.to_string())),
    }
}
