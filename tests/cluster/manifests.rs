//! Pods of the chart as real processes: what Jobs start, with the configs, secrets, arguments and variables of the rendered
//! manifests, ends with the codes and termination messages that the Jobs act on.
//!
//! Only what a machine without a cluster lacks is replaced: mount points are folders, addresses are on loopback.

use crate::process::{Process, atoll, text, wait_until};
use crate::s3::Server;
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, LazyLock, Mutex};
use tempfile::TempDir;

static OPERATORS: LazyLock<PathBuf> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Command::new(root.join("tests/referees/setup")).arg("operators").status();
    assert!(made.is_ok_and(|status| status.success()), "the environments of referees can be made");
    root.join("target/referees/operators/bin")
});

/// A run of a second or so, and one that does not end by itself.
const QUICK: &str = "name = \"quick\"\nseed = 1\nproblem = { kind = \"onemax\", length = 50 }\n\
                     algorithm = { kind = \"ga\", population = 50 }\nislands = { count = 2 }\n\
                     migration = { interval = 10, count = 1 }\nbudget = { generations = 100 }\n";

fn endless() -> String {
    QUICK.replace("generations = 100", "generations = 100000000")
}

/// A release, and the folder that stands for its volumes.
struct Release {
    objects: Vec<Value>,
    folder: TempDir,
    /// The uid of its Jobs.
    uid: &'static str,
}

/// A container of a pod.
struct Pod {
    process: Process,
    said: Arc<Mutex<String>>,
    message: PathBuf,
}

impl Pod {
    /// Its exit code and its termination message.
    fn ended(&mut self) -> (Option<i32>, String) {
        let code = self.process.ended();
        (code, std::fs::read_to_string(&self.message).unwrap_or_default())
    }

    fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// The address that follows these words in its log.
    fn url(&self, words: &str) -> String {
        let mut url = None;
        wait_until("an address", || {
            let said = self.said();
            let lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut fields = lines.map(|line| line["fields"].clone());
            url = fields.find(|fields| fields["message"] == words).map(|fields| fields["url"].clone());
            url.is_some()
        });
        url.unwrap().as_str().unwrap().to_owned()
    }
}

