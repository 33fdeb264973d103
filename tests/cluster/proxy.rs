//! A network that can be cut and healed.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// Passes connections on to an address, while it is not cut.
pub(crate) struct Proxy {
    pub(crate) url: String,
    wires: Arc<Mutex<Wires>>,
}

#[derive(Default)]
struct Wires {
    cut: bool,
    streams: Vec<TcpStream>,
}

impl Proxy {
    pub(crate) fn to(address: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let wires = Arc::new(Mutex::new(Wires::default()));
        let (address, shared) = (address.to_owned(), wires.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut wires = shared.lock().unwrap();
                let there = TcpStream::connect(&address);
                if let (false, Ok(there)) = (wires.cut, there) {
                    join(&mut wires, stream, there);
                }
            }
        });
        Self { url, wires }
    }

    /// Breaks every connection, and lets none be made.
    pub(crate) fn cut(&self) {
        let mut wires = self.wires.lock().unwrap();
        wires.cut = true;
        for stream in wires.streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn heal(&self) {
        self.wires.lock().unwrap().cut = false;
    }
}

fn join(wires: &mut Wires, here: TcpStream, there: TcpStream) {
    for (from, to) in [(&here, &there), (&there, &here)] {
        let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
        let _ = to.set_nodelay(true);
        thread::spawn(move || pass_on(from, to));
    }
    wires.streams.extend([here, there]);
}

fn pass_on(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
