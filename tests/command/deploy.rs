//! What is in `deploy/` is true: charts render to valid manifests, mistakes are refused, alerts fire, and every config is
//! one that the command accepts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The environments of the referees, made once.
pub(crate) static REFEREES: LazyLock<PathBuf> = LazyLock::new(|| {
    let made = Command::new(root().join("tests/referees/setup")).args(["operators", "promtool"]).status();
    assert!(made.is_ok_and(|status| status.success()), "the environments of referees can be made");
    root().join("target/referees")
});

pub(crate) fn output(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn expect_success(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

pub(crate) fn helm(arguments: &[&str]) -> Output {
    output(
        Command::new(REFEREES.join("operators/bin/helm"))
            .args(arguments)
            .current_dir(root().join("deploy/helm")),
    )
}

/// The manifests of a release, with these values.
pub(crate) fn render(values: &[&str]) -> String {
    let set: Vec<String> = values.iter().map(|value| format!("--set={value}")).collect();
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    expect_success(&helm(&[&["template", "release", "atoll"], &set[..]].concat()))
}

/// Has every manifest checked that Kubernetes itself knows; answers the kinds of all.
pub(crate) fn validate(manifests: &str) -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("manifests.yaml");
    let documents: Vec<&str> = manifests.split("\n---\n").filter(|text| text.contains("\nkind: ")).collect();
    let foreign = ["monitoring.coreos.com", "cert-manager.io/v1", "jobset.x-k8s.io"];
    let is_known = |text: &&str| !foreign.iter().any(|api| text.contains(api));
    let known: Vec<&str> = documents.iter().copied().filter(is_known).collect();
    std::fs::write(&file, known.join("\n---\n")).unwrap();
    let mut validator = Command::new(REFEREES.join("operators/bin/kubernetes-validate"));
    expect_success(&output(validator.args(["--strict", "--quiet"]).arg(&file)));
    let kind = |text: &&str| text.split("\nkind: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    documents.iter().map(kind).collect()
}

#[test]
fn the_chart_is_well_formed() {
    expect_success(&helm(&["lint", "--strict", "atoll"]));
}

#[test]
fn every_variant_is_valid() {
    for store in ["/var/lib/atoll", "s3://bucket/prefix"] {
        for (tls, client) in [("true", "true"), ("true", "false"), ("false", "false")] {
            let common = [
                format!("store.location={store}"),
                format!("tls.enabled={tls}"),
                format!("tls.clientAuth={client}"),
                "monitoring.serviceMonitor=true".to_owned(),
                "monitoring.podMonitor=true".to_owned(),
                "monitoring.alerts=true".to_owned(),
            ];
            let values = |mode: &'static str| -> Vec<&str> {
                std::iter::once(mode).chain(common.iter().map(String::as_str)).collect()
            };
            let batch = validate(&render(&values("mode=batch")));
            let service = validate(&render(&values("mode=service")));
            for kinds in [&batch, &service] {
                assert!(
                    ["ConfigMap", "NetworkPolicy", "Service", "ServiceMonitor", "PrometheusRule"]
                        .iter()
                        .all(|kind| kinds.contains(*kind)),
                    "{kinds:?}"
                );
            }
            assert!(batch.contains("Job") && !batch.contains("Deployment"), "{batch:?}");
            let standing = ["StatefulSet", "Deployment", "PodDisruptionBudget", "HorizontalPodAutoscaler"];
            assert!(standing.iter().all(|kind| service.contains(*kind)), "{service:?}");
            assert!(batch.contains("PersistentVolumeClaim"), "for the store or for the results: {batch:?}");
            assert!(!service.contains("PersistentVolumeClaim"), "{service:?}");
        }
    }
}

/// What pods name is there, in every variant, and with combinations that few will choose.
#[test]
fn everything_that_a_pod_names_is_made_or_named_by_the_operator() {
    let s3 = "store.location=s3://bucket/x,store.s3.secretName=theirs";
    let all = "monitoring.podMonitor=true,workers.serviceAccount.create=true,coordinator.serviceAccount.create=true";
    let named = "tokens.existingSecret=theirs,tls.existingSecret=theirs,tls.existingClientSecret=theirs";
    for (values, pods) in [
        ("batch.kind=Jobs".to_owned(), 2),
        (format!("batch.kind=JobSet,tls.clientAuth=true,batch.export.enabled=false,{s3},{all}"), 2),
        (format!("batch.kind=Job,tls.clientAuth=true,{s3},{all}"), 1),
        (format!("batch.kind=Job,tls.enabled=false,tokens.enabled=false,{s3}"), 1),
        (format!("batch.kind=Jobs,tls.issuerRef.name=ca,tls.clientAuth=true,fullnameOverride=own,{s3}"), 2),
        (format!("mode=service,coordinator.replicas=2,{named},{s3},{all}"), 2),
        ("mode=service,tls.enabled=false,networkPolicy.enabled=false".to_owned(), 2),
    ] {
        let mut referee = Command::new(REFEREES.join("operators/bin/python"));
        referee.arg(root().join("tests/referees/references.py")).arg("theirs");
        let mut child =
            referee.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let manifests = render(&[values.as_str()]);
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), manifests.as_bytes()).unwrap();
        let checked = expect_success(&child.wait_with_output().unwrap());
        // The test of the chart is a pod, too.
        assert_eq!(checked.trim(), (pods + 1).to_string(), "{values}");
    }
}

