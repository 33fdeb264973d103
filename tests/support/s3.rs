//! A real S3 server as a process of its own, from its environment of referees: moto, on a port that it chose itself, or
//! `SeaweedFS` if `ATOLL_S3_SERVER` says `seaweedfs`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The buckets that the server has.
const BUCKETS: [&str; 2] = ["conformance", "clusters"];

pub(crate) struct Server {
    process: Child,
    address: String,
    /// Where it keeps its objects, if not in memory.
    _folder: Option<tempfile::TempDir>,
}

impl Server {
    /// Starts a server that keeps conditional writes.
    pub(crate) fn start() -> Self {
        let server = match std::env::var("ATOLL_S3_SERVER").as_deref() {
            Ok("seaweedfs") => Self::seaweed(),
            Ok(other) => panic!("expected `seaweedfs` in ATOLL_S3_SERVER, found `{other}`"),
            Err(_) => {
                let script = root().join("tests/referees/moto_s3.py");
                Self::of(&environment("operators").join("bin/python"), &[&script.display().to_string()])
            }
        };
        for bucket in BUCKETS {
            server.create(bucket);
        }
        server
    }

    /// Starts `SeaweedFS`, an engine that keeps its objects on the disk.
    fn seaweed() -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let names = ["master.port", "volume.port", "filer.port", "s3.port"];
        let names = names.into_iter().flat_map(|name| [name.to_owned(), format!("{name}.grpc")]);
        // They are all held at once, so that they differ.
        let free = |_| TcpListener::bind("127.0.0.1:0").expect("there are free ports");
        let listeners: Vec<(String, TcpListener)> = names.zip((0..8).map(free)).collect();
        let port = |listener: &TcpListener| listener.local_addr().expect("it listens").port();
        let flags: Vec<String> =
            listeners.iter().map(|(name, listener)| format!("-{name}={}", port(listener))).collect();
        let address = format!("127.0.0.1:{}", port(&listeners[6].1));
        drop(listeners);
        let process = Command::new(environment("seaweedfs").join("bin/weed"))
            .args(["server", "-s3", "-ip=127.0.0.1"])
            .arg(format!("-dir={}", folder.path().display()))
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let server = Self { process, address, _folder: Some(folder) };
        let deadline = Instant::now() + Duration::from_secs(60);
        while !server.try_create("begun").is_ok_and(|answer| answer.starts_with("HTTP/1.1 200")) {
            assert!(Instant::now() < deadline, "the server answers");
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    /// Starts a server that breaks its promises, in one of its ways.
    pub(crate) fn careless(way: &str) -> Self {
        let script = root().join("tests/referees/careless_s3.py");
        Self::of(Path::new("python3"), &[&script.display().to_string(), way])
    }

    /// Starts any program that says where it listens.
    pub(crate) fn of(program: &Path, arguments: &[&str]) -> Self {
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut lines = BufReader::new(process.stderr.take().expect("it was piped")).lines();
        let address = lines.find_map(|line| Some(line.ok()?.split_once("http://")?.1.trim().to_owned()));
        // A full pipe would stop the server, so it is read to its end.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { process, address: address.expect("the server says where it listens"), _folder: None }
    }

    /// The settings of a client.
    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://{}", self.address);
        [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_ACCESS_KEY_ID", "referee"),
            ("AWS_SECRET_ACCESS_KEY", "referee-secret"),
            ("AWS_REGION", "us-east-1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    fn create(&self, bucket: &str) {
        let answer = self.try_create(bucket).expect("the server answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    fn try_create(&self, bucket: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        let request = format!(
            "PUT /{bucket} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.address
        );
        let mut answer = String::new();
        stream.write_all(request.as_bytes())?;
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The root of the repository, which is above every package whose tests share this file.
fn root() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.find(|folder| folder.join("tests/referees/setup").exists()).expect("the repository")
}

/// The folder of an environment that holds a server.
pub(crate) fn environment(name: &str) -> PathBuf {
    let root = root();
    let made = Command::new(root.join("tests/referees/setup")).arg(name).status();
    assert!(made.is_ok_and(|status| status.success()), "the environment of referees can be made");
    root.join("target/referees").join(name)
}
