//! Certificates and tokens, with real processes: every wrong combination is refused with its own words, and no secret
//! is ever said.

use crate::process::{Coordinator, EXPERIMENT, Folder, Process, Variables, atoll, json, text, wait_until};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{ChildStderr, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A cluster's secrets, made by `atoll certs`, and another cluster's.
struct Secrets {
    folder: Folder,
}

const SECURED: [&str; 8] = [
    "--tls-cert",
    "own/coordinator.pem",
    "--tls-key",
    "own/coordinator-key.pem",
    "--worker-token-file",
    "own/worker.token",
    "--operator-token-file",
    "own/operator.token",
];
const TRUSTING: [&str; 2] = ["--tls-ca", "own/ca.pem"];
const WITH_CERTIFICATE: [&str; 4] = ["--tls-cert", "own/client.pem", "--tls-key", "own/client-key.pem"];

impl Secrets {
    fn new() -> Self {
        let folder = Folder::new();
        for name in ["own", "other"] {
            let made = folder.atoll(&["certs", "--to", name]);
            assert!(made.status.success(), "{}", text(&made.stderr));
        }
        Self { folder }
    }

    fn coordinator(&self, arguments: &[&str]) -> Coordinator {
        self.folder.coordinator_with(arguments, vec![("ATOLL_LOG".to_owned(), "debug".to_owned())])
    }

    fn secret(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap().trim().to_owned()
    }

    /// A worker that must not get in: answers what it said. It would try for ever if it took that for a passing trouble.
    fn refused_worker(&self, url: &str, arguments: &[&str], variables: &Variables) -> Output {
        let child = atoll()
            .args(["worker", "--threads", "1", "--coordinator", url])
            .args(arguments)
            .envs(variables.clone())
            .current_dir(self.folder.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut worker = Process(child);
        worker.ended();
        let Process(child) = &mut worker;
        let mut said = vec![];
        child.stderr.take().unwrap().read_to_end(&mut said).unwrap();
        Output { status: child.wait().unwrap(), stdout: vec![], stderr: said }
    }

    fn operator(&self, url: &str, arguments: &[&str]) -> Output {
        let mut command = atoll();
        command.args(arguments).args(["--coordinator", url]).current_dir(self.folder.path());
        command.output().unwrap()
    }
}

fn expect(output: &Output, said: &str) {
    assert_eq!(output.status.code(), Some(78), "{output:?}");
    assert!(text(&output.stderr).contains(said), "expected {said:?} in {}", text(&output.stderr));
}

fn with<'a>(groups: &[&[&'a str]]) -> Vec<&'a str> {
    groups.concat()
}

#[test]
fn a_secured_cluster_works_and_says_no_secret() {
    let secrets = Secrets::new();
    let coordinator =
        secrets.coordinator(&with(&[&SECURED, &["--tls-client-ca", "own/ca.pem", "--exit-when-done"]]));
    let file = secrets.folder.file("quick.toml", &EXPERIMENT.replace("3000", "300"));
    let operator = with(&[&TRUSTING, &WITH_CERTIFICATE, &["--token-file", "own/operator.token"]]);
    let submitted = secrets.operator(&coordinator.url(), &with(&[&["submit", &file, "--json"], &operator]));
    let run = json(&submitted)["run"].as_str().unwrap().to_owned();
    let worker = with(&[&TRUSTING, &WITH_CERTIFICATE, &["--token-file", "own/worker.token"]]);
    let mut child = atoll();
    child.args(["worker", "--threads", "1", "--coordinator", &coordinator.url()]).args(&worker);
    let worked = child.env("ATOLL_LOG", "trace").current_dir(secrets.folder.path()).output().unwrap();
    assert!(worked.status.success(), "{}", text(&worked.stderr));
    let mut coordinator = coordinator;
    assert_eq!(coordinator.process.ended(), Some(0));

    let listed = secrets.folder.atoll(&["runs", "--json"]);
    assert_eq!((&json(&listed)[0]["run"], &json(&listed)[0]["state"]), (&run.into(), &"finished".into()));
    let printed = secrets.folder.atoll(&with(&[&["coordinator", "--print-config"], &SECURED]));
    let everything =
        [coordinator.said(), text(&worked.stderr), text(&submitted.stderr), text(&printed.stdout)].concat();
    assert!(everything.len() > 1000, "there are logs to look at");
    for name in ["own/worker.token", "own/operator.token", "own/coordinator-key.pem", "own/client-key.pem"] {
        let secret = secrets.secret(name);
        let telling = secret.lines().find(|line| !line.starts_with("---")).unwrap();
        assert!(!everything.contains(telling), "{name} was said");
    }
}

