//! A port in front of a node that the tests can cut, lead to another port, or have say that the node
//! is catching up. The page's address stays the same all the while.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const LIVE: &[u8] = b"\"syncing\":false";
/// As long as the other, so that no length changes.
const SYNCING: &[u8] = b"\"syncing\":true ";

#[derive(Default)]
struct State {
    node: Option<SocketAddr>,
    is_syncing: bool,
    open: Vec<TcpStream>,
}

/// The port.
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wire {
    /// A port that leads to the node. Its threads end with the process.
    pub(crate) fn to(node: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new(State { node: Some(node), ..State::default() }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                drop(connect(&shared, client));
            }
        });
        Ok(Self { address, state })
    }

    /// Nobody answers here any more, and open connections end.
    pub(crate) fn cut(&self) {
        let mut state = lock(&self.state);
        state.node = None;
        for stream in state.open.drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// Leads to a node again.
    pub(crate) fn lead_to(&self, node: SocketAddr) {
        lock(&self.state).node = Some(node);
    }

    /// Whether answers say that the node is catching up.
    pub(crate) fn say_syncing(&self, is_syncing: bool) {
        lock(&self.state).is_syncing = is_syncing;
    }
}

fn connect(state: &Arc<Mutex<State>>, client: TcpStream) -> std::io::Result<()> {
    let Some(node) = lock(state).node else { return client.shutdown(Shutdown::Both) };
    let server = TcpStream::connect(node)?;
    lock(state).open.extend([client.try_clone()?, server.try_clone()?]);
    let (from, to) = (client.try_clone()?, server.try_clone()?);
    std::thread::spawn(move || pump(from, to, |_| {}));
    let state = Arc::clone(state);
    std::thread::spawn(move || {
        pump(server, client, |bytes| {
            if lock(&state).is_syncing {
                replace(bytes);
            }
        });
    });
    Ok(())
}

fn pump(mut from: TcpStream, mut to: TcpStream, change: impl Fn(&mut [u8])) {
    let mut room = vec![0; 256 * 1024];
    while let Ok(length) = from.read(&mut room) {
        let bytes = &mut room[..length];
        change(bytes);
        if length == 0 || to.write_all(bytes).is_err() {
            break;
        }
    }
    drop(to.shutdown(Shutdown::Both));
    drop(from.shutdown(Shutdown::Both));
}

fn replace(bytes: &mut [u8]) {
    let mut at = 0;
    while at + LIVE.len() <= bytes.len() {
        if &bytes[at..at + LIVE.len()] == LIVE {
            bytes[at..at + LIVE.len()].copy_from_slice(SYNCING);
        }
        at += 1;
    }
}
