//! A store that no longer responds delays no process for long.

use crate::process::{DIGEST, EXPERIMENT, Folder, Process, Variables, atoll, wait_until};
use crate::proxy::Proxy;
use crate::s3::Server;
use rustix::process::Signal;
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The settings with which a client reaches the server by another way.
pub(crate) fn by_way_of(url: &str, server: &Server) -> Variables {
    let mut variables = server.variables();
    for (name, value) in &mut variables {
        if name == "AWS_ENDPOINT_URL" {
            url.clone_into(value);
        }
    }
    variables
}

fn is_terminated_in_time(process: &mut Process) {
    let asked = Instant::now();
    process.signal(Signal::TERM);
    assert_eq!(process.ended(), Some(143));
    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
}

#[test]
fn sigterm_is_obeyed_before_the_store_has_answered() {
    let (server, folder) = (Server::start(), Folder::new());
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let mut process = Process(
        atoll()
            .args(["coordinator", "--listen", "127.0.0.1:0", "--http", "off", "--store", "s3://clusters/x"])
            .envs(by_way_of(&url, &server))
            .current_dir(folder.path())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    // It gets no response.
    let _connection = silent.accept().unwrap();
    is_terminated_in_time(&mut process);
}

#[test]
fn sigterm_is_obeyed_while_the_store_is_silent_and_nothing_is_lost() {
    let (server, folder) = (Server::start(), Folder::new());
    let address = server.variables()[0].1.trim_start_matches("http://").to_owned();
    let proxy = Proxy::to(&address);
    let variables = by_way_of(&proxy.url, &server);
    let store = ["--store", "s3://clusters/silent", "--lease", "2s"];
    let mut coordinator = folder.coordinator_with(&store, variables);
    let run = coordinator.submit(EXPERIMENT);
    let _worker = coordinator.worker(&[]);
    coordinator.wait_for("atoll_checkpoints_total", 2.0);
    proxy.fall_silent();
    let page = coordinator.page("/metrics");
    // Perhaps that this is too often: the lines above have asked too.
    let is_answer = ["HTTP/1.1 200", "HTTP/1.1 429"].iter().any(|answer| page.starts_with(answer));
    assert!(is_answer, "whoever asks is answered: {page}");
    is_terminated_in_time(&mut coordinator.process);
    proxy.heal();
    let coordinator = coordinator.again();
    assert_eq!(coordinator.digest(&run), *DIGEST);
}

#[test]
fn a_coordinator_is_not_ready_for_as_long_as_its_store_is_silent() {
    let (server, folder) = (Server::start(), Folder::new());
    let address = server.variables()[0].1.trim_start_matches("http://").to_owned();
    let proxy = Proxy::to(&address);
    let arguments = ["--store", "s3://clusters/blind", "--lease", "2s"];
    let coordinator = folder.coordinator_with(&arguments, by_way_of(&proxy.url, &server));
    let status = || coordinator.page("/readyz").get(9..12).unwrap_or_default().to_owned();
    wait_until("a coordinator that is ready", || status() == "200");
    proxy.fall_silent();
    let silent = Instant::now();
    wait_until("readiness to end", || status() == "503");
    assert!(silent.elapsed() >= Duration::from_secs(10), "{:?}", silent.elapsed());
    // The first call is given up after 14 s and repeated: no coordinator is ready in between.
    while silent.elapsed() < Duration::from_secs(19) {
        assert_eq!(status(), "503", "after {:?}", silent.elapsed());
        std::thread::sleep(Duration::from_millis(200));
    }
    assert!(coordinator.metric("atoll_store_silent_seconds") > 10.0);
    proxy.heal();
    wait_until("readiness to come back", || status() == "200");
}
