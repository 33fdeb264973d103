//! The commands of operators: `submit`, `watch`, `pause`, `cancel`, and `runs` of a coordinator.

use crate::check::bytes;
use crate::clock;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::protection::Credentials;
use crate::runs::{LabelColumn, Reached, has_labels};
use crate::signals::Signals;
use crate::store_argument::StoreArgument;
use crate::terminal::{message, out};
use crate::tournament;
use crate::{look, run_name};
use evolution::epoch::Standing;
use experiment::duration;
use experiment::file::BudgetKeys;
use proto::convert;
use proto::v1;
use proto::v1::operator_client::OperatorClient;
use proto::v1::run_status::{Kind, State};
use report::text::{number, plain};
use run::export::Parts;
use run::naming::{Choice, Known, choose, refusal};
use run::summary::RunKind;
use run::{Label, LabelChange, Lock, RunId};
use serde::de::DeserializeOwned;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use store::Store;
use tonic::{Code, Status};
use worker::{AuthorizedChannel, Bearer, ConnectionProbe, CredentialError};

/// Where a coordinator is unless something else is said.
pub(crate) const DEFAULT: &str = "http://127.0.0.1:7440";
/// How long one look at a run waits for something to change.
const LOOK: Duration = Duration::from_millis(200);
/// How long to wait between two looks at a run: a busy one changes all the time.
const BETWEEN: Duration = Duration::from_millis(200);
/// Looks at a run that waits for its first worker, before that is worth a word.
const PATIENCE: u32 = 10;
/// How long one of several coordinators may take to say whether it serves.
const ANSWER: Duration = Duration::from_secs(5);
/// How long to wait before asking a coordinator again that did not respond.
const AGAIN: Duration = Duration::from_millis(500);
/// How often it is said that a coordinator does not respond.
const SAY_AGAIN: Duration = Duration::from_secs(30);
/// How long a coordinator may be silent before watching ends: long enough for a restart or a standby.
pub(crate) const SILENCE: Duration = Duration::from_mins(10);

/// The coordinator that a command talks to.
#[derive(clap::Args, Clone)]
pub(crate) struct CoordinatorArgument {
    /// The coordinator; separate several (standbys) with commas
    #[arg(long = "coordinator", value_name = "URL", env = "ATOLL_COORDINATOR", default_value = DEFAULT)]
    url: String,
    #[command(flatten)]
    credentials: Credentials,
}

impl CoordinatorArgument {
    pub(crate) async fn connect(&self) -> Result<Remote, Failure> {
        Remote::connect(&self.url, &self.credentials).await
    }
}

#[derive(clap::Args)]
pub(crate) struct SubmitArguments {
    /// The experiment, sweep, study or tournament to run
    file: PathBuf,
    #[command(flatten)]
    coordinator: CoordinatorArgument,
    /// Override the seed of the file
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = crate::run::seed)]
    seed: Option<u64>,
    /// Runs with a higher priority are computed first [default: 0, or what the run has]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Start a new run instead of resuming
    #[arg(long)]
    fresh: bool,
    /// Add a label to the run; may be repeated
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<Label>,
    /// Wait until the run ends
    #[arg(long)]
    wait: bool,
    /// With `--wait`: stop waiting once the coordinator has not responded for this long
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration::parse)]
    give_up_after: Duration,
    /// Print the result as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct WatchArguments {
    /// The run to watch
    run: String,
    #[command(flatten)]
    store: StoreArgument,
    /// A run of a coordinator instead of a local store; also `ATOLL_COORDINATOR` [default: the coordinator of this machine,
    /// if the store has no such run, or is served by one]
    #[arg(long, value_name = "URL")]
    coordinator: Option<String>,
    #[command(flatten)]
    credentials: Credentials,
    /// Stop watching once the coordinator has not responded for this long
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration::parse)]
    give_up_after: Duration,
    /// Print the result as one JSON object on stdout
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(crate) struct PauseArguments {
    /// The run to pause
    run: String,
    #[command(flatten)]
    coordinator: CoordinatorArgument,
    /// Resume it
    #[arg(long)]
    off: bool,
}

