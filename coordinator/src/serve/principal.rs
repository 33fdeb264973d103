//! Who answers for a worker: what it has shown of itself, and where it calls from.

use super::permissions::TokenChecked;
use std::net::{IpAddr, Ipv6Addr};
use tonic::Request;

/// The principal of a worker that calls itself so: its certificate and its token, as far as it has any, and its address. An id is
/// self-chosen, and a token may be shared by all workers; so whichever of these differs makes another principal.
pub(crate) fn of<T>(request: &Request<T>, worker: &str) -> String {
    of_network(request).unwrap_or_else(|| worker.to_owned())
}

/// The same of a call whose worker is not known yet. Nothing without a network: a worker answers for itself then.
pub(crate) fn of_network<T>(request: &Request<T>) -> Option<String> {
    let mut shown = blake3::Hasher::new();
    let certificates = request.peer_certs().unwrap_or_default();
    if let Some(certificate) = certificates.first() {
        shown.update(b"certificate").update(certificate.as_ref());
    }
    // Where no tokens are wanted, any caller could invent as many as it likes.
    let is_checked = request.extensions().get::<TokenChecked>().is_some();
    if let Some(token) = request.metadata().get("authorization").filter(|_| is_checked) {
        shown.update(b"token").update(token.as_bytes());
    }
    let address = request.remote_addr()?;
    Some(format!("{} {}", shown_network(address.ip()), &shown.finalize().to_hex()[..16]))
}

/// The address, or of IPv6 the first of the network that one machine has for itself: whatever is limited for each address is
/// limited for each of these.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

fn shown_network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::transport::server::TcpConnectInfo;

    #[test]
    fn a_machine_has_one_network() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("10.0.0.1"), of("::ffff:10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        let shown = |text: &str| shown_network(text.parse().unwrap());
        assert_eq!(shown("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(shown("2001:db8::1"), "2001:db8:0:0::/64");
    }

    #[test]
    fn tokens_that_were_not_checked_make_no_principal() {
        let shown = |token: &'static str, is_checked: bool| {
            let mut request = Request::new(());
            let address = Some("10.0.0.1:5".parse().unwrap());
            request.extensions_mut().insert(TcpConnectInfo { local_addr: None, remote_addr: address });
            request.metadata_mut().insert("authorization", token.parse().unwrap());
            if is_checked {
                request.extensions_mut().insert(TokenChecked);
            }
            of(&request, "a")
        };
        assert_ne!(shown("Bearer one", true), shown("Bearer two", true));
        assert_eq!(shown("Bearer one", false), shown("Bearer two", false));
    }

    #[test]
    fn a_worker_without_a_network_answers_for_itself() {
        assert_eq!(of(&Request::new(()), "a"), "a");
    }
}