#[test]
fn pods_are_restricted_and_jobs_understand_exit_codes() {
    let batch = render(&["mode=batch"]);
    let service = render(&["mode=service"]);
    for manifests in [&batch, &service] {
        for needed in [
            "runAsNonRoot: true",
            "readOnlyRootFilesystem: true",
            "allowPrivilegeEscalation: false",
            "drop: [ALL]",
            "type: RuntimeDefault",
            "automountServiceAccountToken: false",
        ] {
            assert_eq!(manifests.matches(needed).count(), 3, "{needed}, of coordinator, workers and test");
        }
        assert!(!manifests.contains("insecure"), "protected unless asked for");
        assert_eq!(manifests.matches("--termination-log, /dev/termination-log").count(), 2);
    }
    for needed in ["succeededCount: 1", "completionMode: Indexed", "backoffLimitPerIndex: "] {
        assert!(batch.contains(needed), "{needed}");
    }
    assert!(!batch.contains("maxFailedIndexes:"), "it would forbid scaling down");
}

/// A rule of a `podFailurePolicy`.
struct Rule {
    action: String,
    codes: Vec<u8>,
    on_disruption: bool,
}

/// The rules of a Job, in their order.
fn rules(job: &str) -> Vec<Rule> {
    let (_, policy) = job.split_once("podFailurePolicy:").unwrap();
    let (policy, _) = policy.split_once("template:").unwrap();
    let rule = |text: &str| {
        let codes = text.split_once("values: [").map_or("", |(_, rest)| rest.split(']').next().unwrap());
        let codes = codes.split(", ").filter_map(|code| code.parse().ok()).collect();
        let on_disruption = text.contains("DisruptionTarget");
        Rule { action: text.lines().next().unwrap().to_owned(), codes, on_disruption }
    };
    policy.split("- action: ").skip(1).map(rule).collect()
}

/// What a Job does about a pod, by the first rule that matches; `Count` is a restart that counts.
fn decision(rules: &[Rule], code: u8, disrupted: bool) -> &str {
    let matches = |rule: &&Rule| rule.on_disruption && disrupted || rule.codes.contains(&code);
    rules.iter().find(matches).map_or("Count", |rule| &rule.action)
}

#[test]
fn jobs_decide_by_the_exit_codes_that_are_documented() {
    // What the coordinator's Job and the workers' Job do, as docs/operations.md says.
    let table = [
        (1, "Count", "Count"),
        (2, "FailJob", "FailJob"),
        (3, "FailJob", "Count"),
        (4, "FailJob", "FailJob"),
        (5, "FailJob", "FailJob"),
        (6, "FailJob", "FailIndex"),
        (78, "FailJob", "FailJob"),
        (130, "Count", "Count"),
        (137, "Count", "Count"),
        (139, "Count", "Count"),
        (143, "Ignore", "Ignore"),
    ];
    let one = rules(&render(&["batch.kind=Job", "store.location=s3://bucket/x"]));
    for (code, of_coordinator, _) in table {
        // Its first pod is not the only one that finds nobody.
        let of_any = if code == 6 { "FailIndex" } else { of_coordinator };
        assert_eq!(decision(&one, code, false), of_any, "one Job: {code}");
        assert_eq!(decision(&one, code, true), "Ignore");
    }
    let docs = std::fs::read_to_string(root().join("docs/operations.md")).unwrap();
    for kind in ["Jobs", "JobSet"] {
        let manifests = render(&[&format!("batch.kind={kind}")]);
        let jobs: Vec<&str> = manifests.split("podReplacementPolicy: Failed").skip(1).collect();
        let [coordinator, worker] = [rules(jobs[0]), rules(jobs[1])];
        for (code, of_coordinator, of_worker) in table {
            assert_eq!(decision(&coordinator, code, false), of_coordinator, "{kind}: {code}");
            assert_eq!(decision(&worker, code, false), of_worker, "{kind}: {code}");
            for rules in [&coordinator, &worker] {
                assert_eq!(decision(rules, code, true), "Ignore", "an evicted pod counts for nothing");
            }
            let row = docs.lines().find(|line| line.starts_with(&format!("| {code} |")));
            let told = |action: &str| row.is_none_or(|row| row.contains(&format!("`{action}`")));
            assert!(told(of_coordinator) && told(of_worker), "{row:?}");
        }
    }
}

