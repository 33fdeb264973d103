//! What is in `deploy/` is true: charts render to valid manifests, mistakes are refused, alerts fire, and every config is
//! one that the command accepts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The environments of the referees, made once.
static REFEREES: LazyLock<PathBuf> = LazyLock::new(|| {
    let made = Command::new(root().join("tests/referees/setup")).args(["operators", "promtool"]).status();
    assert!(made.is_ok_and(|status| status.success()), "the environments of referees can be made");
    root().join("target/referees")
});

fn output(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn expect_success(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn helm(arguments: &[&str]) -> Output {
    output(
        Command::new(REFEREES.join("operators/bin/helm"))
            .args(arguments)
            .current_dir(root().join("deploy/helm")),
    )
}

/// The manifests of a release, with these values.
fn render(values: &[&str]) -> String {
    let set: Vec<String> = values.iter().map(|value| format!("--set={value}")).collect();
    let set: Vec<&str> = set.iter().map(String::as_str).collect();
    expect_success(&helm(&[&["template", "release", "atoll"], &set[..]].concat()))
}

/// Has every manifest checked that Kubernetes itself knows; answers the kinds of all.
fn validate(manifests: &str) -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("manifests.yaml");
    let documents: Vec<&str> = manifests.split("\n---\n").filter(|text| text.contains("\nkind: ")).collect();
    let known: Vec<&str> =
        documents.iter().copied().filter(|text| !text.contains("monitoring.coreos.com")).collect();
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
            assert_eq!(batch.contains("PersistentVolumeClaim"), store.starts_with('/'));
        }
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
            assert_eq!(manifests.matches(needed).count(), 2, "{needed}, of coordinator and workers");
        }
        assert!(!manifests.contains("insecure"), "protected unless asked for");
    }
    for (needed, times) in [
        ("values: [2, 3, 78]", 1),
        ("values: [2, 78]", 1),
        ("values: [143]", 2),
        ("type: DisruptionTarget", 2),
        ("succeededCount: 1", 1),
    ] {
        assert_eq!(batch.matches(needed).count(), times, "{needed}");
    }
    assert!(batch.contains("completionMode: Indexed") && batch.contains("backoffLimitPerIndex: "));
}

#[test]
fn mistakes_in_values_are_refused() {
    for (mistake, said) in [
        ("mode=bach", "mode"),
        ("modus=batch", "modus"),
        ("store.location=gs://bucket", "store.location"),
        ("store.volume.size=10", "store.volume.size"),
        ("workers.replicas=0", "workers.replicas"),
        ("workers.replica=3", "replica"),
        ("coordinator.lease=15", "coordinator.lease"),
        ("tls.enabled=maybe", "tls.enabled"),
        ("tokens.secretName=", "tokens.secretName"),
    ] {
        let output = helm(&["template", "release", "atoll", "--set", mistake]);
        assert!(!output.status.success(), "{mistake} passed");
        assert!(text(&output.stderr).contains(said), "{mistake}: {}", text(&output.stderr));
    }
}