#[test]
fn wrong_certificates_are_refused_for_good() {
    let secrets = Secrets::new();
    let token = ["--token-file", "own/worker.token"];
    let coordinator = secrets.coordinator(&with(&[&SECURED, &["--tls-client-ca", "own/ca.pem"]]));
    let url = coordinator.url();
    let plain_url = url.replace("https", "http");
    let other_authority = ["--tls-ca", "other/ca.pem"];
    let other_certificate = ["--tls-cert", "other/client.pem", "--tls-key", "other/client-key.pem"];
    let servers_certificate = ["--tls-cert", "own/coordinator.pem", "--tls-key", "own/coordinator-key.pem"];
    let metrics_url = format!("https://{}", coordinator.http);
    for (url, arguments, said) in [
        (
            &url,
            with(&[&other_authority, &WITH_CERTIFICATE, &token]),
            "not signed by the authority in `tls_ca`",
        ),
        (&url, with(&[&TRUSTING, &token]), "it requires a client certificate"),
        (&url, with(&[&TRUSTING, &other_certificate, &token]), "another authority has signed it"),
        (&url, with(&[&TRUSTING, &servers_certificate, &token]), "it was not made for clients"),
        (
            &metrics_url,
            with(&[&TRUSTING, &WITH_CERTIFICATE, &token]),
            "is that the address of health and metrics?",
        ),
        (&url, with(&[&token]), "expected a file with the certificate authority (`tls_ca`)"),
        (&plain_url, with(&[&token]), "it speaks TLS: use https://"),
        (&plain_url, with(&[&TRUSTING, &token]), "nothing would be encrypted"),
    ] {
        let worker = secrets.refused_worker(url, &arguments, &vec![]);
        expect(&worker, said);
        let operator = secrets.operator(url, &with(&[&["runs"], &arguments]));
        expect(&operator, said);
    }
    let plain = secrets.coordinator(&["--store", "plain-store"]);
    let encrypted_url = plain.url().replace("http", "https");
    expect(&secrets.refused_worker(&encrypted_url, &TRUSTING, &vec![]), "it does not speak TLS");
}

/// Fetches a page over TLS with another client, which shows no certificate.
fn page_over_tls(secrets: &Secrets, url: &str, token: Option<&str>) -> (u16, String) {
    let script = "import ssl, sys, urllib.request as web\n\
                  context = ssl.create_default_context(cafile=sys.argv[2])\n\
                  headers = {'Authorization': 'Bearer ' + sys.argv[3]} if sys.argv[3] else {}\n\
                  try:\n\
                  \x20   page = web.urlopen(web.Request(sys.argv[1], headers=headers), context=context, timeout=10)\n\
                  except web.HTTPError as error:\n\
                  \x20   page = error\n\
                  print(page.status)\n\
                  print(page.read().decode())\n";
    let authority = secrets.folder.path().join("own/ca.pem");
    let output = std::process::Command::new("python3")
        .args(["-c", script, url, authority.to_str().unwrap(), token.unwrap_or_default()])
        .output()
        .unwrap();
    let said = text(&output.stdout);
    let (status, page) = said.split_once('\n').unwrap_or_else(|| panic!("{}", text(&output.stderr)));
    (status.parse().unwrap(), page.to_owned())
}

