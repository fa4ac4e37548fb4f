//! The chain's tools against a node that says what a test wants.

use serde_json::{Value, json};
use wallet::Client;

use crate::tools::tests::support::{Reply, Request, Web, config, http, said, surroundings};
use crate::tools::{Class, Toolbox};

const BLOCK: &str = "1111111111111111111111111111111111111111111111111111111111111111";
const PENDING: &str = "2222222222222222222222222222222222222222222222222222222222222222";
const ADDRESS: &str = "94bfbb5fbd2fea4c67be283d36528a3cfd1cfda3";

/// A node of docs/rpc.md, with members that only one node has, and one error for each number.
fn node(request: &Request) -> Reply {
    let call: Value = serde_json::from_str(&request.body).unwrap();
    let params = &call["params"];
    let error = |code: i32| json!({"error": {"code": code, "message": "core::fmt::Error"}});
    let mut body = match call["method"].as_str().unwrap() {
        "ombra_getAccount" if params[0] == ADDRESS => json!({"result": {
            "nonce": 4, "address": ADDRESS, "balance": "1500000", "pendingNonce": 5,
            "pendingBalance": "9",
        }}),
        "ombra_getAccount" => error(-32052),
        "ombra_chainInfo" => json!({"result": {
            "chainId": "ombra-dev", "height": 7, "genesisHash": BLOCK, "latestBlockHash": BLOCK,
            "latestBlockTime": 1000, "peers": 3,
        }}),
        "ombra_getBlock" if params == &json!([7, false]) || params == &json!([BLOCK, false]) => {
            json!({"result": {
                "index": 7, "hash": BLOCK, "commit": {"round": 0}, "transactions": [PENDING],
            }})
        }
        "ombra_getBlock" if params == &json!(["latest", false]) => error(-32603),
        "ombra_getBlock" if params == &json!([3, false]) => json!({"error": {
            "code": -32052, "message": "from 5", "data": {"code": "HISTORY_UNAVAILABLE"},
        }}),
        "ombra_getBlock" => error(-32051),
        "ombra_getTransaction" => {
            let hash = params[0].as_str().unwrap();
            let status = if hash == PENDING { "pending" } else { "included" };
            json!({"result": {
                "hash": hash, "status": status, "tx": {"type": "TRANSFER"}, "blockIndex": 7,
            }})
        }
        "ombra_getBlocks" => {
            let count = params[0]["limit"].as_u64().unwrap();
            let items: Vec<_> = (1..=count).map(|it| json!({"index": it, "seen": 1})).collect();
            json!({"result": {"items": items, "nextCursor": null}})
        }
        "ombra_getValidators" => json!({"result": [
            {"power": 10, "address": ADDRESS, "equivocations": 2, "votes": []},
        ]}),
        method => panic!("no test asks {method}"),
    };
    (body["jsonrpc"], body["id"]) = (json!("2.0"), call["id"].clone());
    http("200 OK", "content-type: application/json\r\n", &body.to_string())
}

fn toolbox(url: &str) -> Toolbox {
    let folder = tempfile::tempdir().unwrap();
    let mut around = surroundings(folder.path());
    around.node = Client::new(url).unwrap();
    Toolbox::open(&config(""), &around).unwrap()
}

#[tokio::test]
async fn the_node_is_asked_and_its_answer_given_without_what_only_it_knows() {
    let web = Web::start("127.0.0.1:0", node).await;
    let toolbox = toolbox(&format!("http://{}", web.address));
    let block = format!(r#"{{"hash":"{BLOCK}","index":7,"transactions":["{PENDING}"]}}"#);
    let at = |hash: &str| format!(r#"{{"hash": "{hash}"}}"#);
    let tx = format!(r#"{{"blockIndex":7,"hash":"{BLOCK}","tx":{{"type":"TRANSFER"}}}}"#);
    let height =
        format!(r#"{{"chainId":"ombra-dev","hash":"{BLOCK}","height":7,"timestamp":1000}}"#);
    let cases = [
        (
            "chain_get_balance",
            format!(r#"{{"address": "{ADDRESS}"}}"#),
            format!(r#"{{"address":"{ADDRESS}","balanceMicro":"1500000","nonce":4}}"#),
        ),
        ("chain_get_height", "{}".into(), height),
        ("chain_get_block", r#"{"block": "7"}"#.into(), block.clone()),
        ("chain_get_block", format!(r#"{{"block": "{BLOCK}"}}"#), block),
        ("chain_get_tx", at(BLOCK), tx),
        ("chain_recent_blocks", r#"{"count": 2}"#.into(), r#"[{"index":1},{"index":2}]"#.into()),
        (
            "chain_list_validators",
            "{}".into(),
            format!(r#"[{{"address":"{ADDRESS}","power":10}}]"#),
        ),
    ];
    for (tool, arguments, result) in cases {
        assert_eq!(said(&toolbox, tool, &arguments).await, result, "{tool} {arguments}");
        assert_eq!(toolbox.terms(tool).unwrap().class, Class::Snapshot);
    }
    let blocks = said(&toolbox, "chain_recent_blocks", "{}").await;
    assert_eq!(blocks.matches("index").count(), 5);
}

#[tokio::test]
async fn what_the_node_cannot_answer_is_told_in_fixed_words() {
    let web = Web::start("127.0.0.1:0", node).await;
    let toolbox = toolbox(&format!("http://{}", web.address));
    let height =
        "expected a height from 1, a block hash of 64 lower-case hex characters, or latest";
    for block in ["0", "+7", &BLOCK.replace('1', "F")] {
        let said = said(&toolbox, "chain_get_block", &format!(r#"{{"block": "{block}"}}"#)).await;
        assert_eq!(said, format!("bad_arguments: argument block is \"{block}\": {height}"));
    }
    let cases = [
        (
            "chain_get_balance",
            r#"{"address": "bob"}"#.to_owned(),
            "bad_arguments: argument address is \"bob\": expected 40 hex characters",
        ),
        (
            "chain_get_balance",
            format!(r#"{{"address": "{}"}}"#, "0".repeat(40)),
            "transport: the node does not serve now",
        ),
        (
            "chain_get_block",
            r#"{"block": 7}"#.into(),
            "bad_arguments: argument block is 7: the value is not of type \"string\"",
        ),
        (
            "chain_get_block",
            r#"{"block": "99"}"#.into(),
            "failed: the chain has no such block or transaction",
        ),
        (
            "chain_get_block",
            r#"{"block": "3"}"#.into(),
            "failed: the node does not have blocks that old",
        ),
        (
            "chain_get_block",
            r#"{"block": "latest"}"#.into(),
            "transport: the node could not be asked",
        ),
        (
            "chain_get_tx",
            format!(r#"{{"hash": "{PENDING}"}}"#),
            "failed: the chain has no such block or transaction",
        ),
        (
            "chain_get_tx",
            r#"{"hash": "0x12"}"#.into(),
            "bad_arguments: argument hash is \"0x12\": expected 64 lower-case hex characters",
        ),
        (
            "chain_recent_blocks",
            r#"{"count": 21}"#.into(),
            "bad_arguments: argument count is 21: the value is greater than the maximum of 20",
        ),
    ];
    for (tool, arguments, result) in cases {
        assert_eq!(said(&toolbox, tool, &arguments).await, result, "{tool} {arguments}");
    }
}

#[tokio::test]
async fn a_node_that_is_not_there_is_told_without_names_of_types() {
    let toolbox = toolbox("http://127.0.0.1:1");
    let result = said(&toolbox, "chain_get_height", "{}").await;
    assert_eq!(result, "transport: the node could not be asked");
}
