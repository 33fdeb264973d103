//! Hub, the protocol by which draughts programs drive engines, for English checkers.
//!
//! [`serve`] exposes a player to a draughts program; [`HubEngine`] runs a third-party engine, with time limits, so that one
//! that hangs, crashes or plays what it may not is an error and nothing worse.
//!
//! It deliberately knows no other variant and no graphical interface, decides no game, and never ponders: on the
//! opponent's time an engine served here waits.
//!
//! ```
//! use checkers::PlayerSpec;
//!
//! let commands: &[u8] = b"hub\ninit\npos pos=Wbbbbbbbbbbbbeeeeeeeewwwwwwwwwwww\nlevel depth=3\ngo think\nquit\n";
//! let mut answers = Vec::new();
//! let mut player = PlayerSpec::Material { depth: 3 }.build();
//! hub::serve(commands, &mut answers, &mut *player, &hub::EngineSettings::default())?;
//! let answers = String::from_utf8_lossy(&answers);
//! assert!(answers.contains("\nready\n") && answers.contains("\ndone move="));
//! # Ok::<(), std::io::Error>(())
//! ```

mod drive;
mod line;
mod serve;
mod text;

pub use drive::{HubEngine, HubError, HubPlayer};
pub use serve::{EngineSettings, serve};
pub use text::{TextError, move_text, parse_move, parse_position, position_text};
