//! Two coordinators on one store: the older one stops by itself, and nothing is lost.

use crate::process::{Coordinator, DIGEST, EXPERIMENT, Folder, Variables, atoll, text, wait_until};
use crate::proxy::Proxy;
use crate::s3::Server;
use crate::silent_store::by_way_of;

fn succeed(first: Coordinator, second: &Coordinator, run: &str) {
    let mut first = first;
    let _worker = second.worker(&[]);
    assert_eq!(first.process.ended(), Some(3), "nobody should start it again");
    let last_words = "another coordinator has taken this store over";
    wait_until(last_words, || first.said().contains(last_words));
    assert!(!first.said().contains("failed"), "the run goes on elsewhere: {}", first.said());
    assert_eq!(second.digest(run), *DIGEST);
}

/// Both are at work at once until the older one notices.
fn two_coordinators(folder: &Folder, store: &str, variables: &Variables) {
    let start = || {
        folder.coordinator_with(
            &["--store", store, "--lease", "2s", "--termination-log", "coordinator.end"],
            variables.clone(),
        )
    };
    let first = start();
    let run = first.submit(EXPERIMENT);
    let _worker = first.worker(&[]);
    first.wait_for("atoll_results_accepted_total", 3.0);
    succeed(first, &start(), &run);
    let message = std::fs::read_to_string(folder.path().join("coordinator.end")).unwrap();
    assert!(message.starts_with("another coordinator has taken this store over"), "{message}");
}

#[test]
fn the_older_of_two_coordinators_on_a_folder_stops() {
    two_coordinators(&Folder::new(), "shared-store", &vec![]);
}

#[test]
fn the_older_of_two_coordinators_on_s3_stops() {
    let server = Server::start();
    two_coordinators(&Folder::new(), "s3://clusters/two", &server.variables());
}

#[test]
fn what_is_submitted_to_the_older_one_is_not_lost() {
    let folder = Folder::new();
    let claims = |coordinator: &Coordinator| coordinator.page("/readyz").starts_with("HTTP/1.1 200");
    let first = folder.coordinator(&[]);
    wait_until("the claim of the first", || claims(&first));
    let second = folder.coordinator(&[]);
    wait_until("the claim of the second", || claims(&second));
    let file = folder.file("late.toml", EXPERIMENT);
    // Whether or not the older one has noticed: it never says that it has taken what its successor will not see.
    let refused = first.command(&["submit", &file]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    let run = second.submit(EXPERIMENT);
    succeed(first, &second, &run);
}

/// What the older coordinator has sent arrives while the newer one continues the run: none of it counts.
#[test]
fn late_writes_of_an_older_coordinator_in_a_bucket_do_not_count() {
    let (server, folder) = (Server::start(), Folder::new());
    let proxy = Proxy::to(server.variables()[0].1.trim_start_matches("http://"));
    let store = ["--store", "s3://clusters/late", "--lease", "2s"];
    let start = |variables| folder.coordinator_with(&store, variables);
    let mut first = start(by_way_of(&proxy.url, &server));
    let plan = EXPERIMENT.replace("count = 5 }", "count = 5, mode = \"asynchronous\" }");
    let run = first.submit(&plan.replace("every = 50", "every = 1").replace("3000", "6000"));
    let _worker = first.worker(&[]);
    first.wait_for("atoll_results_accepted_total", 8.0);
    proxy.fall_silent();
    // Writes are on their way now, and stay there.
    let before = proxy.held();
    wait_until("writes that are held", || proxy.held() > before);
    let second = start(server.variables());
    let _other = second.worker(&[]);
    second.wait_for("atoll_results_accepted_total", 24.0);
    proxy.heal();
    assert_eq!(first.process.ended(), Some(3), "{}", first.said());
    let digest = second.digest(&run);
    let verify = ["verify", &run, "--json", "--store", "s3://clusters/late"];
    let verified = atoll().args(verify).envs(server.variables()).current_dir(folder.path()).output().unwrap();
    assert!(verified.status.success(), "{}{}", text(&verified.stdout), text(&verified.stderr));
    assert_eq!(digest.len(), DIGEST.len());
}
