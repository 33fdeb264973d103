//! The values of the chart: each is documented, rendered, and refused where it cannot be; and so are all settings.

use crate::deploy::{
    REFEREES, block, expect_success, helm, output, render, root, secret_data, text, validate,
};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::process::Command;

#[test]
fn other_settings_are_those_of_the_command_and_keep_their_values() {
    let folder = tempfile::tempdir().unwrap();
    let values = folder.path().join("values.yaml");
    std::fs::write(
        &values,
        "coordinator: { settings: { audit: 0.05, max_runs: 2000000, log: 'info,h2=debug' } }\n\
         batch: { activeDeadlineSeconds: 1209600, ttlSecondsAfterFinished: 2000000 }\n",
    )
    .unwrap();
    let manifests = expect_success(&helm(&["template", "release", "atoll", "-f", values.to_str().unwrap()]));
    let config = block(&manifests, "coordinator.toml").unwrap();
    for line in ["audit = 0.05", "max_runs = 2000000", "log = \"info,h2=debug\""] {
        assert!(config.lines().any(|written| written == line), "{line}: {config}");
    }
    for line in ["  activeDeadlineSeconds: 1209600", "  ttlSecondsAfterFinished: 2000000"] {
        assert_eq!(manifests.lines().filter(|written| *written == line).count(), 2, "{line}");
    }
    // Every setting is a value of the chart or one of `settings`, and none is both.
    let schema = std::fs::read_to_string(root().join("deploy/helm/atoll/values.schema.json")).unwrap();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let all = [
        render(&["mode=batch", "tls.clientAuth=true"]),
        render(&["mode=service", "store.location=s3://bucket/x", "coordinator.replicas=2"]),
        render(&["tls.enabled=false", "monitoring.podMonitor=true"]),
    ];
    for (role, key) in [("coordinator", "coordinator"), ("worker", "workers")] {
        let settings = &schema["properties"][key]["properties"]["settings"];
        assert_eq!(settings["additionalProperties"], false);
        let others: BTreeSet<&str> =
            settings["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut set: BTreeSet<String> = BTreeSet::new();
        for manifests in &all {
            let config = block(manifests, &format!("{role}.toml")).unwrap();
            set.extend(config.lines().filter_map(|line| Some(line.split_once(" = ")?.0.to_owned())));
            // Some are variables of the environment.
            let variables = manifests.split("ATOLL_").skip(1);
            set.extend(variables.map(|rest| rest.split([',', '\n']).next().unwrap().trim().to_lowercase()));
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command.args([role, "--print-config"]).current_dir(folder.path());
        let printed =
            expect_success(&output(command.env_remove("ATOLL_COORDINATOR").env_remove("ATOLL_STORE")));
        for line in printed.lines() {
            let setting = line.split_once(" = ").unwrap().0;
            let is_other = others.contains(setting);
            assert!(
                is_other != set.contains(setting),
                "{role}: {setting} is {}",
                if is_other { "both" } else { "neither" }
            );
        }
        assert!(others.iter().all(|other| printed.contains(&format!("{other} = "))), "{role}: {others:?}");
    }
}

/// The values of the chart with their defaults and comments, in the order of the file.
fn documented_values() -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(root().join("deploy/helm/atoll/values.yaml")).unwrap();
    let (mut path, mut comment, mut rows) = (vec![], None, vec![]);
    for line in text.lines() {
        let indent = (line.len() - line.trim_start().len()) / 2;
        if let Some(text) = line.trim_start().strip_prefix("# -- ") {
            comment = Some(text.to_owned());
        } else if let Some((key, value)) = line
            .trim_start()
            .split_once(':')
            .filter(|(key, _)| key.bytes().all(|byte| byte.is_ascii_alphanumeric()) && indent <= path.len())
        {
            path.truncate(indent);
            path.push(key);
            if let Some(comment) = comment.take() {
                let value = value.trim();
                let is_block = ["", "|"].contains(&value);
                let default = if is_block { "see `values.yaml`".to_owned() } else { format!("`{value}`") };
                rows.push((path.join("."), default, comment));
            }
        }
    }
    rows
}

#[test]
fn the_readme_of_the_chart_lists_its_values() {
    let file = root().join("deploy/helm/atoll/README.md");
    let written = std::fs::read_to_string(&file).unwrap();
    let marker = "<!-- made from values.yaml -->\n";
    let (head, table) = written.split_once(marker).unwrap();
    let mut made = "\n| key | default | |\n|---|---|---|\n".to_owned();
    for (key, default, comment) in documented_values() {
        writeln!(made, "| `{key}` | {default} | {comment} |").unwrap();
    }
    if std::env::var_os("GOLDEN_WRITE").is_some() {
        std::fs::write(&file, format!("{head}{marker}{made}")).unwrap();
    } else {
        assert_eq!(table, made, "write it anew with GOLDEN_WRITE=1");
    }
}

/// A value of the chart, as JSON.
fn json(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

/// Values that differ from the defaults, for every variant.
fn common_values() -> Vec<(String, String)> {
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    let mut common = vec![
        json("nameOverride", "\"other\""),
        json("listenAddress", "\"0.0.0.1\""),
        json("podSecurityContext.runAsUser", "10001"),
        json("podSecurityContext.runAsGroup", "10002"),
        json("podSecurityContext.fsGroup", "10003"),
        json("image.repository", "\"registry/atoll\""),
        json("image.digest", &format!("\"{digest}\"")),
        json("image.pullPolicy", "\"Never\""),
        json("imagePullSecrets", r#"[{"name":"pull-secret"}]"#),
        json("store.volume.storageClass", "\"fast-disks\""),
        json("coordinator.lease", "\"16s\""),
        json("coordinator.logFormat", "\"text\""),
        json("service.type", "\"NodePort\""),
        json("service.annotations", r#"{"service-annotation":"x"}"#),
        json("networkPolicy.ingress", r#"[{"from":[{"ipBlock":{"cidr":"10.9.8.0/24"}}]}]"#),
        json("networkPolicy.workerEgress", r#"[{"ports":[{"port":3128}]}]"#),
        json("networkPolicy.coordinatorEgress", r#"[{"ports":[{"port":8443}]}]"#),
        json("monitoring.serviceMonitor", "true"),
        json("monitoring.podMonitor", "true"),
        json("monitoring.alerts", "true"),
        json("tls.clientAuth", "true"),
        json("service.hosts", r#"["https://proxy.example"]"#),
    ];
    for pod in ["coordinator", "workers"] {
        for (key, value) in [
            ("serviceAccount.create", "true".to_owned()),
            ("serviceAccount.name", format!("\"{pod}-account\"")),
            ("serviceAccount.annotations", format!(r#"{{"{pod}-role":"x"}}"#)),
            ("nodeSelector", format!(r#"{{"{pod}-node":"x"}}"#)),
            ("tolerations", format!(r#"[{{"key":"{pod}-taint","operator":"Exists"}}]"#)),
            (
                "affinity",
                format!(
                    r#"{{"nodeAffinity":{{"preferredDuringSchedulingIgnoredDuringExecution":[{{"weight":1,"preference":{{"matchExpressions":[{{"key":"{pod}-affinity","operator":"Exists"}}]}}}}]}}}}"#
                ),
            ),
            (
                "topologySpreadConstraints",
                format!(
                    r#"[{{"maxSkew":1,"topologyKey":"{pod}-zone","whenUnsatisfiable":"ScheduleAnyway"}}]"#
                ),
            ),
            ("priorityClassName", format!("\"{pod}-priority\"")),
            ("podLabels", format!(r#"{{"{pod}-label":"x"}}"#)),
            ("podAnnotations", format!(r#"{{"{pod}-annotation":"x"}}"#)),
            ("extraEnv", format!(r#"[{{"name":"{pod}_VARIABLE","value":"x"}}]"#)),
            ("extraVolumes", format!(r#"[{{"name":"{pod}-volume","emptyDir":{{}}}}]"#)),
            ("extraVolumeMounts", format!(r#"[{{"name":"{pod}-volume","mountPath":"/{pod}-mount"}}]"#)),
            (
                "resources",
                format!(r#"{{"requests":{{"{pod}.example/gpu":"1"}},"limits":{{"{pod}.example/gpu":"1"}}}}"#),
            ),
            ("terminationGracePeriodSeconds", if pod == "workers" { "31" } else { "32" }.to_owned()),
            ("settings", if pod == "workers" { r#"{"threads":7}"# } else { r#"{"stall":"11m"}"# }.to_owned()),
        ] {
            common.push((format!("{pod}.{key}"), value));
        }
    }
    common
}

/// Values that differ from the defaults and do not go together.
fn variants() -> [Vec<(String, String)>; 4] {
    [
        vec![
            json("mode", "\"batch\""),
            json("experiment", "\"name = \\\"the-experiment\\\"\""),
            json("batch.kind", "\"Jobs\""),
            json("batch.suspend", "true"),
            json("batch.activeDeadlineSeconds", "3601"),
            json("batch.ttlSecondsAfterFinished", "602"),
            json("batch.revive", "true"),
            json("batch.coordinatorRetries", "21"),
            json("batch.workerRetries", "11"),
            json("batch.export.enabled", "true"),
            json("store.location", "\"/var/lib/atoll\""),
            json("store.volume.size", "\"11Gi\""),
            json("store.volume.keep", "true"),
            json("coordinator.linger", "\"46s\""),
            json("coordinator.awaitWorker", "\"11m\""),
            json("coordinator.giveUpAfter", "\"31m\""),
            json("workers.replicas", "9"),
            json("workers.giveUpAfter", "\"12m\""),
            json("tls.existingSecret", "\"my-tls\""),
            json("tls.existingClientSecret", "\"my-client-tls\""),
            json("tokens.existingSecret", "\"my-tokens\""),
        ],
        vec![
            json("mode", "\"service\""),
            json("fullnameOverride", "\"whole-name\""),
            json("image.tag", "\"v9\""),
            json("image.digest", "\"\""),
            json("store.location", "\"s3://bucket/prefix\""),
            json("store.s3.secretName", "\"s3-secret\""),
            json("store.s3.region", "\"eu-west-9\""),
            json("store.s3.endpoint", "\"http://minio:9000\""),
            json("store.s3.allowHttp", "true"),
            json("tls.issuerRef", r#"{"name":"my-issuer"}"#),
            json("tls.hosts", r#"["atoll.example"]"#),
            json("coordinator.replicas", "2"),
            json("coordinator.takeoverAfter", "\"9s\""),
            json("workers.autoscaling.enabled", "true"),
            json("workers.autoscaling.minReplicas", "3"),
            json("workers.autoscaling.maxReplicas", "33"),
            json("workers.autoscaling.targetCpuPercent", "66"),
        ],
        vec![
            json("batch.kind", "\"JobSet\""),
            json("batch.queueName", "\"my-queue\""),
            json("batch.export.size", "\"3Gi\""),
            json("store.location", "\"s3://bucket/prefix\""),
            json("tls.days", "30"),
            json("networkPolicy.enabled", "false"),
        ],
        vec![
            json("mode", "\"service\""),
            json("tls.enabled", "false"),
            json("tls.clientAuth", "false"),
            json("tokens.enabled", "false"),
            json("workers.autoscaling.external", "true"),
        ],
    ]
}

/// Manifests without what is random or hashed, where a number may stand by chance.
fn plain(manifests: &str) -> String {
    let secret = secret_data(manifests);
    let is_plain = |line: &&str| !line.contains("checksum") && !secret.contains(line);
    manifests.lines().filter(is_plain).collect::<Vec<_>>().join("\n")
}

fn render_json<'a>(values: impl Iterator<Item = &'a (String, String)>) -> String {
    let values: Vec<String> = values.map(|(key, value)| format!("--set-json={key}={value}")).collect();
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    expect_success(&helm(&[&["template", "release", "atoll"], &values[..]].concat()))
}

/// Whether a text has this word, and not only as a part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(is_part)
            && !text[at + word.len()..].chars().next().is_some_and(is_part)
    })
}

#[test]
fn every_value_is_rendered() {
    let (common, variants) = (common_values(), variants());
    let (mut set, mut shown) = (BTreeSet::new(), BTreeSet::new());
    for variant in &variants {
        let is_replaced = |key: &String| variant.iter().any(|(other, _)| key == other);
        let values = || common.iter().filter(|(key, _)| !is_replaced(key)).chain(variant);
        let manifests = render_json(values());
        validate(&manifests);
        let manifests = plain(&manifests);
        for (key, value) in values() {
            set.insert(key.clone());
            // The longest word of the value itself must be there. Flags show in what else is there.
            let words = value.split(['"', '[', ']', '{', '}', ':', ',', '\\']);
            let word = words.max_by_key(|word| word.len()).unwrap();
            let shows = match word {
                "true" | "false" | "" => {
                    let others = values().filter(|(other, _)| other != key);
                    !shown.contains(key) && plain(&render_json(others)) != manifests
                }
                word => has_word(&manifests, word),
            };
            if shows {
                shown.insert(key.clone());
            }
        }
    }
    let documented: BTreeSet<String> = documented_values().into_iter().map(|(key, ..)| key).collect();
    assert_eq!(set, documented);
    // These are the defaults, are replaced by others, or show in random data.
    let hidden = [
        "batch.export.enabled",
        "image.digest",
        "mode",
        "store.volume.keep",
        "tls.days",
        "workers.autoscaling.enabled",
    ];
    let missing: Vec<&String> =
        documented.difference(&shown).filter(|key| !hidden.contains(&key.as_str())).collect();
    assert!(missing.is_empty(), "not rendered: {missing:?}");
}

#[test]
fn uninstalling_keeps_results_unless_that_is_turned_off() {
    let keep = "helm.sh/resource-policy: keep";
    assert!(render(&["mode=batch"]).contains(keep));
    assert!(render(&["mode=batch", "store.location=s3://bucket/x"]).contains(keep), "of the results");
    assert!(!render(&["mode=batch", "store.volume.keep=false"]).contains(keep));
    assert!(!render(&["mode=batch", "batch.export.enabled=false"]).contains("export = "));
}

#[test]
fn secrets_are_made_unless_they_are_named() {
    let made = render(&["mode=batch"]);
    assert_eq!(made.matches("\nkind: Secret\n").count(), 3, "tokens, and certificates of both sides");
    let named = render(&["mode=batch", "tokens.existingSecret=mine", "tls.existingSecret=theirs"]);
    assert!(!named.contains("kind: Secret\n") && named.contains("secretName: mine"));
    let by_manager = render(&["tls.issuerRef.name=ca", "tls.clientAuth=true"]);
    assert_eq!(by_manager.matches("kind: Certificate").count(), 2);
    let in_a_mesh = render(&["tls.enabled=false"]);
    assert!(in_a_mesh.contains("worker_token_file") && in_a_mesh.matches("insecure = true").count() == 2);
}

#[test]
fn users_of_pods_may_be_left_to_the_cluster() {
    let nulls = ["runAsUser", "runAsGroup", "fsGroup"].map(|key| format!("podSecurityContext.{key}=null"));
    let manifests = render(&nulls.each_ref().map(String::as_str));
    assert!(!["runAsUser", "runAsGroup", "fsGroup"].iter().any(|key| manifests.contains(key)));
    assert!(manifests.contains("runAsNonRoot: true"));
    // Numbers of OpenShift are long.
    let long = render(&["podSecurityContext.runAsUser=1000660000"]);
    assert_eq!(long.matches("runAsUser: 1000660000\n").count(), 3, "of coordinator, workers and test");
}

/// Browsers reach the dashboard by the names that the certificate has.
#[test]
fn the_dashboard_knows_the_names_that_lead_to_it() {
    for values in [
        "tls.hosts={atoll.example,*.example,10.0.0.1,::1}",
        "tls.hosts={atoll.example},service.hosts={https://proxy.example:8443}",
    ] {
        let config = block(&render(&[values]), "coordinator.toml").unwrap();
        let hosts = config.lines().find_map(|line| line.strip_prefix("http_hosts = ")).unwrap();
        let hosts: Vec<&str> = hosts.trim_matches('"').split(',').collect();
        let own = ["", ".default", ".default.svc", ".default.svc.cluster.local"];
        let own = own.map(|end| format!("release-atoll-coordinator{end}"));
        assert_eq!(hosts[..4], own, "{hosts:?}");
        let others = if values.contains("proxy") {
            &["atoll.example", "https://proxy.example:8443"][..]
        } else {
            &["atoll.example"]
        };
        assert_eq!(&hosts[4..], others, "{values}");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hosts.toml");
        std::fs::write(&file, format!("http_hosts = \"{}\"\n", hosts.join(","))).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        command.args(["coordinator", "--print-config", "--config"]).arg(&file).current_dir(folder.path());
        expect_success(&output(&mut command));
    }
}

/// Policies see the port of the pod behind a Service: some clusters have the name service at 5353.
#[test]
fn every_pod_whose_way_out_is_limited_reaches_the_name_service() {
    let s3 = "store.location=s3://bucket/x";
    let limited = "networkPolicy.coordinatorEgress[0].ports[0].port=443";
    for (values, policies) in
        [(&["mode=batch"][..], 1), (&["mode=service", limited], 2), (&["batch.kind=Job", s3, limited], 1)]
    {
        let manifests = render(values);
        for rule in [
            "protocol: UDP, port: 53 ",
            "protocol: TCP, port: 53 ",
            "protocol: UDP, port: 5353 ",
            "protocol: TCP, port: 5353 ",
        ] {
            assert_eq!(manifests.matches(rule).count(), policies, "{values:?}: {rule}");
        }
        validate(&manifests);
    }
}

/// An alert on targets does not fire for a pod that is not there.
#[test]
fn a_service_without_its_coordinator_raises_an_alert() {
    let alerts = "monitoring.alerts=true";
    let watched = render(&["mode=service", alerts, "monitoring.serviceMonitor=true"]);
    assert!(
        watched.contains(
            "absent(up{job=\"atoll\", namespace=\"default\", pod=~\"release-atoll-coordinator-.*\"})"
        )
    );
    let (_, rules) = watched.split_once("kind: PrometheusRule").unwrap();
    let (_, rules) = rules.split("\n---\n").next().unwrap().split_once("\nspec:\n").unwrap();
    let file = tempfile::tempdir().unwrap();
    std::fs::write(file.path().join("rules.yaml"), rules).unwrap();
    let mut promtool = Command::new(REFEREES.join("promtool/promtool"));
    expect_success(&output(promtool.args(["check", "rules", "rules.yaml"]).current_dir(file.path())));
    for values in [&["mode=service", alerts][..], &["mode=batch", alerts, "monitoring.serviceMonitor=true"]] {
        assert!(
            !render(values).contains("AtollCoordinatorAbsent"),
            "{values:?}: nothing to find, or it ends"
        );
    }
}

#[test]
fn the_test_of_the_chart_runs_where_its_coordinator_may() {
    let placed = render(&["coordinator.nodeSelector.disk=fast", "coordinator.tolerations[0].key=taint"]);
    let (_, pod) = placed.split_once("helm.sh/hook: test").unwrap();
    assert!(pod.contains("disk: fast") && pod.contains("key: taint"), "{pod}");
}

#[test]
fn mistakes_in_values_are_refused() {
    for (mistake, said) in [
        ("mode=bach", "mode"),
        ("modus=batch", "modus"),
        ("store.location=gs://bucket", "expected /var/lib/atoll or s3://BUCKET/PREFIX, found `gs://bucket`"),
        ("store.volume.size=10", "store.volume.size"),
        ("store.volume.size=ten", "store.volume.size: expected a size such as 10Gi, found `ten`"),
        ("coordinator.linger=soon", "coordinator.linger: expected a time such as 15s, found `soon`"),
        ("image.digest=sha256:0", "image.digest: expected sha256:"),
        ("coordinator.replicas=9", "coordinator.replicas"),
        ("workers.replicas=0", "workers.replicas"),
        ("workers.replica=3", "replica"),
        ("coordinator.lease=15", "coordinator.lease"),
        ("tls.enabled=maybe", "tls.enabled"),
        ("tokens.secretName=x", "secretName"),
        (
            "batch.queueName=team,batch.kind=Jobs",
            "batch.queueName: expected batch.kind JobSet or Job, found Jobs",
        ),
        ("batch.queueName=Team_A,batch.kind=JobSet", "batch.queueName: expected the name of a LocalQueue"),
        ("batch.kind=Job", "batch.kind: expected a store in S3"),
        ("batch.queueName=team", "found Auto, but no JobSet controller"),
        (
            "tls.existingSecret=mine,tls.clientAuth=true,tls.issuerRef.name=ca",
            "tls.existingClientSecret: expected a Secret",
        ),
        (
            "workers.podLabels.app\\.kubernetes\\.io/component=x",
            "workers.podLabels: expected labels of your own, found `app.kubernetes.io/component`",
        ),
        (
            "coordinator.podAnnotations.checksum/config=x",
            "coordinator.podAnnotations: expected annotations of your own, found `checksum/config`",
        ),
        ("coordinator.lease=never", "coordinator.lease: expected a time such as 15s, found `never`"),
        ("coordinator.lease=50ms", "coordinator.lease: expected at least 100ms"),
        (
            "workers.giveUpAfter=soon",
            "workers.giveUpAfter: expected a time such as 15s, or never, found `soon`",
        ),
        ("coordinator.settings.stall=soon", "coordinator.settings.stall: expected a time such as 15s"),
        (
            "coordinator.settings.audit=2",
            "coordinator.settings.audit: expected auto, or a share from 0 to 1, found `2`",
        ),
        ("workers.settings.threads=-1", "workers.settings.threads"),
        (
            "coordinator.serviceAccount.create=true,coordinator.serviceAccount.name=one,\
             workers.serviceAccount.create=true,workers.serviceAccount.name=one",
            "workers.serviceAccount.create: expected false, as coordinator.serviceAccount creates `one` for both",
        ),
        (
            "coordinator.settings.viewer_token_file=/run/atoll/tokens/viewer",
            "coordinator.settings.viewer_token_file: expected tokens.existingSecret beside it",
        ),
        ("experiment=a\n# b\u{2028}c", "experiment: expected text, found a control character"),
        ("experiment=a\u{85}", "a byte order mark in line 1"),
        ("coordinator.settings.log=loud", "coordinator.settings.log"),
        ("workers.settings.log=warning", "workers.settings.log"),
        ("workers.terminationGracePeriodSeconds=14", "workers.terminationGracePeriodSeconds"),
        ("coordinator.terminationGracePeriodSeconds=14", "coordinator.terminationGracePeriodSeconds"),
        ("workers.autoscaling.minReplicas=0", "workers.autoscaling.minReplicas"),
        ("listenAddress=all", "listenAddress: expected an address such as 0.0.0.0 or ::, found `all`"),
        ("podSecurityContext.runAsUser=0", "podSecurityContext.runAsUser"),
        (
            "coordinator.awaitWorker=soon",
            "coordinator.awaitWorker: expected a time such as 15s, found `soon`",
        ),
        (
            "tls.clientAuth=true,tls.existingClientSecret=mine",
            "tls.existingClientSecret: expected tls.existingSecret or tls.issuerRef beside it, found neither",
        ),
        (
            "tls.issuerRef.kind=Issuer",
            "tls.issuerRef.name: expected the name of a cert-manager issuer, found none",
        ),
        (
            "fullnameOverride=Foo_Bar",
            "expected names of a-z, 0-9 and - that begin with a letter, found `Foo_Bar`",
        ),
        ("coordinator.replicas=2", "coordinator.replicas: expected 1 with mode: batch, found 2"),
        (
            "service.hosts[0]=atoll.example:7441",
            "service.hosts: expected names without ports, or addresses of proxies such as https://atoll.example",
        ),
        ("coordinator.settings.lease=9s", "Additional property lease is not allowed"),
        ("workers.settings.thread=2", "Additional property thread is not allowed"),
    ] {
        let output = helm(&["template", "release", "atoll", "--set", mistake]);
        assert!(!output.status.success(), "{mistake} passed");
        assert!(text(&output.stderr).contains(said), "{mistake}: {}", text(&output.stderr));
    }
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
            let default = if default.is_empty() { "none".to_owned() } else { format!("`{default}`") };
            assert!(table.contains(&format!("\n| `{key}` | {default} |")), "{role}: {line}");
        }
        assert_eq!(table.matches("\n| `").count(), printed.lines().count(), "{role} has other settings");
    }
}
