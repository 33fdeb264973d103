//! Who may call, and how often: tokens for each right, and a rate for each peer.
//!
//! Only hashes of tokens are kept, and hashes are compared in constant time, so that neither a dump of memory nor
//! the time of a rejection reveals anything about it.

use super::connections::Caller;
use super::in_flight::ReadOnly;
use super::log_limit::LogLimit;
use super::principal;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::Instant;
use tonic::service::Interceptor;
use tonic::{Request, Status};

/// The fewest characters of a token: fewer can be guessed.
const SHORTEST: usize = 16;
/// The most tokens of one right.
const MOST: usize = 100;
/// The most peers whose rate is remembered.
const MOST_PEERS: usize = 10_000;

/// Tokens that cannot be used. What was found is not shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// One is too short, or has invalid characters.
    #[error("expected tokens of at least {SHORTEST} visible ASCII characters, found another as number {0}")]
    Weak(usize),
    /// There are too many.
    #[error("expected at most {MOST} tokens, found {0}")]
    TooMany(usize),
    /// There are none.
    #[error("expected a token, found none")]
    None,
}

/// The valid tokens of one right: several, so that tokens can be rotated.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tokens(Vec<blake3::Hash>);

impl Tokens {
    /// Parses tokens separated by lines, spaces or commas. Lines that begin with `#` are comments.
    pub fn parse(text: &str) -> Result<Self, TokenError> {
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let words = lines.flat_map(|line| line.split([' ', '\t', ',', '\r'])).filter(|word| !word.is_empty());
        let mut hashes = vec![];
        for (number, word) in words.enumerate() {
            if word.len() < SHORTEST || !word.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(TokenError::Weak(number + 1));
            }
            hashes.push(blake3::hash(word.as_bytes()));
        }
        match hashes.len() {
            0 => Err(TokenError::None),
            1..=MOST => Ok(Self(hashes)),
            found => Err(TokenError::TooMany(found)),
        }
    }

    /// Adds others to these.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether this is one of them. All are compared, in constant time.
    fn accepts(&self, token: &str) -> bool {
        let hash = blake3::hash(token.as_bytes());
        self.0.iter().fold(false, |accepted, known| (*known == hash) | accepted)
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Tokens({})", self.0.len())
    }
}

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// Take work and deliver it.
    Work,
    /// Submit, watch, pause, cancel and export runs.
    Operate,
    /// Read the metrics.
    Measure,
    /// Look at the dashboard.
    View,
}

/// The permissions of callers. Without any token, all calls are allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// The tokens of workers.
    pub workers: Tokens,
    /// The tokens of operators, who may read the metrics as well.
    pub operators: Tokens,
    /// The tokens of those who may only read the metrics.
    pub metrics: Tokens,
    /// The tokens of those who may only look at the dashboard.
    pub viewers: Tokens,
    /// The most calls of one peer per second; no limit if 0.
    pub requests_per_second: u32,
}

impl Permissions {
    /// Whether a token is needed.
    pub fn wants_tokens(&self) -> bool {
        let all = [&self.workers, &self.operators, &self.metrics, &self.viewers];
        !all.iter().all(|tokens| tokens.is_empty())
    }

    /// Admits a caller that has the right, by the value of the `authorization` header.
    pub(crate) fn check(&self, right: Right, header: Option<&str>) -> Result<(), Refused> {
        if !self.wants_tokens() {
            return Ok(());
        }
        let header = header.ok_or(Refused::NoToken(right))?;
        let token = header.strip_prefix("Bearer ").ok_or(Refused::NoToken(right))?;
        let [worker, operator, metrics, viewer] =
            [&self.workers, &self.operators, &self.metrics, &self.viewers]
                .map(|tokens| tokens.accepts(token));
        match right {
            Right::Work if worker => Ok(()),
            Right::Operate if operator => Ok(()),
            Right::Measure if metrics || operator => Ok(()),
            Right::View if viewer || operator => Ok(()),
            _ if worker || operator || metrics || viewer => Err(Refused::OtherRight(right)),
            _ => Err(Refused::Unknown),
        }
    }