#[test]
fn probes_need_no_certificate_and_metrics_a_token() {
    let secrets = Secrets::new();
    let coordinator = secrets.coordinator(&with(&[&SECURED, &["--tls-client-ca", "own/ca.pem"]]));
    let page = |path: &str, token: Option<&str>| {
        page_over_tls(&secrets, &format!("https://{}{path}", coordinator.http), token)
    };
    wait_until("readiness", || page("/readyz", None) == (200, "ready\n\n".to_owned()));
    assert_eq!(page("/healthz", None), (200, "ok\n\n".to_owned()));
    assert_eq!(page("/metrics", None).0, 401);
    assert_eq!(page("/metrics", Some(&secrets.secret("own/worker.token"))).0, 401);
    let (status, metrics) = page("/metrics", Some(&secrets.secret("own/operator.token")));
    assert_eq!(status, 200);
    assert!(metrics.contains("\natoll_workers 0\n"), "{metrics}");
}

#[test]
fn a_certificate_for_another_host_is_refused() {
    let secrets = Secrets::new();
    let made = secrets.folder.atoll(&["certs", "--to", "far", "--host", "far.example"]);
    assert!(made.status.success());
    let coordinator =
        secrets.coordinator(&["--tls-cert", "far/coordinator.pem", "--tls-key", "far/coordinator-key.pem"]);
    let worker = secrets.refused_worker(&coordinator.url(), &["--tls-ca", "far/ca.pem"], &vec![]);
    expect(&worker, "its certificate is not valid for this host");
}

#[test]
fn the_viewers_token_of_certs_looks_and_changes_nothing() {
    let secrets = Secrets::new();
    let coordinator = secrets.coordinator(&with(&[&SECURED, &["--viewer-token-file", "own/viewer.token"]]));
    let viewer = with(&[&TRUSTING, &["--token-file", "own/viewer.token"]]);
    let listed = secrets.operator(&coordinator.url(), &with(&[&["runs", "--json"], &viewer]));
    assert_eq!(text(&listed.stdout), "[]\n", "{listed:?}");
    let file = secrets.folder.file("quick.toml", EXPERIMENT);
    let rejected = secrets.operator(&coordinator.url(), &with(&[&["submit", &file], &viewer]));
    expect(&rejected, "an operator's token, found one with another permission");
}

#[test]
fn wrong_tokens_are_refused_for_good() {
    let secrets = Secrets::new();
    let coordinator = secrets.coordinator(&SECURED);
    let url = coordinator.url();
    let none: [&str; 0] = [];
    for (token, said) in [
        (&none[..], "expected a worker's token, found none"),
        (&["--token-file", "other/worker.token"], "expected a token that is known here, found another"),
    ] {
        let worker = secrets.refused_worker(&url, &with(&[&TRUSTING, token]), &vec![]);
        expect(&worker, said);
        assert!(text(&worker.stderr).contains("rejects this worker's token"));
    }
    let as_worker = with(&[&TRUSTING, &["--token-file", "own/operator.token"]]);
    let worker = secrets.refused_worker(&url, &as_worker, &vec![]);
    expect(&worker, "expected a worker's token, found one with another permission");
    let insecure =
        secrets.refused_worker("http://192.0.2.1:7440", &["--token-file", "own/worker.token"], &vec![]);
    expect(&insecure, "the token would be sent unencrypted");

    let file = secrets.folder.file("quick.toml", EXPERIMENT);
    let with_workers_token = with(&[&TRUSTING, &["--token-file", "own/worker.token"]]);
    for command in
        [&["submit", file.as_str()][..], &["cancel", "any"], &["pause", "any"], &["runs"], &["watch", "any"]]
    {
        let refused = secrets.operator(&url, &with(&[command, &with_workers_token]));
        expect(&refused, "an operator's token, found one with another permission");
    }
    let without = secrets.operator(&url, &with(&[&["submit", &file], &TRUSTING]));
    expect(&without, "an operator's token, found none");
}

