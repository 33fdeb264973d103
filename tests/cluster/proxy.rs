//! A network that can be cut, fall silent in both directions or in one, be slow, and be healed.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Passes connections on to an address, while it is not cut.
pub(crate) struct Proxy {
    pub(crate) url: String,
    wires: Arc<Mutex<Wires>>,
    silence: Arc<Silence>,
}

#[derive(Default)]
struct Wires {
    cut: bool,
    streams: Vec<TcpStream>,
}

/// What happens to what is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Open,
    /// Nothing gets through, without an error.
    Silent,
    /// What is sent gets through, but no reply to it.
    HalfOpen,
    /// Everything takes this much longer.
    Slow(Duration),
}

#[derive(Default)]
struct Silence {
    mode: Mutex<Mode>,
    broken: Condvar,
    /// How often something was held.
    held: AtomicUsize,
}

impl Silence {
    fn wait(&self, is_reply: bool) {
        let holds = |mode: Mode| mode == Mode::Silent || mode == Mode::HalfOpen && is_reply;
        let mut mode = self.mode.lock().unwrap();
        if *mode != Mode::Open && (is_reply || *mode != Mode::HalfOpen) {
            self.held.fetch_add(1, SeqCst);
        }
        if let Mode::Slow(time) = *mode {
            drop(mode);
            return thread::sleep(time);
        }
        while holds(*mode) {
            mode = self.broken.wait(mode).unwrap();
        }
    }

    fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
        self.broken.notify_all();
    }
}

impl Proxy {
    pub(crate) fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let wires = Arc::new(Mutex::new(Wires::default()));
        let silence = Arc::new(Silence::default());
        let (address, shared, quiet) = (address.to_owned(), wires.clone(), silence.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut wires = shared.lock().unwrap();
                let there = TcpStream::connect(&address);
                if let (false, Ok(there)) = (wires.cut, there) {
                    join(&mut wires, stream, there, &quiet);
                }
            }
        });
        Self { url, wires, silence }
    }

    /// Breaks every connection, and lets none be made.
    pub(crate) fn cut(&self) {
        let mut wires = self.wires.lock().unwrap();
        wires.cut = true;
        for stream in wires.streams.drain(..) {
            let was_open = stream.shutdown(Shutdown::Both).is_ok();
            self.silence.held.fetch_add(usize::from(was_open), SeqCst);
        }
    }

    /// Lets nothing through any more, without a word.
    pub(crate) fn fall_silent(&self) {
        self.silence.set(Mode::Silent);
    }

    /// Lets no reply through any more, without a word.
    pub(crate) fn fall_half_silent(&self) {
        self.silence.set(Mode::HalfOpen);
    }

    /// Delays everything by this time.
    pub(crate) fn slow_down(&self, time: Duration) {
        self.silence.set(Mode::Slow(time));
    }

    /// How often something was held up so far, or a connection was broken.
    pub(crate) fn held(&self) -> usize {
        self.silence.held.load(SeqCst)
    }

    pub(crate) fn heal(&self) {
        self.wires.lock().unwrap().cut = false;
        self.silence.set(Mode::Open);
    }
}

fn join(wires: &mut Wires, here: TcpStream, there: TcpStream, silence: &Arc<Silence>) {
    for (from, to, is_reply) in [(&here, &there, false), (&there, &here, true)] {
        let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        let _ = to.set_nodelay(true);
        let silence = silence.clone();
        thread::spawn(move || pass_on(from, to, is_reply, &silence));
    }
    wires.streams.extend([here, there]);
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, is_reply: bool, silence: &Silence) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count) = from.read(&mut buffer) {
        silence.wait(is_reply);
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