    /// The fingerprint that represents a token of a viewer or operator in a session; it does not reveal the token.
    pub(crate) fn fingerprint(&self, token: &str) -> Option<String> {
        let is_known = self.operators.accepts(token) | self.viewers.accepts(token);
        is_known.then(|| fingerprint(&blake3::hash(token.as_bytes())))
    }

    /// Whether the token behind a fingerprint may currently look, and whether it may act.
    pub(crate) fn rights_of(&self, shown: &str) -> (bool, bool) {
        let is_one_of = |tokens: &Tokens| tokens.0.iter().any(|token| fingerprint(token) == shown);
        let (views, operates) = (is_one_of(&self.viewers), is_one_of(&self.operators));
        (views || operates, operates)
    }
}

fn fingerprint(token: &blake3::Hash) -> String {
    blake3::keyed_hash(token.as_bytes(), b"atoll dashboard").to_hex()[..32].to_owned()
}

/// Permissions that may be replaced at any time: every call is checked against the current ones.
#[derive(Debug, Default)]
pub(crate) struct LivePermissions(RwLock<Arc<Permissions>>);

impl LivePermissions {
    pub(crate) fn new(permissions: Permissions) -> Self {
        Self(RwLock::new(Arc::new(permissions)))
    }

    pub(crate) fn current(&self) -> Arc<Permissions> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes other permissions; returns whether they differ.
    pub(crate) fn replace(&self, permissions: Permissions) -> bool {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let differ = **current != permissions;
        *current = Arc::new(permissions);
        differ
    }
}

/// Why a call is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("expected {}, found none: set ATOLL_TOKEN or `token_file`", .0.token())]
    NoToken(Right),
    #[error("expected {}, found one with another permission", .0.token())]
    OtherRight(Right),
    #[error("expected a token that is known here, found another: was it changed?")]
    Unknown,
}

impl Right {
    fn token(self) -> &'static str {
        match self {
            Self::Work => "a worker's token",
            Self::Operate => "an operator's token",
            Self::Measure => "a token for the metrics",
            Self::View => "a viewer's or an operator's token",
        }
    }
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::OtherRight(Right::Operate | Right::View) => Self::permission_denied(refused.to_string()),
            // A worker that was quarantined is denied; one with a wrong token has to tell that from it.
            _ => Self::unauthenticated(refused.to_string()),
        }
    }
}

/// Stands with a call whose token is valid.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenChecked;

/// What every call of one service has to pass.
#[derive(Clone)]
pub(crate) struct PermissionInterceptor {
    permissions: Arc<LivePermissions>,
    right: Right,
    rate_limit: Arc<RateLimit>,
    refusals: Arc<Refusals>,
    logged: Arc<LogLimit>,
}

/// How long a worker may take to repeat a call that was refused: a first one is forgotten then.
const REPEATED_WITHIN: Duration = Duration::from_secs(10);
/// How far apart the calls of a worker are at least that does not believe the first refusal.
const REPEATED_AFTER: Duration = Duration::from_secs(1);

/// Whether workers were refused for their tokens, and why. A worker repeats its call for some seconds, in case that secrets
/// are just being replaced; one call of a stranger is no worker.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<Option<Refusal>>);

#[derive(Clone, Debug)]
struct Refusal {
    reason: String,
    first: Instant,
    last: Instant,
}

impl Refusal {
    fn is_repeated(&self) -> bool {
        self.last - self.first >= REPEATED_AFTER
    }

    fn is_old(&self) -> bool {
        !self.is_repeated() && self.last.elapsed() >= REPEATED_WITHIN
    }
}

/// What refusals say about the workers that come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RefusedWorkers {
    /// None was refused.
    No,
    /// A call was refused that a worker would repeat.
    Once,
    /// A worker was refused, and this is why.
    Again(String),
}

impl Refusals {
    pub(crate) fn look(&self) -> RefusedWorkers {
        match &*self.lock() {
            Some(refusal) if refusal.is_repeated() => RefusedWorkers::Again(refusal.reason.clone()),
            Some(refusal) if !refusal.is_old() => RefusedWorkers::Once,
            _ => RefusedWorkers::No,
        }
    }

