//! The commands of `docs/operations.md` that need a cluster or a registry. No test has one, so what they name is looked for in
//! what the chart renders, and what they send is read by a parser of its form.

use crate::deploy::{expect_success, helm, output, root, validate};
use serde_json::Value;
use std::process::Command;

const PAGE: &str = include_str!("../../docs/operations.md");

/// The blocks of a language, without their indentation.
fn blocks(language: &str) -> Vec<String> {
    let mut found: Vec<String> = vec![];
    let mut inside: Option<(usize, bool)> = None;
    for line in PAGE.lines() {
        let (indent, bare) = (line.len() - line.trim_start().len(), line.trim_start());
        match inside {
            None if bare.starts_with("```") => {
                let tag = bare.trim_start_matches('`');
                let is_meant = tag == language || language.ends_with("(needs") && tag.starts_with(language);
                inside = Some((indent, is_meant));
                found.extend(is_meant.then(String::new));
            }
            Some(_) if bare == "```" => inside = None,
            Some((indent, true)) => {
                found.last_mut().unwrap().extend([line.get(indent..).unwrap_or_default(), "\n"]);
            }
            _ => {}
        }
    }
    found
}

/// The words of a command, as a shell takes them apart.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut escaped) = (vec![], String::new(), None, false);
    for letter in line.chars() {
        match (letter, quote) {
            _ if escaped => {
                word.push(letter);
                escaped = false;
            }
            ('\\', Some('"') | None) => escaped = true,
            ('\'' | '"', None) => quote = Some(letter),
            (end, Some(begin)) if end == begin => quote = None,
            (' ', None) => words.extend((!word.is_empty()).then(|| std::mem::take(&mut word))),
            _ => word.push(letter),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

#[test]
fn words_are_those_of_a_shell() {
    assert_eq!(words(r#"a -p '{"b": 1}' "\"c\" d""#), ["a", "-p", r#"{"b": 1}"#, r#""c" d"#]);
}

/// What the chart makes of a release.
fn release(name: &str, values: &str) -> String {
    expect_success(&helm(&["template", name, "atoll", "-n", "atoll", "--set", values]))
}

fn has(manifests: &str, kind: &str, name: &str) -> bool {
    manifests.contains(&format!("kind: {kind}\nmetadata:\n  name: {name}\n"))
}

/// The value of a flag.
fn flag<'a>(words: &[&'a str], name: &str) -> &'a str {
    let at = words.iter().position(|word| *word == name);
    let value = at.and_then(|at| words.get(at + 1).copied());
    let joined = words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.or(joined).unwrap_or_else(|| panic!("no {name} in {words:?}"))
}

#[test]
fn commands_that_need_a_cluster_name_what_the_chart_makes() {
    let batch = release("run1", "batch.kind=Jobs");
    let service = release("cluster", "mode=service,store.location=s3://bucket/x,coordinator.replicas=2");
    let mut known = 0;
    for line in blocks("sh (needs").iter().flat_map(|block| {
        let joined = block.replace("\\\n", " ");
        joined.lines().map(str::to_owned).collect::<Vec<_>>()
    }) {
        let line = line.replace("RELEASE", "cluster");
        let owned = words(&line);
        let mut words: Vec<&str> = owned.iter().map(String::as_str).collect();
        if let Some(at) = words.iter().position(|word| *word == "-n") {
            assert_eq!(words[at + 1], "atoll", "{line}");
            words.drain(at..at + 2);
        }
        match words.as_slice() {
            ["kubectl", "patch", kind @ ("job" | "secret"), names @ .., "--type=merge", "-p", patch] => {
                let kind = if *kind == "job" { "Job" } else { "Secret" };
                assert!(!names.is_empty() && names.iter().all(|name| has(&batch, kind, name)), "{line}");
                let patch: Value =
                    serde_json::from_str(patch).unwrap_or_else(|error| panic!("{line}: {error}"));
                let keys = patch.as_object().unwrap().keys().collect::<Vec<_>>();
                assert!(keys == ["spec"] || keys == ["stringData"], "{line}");
            }
            ["kubectl", "create", "secret", "generic", name, files @ ..] => {
                let set = "tokens.existingSecret=atoll-tokens,tls.existingSecret=atoll-tls,tls.clientAuth=true,\
                           tls.existingClientSecret=atoll-client-tls";
                let named = release("run1", set);
                assert!(named.contains(&format!("secretName: {name}")), "{line}");
                for file in files {
                    let (key, path) = file.strip_prefix("--from-file=").unwrap().split_once('=').unwrap();
                    assert!(named.contains(key) && path.starts_with("secrets/"), "{line}: {key}");
                }
            }
            ["kubectl", "delete", "pod", name] => {
                let (set, number) = name.rsplit_once('-').unwrap();
                assert!(has(&service, "StatefulSet", set) && ["0", "1"].contains(&number), "{line}");
            }
            ["kubectl", "run", ..] => {
                let pod: Value = serde_json::from_str(flag(&words, "--overrides")).unwrap();
                let claim = pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"].as_str().unwrap();
                assert!(has(&batch, "PersistentVolumeClaim", claim), "{line}");
                let arguments = pod["spec"]["containers"][0]["args"].as_array().unwrap();
                let help = output(Command::new(env!("CARGO_BIN_EXE_atoll")).args(["backup", "--help"]));
                let help = expect_success(&help);
                let flags = arguments.iter().filter_map(Value::as_str).filter(|word| word.starts_with("--"));
                assert!(arguments[0] == "backup" && flags.clone().count() > 0, "{line}");
                assert!(flags.clone().all(|flag| help.contains(flag)), "{line}");
                let pod = serde_json::json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "x" }, "spec": pod["spec"] });
                validate(&format!("---\nkind: Pod\n{}", yaml_of(&pod)));
            }
            ["helm", "install", name, chart, rest @ ..] => {
                assert_eq!(*chart, "deploy/helm/atoll");
                let rest = rest.iter().map(|word| word.replace("=FILE", "=../../examples/quickstart.toml"));
                let rest: Vec<String> = rest.collect();
                let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
                let made = expect_success(&helm(&[&["template", name, "atoll"], &rest[..]].concat()));
                assert!(
                    made.contains("image: \"REGISTRY/atoll:") && has(&made, "Job", "run1-atoll-worker"),
                    "{line}"
                );
            }
            ["kubectl", "get", "secret", name, "-o", path, "|", "base64", "-d", ..] => {
                let key =
                    path.strip_prefix("jsonpath={.data.").unwrap().trim_end_matches('}').replace('\\', "");
                assert!(has(&batch, "Secret", name) && batch.contains(&format!("\n  {key}: ")), "{line}");
            }
            ["kubectl", "port-forward", service, ports @ .., "&"] => {
                assert!(has(&batch, "Service", service.strip_prefix("svc/").unwrap()), "{line}");
                assert!(ports.iter().all(|port| batch.contains(&format!("port: {port},"))), "{line}");
            }
            ["export", variables @ ..] => {
                let help = output(Command::new(env!("CARGO_BIN_EXE_atoll")).args(["cancel", "--help"]));
                let help = expect_success(&help);
                let mut names = variables.iter().map(|variable| variable.split_once('=').unwrap().0);
                assert!(names.all(|name| help.contains(&format!("{name}="))), "{line}: {help}");
            }
            ["docker", "build", ..] => assert!(root().join(flag(&words, "-f")).is_file(), "{line}"),
            // The flags of our own are compared in `documentation.rs`; the others name nothing of ours.
            ["kubectl", "scale", "statefulset", name, "--replicas=0"] => {
                assert!(has(&service, "StatefulSet", name), "{line}");
            }
            ["atoll", ..]
            | ["sleep", _]
            | ["kubectl", "create", "namespace", _]
            | ["kubectl", "taint", "node", ..] => {}
            _ => panic!("a command that no test knows: {line}"),
        }
        known += 1;
    }
    assert!(known > 10, "only {known} commands");
}