impl Release {
    fn render(experiment: &str, values: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("submitted.toml");
        std::fs::write(&file, experiment).unwrap();
        let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/helm/atoll");
        let mut helm = Command::new(OPERATORS.join("helm"));
        helm.args(["template", "release"])
            .arg(chart)
            .arg(format!("--set-file=experiment={}", file.display()));
        // Times that a test can wait for.
        for value in ["coordinator.lease=2s", "coordinator.linger=2s", "workers.settings.threads=1"] {
            helm.args(["--set", value]);
        }
        for value in values {
            helm.args(["--set", value]);
        }
        let rendered = helm.output().unwrap();
        assert!(rendered.status.success(), "{}", text(&rendered.stderr));
        let read =
            "import sys, json, yaml; print(json.dumps([d for d in yaml.safe_load_all(sys.stdin) if d]))";
        let mut python = Command::new(OPERATORS.join("python"));
        let python = python.args(["-c", read]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = python.spawn().unwrap();
        child.stdin.take().unwrap().write_all(&rendered.stdout).unwrap();
        let objects = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
        Self { objects, folder, uid: "5ec2f3a6-job" }
    }

    fn object(&self, kind: &str, name: &str) -> &Value {
        let is_meant = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        self.objects.iter().find(is_meant).unwrap_or_else(|| panic!("no {kind} {name}"))
    }

    /// The specification of a Job, which may be one of a `JobSet`.
    fn job(&self, component: &str) -> &Value {
        let sets = self.objects.iter().filter(|object| object["kind"] == "JobSet");
        let parts = sets.flat_map(|set| set["spec"]["replicatedJobs"].as_array().unwrap());
        let mut of_set = parts.filter(|job| job["name"] == component);
        let is_only =
            |object: &&Value| object["kind"] == "Job" && object["metadata"]["name"] == "release-atoll";
        match of_set.next().map(|job| &job["template"]).or(self.objects.iter().find(is_only)) {
            Some(job) => &job["spec"],
            None => &self.object("Job", &format!("release-atoll-{component}"))["spec"],
        }
    }

    /// What the Job does about a pod that ended with this code, by the first rule that matches.
    fn decision(&self, component: &str, code: Option<i32>) -> String {
        let rules = self.job(component)["podFailurePolicy"]["rules"].as_array().unwrap();
        let names = |rule: &&Value| {
            let codes = rule["onExitCodes"]["values"].as_array();
            codes.is_some_and(|codes| codes.iter().any(|named| named.as_i64() == code.map(i64::from)))
        };
        match code {
            Some(0) => "Complete".to_owned(),
            _ => rules.iter().find(names).map_or("Count", |rule| rule["action"].as_str().unwrap()).to_owned(),
        }
    }

    /// Where a path of the container is.
    fn place(&self, component: &str, path: &str) -> PathBuf {
        // Volumes of claims outlive pods, and others belong to them.
        let owner = if path.starts_with("/var/lib") { "volume" } else { component };
        self.folder.path().join(owner).join(path.trim_start_matches('/'))
    }

    /// Text of a config, with the paths of this machine and addresses on loopback.
    fn on_this_machine(&self, component: &str, text: &str, coordinator: &str) -> String {
        let mut text = text.to_owned();
        for mount in ["/etc/atoll", "/run/atoll", "/var/lib/atoll", "/dev/termination-log"] {
            let place = self.place(component, mount);
            text = text.replace(mount, place.to_str().unwrap());
        }
        for port in ["7440", "7441"] {
            text = text.replace(&format!("0.0.0.0:{port}"), "127.0.0.1:0");
        }
        text.replace("release-atoll-coordinator:7440", coordinator)
    }

    /// Starts the container of a Job's pod. `coordinator` is where its Service leads to.
    fn start(&self, component: &str, coordinator: &str) -> Pod {
        let spec = &self.job(component)["template"]["spec"];
        let container = &spec["containers"][0];
        for mount in container["volumeMounts"].as_array().unwrap() {
            let volume = spec["volumes"].as_array().unwrap().iter();
            let volume = volume.clone().find(|volume| volume["name"] == mount["name"]).unwrap();
            let place = self.place(component, mount["mountPath"].as_str().unwrap());
            std::fs::create_dir_all(&place).unwrap();
            for (name, bytes) in self.files(volume) {
                let text = String::from_utf8(bytes).unwrap();
                let text = self.on_this_machine(component, &text, coordinator);
                std::fs::write(place.join(name), text).unwrap();
            }
        }
        let message = self.place(component, "/dev/termination-log");
        std::fs::create_dir_all(message.parent().unwrap()).unwrap();
        std::fs::write(&message, "").unwrap();
        let mut command = atoll();
        for argument in container["args"].as_array().unwrap() {
            command.arg(self.on_this_machine(component, argument.as_str().unwrap(), coordinator));
        }
        // The controller of Jobs sets it.
        command.env("JOB_COMPLETION_INDEX", if component == "coordinator" { "0" } else { "1" });
        for variable in container["env"].as_array().into_iter().flatten() {
            let field = variable["valueFrom"]["fieldRef"]["fieldPath"].as_str();
            let value = match field {
                Some("metadata.name") => "release-atoll-worker-0-abcde",
                Some("status.podIP") => "127.0.0.1",
                Some("metadata.labels['batch.kubernetes.io/controller-uid']") => self.uid,
                Some(other) => panic!("{other}"),
                None => variable["value"].as_str().unwrap(),
            };
            command.env(variable["name"].as_str().unwrap(), value);
        }
        let mut child = command.current_dir(self.folder.path()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let said = Arc::new(Mutex::new(String::new()));
        let log = said.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                log.lock().unwrap().extend([&line, "\n"]);
            }
        });
        Pod { process: Process(child), said, message }
    }

    /// The files of a volume.
    fn files(&self, volume: &Value) -> Vec<(String, Vec<u8>)> {
        let own = |object: &Value| object["data"].as_object().unwrap().clone();
        if let Some(name) = volume["configMap"]["name"].as_str() {
            let data = own(self.object("ConfigMap", name));
            return data.into_iter().map(|(key, text)| (key, text.as_str().unwrap().into())).collect();
        }
        let Some(name) = volume["secret"]["secretName"].as_str() else { return vec![] };
        let data = own(self.object("Secret", name));
        let items = volume["secret"]["items"].as_array();
        let is_mounted = |key: &str| items.is_none_or(|items| items.iter().any(|item| item["key"] == key));
        let decoded = |(key, text): (String, Value)| (key, decode(text.as_str().unwrap()));
        data.into_iter().filter(|(key, _)| is_mounted(key)).map(decoded).collect()
    }

    /// A coordinator and a worker that reaches it, as their Service leads there.
    fn both(&self) -> (Pod, Pod, String) {
        let coordinator = self.start("coordinator", "");
        let url = coordinator.url("coordinator at");
        let worker = self.start("worker", url.split_once("://").unwrap().1);
        (coordinator, worker, url)
    }

    /// An operator with the token of the Secret, and its certificates.
    fn operate(&self, url: &str, arguments: &[&str]) -> Output {
        let files = |secret: &str| {
            let volume = serde_json::json!({ "secret": { "secretName": secret } });
            self.files(&volume)
        };
        let place = self.folder.path().join("operator");
        std::fs::create_dir_all(&place).unwrap();
        let mut command = atoll();
        command.args(arguments).args(["--coordinator", url]);
        let mut file = |flag: &str, secret: &str, key: &str| {
            let bytes = files(secret).into_iter().find(|(name, _)| name == key).unwrap().1;
            let path = place.join(format!("{secret}-{key}"));
            std::fs::write(&path, bytes).unwrap();
            command.arg(flag).arg(path);
        };
        file("--token-file", "release-atoll-tokens", "operator");
        if url.starts_with("https") {
            file("--tls-ca", "release-atoll-tls", "ca.crt");
            file("--tls-cert", "release-atoll-client-tls", "tls.crt");
            file("--tls-key", "release-atoll-client-tls", "tls.key");
        } else {
            command.arg("--insecure");
        }
        command.output().unwrap()
    }

    /// Expects both pods to end with this code, and their Jobs to do the same about it.
    fn both_end(&self, (coordinator, worker): (&mut Pod, &mut Pod), code: i32, decision: &str, reason: &str) {
        for (component, pod) in [("worker", worker), ("coordinator", coordinator)] {
            let (ended, message) = pod.ended();
            assert_eq!(ended, Some(code), "{component}: {message}\n{}", pod.said());
            assert!(message.contains(reason), "{component}: {message}");
            assert_eq!(self.decision(component, ended), decision, "{component}");
        }
    }
}