#[derive(clap::Args)]
pub(crate) struct CancelArguments {
    /// The run to cancel
    run: String,
    #[command(flatten)]
    coordinator: CoordinatorArgument,
}

/// A coordinator, to an operator: of several, the one that serves.
pub(crate) struct Remote {
    client: OperatorClient<AuthorizedChannel>,
    url: String,
    /// The others, which may take over.
    others: VecDeque<(OperatorClient<AuthorizedChannel>, String)>,
}

impl Remote {
    pub(crate) fn new(url: &str, credentials: &Credentials) -> Result<Self, Failure> {
        let endpoint = worker::endpoint(url, &credentials.trust()?).map_err(|error| match error {
            CredentialError::Url { .. } => Failure::Usage(error.to_string()),
            error => Failure::Config(error.to_string()),
        })?;
        let bearer = Bearer(credentials.token(url)?);
        let client = OperatorClient::with_interceptor(endpoint.connect_lazy(), bearer);
        let client = client.max_decoding_message_size(64 << 20);
        Ok(Self { client, url: url.to_owned(), others: VecDeque::new() })
    }

    /// The same for the one of several that serves, unless there will never be a connection.
    pub(crate) async fn connect(urls: &str, credentials: &Credentials) -> Result<Self, Failure> {
        let mut remotes = vec![];
        for url in urls.split(',').map(str::trim) {
            remotes.push(Self::connect_to(url, credentials).await);
        }
        if remotes.len() > 1 && remotes.iter().any(Result::is_ok) {
            // One that is not trusted does not keep the others from being asked.
            remotes.retain(Result::is_ok);
        }
        let mut remotes = remotes.into_iter();
        let mut remote = remotes.next().expect("a split text has a part")?;
        for other in remotes {
            let Self { client, url, .. } = other?;
            remote.others.push_back((client, url));
        }
        for _ in 0..remote.others.len() {
            if remote.serves().await {
                break;
            }
            remote.ask_next();
        }
        Ok(remote)
    }

    /// Whether it answers, and does not only stand by.
    async fn serves(&mut self) -> bool {
        let nothing = v1::StatusRequest { run: String::new(), known_version: 0, wait_milliseconds: 0 };
        match tokio::time::timeout(ANSWER, self.client.status(nothing)).await {
            Ok(answer) => !answer.is_err_and(|status| status.code() == Code::Unavailable),
            Err(_) => false,
        }
    }

    /// From now on, another one is asked, if there is one.
    fn ask_next(&mut self) {
        if let Some((client, url)) = self.others.pop_front() {
            let asked = (std::mem::replace(&mut self.client, client), std::mem::replace(&mut self.url, url));
            self.others.push_back(asked);
        }
    }

    async fn connect_to(url: &str, credentials: &Credentials) -> Result<Self, Failure> {
        let remote = Self::new(url, credentials)?;
        let look = ConnectionProbe::new(url, &credentials.trust()?)
            .map_err(|error| Failure::Config(error.to_string()))?;
        match look.distrust().await {
            Some(reason) => {
                Err(Failure::Config(format!("no connection with the coordinator at {url}: {reason}")))
            }
            None => Ok(remote),
        }
    }

    fn failure(&self, status: &Status) -> Failure {
        match status.code() {
            Code::InvalidArgument => Failure::Config(status.message().to_owned()),
            Code::Unauthenticated | Code::PermissionDenied => Failure::Config(format!(
                "the coordinator at {} rejects the call: {}",
                self.url,
                status.message()
            )),
            Code::Unavailable => {
                let hint = "is it running? start one with `atoll coordinator`";
                Failure::Other(format!(
                    "the coordinator at {} does not respond: {}; {hint}",
                    self.url,
                    status.message()
                ))
            }
            Code::Unimplemented => {
                let url = &self.url;
                Failure::Other(format!("the coordinator at {url} is too old for this command: upgrade it"))
            }
            _ => Failure::Other(status.message().to_owned()),
        }
    }

