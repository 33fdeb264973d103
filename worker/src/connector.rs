//! Connections whose small writes go out together.

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use proto::gathered_writes::GatheredWrites;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tonic::codegen::http::Uri;
use tonic::codegen::{BoxFuture, Service};
use tonic::transport::{Channel, Endpoint};

/// How long connecting may take, all addresses of a name together.
pub(crate) const CONNECTING: Duration = Duration::from_secs(5);

/// A channel to an endpoint, connected when it is first needed. It has the endpoint's settings but for those of the socket:
/// small messages are sent without delay.
pub fn connect_lazy(endpoint: &Endpoint) -> Channel {
    let mut connector = HttpConnector::new();
    // Whether to encrypt is for the endpoint to say.
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECTING));
    endpoint.connect_with_connector_lazy(Connector(connector))
}

struct Connector(HttpConnector);

impl Service<Uri> for Connector {
    type Response = TokioIo<GatheredWrites<TcpStream>>;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        // Here encryption comes above the connection.
        let gather =
            if uri.scheme_str() == Some("https") { GatheredWrites::ungathered } else { GatheredWrites::new };
        let connecting = self.0.call(uri);
        Box::pin(async move { Ok(TokioIo::new(gather(connecting.await?.into_inner()))) })
    }
}