/// The bytes of base64 with padding.
fn decode(text: &str) -> Vec<u8> {
    let sextet = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').map(sextet).collect();
    let bytes = digits.chunks(4).flat_map(|four| {
        let word =
            four.iter().fold(0_u32, |word, digit| word << 6 | u32::from(*digit)) << (6 * (4 - four.len()));
        word.to_be_bytes()[1..four.len()].to_vec()
    });
    bytes.collect()
}

#[test]
fn a_batch_that_finishes_is_complete_and_leaves_its_results() {
    for values in [
        &["batch.kind=Jobs"][..],
        &["batch.kind=JobSet", "tls.clientAuth=true"],
        &["batch.kind=Jobs", "tls.enabled=false"],
    ] {
        let release = Release::render(QUICK, values);
        let (mut coordinator, mut worker, url) = release.both();
        assert_eq!(url.starts_with("https"), !values.contains(&"tls.enabled=false"));
        release.both_end((&mut coordinator, &mut worker), 0, "Complete", "all runs are finished");
        let exported = release.place("coordinator", "/var/lib/atoll/export");
        let run = std::fs::read_dir(exported).unwrap().next().unwrap().unwrap();
        assert!(run.path().join("report.html").is_file() && run.path().join("champions.csv").is_file());
    }
}

