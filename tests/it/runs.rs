//! Many whole runs through the public interface, all of their transactions in the pool together.

use serde_json::json;
use testkit::http::{self, Connection};
use testkit::node::{DevOptions, Node, wait_until};
use testkit::workload::Workload;

use crate::support::printed;

#[test]
fn runs_whose_transactions_wait_together_are_all_settled() -> anyhow::Result<()> {
    let (runs, accounts) = (40, 8);
    let mut node = Node::start(DevOptions { accounts, ..DevOptions::from_environment() })?;
    let work = Workload::runs(runs, accounts)?;
    let expected = work.nonces();

    let mut connection = Connection::open(node.rpc)?;
    for wave in work.waves {
        for texts in wave.into_lanes(1).iter().flat_map(|lane| lane.chunks(50)) {
            let answer = connection.post(&http::send_body(texts))?;
            assert!(!answer.contains("\"error\""), "{answer}");
        }
    }

    for (address, nonce) in expected {
        wait_until("every transaction to be included", || {
            Ok(http::account_nonce(&mut connection, &address)? == nonce)
        })?;
    }
    let filter = json!({ "status": "completed", "limit": 500 });
    let listed = node.call("ombra_listAgentRuns", &filter)?;
    assert_eq!(Some(runs), listed["items"].as_array().map(Vec::len));
    let supply = node.call("ombra_getSupply", &json!([]))?;
    assert_eq!("0", supply["escrowed"]);
    assert_eq!((runs * 8 * 100).to_string(), supply["burned"]);

    node.stop()?;
    let data = node.data().to_string_lossy().into_owned();
    printed(node.ombra(&["db", "verify", "--home", &data])?).map(drop)
}