    /// Forgets what was refused longer ago.
    pub(crate) fn forget_before(&self, longest: Duration) {
        self.lock().take_if(|refusal| refusal.last.elapsed() >= longest);
    }

    /// Notes that a call or a connection was refused.
    pub(super) fn note(&self, reason: String) {
        let last = Instant::now();
        let mut known = self.lock();
        let first = known.as_ref().filter(|known| !known.is_old()).map_or(last, |known| known.first);
        *known = Some(Refusal { reason, first, last });
    }

    fn lock(&self) -> MutexGuard<'_, Option<Refusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PermissionInterceptor {
    pub(crate) fn new(
        permissions: &Arc<LivePermissions>,
        right: Right,
        rate_limit: &Arc<RateLimit>,
        refusals: &Arc<Refusals>,
    ) -> Self {
        let (permissions, rate_limit, refusals) = (permissions.clone(), rate_limit.clone(), refusals.clone());
        Self { permissions, right, rate_limit, refusals, logged: Arc::default() }
    }
}

impl Interceptor for PermissionInterceptor {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let permissions = self.permissions.current();
        if let Some(peer) = request.remote_addr()
            && !self.rate_limit.admits(peer.ip(), permissions.requests_per_second, Instant::now())
        {
            return Err(Status::resource_exhausted("too many calls from one address: slow down"));
        }
        let header = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        let is_read_only = self.right == Right::Operate && request.extensions().get::<ReadOnly>().is_some();
        let right = if is_read_only { Right::View } else { self.right };
        permissions.check(right, header).inspect_err(|refused| {
            if let Some(others) = self.logged.allows() {
                let peer = request.remote_addr().map_or("unknown".to_owned(), |peer| peer.to_string());
                tracing::warn!(peer, reason = %refused, others, "call rejected");
            }
            if self.right == Right::Work {
                self.refusals.note(format!("a worker was rejected: {refused}"));
            }
        })?;
        if let Some(caller) = request.extensions().get::<Caller>() {
            caller.mark_permitted();
        }
        if permissions.wants_tokens() {
            request.extensions_mut().insert(TokenChecked);
        }
        Ok(request)
    }
}

/// The rate of each peer: a token bucket that fills with time; each call takes one token.
#[derive(Debug, Default)]
pub(crate) struct RateLimit(Mutex<BTreeMap<IpAddr, Bucket>>);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    filled: Instant,
}

