//! Every commitment that the killed miner ever handed to the node, whether it came into a
//! block or not.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::mpsc;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::websocket::WebSocket;
use types::Address;

/// Somebody who reads along what the node takes from a member.
#[derive(Debug)]
pub(super) struct PoolWatch(mpsc::Receiver<anyhow::Result<Value>>);

/// The commitments of each call.
pub(super) type Commitments = BTreeMap<String, BTreeSet<String>>;

impl PoolWatch {
    /// Reads from now on, as long as the node lives.
    pub(super) fn of(node: SocketAddr, member: Address) -> anyhow::Result<Self> {
        let mut pool = WebSocket::open(node)?;
        pool.subscribe("pool", &json!({ "address": member, "type": "CALL_COMMIT" }))?;
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            loop {
                let event = match pool.next() {
                    Ok(Some(event)) => Ok(event),
                    Ok(None) => return,
                    // Nothing was sent for a while.
                    Err(fault) if is_silence(&fault) => continue,
                    Err(fault) => Err(fault),
                };
                let is_last = event.is_err();
                if tell.send(event).is_err() || is_last {
                    return;
                }
            }
        });
        Ok(Self(told))
    }

    /// All that was heard so far.
    pub(super) fn commitments(&self) -> anyhow::Result<Commitments> {
        let mut seen = Commitments::new();
        for told in self.0.try_iter() {
            let told = told?;
            let event = &told["params"]["result"];
            ensure!(event["lagged"].is_null(), "the watch was too slow: {event}");
            if event["event"] != "accepted" {
                continue;
            }
            let data = &event["tx"];
            let text = |member: &str| {
                let text = data[member].as_str().map(str::to_owned);
                text.with_context(|| format!("no {member}: {event}"))
            };
            let round = &data["round"];
            let call = format!("{} {round}", text("callId")?);
            seen.entry(call).or_default().insert(text("commitment")?);
        }
        Ok(seen)
    }
}

fn is_silence(fault: &anyhow::Error) -> bool {
    let kind = fault.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
    matches!(kind, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut))
}
