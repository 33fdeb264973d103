//! Who may look and who may act, and which requests come from a page of another site.
//!
//! A browser sends cookies, and reaches loopback, on behalf of any page that is open in it. So a change is accepted only if
//! it names JSON as its content (which other sites cannot send without asking) and comes from this origin; and nothing is
//! accepted under a name that this server does not have, which a site could make its own name stand for.

use super::HttpError;
use super::route::Needs;
use crate::serve::{LivePermissions, Permissions, Right};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use std::net::IpAddr;
use std::sync::Arc;

/// The cookie of a session.
const COOKIE: &str = "atoll_session";
const HTTPS: &str = "https://";
/// How long a session lasts, in milliseconds.
const SESSION: u64 = 12 * 3_600_000;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// What a caller may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) may_look: bool,
    pub(crate) may_act: bool,
    /// Whether it has a session rather than a token.
    pub(crate) has_session: bool,
}

/// Checks requests.
#[derive(Clone)]
pub(crate) struct AccessCheck {
    permissions: Arc<LivePermissions>,
    /// What sessions are sealed with: they end with the process.
    key: [u8; 32],
    /// Names, or whole origins of proxies that encrypt what reaches this server in plain.
    hosts: Vec<String>,
    is_encrypted: bool,
    unix: fn() -> u64,
}

/// The name of an entry of `http_hosts`: `name`, or `https://name:port`.
fn name_of(entry: &str) -> &str {
    entry.strip_prefix(HTTPS).map_or(entry, |rest| host_of(rest).unwrap_or_default())
}

impl AccessCheck {
    pub(crate) fn new(
        permissions: Arc<LivePermissions>,
        secret: &[u8],
        hosts: Vec<String>,
        is_encrypted: bool,
        unix: fn() -> u64,
    ) -> Self {
        let key = blake3::derive_key("atoll 2026 dashboard sessions", secret);
        Self { permissions, key, hosts, is_encrypted, unix }
    }

    /// Whether the name by which this server was reached is its own: any address, `localhost`, or one of its settings.
    pub(crate) fn check_host(&self, headers: &HeaderMap) -> Result<(), HttpError> {
        if headers.get_all(header::HOST).iter().nth(1).is_some() {
            return Err(HttpError::new(StatusCode::BAD_REQUEST, "expected one `Host` header, found several"));
        }
        let host = text(headers, &header::HOST).and_then(host_of).unwrap_or_default();
        let is_address = host.parse::<IpAddr>().is_ok();
        let is_known = |known: &String| name_of(known).eq_ignore_ascii_case(host);
        if is_address || host.eq_ignore_ascii_case("localhost") || self.hosts.iter().any(is_known) {
            return Ok(());
        }
        let message = format!(
            "expected an address, `localhost` or a name of `http_hosts` as the host, found `{}`",
            host.chars().take(100).collect::<String>()
        );
        Err(HttpError::new(StatusCode::MISDIRECTED_REQUEST, message))
    }

    /// Whether something to look at is asked for by a page of this server, by no page at all, or by a link to it: pages of
    /// other sites cannot read the reply, and take up no stream and no turn at the store either.
    pub(crate) fn check_reader(headers: &HeaderMap) -> Result<(), HttpError> {
        let is_foreign =
            text(headers, &SEC_FETCH_SITE).is_some_and(|site| !matches!(site, "same-origin" | "none"));
        if is_foreign && text(headers, &SEC_FETCH_MODE) != Some("navigate") {
            return Err(HttpError::new(
                StatusCode::FORBIDDEN,
                "expected a request of this site, or a link to it",
            ));
        }
        Ok(())
    }

    /// Whether a change comes from a page of this server, or from no page at all.
    pub(crate) fn check_origin(&self, headers: &HeaderMap, caller: Caller) -> Result<(), HttpError> {
        let foreign = |found: &str| {
            let found: String = found.chars().take(100).collect();
            HttpError::new(
                StatusCode::FORBIDDEN,
                format!("expected a request of this site, found one of `{found}`"),
            )
        };
        let site = text(headers, &SEC_FETCH_SITE);
        if let Some(site) = site.filter(|site| !matches!(*site, "same-origin" | "none")) {
            return Err(foreign(site));
        }
        let scheme = if self.is_encrypted { "https" } else { "http" };
        let own = format!("{scheme}://{}", text(headers, &header::HOST).unwrap_or_default());
        let is_proxy = |origin: &str| {
            self.hosts.iter().any(|known| known.starts_with(HTTPS) && known.eq_ignore_ascii_case(origin))
        };
        match text(headers, &header::ORIGIN) {
            Some(origin) if origin.eq_ignore_ascii_case(&own) || is_proxy(origin) => Ok(()),
            Some(origin) => Err(foreign(origin)),
            // Browsers name the origin of every change; programs that bring a token do not.
            None if caller.has_session && site.is_none() => Err(foreign("nowhere")),
            None => Ok(()),
        }
    }

