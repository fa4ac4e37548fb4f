//! A wire between a miner and its node that can hold up single calls, so that a test is sure where
//! the miner is when it kills it.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use types::Hash;

use crate::breakpoint::{Breakpoint, Marks, lock};
use crate::web::{self, Request};

/// Which side of a call is held up for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The node never hears of it.
    Request,
    /// The node does it, and the miner never hears so.
    Answer,
}

/// A call of JSON-RPC, named: the method, and of a transaction its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `ombra_sendTransaction` of this type.
    Send(&'static str),
    /// A look at the run that the trap is about.
    Run,
    /// Any other method.
    Method(&'static str),
}

impl Call {
    fn is(self, call: &Value, run: &str) -> bool {
        match self {
            Self::Run => call["method"] == "ombra_getAgentRun" && call["params"][0] == run,
            Self::Send(kind) => sent(call) == Some(kind),
            Self::Method(method) => call["method"] == method,
        }
    }
}

/// The type of the transaction that a call sends.
fn sent(call: &Value) -> Option<&str> {
    let is_sent = call["method"] == "ombra_sendTransaction";
    is_sent.then(|| call["params"][0]["type"].as_str()).flatten()
}

/// Where calls are held up.
#[derive(Clone, Debug)]
pub struct Trap {
    /// Only once this has happened; from the beginning if it is empty.
    pub after: &'static str,
    pub call: Call,
    /// Calls that pass before; the one after them and all later ones are held up.
    pub passing: usize,
    pub side: Side,
}

/// The wire. It ends with the process.
#[derive(Debug)]
pub struct Wire {
    /// Where the miner finds its node.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    node: SocketAddr,
    marks: Arc<Marks>,
    sent: Mutex<BTreeMap<String, usize>>,
    trap: Mutex<Option<Set>>,
}

/// A trap that is set.
#[derive(Debug)]
struct Set {
    trap: Trap,
    /// The run that it is about: the miner looks at others, too.
    run: String,
    gate: Arc<Breakpoint>,
}

impl Wire {
    /// A wire to a node. It marks each transaction that passes: `sent AGENT_STEP 1`.
    pub fn to(node: SocketAddr, marks: Arc<Marks>) -> anyhow::Result<Self> {
        let (sent, trap) = (Mutex::default(), Mutex::default());
        let shared = Arc::new(Shared { node, marks, sent, trap });
        let serving = Arc::clone(&shared);
        let address = web::listen(move |stream| serving.serve(stream))?;
        Ok(Self { address, shared })
    }

    /// Holds calls up from now on, for the sake of this run; the gate tells when one is.
    #[must_use]
    pub fn hold(&self, trap: Trap, run: &Hash) -> Arc<Breakpoint> {
        let (run, gate) = (run.to_string(), Arc::new(Breakpoint::default()));
        *lock(&self.shared.trap) = Some(Set { trap, run, gate: Arc::clone(&gate) });
        gate
    }

    /// Lets every call pass from now on. Those that were held up are lost.
    pub fn mend(&self) {
        if let Some(Set { gate, .. }) = lock(&self.shared.trap).take() {
            gate.open();
        }
    }
}

impl Shared {
    fn serve(&self, stream: TcpStream) -> Option<()> {
        let (mut reader, mut writer) = web::both(stream)?;
        let request = Request::read(&mut reader)?;
        let mut node = TcpStream::connect(self.node).ok()?;
        if request.header("upgrade").is_some() {
            node.write_all(&text(&request, true)).ok()?;
            return join(writer, node);
        }
        let trapped = self.trapped(&request.json());
        if let Some((Side::Request, gate)) = trapped {
            gate.pass();
            return None;
        }
        node.write_all(&text(&request, false)).ok()?;
        let mut answer = Vec::new();
        node.read_to_end(&mut answer).ok()?;
        if let Some((Side::Answer, gate)) = trapped {
            gate.pass();
            return None;
        }
        writer.write_all(&answer).ok()
    }

    /// Whether a call is held up, and where. Marks what passes to the node.
    fn trapped(&self, call: &Value) -> Option<(Side, Arc<Breakpoint>)> {
        let mut found = None;
        if let Some(Set { trap, run, gate }) = &mut *lock(&self.trap)
            && trap.call.is(call, run)
            && self.marks.has(trap.after)
        {
            match trap.passing.checked_sub(1) {
                Some(left) => trap.passing = left,
                None => found = Some((trap.side, Arc::clone(gate))),
            }
        }
        let goes_on = !matches!(found, Some((Side::Request, _)));
        if let Some(kind) = sent(call).filter(|_| goes_on) {
            let mut sent = lock(&self.sent);
            let count = sent.entry(kind.to_owned()).or_default();
            *count += 1;
            self.marks.set(&format!("sent {kind}"), *count);
        }
        found
    }
}

/// The request as it goes to the node: on a connection of its own, unless that becomes something else.
fn text(request: &Request, is_kept: bool) -> Vec<u8> {
    let is_connection = |header: &str| header.to_ascii_lowercase().starts_with("connection:");
    let mut head = format!("{}\r\n", request.line);
    for header in request.headers.iter().filter(|header| is_kept || !is_connection(header)) {
        head.extend([header.as_str(), "\r\n"]);
    }
    head.push_str(if is_kept { "\r\n" } else { "connection: close\r\n\r\n" });
    [head.as_bytes(), &request.body].concat()
}

/// Passes bytes on in both directions until both have ended.
fn join(miner: TcpStream, node: TcpStream) -> Option<()> {
    let pass = |mut from: TcpStream, mut to: TcpStream| {
        drop(std::io::copy(&mut from, &mut to));
        drop(to.shutdown(Shutdown::Both));
        drop(from.shutdown(Shutdown::Both));
    };
    let (from, to) = (node.try_clone().ok()?, miner.try_clone().ok()?);
    let back = std::thread::spawn(move || pass(from, to));
    pass(miner, node);
    back.join().ok()
}
