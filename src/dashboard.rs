//! `atoll dashboard`: the pages of a store, without a coordinator.

use crate::clock;
use crate::contender;
use crate::failure::Failure;
use crate::play::web::{self, FindPlayer};
use crate::report::{self, Games, exhibit};
use crate::signals::Signals;
use crate::store_argument::StoreArgument;
use crate::terminal::message;
use checkers::{PlaySettings, PlayerSpec};
use coordinator::dashboard::{Offers, PlayTable, serve_store};
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::sync::Arc;
use store::Store;
use tokio::net::TcpListener;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    store: StoreArgument,
    /// The address to serve, on loopback; port 0 selects a free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:7442")]
    listen: String,
    /// Open the dashboard in a browser (`$BROWSER`, or the default browser)
    #[arg(long)]
    open: bool,
}

pub(crate) async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let store = arguments.store.open().await?;
    let mut signals = Signals::listen()?;
    let (listener, url) = listen(&arguments.listen).await?;
    message!("dashboard at {url}; stop with Ctrl-C");
    if arguments.open {
        report::open_url(&url)?;
    }
    let place = format!("store {}", arguments.store.folder().display());
    let asked = Box::pin(signals.asked());
    let offers =
        Offers { exhibit: Some(exhibit(Games::Played)), table: Some(table(&store)), ..Offers::default() };
    serve_store(listener, (store, place), offers, clock::now, asked).await;
    Ok(ExitCode::SUCCESS)
}

/// A board at which the champions of a store play.
fn table(store: &Store) -> PlayTable {
    let store = store.clone();
    let find: FindPlayer = Arc::new(move |name, limits| {
        let store = store.clone();
        Box::pin(async move {
            let player = Box::new(contender::stored(&name, limits.depth, &store).await?);
            Ok(PlayerSpec::Playing { player, limits, settings: PlaySettings::default() })
        })
    });
    web::table(find, None)
}

/// A listener on loopback, and its URL: every caller that reaches it may read everything.
pub(crate) async fn listen(address: &str) -> Result<(TcpListener, String), Failure> {
    let expected = |error: std::io::Error| {
        Failure::Usage(format!("expected HOST:PORT to serve the dashboard on, found `{address}`: {error}"))
    };
    let addresses: Vec<SocketAddr> = address.to_socket_addrs().map_err(expected)?.collect();
    if let Some(open) = addresses.iter().find(|address| !address.ip().is_loopback()) {
        return Err(Failure::Usage(format!(
            "expected a loopback address for the dashboard, found `{}`: it asks for no token; to look from another \
             machine, forward the port (`ssh -L`), or use the dashboard of a coordinator",
            open.ip()
        )));
    }
    let cannot = |error: std::io::Error| Failure::Other(format!("cannot listen on {address}: {error}"));
    let listener = TcpListener::bind(&addresses[..]).await.map_err(cannot)?;
    let url = format!("http://{}/", listener.local_addr().map_err(cannot)?);
    Ok((listener, url))
}