#[test]
fn tokens_are_changed_one_after_the_other() {
    let secrets = Secrets::new();
    let (old, new) = (secrets.secret("own/operator.token"), secrets.secret("other/operator.token"));
    let variables = vec![
        ("ATOLL_WORKER_TOKENS".to_owned(), secrets.secret("own/worker.token")),
        ("ATOLL_OPERATOR_TOKENS".to_owned(), new.clone()),
    ];
    let coordinator =
        secrets.folder.coordinator_with(&["--operator-token-file", "own/operator.token"], variables);
    for token in [old, new] {
        let listed = atoll()
            .args(["runs", "--json", "--coordinator", &coordinator.url()])
            .env("ATOLL_TOKEN", token)
            .output();
        assert_eq!(json(&listed.unwrap()), serde_json::json!([]));
    }
    assert!(coordinator.page("/healthz").ends_with("ok\n"), "who probes needs no token");
    let metrics = coordinator.page("/metrics");
    assert!(metrics.starts_with("HTTP/1.1 401") && !metrics.contains("atoll_workers"), "{metrics}");
}

/// Collects what a process says.
fn read_along(stderr: ChildStderr) -> Arc<Mutex<String>> {
    let said = Arc::new(Mutex::new(String::new()));
    let log = said.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            log.lock().unwrap().extend([&line, "\n"]);
        }
    });
    said
}