    /// The same for a call that a run of this kind or budget does not allow: with the exit code of a run of a folder.
    fn unsuitable(&self, status: &Status) -> Failure {
        match status.code() {
            Code::FailedPrecondition => Failure::Usage(status.message().to_owned()),
            _ => self.failure(status),
        }
    }

    pub(crate) async fn submit(&mut self, request: v1::SubmitRequest) -> Result<String, Failure> {
        match self.client.submit(request).await {
            Ok(reply) => Ok(reply.into_inner().run),
            Err(status) => Err(self.failure(&status)),
        }
    }

    /// Everything that the coordinator sends of a run.
    pub(crate) async fn parts(&mut self, run: &str) -> Result<Parts, Failure> {
        let reply = self.client.export(v1::ExportRequest { run: run.to_owned() }).await;
        let mut parts = reply.map_err(|status| self.unsuitable(&status))?.into_inner();
        let mut all = Parts::new();
        while let Some(part) = parts.message().await.map_err(|status| self.failure(&status))? {
            all.entry(part.name).or_default().extend_from_slice(&part.bytes);
        }
        Ok(all)
    }

    /// What the JSON API of the dashboard returns for a path.
    pub(crate) async fn view<T: DeserializeOwned>(&mut self, path: &str) -> Result<T, Failure> {
        let reply = self.client.view(v1::ViewRequest { path: path.to_owned() }).await;
        let reply = reply.map_err(|status| self.failure(&status))?.into_inner();
        parse(&reply.json)
    }

    /// The same for a caller that looks again and again; nothing while no coordinator answers, which may take a restart or
    /// a standby.
    pub(crate) async fn view_or_wait<T: DeserializeOwned>(
        &mut self,
        path: &str,
        (silence, patience): (&mut Silence, Duration),
    ) -> Result<Option<T>, Failure> {
        match self.client.view(v1::ViewRequest { path: path.to_owned() }).await {
            Ok(reply) => {
                *silence = Silence::default();
                parse(&reply.into_inner().json).map(Some)
            }
            Err(status) if is_silence(&status) => {
                if silence.is_over(patience) {
                    return Err(self.given_up(patience));
                }
                self.ask_next();
                Ok(None)
            }
            Err(status) => Err(self.failure(&status)),
        }
    }

    fn given_up(&self, patience: Duration) -> Failure {
        let patience = duration::show(patience);
        let url = &self.url;
        Failure::Other(format!(
            "the coordinator at {url} has not responded for {patience}; the run may continue there"
        ))
    }

    /// Changes the labels of a run; returns all of them.
    pub(crate) async fn label(&mut self, run: &str, change: &LabelChange) -> Result<Vec<String>, Failure> {
        let [add, remove] = [&change.add, &change.remove].map(strings);
        let reply = self.client.label(v1::LabelRequest { run: run.to_owned(), add, remove }).await;
        reply.map(|reply| reply.into_inner().labels).map_err(|status| self.unsuitable(&status))
    }

    /// Gives a worker no more work, or gives it work again.
    pub(crate) async fn drain(&mut self, worker: &str, drain: bool) -> Result<(), Failure> {
        let request = v1::DrainRequest { worker: worker.to_owned(), drain };
        let reply = self.client.drain(request).await;
        reply.map(|_| ()).map_err(|status| self.failure(&status))
    }

    /// The run that a text stands for.
    pub(crate) async fn find(&mut self, text: &str) -> Result<String, Failure> {
        match self.client.list_runs(v1::ListRunsRequest { with_disk: false }).await {
            Ok(reply) => self.choose(text, reply.into_inner().runs),
            Err(status) => Err(self.failure(&status)),
        }
    }