impl RateLimit {
    /// Whether a peer may call now. A second's worth of calls may come at once.
    pub(crate) fn admits(&self, peer: IpAddr, per_second: u32, now: Instant) -> bool {
        if per_second == 0 {
            return true;
        }
        let (most, peer) = (f64::from(per_second), principal::network(peer));
        let mut peers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if peers.len() >= MOST_PEERS {
            // After a second of silence the bucket is full, as that of a new peer.
            peers.retain(|_, bucket| now.saturating_duration_since(bucket.filled) < Duration::from_secs(1));
        }
        let bucket = peers.entry(peer).or_insert(Bucket { left: most, filled: now });
        let passed = now.saturating_duration_since(bucket.filled).as_secs_f64();
        *bucket = Bucket { left: (bucket.left + passed * most).min(most), filled: now };
        if bucket.left < 1.0 {
            return false;
        }
        bucket.left -= 1.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: &str = "worker-token-0001";
    const NEW_WORKER: &str = "worker-token-0002";
    const OPERATOR: &str = "operator-token-01";
    const METRICS: &str = "metrics-token-001";
    const VIEWER: &str = "viewer-token-0001";

    #[tokio::test(start_paused = true)]
    async fn one_call_of_a_stranger_is_forgotten_and_a_worker_repeats_its_own() {
        let refusals = Refusals::default();
        assert_eq!(refusals.look(), RefusedWorkers::No);
        for _ in 0..3 {
            refusals.note("a scanner".to_owned());
            // Several calls over one connection come at once.
            refusals.note("a scanner".to_owned());
            assert_eq!(refusals.look(), RefusedWorkers::Once);
            tokio::time::advance(Duration::from_secs(9)).await;
            assert_eq!(refusals.look(), RefusedWorkers::Once);
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(refusals.look(), RefusedWorkers::No, "it does not come back");
        }
        refusals.note("a worker".to_owned());
        tokio::time::advance(Duration::from_secs(3)).await;
        refusals.note("a worker".to_owned());
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(
            refusals.look(),
            RefusedWorkers::Again("a worker".to_owned()),
            "its Job has failed by now"
        );
        refusals.forget_before(Duration::ZERO);
        assert_eq!(refusals.look(), RefusedWorkers::No);
    }

    fn guard() -> Permissions {
        Permissions {
            workers: Tokens::parse(&format!("# old and new\n{WORKER}\n{NEW_WORKER}\n")).unwrap(),
            operators: Tokens::parse(OPERATOR).unwrap(),
            metrics: Tokens::parse(METRICS).unwrap(),
            viewers: Tokens::parse(VIEWER).unwrap(),
            requests_per_second: 0,
        }
    }

    #[test]
    fn each_right_has_its_own_tokens() {
        let permissions = guard();
        let check = |right, token: &str| permissions.check(right, Some(&format!("Bearer {token}")));
        for (token, right) in [(WORKER, Right::Work), (NEW_WORKER, Right::Work), (OPERATOR, Right::Operate)] {
            for asked in [Right::Work, Right::Operate] {
                let expected = if asked == right { Ok(()) } else { Err(Refused::OtherRight(asked)) };
                assert_eq!(check(asked, token), expected, "{token}");
            }
        }
        assert_eq!(check(Right::Measure, METRICS), Ok(()));
        assert_eq!(check(Right::Measure, OPERATOR), Ok(()));
        assert_eq!(check(Right::Measure, WORKER), Err(Refused::OtherRight(Right::Measure)));
        assert_eq!([check(Right::View, VIEWER), check(Right::View, OPERATOR)], [Ok(()), Ok(())]);
        for right in [Right::Work, Right::Operate, Right::Measure] {
            assert_eq!(check(right, VIEWER), Err(Refused::OtherRight(right)), "a viewer only looks");
        }
        assert_eq!(check(Right::View, METRICS), Err(Refused::OtherRight(Right::View)));
        assert_eq!(check(Right::Work, "worker-token-0003"), Err(Refused::Unknown));
        assert_eq!(check(Right::Work, &WORKER[..16]), Err(Refused::Unknown), "a beginning is not enough");
        assert_eq!(permissions.check(Right::Work, None), Err(Refused::NoToken(Right::Work)));
        assert_eq!(permissions.check(Right::Work, Some(WORKER)), Err(Refused::NoToken(Right::Work)));
        assert_eq!(Permissions::default().check(Right::Operate, None), Ok(()));
    }

    #[test]
    fn bad_tokens_are_refused_and_not_shown() {
        for bad in ["", "# nothing\n", "short", "0123456789abcdef short", "0123456789abcdé"] {
            let error = Tokens::parse(bad).unwrap_err().to_string();
            assert!(!error.contains("short") && !error.contains("0123"), "{error}");
        }
        assert_eq!(Tokens::parse(&"0123456789abcdef ".repeat(101)).unwrap_err(), TokenError::TooMany(101));
        assert_eq!(format!("{:?}", guard().workers), "Tokens(2)");
    }

    #[test]
    fn a_peer_may_call_so_often() {
        let (rate_limit, start) = (RateLimit::default(), Instant::now());
        let [one, other] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
        let calls = |peer, at| (0..100).filter(|_| rate_limit.admits(peer, 10, at)).count();
        assert_eq!(calls(one, start), 10);
        assert_eq!(calls(other, start), 10, "others have their own pace");
        assert_eq!(calls(one, start + Duration::from_millis(500)), 5);
        assert_eq!(calls(one, start + Duration::from_secs(60)), 10);
    }
}
