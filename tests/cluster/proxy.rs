//! A network that can be cut, or fall silent, and be healed.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

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

/// While it lasts nothing gets through, and nobody is told.
#[derive(Default)]
struct Silence {
    lasts: Mutex<bool>,
    broken: Condvar,
}

impl Silence {
    fn wait(&self) {
        drop(self.broken.wait_while(self.lasts.lock().unwrap(), |lasts| *lasts));
    }

    fn set(&self, lasts: bool) {
        *self.lasts.lock().unwrap() = lasts;
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
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Lets nothing through any more, without a word.
    pub(crate) fn fall_silent(&self) {
        self.silence.set(true);
    }

    pub(crate) fn heal(&self) {
        self.wires.lock().unwrap().cut = false;
        self.silence.set(false);
    }
}

fn join(wires: &mut Wires, here: TcpStream, there: TcpStream, silence: &Arc<Silence>) {
    for (from, to) in [(&here, &there), (&there, &here)] {
        let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        let _ = to.set_nodelay(true);
        let silence = silence.clone();
        thread::spawn(move || pass_on(from, to, &silence));
    }
    wires.streams.extend([here, there]);
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, silence: &Silence) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count) = from.read(&mut buffer) {
        silence.wait();
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