#[test]
fn one_job_with_a_store_in_s3_has_its_coordinator_at_index_0() {
    let server = Server::start();
    let mut values = vec!["batch.kind=Job".to_owned(), "store.location=s3://clusters/one".to_owned()];
    let mut others = 0;
    for (name, value) in server.variables() {
        match name.as_str() {
            "AWS_ENDPOINT_URL" => values.push(format!("store.s3.endpoint={value}")),
            "AWS_REGION" => values.push(format!("store.s3.region={value}")),
            "AWS_ALLOW_HTTP" => values.push(format!("store.s3.allowHttp={value}")),
            _ => {
                let variable = format!("coordinator.extraEnv[{others}]");
                values.extend([format!("{variable}.name={name}"), format!("{variable}.value={value}")]);
                others += 1;
            }
        }
    }
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    let release = Release::render(QUICK, &values);
    let (mut coordinator, mut worker, _) = release.both();
    release.both_end((&mut coordinator, &mut worker), 0, "Complete", "all runs are finished");
    assert!(worker.said().contains("joined the coordinator"), "{}", worker.said());
}

#[test]
fn workers_of_a_monitored_batch_serve_their_metrics() {
    let release = Release::render(&endless(), &["monitoring.podMonitor=true"]);
    let (_coordinator, worker, _) = release.both();
    let address = worker.url("health and metrics at").trim_start_matches("http://").to_owned();
    wait_until("a piece of work", || {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        std::io::Read::read_to_string(&mut stream, &mut page).unwrap();
        let granted = page.lines().find_map(|line| line.strip_prefix("atoll_worker_grants_total "));
        granted.is_some_and(|count| count != "0")
    });
}

#[test]
fn a_batch_that_is_cancelled_or_misconfigured_fails_on_both_sides() {
    let release = Release::render(&endless(), &["tls.clientAuth=true"]);
    let (mut coordinator, mut worker, url) = release.both();
    wait_until("a worker", || coordinator.said().contains("joined"));
    let cancelled = release.operate(&url, &["cancel", "quick"]);
    assert!(cancelled.status.success(), "{}", text(&cancelled.stderr));
    release.both_end((&mut coordinator, &mut worker), 5, "FailJob", "was cancelled");

    let release = Release::render(&QUICK.replace("onemax", "chess"), &[]);
    let (mut coordinator, mut worker, _) = release.both();
    release.both_end((&mut coordinator, &mut worker), 78, "FailJob", "chess");

    // Another token than the coordinator knows, and a worker without a coordinator.
    let release = Release::render(QUICK, &["coordinator.giveUpAfter=8s"]);
    let mut coordinator = release.start("coordinator", "");
    let url = coordinator.url("coordinator at");
    let mut other = Release::render(QUICK, &["coordinator.giveUpAfter=8s"]);
    for object in &mut other.objects {
        // The authority is the same, so that only the token differs.
        if object["kind"] == "Secret" && object["type"] == "kubernetes.io/tls" {
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            *object = release.object("Secret", &name).clone();
        }
    }
    let mut worker = other.start("worker", url.split_once("://").unwrap().1);
    release.both_end((&mut coordinator, &mut worker), 78, "FailJob", "expected a token that is known here");
}

