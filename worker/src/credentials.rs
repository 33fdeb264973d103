//! What a worker or an operator shows to a coordinator, and whom it trusts.

use std::error::Error;
use std::fmt;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Request, Status};

/// Why a coordinator cannot be called like this.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CredentialError {
    /// The address.
    #[error("expected http://HOST:PORT or https://HOST:PORT, found `{url}`: {reason}")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No authority is given.
    #[error("expected a file with the certificate authority (`tls_ca`) for `{0}`, found none")]
    NoAuthority(String),
    /// What is meant to be protected is not.
    #[error(
        "expected https:// with `tls_ca`, `tls_cert` or `tls_key`, found `{0}`: nothing would be encrypted"
    )]
    Plain(String),
    /// A secret would be sent in the clear.
    #[error("expected https:// with a token, found `{0}`: the token would be sent unencrypted")]
    TokenInTheClear(String),
    /// Certificates that are none.
    #[error("expected certificates and a key in PEM (`tls_ca`, `tls_cert`, `tls_key`), found others: {0}")]
    Certificates(String),
    /// A token that is none. What was found is not shown.
    #[error("expected a token of visible ASCII characters, found others, or none")]
    Token,
}

/// A bearer token of a coordinator. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(MetadataValue<Ascii>);

impl Token {
    /// Takes a token; spaces around it are not part of it.
    pub fn new(text: &str) -> Result<Self, CredentialError> {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(CredentialError::Token);
        }
        let mut value: MetadataValue<Ascii> =
            format!("Bearer {text}").parse().map_err(|_| CredentialError::Token)?;
        value.set_sensitive(true);
        Ok(Self(value))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(…)")
    }
}

/// Adds the token to every call, if there is one.
#[derive(Clone, Debug, Default)]
pub struct Bearer(pub Option<Token>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(Token(token)) = &self.0 {
            request.metadata_mut().insert("authorization", token.clone());
        }
        Ok(request)
    }
}

/// A connection whose calls carry a token.
pub type AuthorizedChannel = InterceptedService<Channel, Bearer>;

/// Whom to trust, and who to be, as PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Trust {
    /// The authority that has signed the coordinator's certificate.
    pub authority: Option<Vec<u8>>,
    /// Our own certificate and its key, if the coordinator wants one.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Trust {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Trust(…)")
    }
}

impl Trust {
    /// Has an endpoint speak TLS if its address says so.
    pub(crate) fn apply(&self, endpoint: Endpoint, url: &str) -> Result<Endpoint, CredentialError> {
        if endpoint.uri().scheme_str() != Some("https") {
            let plain = self.authority.is_none() && self.identity.is_none();
            return if plain { Ok(endpoint) } else { Err(CredentialError::Plain(url.to_owned())) };
        }
        let authority =
            self.authority.as_ref().ok_or_else(|| CredentialError::NoAuthority(url.to_owned()))?;
        let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority));
        if let Some((certificate, key)) = &self.identity {
            config = config.identity(Identity::from_pem(certificate, key));
        }
        endpoint.tls_config(config).map_err(|error| CredentialError::Certificates(root_cause(&error)))
    }
}

/// The innermost of an error's reasons.
pub(crate) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |&error| error.source());
    chain.last().map(ToString::to_string).unwrap_or_default()
}

/// Refuses to send a token over a connection on which others may listen.
pub fn check_token_is_safe(url: &str, token: Option<&Token>) -> Result<(), CredentialError> {
    let Ok(uri) = url.parse::<tonic::codegen::http::Uri>() else { return Ok(()) };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let near = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    if token.is_some() && !near && uri.scheme_str() != Some("https") {
        return Err(CredentialError::TokenInTheClear(url.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_shown() {
        let token = Token::new(" s3cret-s3cret-s3cret\n").unwrap();
        assert_eq!(format!("{token:?}"), "Token(…)");
        assert_eq!(token.0.to_str().unwrap(), "Bearer s3cret-s3cret-s3cret");
        assert!(!format!("{:?}", token.0).contains("s3cret"));
        for bad in ["", " ", "two words", "line\nline", "é"] {
            let error = Token::new(bad).unwrap_err().to_string();
            assert!(bad.trim().is_empty() || !error.contains(bad), "{error}");
        }
    }

    #[test]
    fn a_token_is_sent_only_where_nobody_listens() {
        let token = Token::new("s3cret-s3cret").unwrap();
        for safe in
            ["http://127.0.0.1:7440", "http://localhost:7440", "http://[::1]:7440", "https://far:7440"]
        {
            assert!(check_token_is_safe(safe, Some(&token)).is_ok(), "{safe}");
        }
        for unsafe_url in ["http://far:7440", "http://10.0.0.7:7440"] {
            assert!(check_token_is_safe(unsafe_url, Some(&token)).is_err(), "{unsafe_url}");
            assert!(check_token_is_safe(unsafe_url, None).is_ok(), "{unsafe_url}");
        }
    }
}