/// A metric of the worker that has said in this log where its metrics are.
fn worker_metric(log: &Mutex<String>, name: &str) -> u64 {
    let said = log.lock().unwrap().clone();
    let address = said.lines().find_map(|line| line.split_once("health and metrics at http://"));
    let (_, address) = address.unwrap_or_else(|| panic!("no address in {said}"));
    let mut stream = TcpStream::connect(address.trim()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

#[test]
fn tokens_and_certificates_are_rotated_while_workers_work() {
    let secrets = Secrets::new();
    let write = |name: &str, parts: &[&str]| {
        let text: Vec<String> = parts.iter().map(|part| secrets.secret(part)).collect();
        secrets.folder.file(name, &(text.join("\n") + "\n"))
    };
    // At first everything is of this cluster, in the end of the other one.
    for worker in ["honest", "revoked"] {
        write(&format!("{worker}-authorities.pem"), &["own/ca.pem"]);
    }
    write("clients.pem", &["own/ca.pem"]);
    write("tokens", &["own/worker.token"]);
    for (file, from) in [("cert", "coordinator"), ("key", "coordinator-key")] {
        write(&format!("{file}.pem"), &[&format!("own/{from}.pem")]);
    }
    for worker in ["honest", "revoked"] {
        write(&format!("{worker}.token"), &["own/worker.token"]);
        write(&format!("{worker}.pem"), &["own/client.pem"]);
        write(&format!("{worker}-key.pem"), &["own/client-key.pem"]);
    }
    // Longer than any machine needs for what follows: it is cancelled at the end.
    let endless = EXPERIMENT.replace("generations = 3000", "generations = 100000000");
    let experiment = secrets.folder.file("experiment.toml", &endless);
    let mut coordinator = secrets.folder.coordinator_with(
        &with(&[
            &["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--tls-client-ca", "clients.pem"],
            &["--worker-token-file", "tokens", "--operator-token-file", "own/operator.token"],
            &["--run", &experiment, "--exit-when-done", "--lease", "1s"],
        ]),
        vec![("ATOLL_RELOAD_EVERY".to_owned(), "100ms".to_owned())],
    );
    let start = |name: &str| {
        let mut command = atoll();
        command.args(["worker", "--threads", "1", "--coordinator", &coordinator.url()]);
        command.args(["--name", name, "--http", "127.0.0.1:0"]);
        command.args([
            "--tls-ca",
            &format!("{name}-authorities.pem"),
            "--token-file",
            &format!("{name}.token"),
        ]);
        command.args(["--tls-cert", &format!("{name}.pem"), "--tls-key", &format!("{name}-key.pem")]);
        command.env("ATOLL_RELOAD_EVERY", "100ms").env("ATOLL_LOG", "info").stderr(Stdio::piped());
        let mut process = Process(command.current_dir(secrets.folder.path()).spawn().unwrap());
        let log = read_along(process.0.stderr.take().unwrap());
        (process, log)
    };
    let said = |count: usize, words: &str| {
        wait_until(words, || coordinator.said().matches(words).count() >= count);
    };
    let ((mut honest, log), (revoked, _)) = (start("honest"), start("revoked"));
    let replaced = |count: usize| {
        let words = "token or certificates were replaced";
        wait_until(words, || log.lock().unwrap().matches(words).count() >= count);
    };
    said(2, "joined");

    secrets.folder.file("tokens", "short");
    said(1, "cannot be used; the old ones stay in force");
    write("tokens", &["other/worker.token", "own/worker.token"]);
    said(1, "tokens were replaced");
    write("honest.token", &["other/worker.token"]);
    replaced(1);
    write("honest-authorities.pem", &["own/ca.pem", "other/ca.pem"]);
    replaced(2);
    write("clients.pem", &["own/ca.pem", "other/ca.pem"]);
    said(1, "certificates were replaced");
    write("cert.pem", &["other/coordinator.pem"]);
    write("key.pem", &["other/coordinator-key.pem"]);
    said(2, "certificates were replaced");
    // From here on the worker makes new handshakes, with the new certificates of both sides.
    write("honest.pem", &["other/client.pem"]);
    write("honest-key.pem", &["other/client-key.pem"]);
    replaced(3);
    let granted = worker_metric(&log, "atoll_worker_grants_total");
    wait_until("work over the new connection", || {
        worker_metric(&log, "atoll_worker_grants_total") >= granted + 2
    });
    assert!(!coordinator.said().contains("call rejected"), "{}", coordinator.said());
    write("tokens", &["other/worker.token"]);
    said(1, "call rejected");
    write("clients.pem", &["other/ca.pem"]);
    said(3, "certificates were replaced");
    let granted = worker_metric(&log, "atoll_worker_grants_total");
    wait_until("work after the revocation", || {
        worker_metric(&log, "atoll_worker_grants_total") >= granted + 2
    });
    let said = log.lock().unwrap().clone();
    assert_eq!(worker_metric(&log, "atoll_worker_calls_failed_total"), 0, "{said}");
    assert!(!said.contains("joining again"), "it is the same session: {said}");

    let operator = with(&[
        &["--tls-ca", "other/ca.pem", "--tls-cert", "other/client.pem", "--tls-key", "other/client-key.pem"],
        &["--token-file", "own/operator.token"],
    ]);
    let listed = json(&secrets.operator(&coordinator.url(), &with(&[&["runs", "--json"], &operator])));
    let run = listed[0]["run"].as_str().unwrap();
    let cancelled = secrets.operator(&coordinator.url(), &with(&[&["cancel", run], &operator]));
    assert!(cancelled.status.success(), "{}", text(&cancelled.stderr));
    assert_eq!(honest.ended(), Some(5));
    assert_eq!(coordinator.process.ended(), Some(5));
    let log = log.lock().unwrap();
    assert!(!log.contains("refused"), "{log}");
    revoked.kill();
}

/// A worker that has a new token before its coordinator does continues with the old one until the new one is accepted.
#[test]
fn a_token_that_the_coordinator_learns_of_last_is_not_used_before() {
    let folder = Folder::new();
    let (old, new) = ("0123456789-the-old", "0123456789-the-new");
    let coordinator = coordinator_with_tokens(&folder, old, often());
    let (_worker, log) = worker_with_tokens(&folder, &coordinator.url(), old, &[]);
    let said = |words: &str| wait_until(words, || log.lock().unwrap().contains(words));
    said("joined the coordinator");
    folder.file("token", new);
    said("not accepted yet; the old ones stay in use");
    let granted = worker_metric(&log, "atoll_worker_grants_total");
    wait_until("more work", || worker_metric(&log, "atoll_worker_grants_total") >= granted + 2);
    folder.file("tokens", &format!("{new}\n{old}\n"));
    said("token or certificates were replaced");
    folder.file("tokens", new);
    wait_until("the revocation", || coordinator.said().matches("tokens were replaced").count() >= 2);
    let granted = worker_metric(&log, "atoll_worker_grants_total");
    wait_until("work after it", || worker_metric(&log, "atoll_worker_grants_total") >= granted + 2);
    let log = log.lock().unwrap();
    assert!(!log.contains("token rejected") && !log.contains("joining again"), "{log}");
}

/// The steps of docs/operations.md, where both sides mount one Secret and the workers call all the time.
#[test]
fn the_documented_rotation_of_tokens_fails_no_call() {
    let folder = Folder::new();
    let (old, new) = ("0123456789-the-old", "0123456789-the-new");
    let coordinator = coordinator_with_tokens(&folder, old, often());
    let file = folder.path().join("tokens").display().to_string();
    let start = |_| worker_with_token_file(&file, &coordinator.url(), &[]);
    let workers: Vec<(Process, Arc<Mutex<String>>)> = (0..3).map(start).collect();
    let granted = |log: &Mutex<String>| worker_metric(log, "atoll_worker_grants_total");
    let all_work = || {
        let before: Vec<u64> = workers.iter().map(|(_, log)| granted(log)).collect();
        let mut all = workers.iter().zip(before);
        wait_until("work of all", || all.clone().all(|((_, log), before)| granted(log) >= before + 5));
        all.all(|((_, log), _)| worker_metric(log, "atoll_worker_calls_failed_total") == 0)
    };
    wait_until("the workers", || {
        workers.iter().all(|(_, log)| log.lock().unwrap().contains("joined the coordinator"))
    });
    // How often each side has found other tokens by then: those of the second step are the same in another order.
    for (lines, replaced, changed) in
        [(format!("{old}\n{new}\n"), 1, 1), (format!("{new}\n{old}\n"), 1, 2), (new.to_owned(), 2, 3)]
    {
        assert!(all_work());
        // Kubernetes replaces a whole Secret at once.
        std::fs::rename(folder.file("next", &lines), &file).unwrap();
        let count = |said: &str, words: &str| said.matches(words).count();
        wait_until("the coordinator", || count(&coordinator.said(), "tokens were replaced") >= replaced);
        let has_changed = |log: &Mutex<String>| {
            count(&log.lock().unwrap(), "token or certificates were replaced") >= changed
        };
        wait_until("all workers", || workers.iter().all(|(_, log)| has_changed(log)));
    }
    assert!(all_work(), "{}", workers[0].1.lock().unwrap());
    assert!(!coordinator.said().contains("call rejected"), "{}", coordinator.said());
    assert!(
        workers.iter().all(|(_, log)| !log.lock().unwrap().contains("joining again")),
        "one session each"
    );
    let (mut late, _) = worker_with_tokens(&folder, &coordinator.url(), old, &[]);
    assert_eq!(late.ended(), Some(78), "the old one is revoked");
}

/// A worker of a cluster in which the token changes: started with these lines in its file, and with these arguments.
fn worker_with_tokens(
    folder: &Folder,
    url: &str,
    tokens: &str,
    arguments: &[&str],
) -> (Process, Arc<Mutex<String>>) {
    worker_with_token_file(&folder.file("token", tokens), url, arguments)
}

/// The same, with this file.
fn worker_with_token_file(file: &str, url: &str, arguments: &[&str]) -> (Process, Arc<Mutex<String>>) {
    let mut command = atoll();
    command.args(["worker", "--threads", "1", "--coordinator", url, "--http", "127.0.0.1:0"]).args(arguments);
    command.args(["--token-file", file]).env("ATOLL_RELOAD_EVERY", "100ms").env("ATOLL_LOG", "info");
    let mut worker = Process(command.stderr(Stdio::piped()).spawn().unwrap());
    let log = read_along(worker.0.stderr.take().unwrap());
    (worker, log)
}

/// A coordinator that knows one token of workers, in the file `tokens`, and has work without end.
fn coordinator_with_tokens(folder: &Folder, tokens: &str, variables: Variables) -> Coordinator {
    folder.file("tokens", tokens);
    let experiment = EXPERIMENT.replace("generations = 3000", "generations = 100000000");
    let experiment = folder.file("experiment.toml", &experiment);
    let operators = ("ATOLL_OPERATOR_TOKENS".to_owned(), "0123456789-operator".to_owned());
    let variables = [variables, vec![operators]].concat();
    folder.coordinator_with(&["--run", &experiment, "--worker-token-file", "tokens"], variables)
}

/// Tokens and certificates are read again more often than by default.
fn often() -> Variables {
    vec![("ATOLL_RELOAD_EVERY".to_owned(), "100ms".to_owned())]
}

/// One Secret is mounted by both sides, and pods that start see a change before those that run.
#[test]
fn a_worker_that_is_started_between_two_tokens_shows_the_one_that_is_known() {
    let folder = Folder::new();
    let (old, new) = ("0123456789-the-old", "0123456789-the-new");
    let coordinator = coordinator_with_tokens(&folder, old, vec![]);
    let (worker, log) = worker_with_tokens(&folder, &coordinator.url(), &format!("{new}\n{old}\n"), &[]);
    wait_until("a worker", || log.lock().unwrap().contains("joined the coordinator"));
    // With the default of `reload_every`: a call with the old token is refused within a minute.
    let refused = || coordinator.said().matches("call rejected").count();
    let (replaced, before) = (Instant::now(), refused());
    folder.file("tokens", new);
    wait_until("the revocation", || refused() > before);
    assert!(replaced.elapsed() < Duration::from_secs(60), "{:?}", replaced.elapsed());
    let granted = worker_metric(&log, "atoll_worker_grants_total");
    wait_until("work after it", || worker_metric(&log, "atoll_worker_grants_total") >= granted + 2);
    worker.kill();
}

#[test]
fn a_worker_of_a_batch_that_is_started_with_a_new_token_waits_until_it_is_known() {
    let folder = Folder::new();
    let (old, new) = ("0123456789-the-old", "0123456789-the-new");
    let coordinator = coordinator_with_tokens(&folder, old, often());
    let patient = ["--give-up-after", "1m"];
    let (worker, log) = worker_with_tokens(&folder, &coordinator.url(), new, &patient);
    // Each wait is twice as long as the last one: together they last longer than a stranger is told apart from a worker.
    wait_until("repeated calls", || log.lock().unwrap().matches("token rejected; retrying").count() >= 9);
    folder.file("tokens", new);
    wait_until("a worker", || log.lock().unwrap().contains("joined the coordinator"));
    worker.kill();
}

#[test]
fn open_addresses_need_certificates_and_tokens() {
    let secrets = Secrets::new();
    let begin = |arguments: &[&str]| {
        let listen = ["coordinator", "--listen", "0.0.0.0:0", "--http", "off"];
        secrets.folder.atoll(&with(&[&listen, arguments]))
    };
    let said = "expected a loopback address, found `0.0.0.0`";
    expect(&begin(&[]), said);
    expect(&begin(&SECURED[..4]), said);
    expect(&begin(&SECURED[4..]), said);
    expect(&begin(&["--tls-cert", "own/coordinator.pem"]), "expected a file beside `tls_cert`, found none");
    expect(
        &begin(&["--tls-cert", "own/coordinator.pem", "--tls-key", "own/client-key.pem"]),
        "the key that belongs to it",
    );
    expect(
        &begin(&["--tls-cert", "own/worker.token", "--tls-key", "own/client-key.pem"]),
        "expected a certificate in PEM",
    );
    expect(&begin(&["--worker-token-file", "own/nothing"]), "file not found: own/nothing");
    let open = Coordinator::start_at(secrets.folder.path(), "0.0.0.0:0", &SECURED);
    assert!(open.url().starts_with("https://0.0.0.0:"));
}

#[test]
fn a_peer_has_only_so_many_connections() {
    let secrets = Secrets::new();
    let config = secrets.folder.file("few.toml", "max_connections_per_peer = 2\n");
    let coordinator = secrets.coordinator(&["--config", &config]);
    let connect = || TcpStream::connect(&coordinator.address).unwrap();
    let mut first = [connect(), connect()];
    assert!(first.iter_mut().all(is_served));
    let mut third = connect();
    assert!(is_served(&mut third), "nobody is shut out by those who only connect");
    assert!(is_closed(&mut first[0]), "the oldest has given way");
}

/// Whether the other side has closed the connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    let rest = stream.read_to_end(&mut vec![]);
    rest.map_or_else(|error| error.kind() == ErrorKind::ConnectionReset, |_| true)
}

/// Whether the first words of HTTP/2 are answered.
fn is_served(stream: &mut TcpStream) -> bool {
    let words = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let answered = stream.write_all(words).and_then(|()| stream.read(&mut [0]));
    answered.is_ok_and(|bytes| bytes == 1)
}

#[test]
fn the_doctor_looks_at_certificates_and_ports() {
    let secrets = Secrets::new();
    let taken = secrets.coordinator(&["--store", "taken-store"]);
    let look = |arguments: &[&str]| {
        let output = secrets.folder.atoll(&with(&[&["doctor", "--json", "--http", "off"], arguments]));
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(i32::from(object["ok"] == false)), "{object}");
        let findings = object["findings"].as_array().unwrap().clone();
        let of = |check: &str| findings.iter().find(|finding| finding["check"] == check).unwrap().clone();
        (of("listen"), of("tls"), of("store"))
    };
    let well = with(&[&SECURED, &TRUSTING, &["--listen", "127.0.0.1:0"]]);
    let (listen, tls, store) = look(&well);
    for finding in [&listen, &tls, &store] {
        assert_eq!(finding["health"], "good", "{finding}");
    }
    let (listen, tls, _) =
        look(&with(&[&SECURED, &["--tls-ca", "other/ca.pem", "--listen", &taken.address]]));
    assert_eq!((&listen["health"], &tls["health"]), (&"bad".into(), &"bad".into()), "{listen} {tls}");
    let (_, tls, _) = look(&with(&[&well, &["--host", "far.example"]]));
    assert_eq!(tls["health"], "bad", "{tls}");
    let (listen, tls, _) = look(&with(&[&["--tls-cert", "gone.pem"], &well[2..]]));
    assert_eq!((&listen["health"], &tls["health"]), (&"good".into(), &"bad".into()), "{listen} {tls}");
    let found = tls["found"].as_str().unwrap();
    assert!(found.contains("tls_cert (flag --tls-cert): file not found: gone.pem"), "{found}");
}

#[test]
fn a_file_of_tokens_that_is_taken_for_settings_is_not_shown() {
    let folder = Folder::new();
    for secret in ["correct-horse-battery-staple", "Y29ycmVjdC1ob3JzZQ=="] {
        let file = folder.file("tokens", &format!("# for workers\n{secret}\n"));
        for command in ["coordinator", "worker", "doctor"] {
            let output = folder.atoll(&[command, "--config", &file]);
            assert_eq!(output.status.code(), Some(78));
            let said = text(&output.stderr) + &text(&output.stdout);
            assert!(said.contains("expected settings in TOML in `"), "{said}");
            assert!(!said.contains(secret) && !said.contains("Y29y"), "{said}");
        }
    }
}