    /// The same; nothing if there is no coordinator.
    async fn find_if_there(&mut self, text: &str) -> Result<Option<String>, Failure> {
        match self.client.list_runs(v1::ListRunsRequest { with_disk: false }).await {
            Ok(reply) => self.choose(text, reply.into_inner().runs).map(Some),
            Err(status) if status.code() == Code::Unavailable => Ok(None),
            Err(status) => Err(self.failure(&status)),
        }
    }

    fn choose(&self, text: &str, runs: Vec<v1::RunStatus>) -> Result<String, Failure> {
        let is_study = |run: &&v1::RunStatus| run.kind() == Kind::Study;
        let studies: Vec<String> = runs.iter().filter(is_study).map(|run| format!("{}.", run.run)).collect();
        let is_part = |run: &str| studies.iter().any(|study| run.starts_with(study));
        let known = runs.into_iter().map(|run| Known {
            is_part: is_part(&run.run),
            created: run.created,
            id: run.run,
        });
        let known: Vec<Known> = known.collect();
        let (place, list) = (format!("at {}", self.url), format!("atoll runs --coordinator {}", self.url));
        match choose(text, &known) {
            Choice::One(run) => Ok(run.to_owned()),
            choice @ Choice::Several(_) => Err(Failure::Usage(refusal(text, &choice, &place, &list))),
            choice @ Choice::None(_) => Err(Failure::Other(refusal(text, &choice, &place, &list))),
        }
    }

    /// Where a run stands.
    pub(crate) async fn look(&mut self, run: &str) -> Result<v1::RunStatus, Failure> {
        let request = v1::StatusRequest { run: run.to_owned(), known_version: 0, wait_milliseconds: 0 };
        let reply = self.client.status(request).await.map_err(|status| self.failure(&status))?;
        reply.into_inner().status.ok_or_else(no_status)
    }

    /// Where a run stands; asks again while no coordinator answers, but not for ever.
    async fn status(
        &mut self,
        run: &str,
        known: u64,
        (progress, patience): (Option<&Progress>, Duration),
    ) -> Result<v1::StatusReply, Failure> {
        let mut silence = Silence::default();
        loop {
            let wait_milliseconds = LOOK.as_millis() as u64;
            let request = v1::StatusRequest { run: run.to_owned(), known_version: known, wait_milliseconds };
            match self.client.status(request).await {
                Ok(reply) => return Ok(reply.into_inner()),
                Err(status) if is_silence(&status) => {
                    if silence.is_over(patience) {
                        return Err(self.given_up(patience));
                    }
                    if silence.is_worth_a_word() {
                        progress.map_or_else(|| message!("{NO_ANSWER}"), |progress| progress.say(NO_ANSWER));
                    }
                    tokio::time::sleep(AGAIN).await;
                    self.ask_next();
                }
                Err(status) => return Err(self.failure(&status)),
            }
        }
    }

    /// Shows a run until it has ended, or the coordinator has not responded for a time.
    pub(crate) async fn watch(&mut self, run: &str, patience: Duration) -> Result<v1::RunStatus, Failure> {
        let mut known = 0;
        let mut progress: Option<Progress> = None;
        let mut waiting = 0;
        loop {
            let reply = self.status(run, known, (progress.as_ref(), patience)).await?;
            known = reply.version;
            let status = reply.status.ok_or_else(no_status)?;
            let shown = progress.get_or_insert_with(|| Progress::new(&status));
            shown.show(&status);
            // A study counts as running while its parts wait.
            let is_open = status.state() == State::Waiting || status.state() == State::Running;
            waiting = if is_open && status.leases == 0 && reply.workers == 0 { waiting + 1 } else { 0 };
            if waiting == PATIENCE {
                shown.say("waiting: no worker has joined; start one with `atoll worker`");
            }
            if matches!(status.state(), State::Finished | State::Cancelled | State::Failed) {
                shown.clear();
                return Ok(status);
            }
            tokio::time::sleep(BETWEEN).await;
        }
    }
}

