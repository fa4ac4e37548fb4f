//! A port in front of a node that the tests can cut, lead to another port, or have come between the
//! page and the node as bad proxies do. The page's address stays the same all the while.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What is put in place of what; both have one length, so that no length in a message changes.
type Change = (&'static [u8], &'static [u8]);

/// Like a proxy that does not know web sockets: the request is one for a page then.
const NO_UPGRADE: Change = (b"Upgrade: websocket", b"X-Grade: websocket");
/// Answers that are changed must come as they are.
const NO_COMPRESSION: Change = (b"Accept-Encoding:", b"X-Accept-Nothin:");

#[derive(Default)]
struct State {
    node: Option<SocketAddr>,
    in_requests: Vec<Change>,
    in_answers: Vec<Change>,
    /// How many bytes of answers may still pass, where that is bounded.
    left: Option<usize>,
    open: Vec<TcpStream>,
}

impl State {
    fn hang_up(&mut self) {
        for stream in self.open.drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

/// What the threads of a port share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    released: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until so many bytes of answers may pass.
    fn pass(&self, length: usize) {
        let mut state = self.lock();
        while state.left.is_some_and(|left| left < length) {
            state = self.released.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.left = state.left.map(|left| left - length);
    }
}

/// The port.
pub(crate) struct Wire {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

impl Wire {
    /// A port that leads to a port of a node. Its threads end with the process.
    pub(crate) fn to(node: SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
        shared.lock().node = Some(node);
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                drop(connect(&own, client));
            }
        });
        Ok(Self { address, shared })
    }

    /// Nobody answers here any more, and open connections end.
    pub(crate) fn cut(&self) {
        let mut state = self.shared.lock();
        state.node = None;
        state.hang_up();
    }

    /// Leads to a node; connections to another end.
    pub(crate) fn lead_to(&self, node: SocketAddr) {
        let mut state = self.shared.lock();
        state.hang_up();
        state.node = Some(node);
    }

    /// Lets no WebSocket through any more; those that are open end.
    pub(crate) fn refuse_upgrades(&self) {
        let mut state = self.shared.lock();
        state.in_requests.push(NO_UPGRADE);
        state.hang_up();
    }

    /// Puts other bytes of the same length into answers.
    pub(crate) fn forge(&self, true_bytes: &'static [u8], false_bytes: &'static [u8]) {
        let mut state = self.shared.lock();
        state.in_requests.push(NO_COMPRESSION);
        state.in_answers.push((true_bytes, false_bytes));
        state.hang_up();
    }

    /// Holds answers back when so many bytes of them have passed.
    pub(crate) fn hold_after(&self, bytes: usize) {
        self.shared.lock().left = Some(bytes);
    }

    /// Lets everything through as it is.
    pub(crate) fn behave(&self) {
        let mut state = self.shared.lock();
        (state.in_requests, state.in_answers, state.left) = (Vec::new(), Vec::new(), None);
        self.shared.released.notify_all();
    }
}

fn connect(shared: &Arc<Shared>, client: TcpStream) -> std::io::Result<()> {
    let Some(node) = shared.lock().node else { return client.shutdown(Shutdown::Both) };
    let server = TcpStream::connect(node)?;
    shared.lock().open.extend([client.try_clone()?, server.try_clone()?]);
    let (from, to) = (client.try_clone()?, server.try_clone()?);
    let own = Arc::clone(shared);
    std::thread::spawn(move || pump(from, to, |bytes| change(bytes, &own.lock().in_requests)));
    let own = Arc::clone(shared);
    std::thread::spawn(move || {
        pump(server, client, |bytes| {
            own.pass(bytes.len());
            change(bytes, &own.lock().in_answers);
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

/// Changes every place in the bytes.
fn change(bytes: &mut [u8], changes: &[Change]) {
    for (old, new) in changes {
        for at in 0..bytes.len() {
            if bytes[at..].starts_with(old) {
                bytes[at..at + new.len()].copy_from_slice(new);
            }
        }
    }
}
