//! What stands before a node and says that the node is of another chain, or lies about one answer:
//! everything else goes through.

use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::breakpoint::lock;
use crate::http::Connection;
use crate::web::{self, Request};

/// An answer that is changed: that of a method, and how.
type Lie = (&'static str, fn(&mut Value));

/// The chain that the node is said to be of: id and genesis hash.
type Named = Mutex<Option<(String, String)>>;

/// A front before a node. It ends with the process.
#[derive(Clone, Debug)]
pub struct Front {
    pub address: SocketAddr,
    lie: Arc<Mutex<Option<Lie>>>,
    named: Arc<Named>,
    sent: Arc<Mutex<Vec<Value>>>,
}

impl Front {
    /// A front that tells the truth until it is told otherwise.
    pub fn before(node: SocketAddr) -> anyhow::Result<Self> {
        let (named, sent, lie) = (Arc::default(), Arc::default(), Arc::default());
        let (name, note, untrue) = (Arc::clone(&named), Arc::clone(&sent), Arc::clone(&lie));
        let address = web::listen(move |stream| serve(stream, node, (&name, &note, &untrue)))?;
        Ok(Self { address, lie, named, sent })
    }

    /// From now on what a method answers is changed so.
    pub fn lie(&self, method: &'static str, change: fn(&mut Value)) {
        *lock(&self.lie) = Some((method, change));
    }

    /// From now on the node is of the chain with this id and this genesis hash.
    pub fn name(&self, chain_id: &str, genesis_hash: &str) {
        *lock(&self.named) = Some((chain_id.to_owned(), genesis_hash.to_owned()));
    }

    /// From now on the truth.
    pub fn repent(&self) {
        *lock(&self.named) = None;
    }

    /// The transactions that were handed in.
    #[must_use]
    pub fn sent(&self) -> Vec<Value> {
        lock(&self.sent).clone()
    }

    /// Its URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn serve(
    stream: TcpStream,
    node: SocketAddr,
    (named, sent, lie): (&Named, &Mutex<Vec<Value>>, &Mutex<Option<Lie>>),
) -> Option<()> {
    let (mut reader, mut writer) = web::both(stream)?;
    let mut behind = Connection::open(node).ok()?;
    loop {
        let request = Request::read(&mut reader)?;
        let call = request.json();
        if call["method"] == "ombra_sendTransaction" {
            lock(sent).push(call["params"][0].clone());
        }
        let answer = behind.post(std::str::from_utf8(&request.body).ok()?).ok()?;
        let mut answer: Value = serde_json::from_str(&answer).ok()?;
        if let Some((chain_id, genesis_hash)) = &*lock(named)
            && call["method"] == "ombra_chainInfo"
        {
            answer["result"]["chainId"] = json!(chain_id);
            answer["result"]["genesisHash"] = json!(genesis_hash);
        }
        if let Some((method, change)) = *lock(lie)
            && call["method"] == method
        {
            change(&mut answer["result"]);
        }
        let headers = ["content-type: application/json".to_owned()];
        web::answer(&mut writer, "200 OK", &headers, &answer.to_string())?;
    }
}