/// What is said while no coordinator answers.
pub(crate) const NO_ANSWER: &str = "the coordinator does not respond; trying again …";

/// For how long no coordinator has answered.
#[derive(Default)]
pub(crate) struct Silence {
    since: Option<Instant>,
    said: Option<Instant>,
}

impl Silence {
    /// Whether it has lasted too long, counted from the first call that was not answered.
    fn is_over(&mut self, patience: Duration) -> bool {
        self.since.get_or_insert_with(Instant::now).elapsed() >= patience
    }

    /// Whether to report it: at first, and then from time to time.
    pub(crate) fn is_worth_a_word(&mut self) -> bool {
        let is_due = self.said.is_none_or(|said| said.elapsed() >= SAY_AGAIN);
        if is_due {
            self.said = Some(Instant::now());
        }
        is_due
    }
}

/// Whether a coordinator that is restarted, or one that stands by, may answer the same call later.
fn is_silence(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled)
}

fn parse<T: DeserializeOwned>(json: &str) -> Result<T, Failure> {
    serde_json::from_str(json).map_err(|error| Failure::Other(format!("the coordinator's reply: {error}")))
}

fn no_status() -> Failure {
    Failure::Other("expected a status, found nothing".to_owned())
}

/// Labels as the protocol has them.
pub(crate) fn strings<'a>(labels: impl IntoIterator<Item = &'a Label>) -> Vec<String> {
    labels.into_iter().map(ToString::to_string).collect()
}

/// The coordinator that a command is for, rather than a store: by its flag, or by `ATOLL_COORDINATOR` where no store is
/// named.
pub(crate) fn chosen(flag: Option<&String>, store: &StoreArgument) -> Option<String> {
    let variable =
        || std::env::var("ATOLL_COORDINATOR").ok().filter(|url| !url.is_empty() && !store.is_named());
    flag.cloned().or_else(variable)
}

pub(crate) async fn submit(arguments: SubmitArguments) -> Result<ExitCode, Failure> {
    let text = experiment::document::read_limited(&arguments.file).map_err(experiment::LoadError::from)?;
    let (text, players) = tournament::text_with_player_files(&arguments.file, text)?;
    let mut remote = arguments.coordinator.connect().await?;
    let SubmitArguments { seed, priority, fresh, .. } = arguments;
    let (file, labels) = (arguments.file.display().to_string(), strings(&arguments.labels));
    let request = v1::SubmitRequest { file, text, seed, priority, fresh, players, labels };
    let run = remote.submit(request).await?;
    // It is submitted, whether the coordinator is still there or not.
    let is_paused = remote.look(&run).await.is_ok_and(|status| status.state() == State::Paused);
    let paused = is_paused.then(|| format!("it is paused: `atoll pause {run} --off` continues it"));
    if arguments.wait {
        message!("run {run} at {}", remote.url);
        if let Some(paused) = paused {
            message!("{paused}");
        }
        let patience = arguments.give_up_after;
        let signals = Signals::listen()?;
        let exit = follow(&mut remote, &run, patience, arguments.json, signals).await?;
        let ended = remote.look(&run).await.ok().filter(|status| status.state() == State::Finished);
        if let Some(status) = ended.filter(|_| !arguments.json) {
            advise(&run, &remote.url, status.kind() == Kind::Evolution);
        }
        return Ok(exit);
    }
    if arguments.json {
        out!("{}", serde_json::json!({ "run": run }));
    } else {
        out!("{run}");
        let next = paused.unwrap_or_else(|| format!("watch it with `atoll watch {run}`"));
        message!("submitted; {next}");
    }
    Ok(ExitCode::SUCCESS)
}

/// What to do with a run of a coordinator that is finished. Reports read the store, which this command does not know.
fn advise(run: &str, url: &str, has_champions: bool) {
    out!("next:");
    out!("  list the runs of this coordinator         atoll runs --coordinator {url}");
    if has_champions {
        out!("  champions and statistics as JSON and CSV  atoll export {run} --coordinator {url}");
    }
    out!("  open the report, where the store is       atoll report {run} --store PLACE");
}