/// JSON is YAML.
fn yaml_of(value: &Value) -> String {
    let fields = value.as_object().unwrap().iter().filter(|(key, _)| *key != "kind");
    fields.map(|(key, value)| [key, ": ", &value.to_string(), "\n"].concat()).collect()
}

#[test]
fn commands_for_a_cluster_are_marked_as_such() {
    for language in ["text", "sh"] {
        for line in blocks(language).iter().flat_map(|block| block.lines()) {
            let is_command = ["kubectl ", "helm ", "docker "].iter().any(|command| line.starts_with(command));
            assert!(!is_command, "neither run nor marked with a reason: {line}");
        }
    }
}

#[test]
fn autoscalers_follow_a_metric_and_a_deployment_that_exist() {
    let service = release("cluster", "mode=service,workers.autoscaling.external=true");
    assert!(PAGE.contains("`workers.autoscaling.external=true`"));
    let workers = service.split("\n---\n").find(|text| text.contains("\nkind: Deployment\n")).unwrap();
    assert!(!workers.contains("replicas:"), "an upgrade would reset it: {workers}");
    assert!(!service.contains("HorizontalPodAutoscaler"), "two would contend");
    let of = |start: &str| {
        let block = blocks("yaml").into_iter().find(|block| block.starts_with(start));
        block.unwrap_or_else(|| panic!("no {start}")).replace("RELEASE", "cluster")
    };
    let keda = of("apiVersion: keda.sh");
    let target = keda.split("scaleTargetRef: { name: ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(has(&service, "Deployment", target), "{keda}");
    let metrics = of("metrics:").replace('\n', "\n  ");
    for text in [&keda, &metrics] {
        assert!(text.contains("atoll_workers_wanted"), "{text}");
        assert!(text.contains("namespace"), "not those of all releases of a cluster: {text}");
    }
    assert!(PAGE.contains("| `atoll_workers_wanted` |"), "its formula is documented");
    let target = format!("{{ apiVersion: apps/v1, kind: Deployment, name: {target} }}");
    validate(&format!(
        "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {{ name: workers }}\nspec:\n  \
         scaleTargetRef: {target}\n  minReplicas: 1\n  maxReplicas: 50\n  {metrics}"
    ));
}