#[test]
fn a_batch_whose_run_fails_or_whose_volume_cannot_be_written_fails_on_both_sides() {
    // No worker has the engine, so that every one of them fails.
    let plan = "name = \"engines\"\n[tournament]\nformat = \"gauntlet\"\nopenings = 1\ndepth = 1\n\
                [[tournament.players]]\nname = \"gambler\"\nplayer = \"random\"\n\
                [[tournament.players]]\nname = \"other\"\nengine = \"absent\"\n";
    let release = Release::render(plan, &[]);
    let (mut coordinator, mut worker, _) = release.both();
    release.both_end((&mut coordinator, &mut worker), 4, "FailJob", "absent");

    // A volume that the user of the pod cannot write: root is stopped by no permission, so it is one of the system.
    let release = Release::render(QUICK, &[]);
    let volume = release.place("coordinator", "/var/lib/atoll");
    std::fs::create_dir_all(volume.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("/proc/self/fdinfo", &volume).unwrap();
    let (mut coordinator, mut worker, _) = release.both();
    release.both_end((&mut coordinator, &mut worker), 78, "FailJob", "/var/lib/atoll");
}

#[test]
fn a_batch_that_is_preempted_or_left_alone_ends_as_its_jobs_expect() {
    let release = Release::render(&endless(), &["workers.giveUpAfter=300ms"]);
    let (mut coordinator, mut worker, _) = release.both();
    wait_until("a worker", || coordinator.said().contains("joined"));
    for (component, pod) in [("worker", &mut worker), ("coordinator", &mut coordinator)] {
        pod.process.signal(Signal::TERM);
        let (code, message) = pod.ended();
        assert_eq!(
            (code, message.as_str()),
            (Some(143), "stopped by SIGTERM; nothing is lost\n"),
            "{component}"
        );
        assert_eq!(release.decision(component, code), "Ignore", "{component}");
    }
    // There is no process at the address any more.
    let mut alone = release.start("worker", "127.0.0.1:9");
    let (code, message) = alone.ended();
    assert_eq!(code, Some(6), "{message}");
    assert_eq!(release.decision("worker", code), "FailIndex", "others may find it");

    let mut first = release.start("coordinator", "");
    first.url("coordinator at");
    wait_until("the store", || first.said().contains("quick") || release.is_claimed());
    let mut worker = release.start("worker", first.url("coordinator at").split_once("://").unwrap().1);
    wait_until("a worker", || first.said().contains("joined"));
    let _second = release.start("coordinator", "");
    let (code, message) = first.ended();
    assert_eq!(code, Some(3), "{message}");
    assert!(message.starts_with("another coordinator has taken this store over"), "{message}");
    assert_eq!(release.decision("coordinator", code), "FailJob", "its successor has the run");
    // It replaces a pod of the same Job, and workers wait until their Service leads there.
    let (code, message) = worker.ended();
    assert_eq!(code, Some(6), "{message}");
    assert_eq!(release.decision("worker", code), "FailIndex");
}

/// Nothing leads to the successor, which has another Service and other workers.
#[test]
fn a_batch_whose_store_another_batch_takes_over_fails_on_both_sides() {
    let mut release = Release::render(&endless(), &["workers.giveUpAfter=30m"]);
    let (mut coordinator, mut worker, _) = release.both();
    wait_until("a worker", || coordinator.said().contains("joined"));
    release.uid = "9d41c0b7-other";
    let _other = release.start("coordinator", "");
    let (code, message) = worker.ended();
    assert_eq!(code, Some(78), "{message}");
    assert!(message.contains("another coordinator has taken the store over"), "{message}");
    assert_eq!(release.decision("worker", code), "FailJob");
    let (code, message) = coordinator.ended();
    assert_eq!(code, Some(3), "{message}");
    assert_eq!(release.decision("coordinator", code), "FailJob");
}

impl Release {
    /// Whether a second coordinator has claimed the store: the first one was there before.
    fn is_claimed(&self) -> bool {
        let claims = self.place("coordinator", "/var/lib/atoll/claims");
        std::fs::read_dir(claims).is_ok_and(|claims| claims.count() >= 2)
    }
}