pub(crate) async fn watch(arguments: WatchArguments) -> Result<ExitCode, Failure> {
    let WatchArguments { run, store, coordinator, credentials, give_up_after, json } = arguments;
    let patience = give_up_after;
    if let Some(url) = chosen(coordinator.as_ref(), &store) {
        let mut remote = Remote::connect(&url, &credentials).await?;
        let run = remote.find(&run).await?;
        return watch_remote(remote, (&url, &credentials), &run, patience, json).await;
    }
    let local = local(&store, &run).await?;
    if let Local::Alone(store, run) = local {
        return look::watch(&store, &run, json).await;
    }
    // The coordinator of this machine knows more, if there is one.
    let mut remote = Remote::connect(DEFAULT, &credentials).await?;
    match (remote.find_if_there(&run).await, local) {
        (Ok(Some(run)), _) => watch_remote(remote, (DEFAULT, &credentials), &run, patience, json).await,
        (_, Local::Alone(store, run) | Local::Served(store, run)) => look::watch(&store, &run, json).await,
        (Ok(None), Local::NoStore) => remote.find(&run).await.and(Err(no_status())),
        (Ok(None), Local::Missing(failure)) | (Err(failure), _) => Err(failure),
    }
}

/// Follows a run of a coordinator, on the whole screen if there is one.
async fn watch_remote(
    mut remote: Remote,
    (url, credentials): (&str, &Credentials),
    run: &str,
    patience: Duration,
    json: bool,
) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    if look::has_screen(json) {
        let shown = Remote::connect(url, credentials).await?;
        if !look::watch_remote(shown, run, patience, &mut signals).await? {
            message!("stopped watching; the run continues: `atoll watch {run}`");
            return Ok(ExitCode::from(signals.exit_code()));
        }
    }
    follow(&mut remote, run, patience, json, signals).await
}

/// A run as far as a local store has it.
enum Local {
    /// It is there, and no coordinator serves the store.
    Alone(Store, RunId),
    /// It is there, and a coordinator serves the store: perhaps the one of this machine, perhaps that of a command.
    Served(Store, RunId),
    /// It is not in the store.
    Missing(Failure),
    /// There is no store.
    NoStore,
}

async fn local(place: &StoreArgument, run: &str) -> Result<Local, Failure> {
    let store = match place.open().await {
        Ok(store) => store,
        // A store that was named is expected to be there.
        Err(failure) if place.is_named() => return Err(failure),
        Err(_) => return Ok(Local::NoStore),
    };
    let is_served = Lock::server(&store)?.is_some();
    match run_name::find(&store, run).await {
        Ok(run) if is_served => Ok(Local::Served(store, run)),
        Ok(run) => Ok(Local::Alone(store, run)),
        // A name that stands for several runs is a mistake wherever they are.
        Err(failure @ Failure::Usage(_)) => Err(failure),
        Err(failure) if place.is_named() && !is_served => Err(failure),
        Err(failure) => Ok(Local::Missing(failure)),
    }
}