#[test]
fn the_plain_manifests_are_those_of_the_chart() {
    for mode in ["batch", "service"] {
        let file = root().join(format!("deploy/kustomize/{mode}/manifests.yaml"));
        let rendered =
            expect_success(&helm(&["template", "atoll", "atoll", "--set", &format!("mode={mode}")]));
        let written = std::fs::read_to_string(&file).unwrap();
        assert!(
            written == rendered,
            "write it again: helm template atoll deploy/helm/atoll --set mode={mode} > {}",
            file.display()
        );
        validate(&written);
        let kustomization = std::fs::read_to_string(file.with_file_name("kustomization.yaml")).unwrap();
        assert!(kustomization.contains("- manifests.yaml"), "{kustomization}");
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
fn block(manifests: &str, file: &str) -> Option<String> {
    let (_, rest) = manifests.split_once(&format!("  {file}: |\n"))?;
    let lines = rest.lines().take_while(|line| line.starts_with("    ") || line.is_empty());
    let text: Vec<&str> = lines.map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
    Some(text.join("\n"))
}

#[test]
fn every_setting_is_told_with_its_default() {
    let told = std::fs::read_to_string(root().join("docs/operations.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for role in ["coordinator", "worker"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command.args([role, "--print-config"]).current_dir(folder.path()).env_remove("ATOLL_COORDINATOR");
        let printed = expect_success(&output(command.env_remove("ATOLL_STORE")));
        let (_, table) = told.split_once(&format!("| `{role}.toml` | default |")).unwrap();
        let table = table.split("\n\n").next().unwrap();
        for line in printed.lines() {
            let (key, rest) = line.split_once(" = ").unwrap();
            let value = rest.strip_suffix(" # default").unwrap();
            let text = value.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            let default = text.unwrap_or(value);
            assert!(table.contains(&format!("\n| `{key}` | `{default}` |")), "{role}: {line}");
        }
        assert_eq!(table.matches("\n| `").count(), printed.lines().count(), "{role} has other settings");
    }
}

fn promtool(arguments: &[&str]) -> Output {
    let folder = root().join("deploy/prometheus");
    output(Command::new(REFEREES.join("promtool/promtool")).args(arguments).current_dir(folder))
}

#[test]
fn every_alert_is_well_formed_and_fires() {
    expect_success(&promtool(&["check", "rules", "alerts.yaml"]));
    expect_success(&promtool(&["test", "rules", "alerts_test.yaml"]));
    let read = |path: &str| std::fs::read_to_string(root().join("deploy").join(path)).unwrap();
    let (alerts, tests) = (read("prometheus/alerts.yaml"), read("prometheus/alerts_test.yaml"));
    assert_eq!(alerts, read("helm/atoll/alerts.yaml"), "the chart has a copy");
    for alert in alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        let fires = format!("alertname: {alert}\n        exp_alerts:\n          - exp_labels");
        assert!(tests.contains(&fires), "{alert} does not fire in a test");
    }
}

#[test]
fn metrics_are_well_formed_and_those_that_are_asked_for_exist() {
    let folder = tempfile::tempdir().unwrap();
    let page = metrics(folder.path());
    let mut linter = Command::new(REFEREES.join("promtool/promtool"));
    let mut child =
        linter.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), page.as_bytes()).unwrap();
    let linted = child.wait_with_output().unwrap();
    assert!(linted.status.success(), "{}", text(&linted.stderr));
    let known: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert!(known.len() > 10, "{page}");
    for file in ["prometheus/alerts.yaml", "grafana/atoll.json", "../docs/operations.md"] {
        let asked = std::fs::read_to_string(root().join("deploy").join(file)).unwrap();
        for word in asked.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            assert!(!word.starts_with("atoll_") || known.contains(word), "{file} asks for {word}");
        }
        if file.ends_with(".md") {
            let untold: Vec<_> = known.iter().filter(|name| !asked.contains(**name)).collect();
            assert!(untold.is_empty(), "not told in {file}: {untold:?}");
        }
    }
}

/// The metrics of a coordinator that has a run.
fn metrics(folder: &Path) -> String {
    use std::io::{BufRead, BufReader, Read, Write};
    let mut coordinator = Command::new(env!("CARGO_BIN_EXE_atoll"))
        .args(["coordinator", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0", "--run"])
        .arg(root().join("deploy/experiment.toml"))
        .current_dir(folder)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(coordinator.stderr.take().unwrap()).lines();
    let address = lines
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix("health and metrics at http://").map(str::to_owned));
    let mut page = String::new();
    while !page.contains("atoll_run_leases") {
        let mut stream = std::net::TcpStream::connect(address.as_deref().unwrap()).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: atoll\r\nConnection: close\r\n\r\n").unwrap();
        page.clear();
        stream.read_to_string(&mut page).unwrap();
    }
    coordinator.kill().unwrap();
    coordinator.wait().unwrap();
    page.split_once("\r\n\r\n").unwrap().1.to_owned()
}