    /// The caller, by its token or session. Without any token, each caller may look, and from this
    /// machine act.
    pub(crate) fn caller(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Caller {
        let permissions = self.permissions.current();
        if !permissions.wants_tokens() {
            let may_act = peer.is_some_and(|peer| peer.to_canonical().is_loopback());
            return Caller { may_look: true, may_act, has_session: false };
        }
        if let Some(bearer) = text(headers, &header::AUTHORIZATION) {
            let may = |right| permissions.check(right, Some(bearer)).is_ok();
            return Caller { may_look: may(Right::View), may_act: may(Right::Operate), has_session: false };
        }
        self.session(headers, &permissions)
    }

    /// Rejects callers without the right.
    pub(crate) fn check(needs: Needs, caller: Caller) -> Result<(), HttpError> {
        let is_known = caller.may_look || caller.may_act;
        match needs {
            Needs::Nothing => Ok(()),
            Needs::View if caller.may_look => Ok(()),
            Needs::Operate if caller.may_act => Ok(()),
            Needs::Operate if is_known => Err(HttpError::new(
                StatusCode::FORBIDDEN,
                "expected an operator, found one who may only look",
            )),
            Needs::View | Needs::Operate => {
                let message = "expected the token of a viewer or an operator, found none that is known here";
                Err(HttpError::new(StatusCode::UNAUTHORIZED, message))
            }
        }
    }

    /// The name of a session's cookie. Cookies know no ports, so the name does: two coordinators on one host have two.
    fn cookie_name(headers: &HeaderMap, is_secure: bool) -> String {
        let port = text(headers, &header::HOST).and_then(port_of);
        let prefix = if is_secure { "__Host-" } else { "" };
        port.map_or_else(|| format!("{prefix}{COOKIE}"), |port| format!("{prefix}{COOKIE}_{port}"))
    }

    /// Whether a browser reaches this server over TLS, as far as the request shows it.
    fn is_secure(&self, headers: &HeaderMap) -> bool {
        self.is_encrypted || text(headers, &header::ORIGIN).is_some_and(|origin| origin.starts_with(HTTPS))
    }

    /// The cookie for a token that may look or act.
    pub(crate) fn log_in(&self, token: &str, headers: &HeaderMap) -> Option<String> {
        let permissions = self.permissions.current();
        let fingerprint = permissions.fingerprint(token)?;
        let expires = (self.unix)() + SESSION;
        let sealed = self.seal(expires, &fingerprint);
        let is_secure = self.is_secure(headers);
        let secure = if is_secure { "; Secure" } else { "" };
        let (name, age) = (Self::cookie_name(headers, is_secure), SESSION / 1000);
        Some(format!(
            "{name}={expires:x}.{fingerprint}.{sealed}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict{secure}"
        ))
    }

    /// The cookie that ends a session.
    pub(crate) fn log_out(&self, headers: &HeaderMap) -> String {
        let is_secure = self.is_secure(headers);
        let (name, secure) = (Self::cookie_name(headers, is_secure), if is_secure { "; Secure" } else { "" });
        format!("{name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict{secure}")
    }

    fn seal(&self, expires: u64, fingerprint: &str) -> blake3::Hash {
        blake3::keyed_hash(&self.key, format!("{expires:x}.{fingerprint}").as_bytes())
    }

    /// What the session of a request allows: as much as its token does now.
    fn session(&self, headers: &HeaderMap, permissions: &Permissions) -> Caller {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let names = [Self::cookie_name(headers, true), Self::cookie_name(headers, false)];
        // Behind a proxy that encrypts, requests do not show it. Where this server encrypts, all cookies are secure.
        let names = if self.is_encrypted { &names[..1] } else { &names[..] };
        let allowed = || {
            let (_, value) = pairs.find(|(found, _)| names.iter().any(|name| name == found))?;
            let (expires, rest) = value.split_once('.')?;
            let (fingerprint, sealed) = rest.split_once('.')?;
            let expires = u64::from_str_radix(expires, 16).ok()?;
            let sealed = blake3::Hash::from_hex(sealed).ok()?;
            // Hashes are compared in constant time.
            let is_valid = self.seal(expires, fingerprint) == sealed && expires > (self.unix)();
            is_valid.then(|| permissions.rights_of(fingerprint))
        };
        let (may_look, may_act) = { allowed }().unwrap_or_default();
        Caller { may_look, may_act, has_session: may_look || may_act }
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The name of a `Host` header, without its port; nothing if what follows the name is no port.
fn host_of(host: &str) -> Option<&str> {
    let (name, rest) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some(parts) => parts,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

/// The port of a `Host` header, if it names one.
fn port_of(host: &str) -> Option<u16> {
    host.rsplit_once(':').and_then(|(_, port)| port.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::Tokens;
    use axum::http::HeaderValue;

    const OPERATOR: &str = "operator-token-01";
    const VIEWER: &str = "viewer-token-0001";
    const WORKER: &str = "worker-token-0001";

    fn access() -> AccessCheck {
        let permissions = Permissions {
            operators: Tokens::parse(OPERATOR).unwrap(),
            viewers: Tokens::parse(VIEWER).unwrap(),
            workers: Tokens::parse(WORKER).unwrap(),
            ..Permissions::default()
        };
        let permissions = Arc::new(LivePermissions::new(permissions));
        AccessCheck::new(permissions, b"secret", vec!["atoll.example".to_owned()], false, || 1000)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    fn open() -> AccessCheck {
        AccessCheck::new(Arc::default(), b"secret", vec![], false, || 1000)
    }

    #[test]
    fn only_own_names_are_served() {
        for host in ["127.0.0.1:7441", "[::1]:7441", "10.0.0.7", "localhost:1", "ATOLL.example:7441"] {
            assert!(access().check_host(&headers(&[("host", host)])).is_ok(), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:7441",
            "127.0.0.1.evil.example",
            "",
            "localhost.evil.example:1",
            "127.0.0.1:7441@evil.example",
            "127.0.0.1:evil.example",
            "127.0.0.1:80:80",
            "[::1]evil.example",
            "[::1",
        ] {
            assert!(access().check_host(&headers(&[("host", host)])).is_err(), "{host}");
        }
        assert!(access().check_host(&HeaderMap::new()).is_err());
        let mut two = headers(&[("host", "127.0.0.1")]);
        two.append(header::HOST, HeaderValue::from_static("127.0.0.1"));
        assert!(access().check_host(&two).is_err());
    }

    #[test]
    fn pages_of_other_sites_link_to_this_one_and_embed_nothing_of_it() {
        let ok = |pairs: &[(&'static str, &str)]| AccessCheck::check_reader(&headers(pairs)).is_ok();
        assert!(ok(&[]), "a program");
        assert!(ok(&[("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")]));
        assert!(ok(&[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")]));
        for site in ["cross-site", "same-site"] {
            assert!(ok(&[("sec-fetch-site", site), ("sec-fetch-mode", "navigate")]), "a link");
            for mode in ["cors", "no-cors", "same-origin"] {
                assert!(!ok(&[("sec-fetch-site", site), ("sec-fetch-mode", mode)]), "{site} {mode}");
            }
        }
    }

    #[test]
    fn changes_come_from_this_origin_or_from_no_page() {
        let own = ("host", "127.0.0.1:7441");
        let ok = |pairs: &[(&'static str, &str)], has_session| {
            let caller = Caller { has_session, ..Caller::default() };
            access().check_origin(&headers(&[&[own], pairs].concat()), caller).is_ok()
        };
        assert!(ok(&[("origin", "http://127.0.0.1:7441"), ("sec-fetch-site", "same-origin")], true));
        assert!(ok(&[], false), "a program with a token");
        assert!(!ok(&[], true), "a browser always names its origin");
        for origin in [
            "http://evil.example",
            "null",
            "https://127.0.0.1:7441",
            "http://127.0.0.1:7442",
            "http://127.0.0.1:7441.evil.example",
        ] {
            assert!(!ok(&[("origin", origin)], true), "{origin}");
            assert!(!ok(&[("origin", origin)], false), "{origin}");
        }
        for site in ["cross-site", "same-site"] {
            assert!(!ok(&[("sec-fetch-site", site)], false), "{site}");
        }
    }

    #[test]
    fn tokens_and_sessions_allow_what_they_are_for() {
        let access = access();
        let of = |pairs: &[(&'static str, &str)]| {
            let caller = access.caller(&headers(pairs), None);
            (caller.may_look, caller.may_act)
        };
        let bearer = |token: &str| of(&[("authorization", &format!("Bearer {token}"))]);
        assert_eq!(
            [bearer(OPERATOR), bearer(VIEWER), bearer(WORKER), bearer("nobody-knows-this")],
            [(true, true), (true, false), (false, false), (false, false)]
        );
        assert_eq!(of(&[]), (false, false));
        let cookie = |token: &str| {
            access.log_in(token, &HeaderMap::new()).map(|cookie| cookie.split(';').next().unwrap().to_owned())
        };
        assert_eq!(cookie(WORKER), None);
        assert_eq!(of(&[("cookie", &format!("a=b; {}", cookie(VIEWER).unwrap()))]), (true, false));
        let operator = cookie(OPERATOR).unwrap();
        assert_eq!(of(&[("cookie", &operator)]), (true, true));
        assert!(!operator.contains(OPERATOR), "the token itself stays out of the cookie");
        let mut forged = operator.clone();
        forged.replace_range(operator.len() - 1.., if operator.ends_with('0') { "1" } else { "0" });
        let other = AccessCheck { key: [7; 32], ..access.clone() };
        assert_eq!(of(&[("cookie", &forged)]), (false, false));
        assert!(!other.caller(&headers(&[("cookie", &operator)]), None).may_look, "it ends with the process");
        let later = AccessCheck { unix: || 1000 + SESSION, ..access.clone() };
        assert!(!later.caller(&headers(&[("cookie", &operator)]), None).may_look, "it expires");
        access
            .permissions
            .replace(Permissions { viewers: Tokens::parse(VIEWER).unwrap(), ..Permissions::default() });
        assert_eq!(of(&[("cookie", &operator)]), (false, false), "it ends with its token");
        assert!(access.log_in(VIEWER, &HeaderMap::new()).unwrap().contains("; HttpOnly; SameSite=Strict"));
    }

    #[test]
    fn a_proxy_that_encrypts_is_an_origin_of_its_own() {
        let hosts = vec!["https://atoll.example:8443".to_owned(), "plain.example".to_owned()];
        let access = AccessCheck { hosts, ..access() };
        let headers = |origin: &str, host: &str| headers(&[("host", host), ("origin", origin)]);
        let session = Caller { has_session: true, ..Caller::default() };
        for host in ["atoll.example:8443", "atoll.example", "10.0.0.7:7441"] {
            let headers = headers("https://atoll.example:8443", host);
            assert!(access.check_host(&headers).is_ok(), "{host}");
            assert!(access.check_origin(&headers, session).is_ok(), "{host}");
            let cookie = access.log_in(VIEWER, &headers).unwrap();
            assert!(cookie.starts_with("__Host-atoll_session") && cookie.ends_with("; Secure"), "{cookie}");
        }
        for origin in ["https://atoll.example", "https://plain.example", "https://evil.example:8443"] {
            let headers = headers(origin, "plain.example");
            assert!(access.check_origin(&headers, session).is_err(), "{origin}");
        }
    }

    #[test]
    fn sessions_of_two_ports_of_one_host_are_told_apart() {
        let access = access();
        let at = |port: &str| headers(&[("host", &format!("localhost:{port}"))]);
        let [one, other] = ["7441", "7442"].map(|port| access.log_in(VIEWER, &at(port)).unwrap());
        assert!(one.starts_with("atoll_session_7441=") && other.starts_with("atoll_session_7442="));
        let pair = |cookie: &str| cookie.split(';').next().unwrap().to_owned();
        let both = format!("{}; {}", pair(&other), pair(&one));
        let looks = |access: &AccessCheck, cookies: &str| {
            let headers = headers(&[("host", "localhost:7441"), ("cookie", cookies)]);
            access.caller(&headers, None).may_look
        };
        assert!(looks(&access, &both) && !looks(&access, &pair(&other)));
        let tls = AccessCheck { is_encrypted: true, ..access.clone() };
        assert!(!looks(&tls, &both), "a cookie that was not sent over TLS");
        assert!(looks(&tls, &pair(&tls.log_in(VIEWER, &at("7441")).unwrap())));
    }

    #[test]
    fn without_tokens_this_machine_may_act_and_others_may_look() {
        let of = |peer: &str| open().caller(&HeaderMap::new(), Some(peer.parse().unwrap()));
        assert_eq!(of("127.0.0.1"), Caller { may_look: true, may_act: true, has_session: false });
        assert_eq!(of("::1"), of("127.0.0.1"));
        assert_eq!(of("10.0.0.7"), Caller { may_look: true, may_act: false, has_session: false });
    }
}