/// Watches a run until it has ended, and reports how by the exit code. The run continues if this command is stopped.
async fn follow(
    remote: &mut Remote,
    run: &str,
    patience: Duration,
    json: bool,
    mut signals: Signals,
) -> Result<ExitCode, Failure> {
    let watched = tokio::select! {
        status = remote.watch(run, patience) => Some(status?),
        () = signals.asked() => None,
    };
    let Some(status) = watched else {
        message!("stopped watching; the run continues: `atoll watch {run}`");
        return Ok(ExitCode::from(signals.exit_code()));
    };
    print_ended(&status, state_word(status.state()), json);
    Ok(if status.state() == State::Finished { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints how a run ended, or stands, whose state this is in a word.
pub(crate) fn print_ended(status: &v1::RunStatus, state: &str, json: bool) {
    if json {
        out!("{}", to_json(status, state));
        return;
    }
    let reason =
        if status.reason.is_empty() { String::new() } else { format!(": {}", plain(&status.reason)) };
    out!("{state}{reason}");
    if let Ok(Standing { generation, evaluations, best }) = convert::standing(status.standing) {
        let what = match status.kind() {
            Kind::Sweep => "cells",
            Kind::Tournament => "batches",
            Kind::Study => "parts",
            Kind::Evolution | Kind::Unspecified => "generations",
        };
        out!("  {what:<13} {generation}");
        match status.kind() {
            Kind::Tournament => out!("  games         {evaluations}"),
            // Its parts have their own.
            Kind::Study => {}
            Kind::Sweep | Kind::Evolution | Kind::Unspecified => {
                out!("  best fitness  {}", number(best));
                out!("  evaluations   {evaluations}");
            }
        }
    }
    if let Some(digest) = digest(status) {
        out!("  digest        {digest}");
    }
}

fn digest(status: &v1::RunStatus) -> Option<String> {
    let digest = convert::digest("digest", status.digest.as_ref()?).ok()?;
    Some(digest.to_string())
}

/// The same keys as a run on this machine ends with, and what only a cluster knows.
fn to_json(status: &v1::RunStatus, state: &str) -> serde_json::Value {
    let standing = convert::standing(status.standing).ok();
    let seconds = status.elapsed_milliseconds as f64 / 1e3;
    let evaluations = standing.map(|standing| standing.evaluations);
    // The time of a plan of cells is that since it was opened last, and what had been done by then is not known here.
    let is_whole = matches!(status.kind(), Kind::Evolution) && seconds > 0.0;
    let rate = evaluations.filter(|_| is_whole).map(|evaluations| evaluations as f64 / seconds);
    let mut object = serde_json::json!({
        "run": status.run,
        "state": state,
        "digest": digest(status),
        "evaluations": evaluations,
        "evaluations_per_second": rate,
        "seconds": seconds,
        "reason": status.reason,
        "priority": status.priority,
        "leases": status.leases,
        "created": clock::iso(status.created),
    });
    reached(status).add_to(&mut object);
    object
}

fn state_word(state: State) -> &'static str {
    match state {
        State::Unspecified => "unknown",
        State::Waiting => "waiting",
        State::Running => "running",
        State::Paused => "paused",
        State::Finished => "finished",
        State::Cancelled => "cancelled",
        State::Failed => "failed",
    }
}

pub(crate) async fn pause(arguments: PauseArguments) -> Result<ExitCode, Failure> {
    let mut remote = arguments.coordinator.connect().await?;
    let (run, off) = (remote.find(&arguments.run).await?, arguments.off);
    let request = v1::PauseRequest { run: run.clone(), paused: !off };
    remote.client.pause(request).await.map_err(|status| remote.failure(&status))?;
    message!("{} {run}", if off { "resumed" } else { "paused" });
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn cancel(arguments: CancelArguments) -> Result<ExitCode, Failure> {
    let mut remote = arguments.coordinator.connect().await?;
    let run = remote.find(&arguments.run).await?;
    let request = v1::CancelRequest { run: run.clone() };
    remote.client.cancel(request).await.map_err(|status| remote.failure(&status))?;
    message!("cancelled {run}; submit its file again to continue it");
    Ok(ExitCode::SUCCESS)
}

/// Gives a run of a coordinator another budget.
pub(crate) async fn extend(
    url: &str,
    credentials: &Credentials,
    run: &str,
    budget: &BudgetKeys,
    json: bool,
) -> Result<ExitCode, Failure> {
    let mut remote = Remote::connect(url, credentials).await?;
    let run = remote.find(run).await?;
    let request = v1::ExtendRequest { run: run.clone(), budget: serde_json::json!(budget).to_string() };
    remote.client.extend(request).await.map_err(|status| remote.unsuitable(&status))?;
    if json {
        out!("{}", serde_json::json!({ "run": run }));
    }
    message!("extended {run}; watch it with `atoll watch {run} --coordinator {url}`");
    Ok(ExitCode::SUCCESS)
}

/// The runs of a coordinator that have all of these labels.
pub(crate) async fn runs(
    url: &str,
    credentials: &Credentials,
    labels: &[Label],
    json: bool,
) -> Result<ExitCode, Failure> {
    let mut remote = Remote::connect(url, credentials).await?;
    let reply = remote.client.list_runs(v1::ListRunsRequest { with_disk: true }).await;
    let v1::ListRunsReply { runs, disk_bytes } =
        reply.map_err(|status| remote.failure(&status))?.into_inner();
    // An older coordinator measures nothing.
    let runs = runs.iter().enumerate().map(|(at, run)| (run, disk_bytes.get(at).copied()));
    let runs: Vec<(&v1::RunStatus, Option<u64>)> =
        runs.filter(|(run, _)| has_labels(&run.labels, labels)).collect();
    if json {
        let objects = runs.iter().map(|(run, disk)| {
            let mut object = listed(run);
            object["disk_bytes"] = (*disk).into();
            object
        });
        out!("{}", serde_json::Value::Array(objects.collect()));
        return Ok(ExitCode::SUCCESS);
    }
    let width = runs.iter().map(|(run, _)| run.run.len()).max().unwrap_or(3).max(3);
    let column = LabelColumn::of(runs.iter().map(|(run, _)| run.labels.as_slice()));
    out!(
        "{:<width$}  {:<10}  {:<9} {:>8}  {:>18}  {:>14}  {:>8}{}  DIGEST OR REASON",
        "RUN",
        "KIND",
        "STATE",
        "PRIORITY",
        "PROGRESS",
        "BEST",
        "DISK",
        column.head()
    );
    for (status, disk) in runs {
        let (kind, [done, best]) = (kind(status).name(), reached(status).columns());
        // A run without a digest may have a reason.
        let digest = digest(status).map_or_else(|| plain(&status.reason), |digest| digest[..12].to_owned());
        let (run, state, priority) = (&status.run, state_word(status.state()), status.priority);
        let (disk, labels) = (disk.map_or("–".to_owned(), bytes), column.cell(&status.labels));
        out!(
            "{run:<width$}  {kind:<10}  {state:<9} {priority:>8}  {done:>18}  {best:>14}  {disk:>8}{labels}  {digest}"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// What a run consists of.
pub(crate) fn kind(status: &v1::RunStatus) -> RunKind {
    match status.kind() {
        Kind::Sweep => RunKind::Sweep,
        Kind::Tournament => RunKind::Tournament,
        Kind::Study => RunKind::Study,
        Kind::Evolution | Kind::Unspecified => RunKind::Evolution,
    }
}

/// How far a run is.
fn reached(status: &v1::RunStatus) -> Reached {
    let standing = convert::standing(status.standing).ok();
    let done = standing.map_or(0, |standing| standing.generation);
    let best = standing.map_or(f64::NAN, |standing| standing.best);
    let goal = status.goal.unwrap_or(0);
    match status.kind() {
        Kind::Sweep => Reached::Sweep { cells: done, goal, best },
        Kind::Tournament => {
            let games = standing.map_or(0, |standing| standing.evaluations);
            Reached::Tournament { games, strongest: None }
        }
        Kind::Study => Reached::Study { parts: done, goal },
        Kind::Evolution | Kind::Unspecified => Reached::Evolution { generations: done, best },
    }
}

/// A run in a list: the keys of a list of a folder, and what only a cluster knows.
fn listed(status: &v1::RunStatus) -> serde_json::Value {
    let mut object = to_json(status, state_word(status.state()));
    object["kind"] = kind(status).name().into();
    object["labels"] = status.labels.as_slice().into();
    object
}