#[test]
fn a_jobset_is_one_as_published_and_waits_in_its_queue() {
    let manifests =
        render(&["batch.kind=JobSet", "batch.queueName=team", "batch.ttlSecondsAfterFinished=60"]);
    for needed in ["kueue.x-k8s.io/queue-name: team", "suspend: true"] {
        assert_eq!(manifests.matches(needed).count(), 1, "{needed}");
    }
    let mut referee = Command::new(REFEREES.join("operators/bin/python"));
    referee.arg(root().join("tests/referees/jobset.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = referee.stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), manifests.as_bytes()).unwrap();
    let jobs = expect_success(&child.wait_with_output().unwrap());
    assert_eq!(validate(&jobs), BTreeSet::from(["Job".to_owned()]));
    let one = render(&["batch.kind=Job", "batch.queueName=team", "store.location=s3://bucket/x"]);
    assert_eq!(validate(&one).contains("Job"), one.matches("kind: Job\n").count() == 1);
    assert_eq!(one.matches("kueue.x-k8s.io/queue-name: team").count(), 1);
    assert!(one.contains("batch.kubernetes.io/job-completion-index: \"0\""), "its Service leads to index 0");
    let api = "--api-versions=jobset.x-k8s.io/v1alpha2";
    let chosen = expect_success(&helm(&["template", "release", "atoll", api]));
    assert!(chosen.contains("kind: JobSet") && !chosen.contains("kind: Job\n"), "where it is installed");
    // JobSet refuses names whose pods would have more than 63 characters.
    let long = render(&["batch.kind=JobSet", &format!("fullnameOverride={}", "x".repeat(60))]);
    let name = long.split("kind: JobSet\nmetadata:\n  name: ").nth(1).unwrap().lines().next().unwrap();
    assert!(format!("{name}-coordinator-0-0-abcde").len() <= 63, "{name}");
}

#[test]
fn the_documented_queue_is_one_as_published() {
    let docs = std::fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let (_, block) = docs.split_once("```yaml\napiVersion: kueue").unwrap();
    let block = format!("apiVersion: kueue{}", block.split("```").next().unwrap());
    let mut referee = Command::new(REFEREES.join("operators/bin/python"));
    referee.arg(root().join("tests/referees/kueue.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = referee.stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), block.as_bytes()).unwrap();
    let names = expect_success(&child.wait_with_output().unwrap());
    let names: serde_json::Value = serde_json::from_str(&names).unwrap();
    let queue = format!("batch.queueName={}", names["LocalQueue"].as_str().unwrap());
    assert!(docs.contains(&format!("`--set {queue}`")), "{names}");
    let label = queue.replace("batch.queueName=", "kueue.x-k8s.io/queue-name: ");
    assert!(render(&["batch.kind=JobSet", &queue]).contains(&label));
}

/// An experiment whose first line has spaces before it is a text like any other.
#[test]
fn the_experiment_of_a_batch_is_kept_as_it_is_and_cannot_be_changed_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("experiment.toml");
    let text = "  name = \"indented\"\nseed = 1\n\n# <&> 'quoted': - |\n";
    std::fs::write(&file, text).unwrap();
    let set = format!("--set-file=experiment={}", file.display());
    let manifests =
        expect_success(&helm(&["template", "release", "atoll", "-s", "templates/config.yaml", &set]));
    let read = "import sys, json, yaml; print(json.dumps([d for d in yaml.safe_load_all(sys.stdin) if d]))";
    let mut python = Command::new(REFEREES.join("operators/bin/python"));
    let python = python.args(["-c", read]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = python.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), manifests.as_bytes()).unwrap();
    let objects: serde_json::Value =
        serde_json::from_str(&expect_success(&child.wait_with_output().unwrap())).unwrap();
    assert_eq!(objects[0]["data"]["experiment.toml"], text);
    assert_eq!(objects[0]["immutable"], true, "its name is a hash of it");
    assert!(!render(&["mode=service"]).contains("immutable"), "settings of a service may change");
}

/// The one coordinator of a release may get a standby later, which asks it at the address in its claim.
#[test]
fn every_coordinator_with_a_store_that_others_reach_says_where_it_is() {
    let s3 = "store.location=s3://bucket/x";
    let alone = render(&["mode=service", s3]);
    assert!(alone.contains("name: ATOLL_ADVERTISE, value: \"$(POD_IP):7440\""));
    assert!(!alone.contains("podAntiAffinity"));
    let both = render(&["mode=service", s3, "coordinator.replicas=2"]);
    assert_eq!(both.matches("podAntiAffinity").count(), 1, "on two nodes, if there are two");
    let own = render(&[
        "mode=service",
        s3,
        "coordinator.replicas=2",
        "coordinator.affinity.nodeAffinity=null",
        "coordinator.affinity.podAffinity.x=y",
    ]);
    assert!(!own.contains("podAntiAffinity"), "unless the operator decides");
    // With IPv6 only, addresses have brackets.
    let six = render(&["mode=service", s3, "listenAddress=::", "monitoring.podMonitor=true"]);
    for needed in ["value: \"[$(POD_IP)]:7440\"", "listen = \"[::]:7440\"", "http = \"[::]:7441\""] {
        assert!(six.contains(needed), "{needed}");
    }
    assert!(!six.contains("0.0.0.0"));
    for (values, is_told) in [(&["mode=service"][..], false), (&["mode=batch", s3], false)] {
        assert_eq!(render(values).contains("ATOLL_ADVERTISE"), is_told, "{values:?}");
    }
}

/// Two Jobs know nothing of each other; the controller of a `JobSet` ends the workers itself.
#[test]
fn the_coordinator_of_two_jobs_waits_for_a_worker_to_tell() {
    for (values, waits) in [
        (&["batch.kind=Jobs"][..], true),
        (&["batch.kind=JobSet"], false),
        (&["batch.kind=Job", "store.location=s3://bucket/x"], false),
        (&["mode=service"], false),
    ] {
        assert_eq!(render(values).contains("await_worker = \"10m\""), waits, "{values:?}");
    }
    let batch = render(&["mode=batch"]);
    assert_eq!(batch.matches("give_up_after = \"30m\"").count(), 2, "both sides end together");
}

#[test]
fn workers_of_a_batch_reach_a_coordinator_that_is_not_ready() {
    let flag = "publishNotReadyAddresses: true";
    assert!(render(&["mode=batch"]).contains(flag), "it tells them why it cannot start");
    assert!(!render(&["mode=service"]).contains(flag), "only the active one serves");
}

#[test]
fn a_standby_may_ask_the_active_coordinator_and_holds_up_neither_drains_nor_upgrades() {
    let manifests = render(&["mode=service", "store.location=s3://bucket/prefix", "coordinator.replicas=2"]);
    validate(&manifests);
    let document = |kind: &str, name: &str| {
        let mut found = manifests.split("\n---\n").filter(|text| {
            text.contains(&format!("\nkind: {kind}\n"))
                && text.contains(&format!("\n  name: release-atoll-{name}\n"))
        });
        found.next().unwrap_or_else(|| panic!("{kind} {name}")).to_owned()
    };
    let policy = document("NetworkPolicy", "coordinator");
    let (_, ingress) = policy.split_once("ingress:").unwrap();
    assert!(ingress.contains("app.kubernetes.io/component: coordinator"), "{ingress}");
    assert!(
        document("PodDisruptionBudget", "coordinator").contains("maxUnavailable: 2"),
        "one is never ready"
    );
    assert!(document("StatefulSet", "coordinator").contains("updateStrategy: { type: OnDelete }"));
    let restricted = render(&[
        "mode=service",
        "store.location=s3://bucket/prefix",
        "coordinator.replicas=2",
        "networkPolicy.coordinatorEgress[0].ports[0].port=443",
    ]);
    validate(&restricted);
    let policy = restricted.split("\n---\n").find(|text| {
        text.contains("name: release-atoll-coordinator\n") && text.contains("kind: NetworkPolicy")
    });
    let (_, egress) = policy.unwrap().split_once("  egress:").unwrap();
    for needed in ["app.kubernetes.io/component: coordinator", "port: 7440", "port: 53", "port: 443"] {
        assert!(egress.contains(needed), "{needed}: {egress}");
    }
    let alone = render(&["mode=service"]);
    assert!(!alone.contains("OnDelete") && alone.contains("maxUnavailable: 1"));
    let fixed = render(&["mode=service", "workers.autoscaling.enabled=false"]);
    assert!(alone.contains("HorizontalPodAutoscaler") && !fixed.contains("HorizontalPodAutoscaler"));
}

/// The pod templates of Jobs and the names of `ConfigMap`s: a cluster changes neither in place.
fn fixed_parts(manifests: &str) -> (Vec<&str>, Vec<&str>) {
    let templates = manifests.split(" template:\n").skip(1);
    let maps = manifests.split("kind: ConfigMap\nmetadata:\n  name: ").skip(1);
    (templates.collect(), maps.map(|rest| rest.lines().next().unwrap()).collect())
}

#[test]
fn another_experiment_is_another_template_also_where_nothing_can_be_looked_up() {
    let s3 = "store.location=s3://bucket/x";
    for values in [&["batch.kind=Jobs"][..], &["batch.kind=JobSet"], &["batch.kind=Job", s3]] {
        let other = [values, &["experiment=name = \"other\""]].concat();
        let (first, same, other) = (render(values), render(values), render(&other));
        assert_eq!(fixed_parts(&first), fixed_parts(&same), "{values:?}");
        // A template that changes is refused by the API server, and the pods of the old one keep their experiment.
        assert_ne!(fixed_parts(&first).0, fixed_parts(&other).0, "{values:?}");
        assert_ne!(fixed_parts(&first).1, fixed_parts(&other).1, "{values:?}");
    }
}

/// An API server that knows these objects, and helm that asks it.
struct ApiServer {
    process: std::process::Child,
    kubeconfig: String,
    has_jobset: bool,
}

impl ApiServer {
    fn start(objects: &str, has_jobset: bool) -> Self {
        use std::io::{BufRead, BufReader};
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("objects.yaml");
        std::fs::write(&file, objects).unwrap();
        let mut server = Command::new(REFEREES.join("operators/bin/python"));
        server.arg(root().join("tests/referees/api_server.py")).arg(&file);
        server.arg(if has_jobset { "yes" } else { "no" }).stdout(Stdio::piped());
        let mut process = server.spawn().unwrap();
        let kubeconfig = BufReader::new(process.stdout.take().unwrap()).lines().next().unwrap().unwrap();
        Self { process, kubeconfig, has_jobset }
    }

    /// What an upgrade with these values would be.
    fn upgrade(&self, values: &[&str]) -> Output {
        let set = format!("--set={}", values.join(","));
        let kubeconfig = format!("--kubeconfig={}", self.kubeconfig);
        let mut arguments = vec!["template", "release", "atoll", "--dry-run=server", &kubeconfig, &set];
        if self.has_jobset {
            // A template does not ask for them.
            arguments.push("--api-versions=jobset.x-k8s.io/v1alpha2");
        }
        helm(&arguments)
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

/// The data of Secrets, which the chart makes.
pub(crate) fn secret_data(manifests: &str) -> Vec<&str> {
    let is_data = |line: &&str| {
        ["worker: ", "operator: ", "metrics: ", "tls.crt: ", "tls.key: ", "ca.crt: "]
            .iter()
            .any(|key| line.strip_prefix("  ").is_some_and(|line| line.starts_with(key)))
    };
    manifests.lines().filter(is_data).collect()
}

#[test]
fn an_upgrade_keeps_secrets_and_explains_what_cannot_change() {
    let explains = |server: &ApiServer, values: &[&str], said: &str| {
        let output = server.upgrade(values);
        assert!(!output.status.success(), "{values:?} passed");
        assert!(text(&output.stderr).contains(said), "{values:?}: {}", text(&output.stderr));
    };
    let batch = render(&["mode=batch"]);
    let server = ApiServer::start(&batch, false);
    let again = expect_success(&server.upgrade(&["mode=batch"]));
    assert_eq!((secret_data(&again), secret_data(&again).len()), (secret_data(&batch), 8));
    let fresh = render(&["mode=batch"]);
    assert_ne!(secret_data(&fresh), secret_data(&batch));
    for change in ["workers.replicas=9", "batch.suspend=true", "batch.coordinatorRetries=3"] {
        expect_success(&server.upgrade(&[change]));
    }
    expect_success(&server.upgrade(&["batch.activeDeadlineSeconds=60", "batch.ttlSecondsAfterFinished=60"]));
    for change in
        ["batch.workerRetries=3", "workers.podLabels.a=b", "image.repository=other", "coordinator.lease=16s"]
    {
        explains(&server, &[change], "This batch exists with another experiment, image or settings");
    }
    // Another batch would take its place, and its Jobs would be deleted.
    for change in [
        "mode=service",
        "fullnameOverride=other",
        "batch.kind=JobSet",
        "batch.kind=Job,store.location=s3://b-1/x",
    ] {
        explains(&server, &[change], "This release has the batch `Job release-atoll-");
    }
    // A claim that exists may grow, and stays after its release is uninstalled.
    let claim = batch.replace("  accessModes: [", "  storageClassName: fast\n  accessModes: [");
    let claim = claim.split("\n---\n").find(|text| text.contains("kind: PersistentVolumeClaim")).unwrap();
    for objects in
        [batch.replace("  accessModes: [", "  storageClassName: fast\n  accessModes: ["), claim.to_owned()]
    {
        let server = ApiServer::start(&objects, false);
        for change in ["store.volume.size=11Gi", "store.volume.size=1Ti", "store.volume.storageClass=fast"] {
            expect_success(&server.upgrade(&[change]));
        }
        assert!(
            expect_success(&server.upgrade(&["mode=batch"])).contains("storageClassName: fast"),
            "it stays"
        );
        for (change, said) in [
            ("store.volume.size=9Gi", "store.volume.size: expected at least 10Gi, found 9Gi"),
            ("store.volume.size=10239Mi", "store.volume.size: expected at least 10Gi, found 10239Mi"),
            ("store.volume.storageClass=slow", "store.volume.storageClass: expected fast, found slow"),
        ] {
            explains(&server, &[change], said);
            explains(&server, &[change], "delete pvc release-atoll-state");
        }
    }
    // The controller was installed later: the batch stays what it is.
    let later = ApiServer::start(&batch, true);
    assert!(!expect_success(&later.upgrade(&["mode=batch"])).contains("kind: JobSet"));

    let jobset = render(&["batch.kind=JobSet"]);
    let server = ApiServer::start(&jobset, true);
    assert!(expect_success(&server.upgrade(&["mode=batch"])).contains("kind: JobSet"));
    explains(&server, &["workers.replicas=9"], "This batch exists with another");
    explains(&server, &["batch.kind=Jobs"], "This release has the batch `JobSet release-atoll`");
    let other = jobset.replace("app.kubernetes.io/instance: release", "app.kubernetes.io/instance: another");
    expect_success(&ApiServer::start(&other, true).upgrade(&["fullnameOverride=other,mode=service"]));

    // Secrets that are named have to be there, with what is read of them.
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: kube-root-ca.crt\n";
    let secret = |name: &str, keys: &[&str]| {
        let data: Vec<String> = keys.iter().map(|key| format!("  {key}: eA==\n")).collect();
        format!("---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: {name}\ndata:\n{}", data.concat())
    };
    let tokens = secret("mine", &["worker", "operator", "metrics"]);
    let acme = secret("acme", &["tls.crt", "tls.key"]);
    let server = ApiServer::start(&[map, &tokens, &acme].concat(), false);
    expect_success(&server.upgrade(&["tokens.existingSecret=mine"]));
    for (values, said) in [
        (
            "tokens.existingSecret=absent",
            "tokens.existingSecret: expected a Secret of namespace default, found none named `absent`",
        ),
        (
            "tls.existingSecret=acme",
            "tls.existingSecret: expected the key `ca.crt` in the Secret `acme`, found none",
        ),
        ("store.location=s3://bucket/x,store.s3.secretName=absent", "store.s3.secretName: expected a Secret"),
    ] {
        explains(&server, &[values], said);
    }

    let service = render(&["mode=service"]);
    let server = ApiServer::start(&service, false);
    expect_success(&server.upgrade(&["mode=service", "coordinator.lease=16s"]));
    explains(
        &server,
        &["mode=service", "store.volume.size=20Gi"],
        "cannot change the volume of a StatefulSet",
    );
}

#[test]
fn an_upgrade_leaves_a_batch_in_a_queue_as_the_queue_has_it() {
    for values in
        [["batch.kind=JobSet", "store.volume.keep=true"], ["batch.kind=Job", "store.location=s3://bucket/x"]]
    {
        let values = [&values[..], &["batch.queueName=team"]].concat();
        let queued = render(&values);
        assert_eq!(queued.matches("\n  suspend: true\n").count(), 1, "{values:?}");
        let admitted = queued.replace("\n  suspend: true\n", "\n  suspend: false\n");
        for (objects, suspended) in [(&queued, true), (&admitted, false)] {
            let server = ApiServer::start(objects, true);
            let upgraded = expect_success(&server.upgrade(&values));
            assert!(upgraded.contains(&format!("\n  suspend: {suspended}\n")), "{values:?}: {suspended}");
            let stopped = expect_success(&server.upgrade(&[&values[..], &["batch.suspend=true"]].concat()));
            assert!(stopped.contains("\n  suspend: true\n"), "{values:?}: an operator may suspend it");
        }
    }
}

#[test]
fn the_notes_name_objects_that_exist() {
    let server = ApiServer::start("", true);
    let kubeconfig = format!("--kubeconfig={}", server.kubeconfig);
    for (values, named) in [
        ("mode=batch", &["jobset release-atoll", "pvc release-atoll-state"][..]),
        ("batch.kind=Jobs", &["job release-atoll-worker", "pvc release-atoll-state"]),
        ("batch.kind=Job,store.location=s3://bucket/x", &["job release-atoll"]),
        ("mode=service", &["svc/release-atoll-coordinator", "secret release-atoll-tokens"]),
        // What an operator needs is told in both modes.
        ("batch.kind=Jobs", &["svc/release-atoll-coordinator", "secret release-atoll-tokens"]),
        (
            "mode=service,tls.clientAuth=true",
            &["secret release-atoll-tls", "secret release-atoll-client-tls"],
        ),
    ] {
        let flags = ["--dry-run=client", "--disable-openapi-validation", &kubeconfig, "--set", values];
        let shown = expect_success(&helm(&[&["install", "release", "atoll"], &flags[..]].concat()));
        let (manifests, notes) = shown.split_once("\nNOTES:\n").unwrap();
        if let Some((_, pod)) = notes.split_once("--overrides='") {
            let pod: serde_json::Value = serde_json::from_str(pod.split('\'').next().unwrap()).unwrap();
            assert_eq!(pod["spec"]["securityContext"]["runAsUser"], 65532, "{values}");
        }
        assert_eq!(
            notes.contains("export ATOLL_TLS_CERT=client.crt"),
            values.contains("clientAuth"),
            "{notes}"
        );
        assert!(notes.contains("pods run the image atoll:0.1.0, which no registry has"), "{notes}");
        for object in named {
            let (kind, name) = object.split_once([' ', '/']).unwrap();
            let told = if kind == "pvc" { format!("claim {name}") } else { (*object).to_owned() };
            assert!(notes.contains(&told), "{values}: {told}: {notes}");
            let kind = match kind {
                "jobset" => "JobSet",
                "job" => "Job",
                "pvc" => "PersistentVolumeClaim",
                "svc" => "Service",
                _ => "Secret",
            };
            let object = format!("kind: {kind}\nmetadata:\n  name: {name}\n");
            assert!(manifests.contains(&object), "{values}: {object}");
        }
    }
}

#[test]
fn the_plain_manifests_are_those_of_the_chart() {
    for mode in ["batch", "service"] {
        let file = root().join(format!("deploy/kustomize/{mode}/manifests.yaml"));
        // Secrets are made by the user that applies them: those of a template would be new each time.
        let set = format!("mode={mode},tokens.existingSecret=atoll-tokens,tls.existingSecret=atoll-tls");
        let rendered = expect_success(&helm(&[
            "template",
            "atoll",
            "atoll",
            "-n",
            "atoll",
            "--skip-tests",
            "--set",
            &set,
        ]));
        if std::env::var_os("GOLDEN_WRITE").is_some() {
            std::fs::write(&file, &rendered).unwrap();
        }
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(written == rendered, "write it anew with GOLDEN_WRITE=1: {}", file.display());
        validate(&written);
        let kustomization = std::fs::read_to_string(file.with_file_name("kustomization.yaml")).unwrap();
        assert!(kustomization.contains("- manifests.yaml"), "{kustomization}");
        assert!(kustomization.contains("app.kubernetes.io/managed-by: kustomize"), "{kustomization}");
    }
}

#[test]
fn the_kustomizations_build_to_valid_objects() {
    for (mode, pods) in [("batch", 2), ("service", 2)] {
        let folder = root().join("deploy/kustomize").join(mode);
        let mut referee = Command::new(REFEREES.join("operators/bin/python"));
        referee.arg(root().join("tests/referees/kustomize.py")).arg(&folder);
        // Our own small renderer is compared with kustomize itself where that is installed, as a part of kubectl.
        let temporary = tempfile::tempdir().unwrap();
        let built = Command::new("kubectl").arg("kustomize").arg(&folder).output();
        if let Ok(built) = built.as_ref().map(expect_success) {
            let file = temporary.path().join("built.yaml");
            std::fs::write(&file, built).unwrap();
            referee.arg(file);
        }
        let objects = expect_success(&output(&mut referee));
        validate(&objects);
        let count = objects.matches("\nkind: ").count();
        assert_eq!(objects.matches("\n  namespace: atoll\n").count(), count, "all of them: {objects}");
        assert_eq!(objects.matches("    app.kubernetes.io/managed-by: kustomize\n").count(), count);
        assert_eq!(
            objects.matches("image: atoll:0.1.0\n").count(),
            pods,
            "the tag is that of the kustomization"
        );
    }
}

#[test]
fn every_experiment_and_config_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let atoll = |arguments: &[&str]| {
        output(Command::new(env!("CARGO_BIN_EXE_atoll")).args(arguments).current_dir(folder.path()))
    };
    // Where the files of secrets will be, nothing is yet.
    let print = |role: &str, file: &Path| {
        let config = std::fs::read_to_string(file).unwrap();
        let named = config.lines().filter(|line| !line.contains("/run/") && !line.starts_with("run ="));
        let plain = folder.path().join(format!("{role}.toml"));
        let plain_text = named.collect::<Vec<_>>().join("\n").replace("https://", "http://");
        std::fs::write(&plain, plain_text).unwrap();
        expect_success(&atoll(&[role, "--print-config", "--config", plain.to_str().unwrap()]));
    };
    for place in ["compose", "systemd"] {
        print("coordinator", &root().join("deploy").join(place).join("coordinator.toml"));
        print("worker", &root().join("deploy").join(place).join("worker.toml"));
    }
    for mode in ["mode=batch", "mode=service"] {
        let manifests = render(&[mode]);
        for (role, file) in [("coordinator", "coordinator.toml"), ("worker", "worker.toml")] {
            let path = folder.path().join(format!("chart-{file}"));
            std::fs::write(&path, block(&manifests, file).unwrap()).unwrap();
            print(role, &path);
        }
        if let Some(experiment) = block(&manifests, "experiment.toml") {
            std::fs::write(folder.path().join("experiment.toml"), experiment).unwrap();
            expect_success(&atoll(&["check", "experiment.toml"]));
        }
    }
    let experiment = root().join("deploy/experiment.toml");
    expect_success(&atoll(&["check", experiment.to_str().unwrap()]));
}

/// The text of a file in a `ConfigMap`.
pub(crate) fn block(manifests: &str, file: &str) -> Option<String> {
    let (_, rest) = manifests.split_once(&format!("  {file}: |"))?;
    let lines = rest.lines().skip(1).take_while(|line| line.starts_with("    ") || line.is_empty());
    let text: Vec<&str> = lines.map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
    Some(text.join("\n"))
}

#[test]
fn images_are_built_as_the_linter_wants() {
    let mut linter = Command::new(REFEREES.join("operators/bin/hadolint"));
    linter.args(["Dockerfile", "Dockerfile.binary"]).current_dir(root().join("deploy"));
    expect_success(&output(&mut linter));
}
