//! The operator's socket.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tokio::net::UnixStream;

use crate::client::{TestServer, exchange, post_text, transfer};

async fn admin(server: &TestServer, method: &str, params: Value) -> Value {
    let path = server.endpoints.admin.clone().unwrap();
    let stream = UnixStream::connect(path).await.unwrap();
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let (_, body) = exchange(stream, &post_text(&request.to_string())).await;
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn operators_change_the_log_filter_the_pool_and_the_peers() {
    let server = TestServer::start().await;
    assert_eq!(admin(&server, "admin_logFilter", json!([])).await["result"], "info");
    let set = admin(&server, "admin_setLogFilter", json!({"filter": "debug"})).await;
    assert_eq!(set["result"], "debug");
    let refused = admin(&server, "admin_setLogFilter", json!(["!"])).await;
    let error = &refused["error"];
    assert_eq!((&error["code"], &error["data"]["field"]), (&json!(-32602), &json!("filter")));

    server.send(&transfer(1, 0)).await;
    assert_eq!(admin(&server, "admin_flushPool", json!([])).await["result"], 1);

    let peers = admin(&server, "admin_changePeer", json!({"add": "/ip4/1.2.3.4"})).await;
    assert_eq!(peers["result"][0]["address"], "/ip4/1.2.3.4");
    let peers = admin(&server, "admin_changePeer", json!([{"remove": "12D4"}])).await;
    assert_eq!(peers["result"], json!([]));
    assert_eq!(admin(&server, "admin_peers", json!([])).await["result"], json!([]));
    let gossip = json!({"addGossip": "/ip4/1.2.3.5"});
    let peers = admin(&server, "admin_changePeer", gossip).await;
    assert_eq!(peers["result"][0]["address"], "/ip4/1.2.3.5");
    let peers = admin(&server, "admin_changePeer", json!([{"ban": "12D4", "seconds": 5}])).await;
    assert_eq!(peers["result"], json!([]));
    let lifted = admin(&server, "admin_changePeer", json!([{"unban": "12D4"}])).await;
    assert_eq!(lifted["result"], json!([]));
    let both = json!([{"add": "/ip4/1.2.3.4", "ban": "1"}]);
    let idle = json!([{"remove": "1", "seconds": 5}]);
    for change in [both, idle, json!([{}])] {
        let refused = admin(&server, "admin_changePeer", change).await;
        assert_eq!(refused["error"]["code"], -32602);
    }
}

#[tokio::test]
async fn the_socket_is_its_owners_only_and_serves_nothing_else() {
    let server = TestServer::start().await;
    let path = server.endpoints.admin.clone().unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(0o600, mode & 0o777);
    let other = admin(&server, "ombra_chainInfo", json!([])).await;
    assert_eq!(other["error"]["code"], -32601);
    let entries = std::fs::read_dir(server.folder.path()).unwrap().count();
    assert_eq!(1, entries, "only the socket is left");
}
