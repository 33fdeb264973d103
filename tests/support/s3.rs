//! A real S3 server as a process of its own (moto, from its environment of referees), on a port that it chose itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The buckets that the server has.
const BUCKETS: [&str; 2] = ["conformance", "clusters"];

pub(crate) struct Server {
    process: Child,
    address: String,
}

impl Server {
    /// Starts moto, which keeps conditional writes.
    pub(crate) fn start() -> Self {
        let server = Self::of(&environment().join("bin/moto_server"), &["-p", "0"]);
        for bucket in BUCKETS {
            server.create(bucket);
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
        // Whoever does not read on would stop the server when its pipe is full.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { process, address: address.expect("the server says where it listens") }
    }

    /// What a client must be told.
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
        let mut stream = TcpStream::connect(&self.address).expect("the server listens");
        let request = format!(
            "PUT /{bucket} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            self.address
        );
        let mut answer = String::new();
        stream.write_all(request.as_bytes()).expect("the server reads");
        stream.read_to_string(&mut answer).expect("the server answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
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

/// The folder of the environment that holds the server.
fn environment() -> PathBuf {
    let root = root();
    let made = Command::new(root.join("tests/referees/setup")).arg("operators").status();
    assert!(made.is_ok_and(|status| status.success()), "the environment of referees can be made");
    root.join("target/referees/operators")
}
