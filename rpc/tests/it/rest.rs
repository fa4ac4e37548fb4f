//! REST as the public clients meet it.

use rpc::Limits;
use serde_json::{Value, json};
use types::build::{Envelope, build_tx};
use types::{Address, CheckedTx, Hash, Keypair, Params};

use crate::client::{TestServer, assert_has, claim, eventually, request, signed, transfer};
use crate::world::{NOW, key};

/// The status and code of a rejection.
async fn refused(server: &TestServer, path: &str) -> (u16, String) {
    let (status, json) = server.get_json(path).await;
    assert!(json["error"].is_string(), "{path}: {json}");
    (status, json["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn what_can_be_executed_is_shown_however_many_senders_wait_for_a_nonce() {
    let server = TestServer::start().await;
    let tx = |text: &str| CheckedTx::trust(fixtures::parsed(text));
    // The sender with the highest address is the one whose transaction can be executed.
    let mut texts: Vec<(Address, u8, u8)> = (0..=u8::MAX)
        .flat_map(|high| (0..5).map(move |low| (wide_key(high, low).address(), high, low)))
        .collect();
    texts.sort_unstable();
    let (_, high, low) = texts.pop().unwrap();
    let text = |high, low, nonce| {
        let body = fixtures::transfer(key(1).address(), 1);
        build_tx(&wide_key(high, low), &body, &Envelope::new(nonce, NOW, None))
    };
    let pending = tx(&text(high, low, 0));
    let queued = texts.iter().map(|(_, high, low)| tx(&text(*high, *low, 1))).collect();
    {
        let mut state = server.world.state();
        state.pending.push(pending.clone());
        state.queued = queued;
    }
    for path in ["/api/mempool", "/api/chain/mempool?limit=1"] {
        let seen = server.found(path).await;
        assert_eq!((&json!(1_280), 1), (&seen["total"], seen["pending"].as_array().unwrap().len()));
        assert_eq!(json!(pending.hash()), seen["pending"][0]["hash"], "{path}");
    }
}

/// One of 65,536 keys.
fn wide_key(high: u8, low: u8) -> Keypair {
    let mut seed = [high; 32];
    seed[0] = low;
    Keypair::from_seed(&seed)
}

#[tokio::test]
async fn the_place_of_a_transaction_changes_nothing_that_its_signer_wrote() {
    let server = TestServer::start().await;
    let text = transfer(1, 0);
    let hash = server.world.accept(&text);
    server.world.commit();
    let (_, body) = server.get(&format!("/api/chain/tx/{hash}")).await;
    let signed = text.strip_suffix('}').unwrap();
    assert!(body.starts_with(signed), "{body}\n{signed}");
}

#[tokio::test]
async fn blocks_are_listed_from_the_newest_and_found_by_index_and_hash() {
    let server = TestServer::start().await;
    server.world.commit_many(5);
    let list = server.found("/api/chain/blocks?limit=2&offset=1").await;
    let indexes: Vec<_> =
        list["blocks"].as_array().unwrap().iter().map(|it| &it["index"]).collect();
    assert_eq!((vec![&json!(4), &json!(3)], &json!(5)), (indexes, &list["total"]));
    let hash = list["blocks"][0]["hash"].as_str().unwrap().to_owned();
    for path in ["block/4".to_owned(), format!("block/{hash}"), format!("block/hash/{hash}")] {
        let block = server.found(&format!("/api/chain/{path}")).await;
        assert_eq!((&json!(4), &json!(hash)), (&block["index"], &block["hash"]), "{path}");
    }
    let full = server.found("/api/chain/blocks-full?from=2&to=3").await;
    assert_eq!((2, &Value::Null), (full["blocks"].as_array().unwrap().len(), &full["nextFrom"]));
    server.world.commit_many(500);
    let all = server.found("/api/chain/blocks-full").await;
    assert_eq!((500, &json!(501)), (all["blocks"].as_array().unwrap().len(), &all["nextFrom"]));
    let beyond = server.found("/api/chain/blocks?offset=505").await;
    assert_eq!(json!([]), beyond["blocks"]);
}

#[tokio::test]
async fn a_page_of_whole_blocks_ends_early_when_they_are_large_and_names_the_next() {
    let limits = Limits { page_bytes_max: 1, ..Limits::default() };
    let server = TestServer::start_with(limits).await;
    for nonce in 0..3 {
        server.world.accept(&transfer(1, nonce));
        server.world.commit();
    }
    for (from, next) in [(1, json!(2)), (2, json!(3)), (3, Value::Null)] {
        let page = server.found(&format!("/api/chain/blocks-full?from={from}")).await;
        let block = server.found(&format!("/api/chain/block/{from}")).await;
        assert_eq!((&json!([block]), &next), (&page["blocks"], &page["nextFrom"]), "from {from}");
    }
}

#[tokio::test]
async fn genesis_is_block_0() {
    let server = TestServer::start().await;
    let genesis = server.found("/api/chain/genesis").await;
    assert_has(&genesis, &json!({"index": 0, "timestamp": NOW}));
    assert_eq!(genesis, server.found("/api/chain/block/0").await);
    let first = server.found("/api/chain/height").await;
    assert_eq!(genesis["hash"], first["latestBlock"]["hash"]);
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_told_with_the_right_status() {
    let server = TestServer::start().await;
    let unknown = "ab".repeat(32);
    for (path, status, code) in [
        ("/api/chain/block/7".to_owned(), 404, "NOT_FOUND"),
        ("/api/chain/block/latest".to_owned(), 400, "INVALID_PARAMS"),
        (format!("/api/chain/tx/{unknown}"), 404, "NOT_FOUND"),
        ("/api/chain/tx/what".to_owned(), 400, "INVALID_PARAMS"),
        ("/api/chain/blocks?limit=101".to_owned(), 400, "INVALID_PARAMS"),
        ("/api/chain/blocks?limt=1".to_owned(), 400, "INVALID_PARAMS"),
        ("/api/chain/blocks-full?from=1&to=501".to_owned(), 400, "INVALID_PARAMS"),
        ("/api/agent/v6/by-status/asleep".to_owned(), 400, "INVALID_PARAMS"),
        (format!("/api/agent/v6/run/{unknown}"), 404, "NOT_FOUND"),
        (format!("/api/agent/v6/run/{unknown}/steps"), 404, "NOT_FOUND"),
        ("/api/agent/v6/run/7".to_owned(), 400, "INVALID_PARAMS"),
        ("/api/agent/v6/by-miner/me".to_owned(), 400, "INVALID_PARAMS"),
        ("/api/agent/v6/by-status/pending?limit=0".to_owned(), 400, "INVALID_PARAMS"),
        ("/api/agent/v6/by-status/pending?cursor=%3F".to_owned(), 400, "INVALID_PARAMS"),
        (format!("/api/chain/block/{unknown}"), 404, "NOT_FOUND"),
        ("/api/chain/block/-1".to_owned(), 400, "INVALID_PARAMS"),
        ("/api/chain/blocks?offset=-1".to_owned(), 400, "INVALID_PARAMS"),
        ("/api/chain/account/nobody".to_owned(), 400, "INVALID_PARAMS"),
        ("/api/wallet/balance/nobody".to_owned(), 400, "INVALID_PARAMS"),
        ("/api/tokenomics/holders?limit=0".to_owned(), 400, "INVALID_PARAMS"),
        ("/api/blob/none".to_owned(), 404, "NOT_FOUND"),
        ("/api/tasks/active".to_owned(), 404, "NOT_SUPPORTED"),
        ("/api/chain/task/7".to_owned(), 404, "NOT_SUPPORTED"),
        ("/api/analytics/overview?range=24h".to_owned(), 404, "NOT_SUPPORTED"),
        ("/api/elsewhere".to_owned(), 404, "NOT_FOUND"),
        (format!("/api/chain/height?{}", "a".repeat(5_000)), 400, "INVALID_PARAMS"),
        ("/api/chain/tx".to_owned(), 405, "METHOD_NOT_ALLOWED"),
        ("/api/ws".to_owned(), 426, "WEBSOCKET_ONLY"),
    ] {
        assert_eq!((status, code.to_owned()), refused(&server, &path).await, "{path}");
    }
}

/// What an account's open runs hold, as REST says.
async fn escrowed(server: &TestServer, who: Address) -> String {
    let account = server.found(&format!("/api/chain/account/{who}")).await;
    account["escrowed"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn transactions_that_wait_for_the_base_fee_or_an_earlier_nonce_count_as_pending_ones() {
    let server = TestServer::start().await;
    let from = key(1).address();
    let count = async || {
        let account = server.found(&format!("/api/chain/account/{from}")).await;
        account["pendingCount"].clone()
    };
    assert_eq!(json!(0), count().await);
    server.world.accept(&transfer(1, 0));
    server.world.accept(&transfer(1, 1));
    assert_eq!(json!(2), count().await);
    {
        let mut state = server.world.state();
        let tx = state.pending.pop().unwrap();
        state.waiting.push(tx.clone());
        state.queued.push(tx);
    }
    assert_eq!(json!(3), count().await);
}

#[tokio::test]
async fn escrows_follow_the_blocks_asked_for_or_not_and_are_looked_through_only_once() {
    let server = TestServer::start().await;
    let who = key(1).address();
    assert_eq!("0", escrowed(&server, who).await);
    let (first, text) = request(1, 0);
    server.world.accept(&text);
    server.world.accept(&request(1, 1).1);
    server.world.accept(&claim(2, 0, first));
    server.world.commit();
    assert_eq!("20000", escrowed(&server, who).await);
    let finish = fixtures::finish(first, 0, [0, 10_000, 0]);
    server.world.accept(&signed(&key(2), 1, &finish.into()));
    server.world.commit();
    assert_eq!("10000", escrowed(&server, who).await);
    server.world.commit_after(Params::default().pending_ttl_ms);
    assert_eq!("0", escrowed(&server, who).await);
    assert_eq!(1, server.world.escrow_scans());

    server.world.accept(&request(1, 2).1);
    // More blocks than are followed at once, while nobody asks.
    for _ in 0..30 {
        let reads = server.world.block_reads();
        for _ in 0..10 {
            server.world.commit_after(1);
        }
        // Each of them is read once at least, so the node is never far behind.
        eventually("the blocks are read", || server.world.block_reads() >= reads + 10).await;
    }
    assert_eq!("10000", escrowed(&server, who).await);
    assert_eq!(1, server.world.escrow_scans());
}

#[tokio::test]
async fn whoever_asks_while_the_runs_are_looked_through_is_told_to_come_again() {
    let server = TestServer::start().await;
    let (open, gate) = std::sync::mpsc::channel();
    server.world.state().escrow_gate = Some(gate);
    let path = format!("/api/chain/account/{}", key(1).address());
    let others = async {
        eventually("the runs are looked through", || server.world.escrow_scans() == 1).await;
        let (status, told) = server.get_json(&path).await;
        drop(open);
        (status, told["code"].clone())
    };
    let (first, others) = tokio::join!(escrowed(&server, key(1).address()), others);
    assert_eq!((503, json!("BUSY")), others);
    assert_eq!("0", first);
    assert_eq!("0", escrowed(&server, key(1).address()).await);
}

#[tokio::test]
async fn escrows_are_looked_through_again_after_more_blocks_than_are_followed() {
    let server = TestServer::start().await;
    let rounds = [(0, 1, "10000", 1), (1, 128, "20000", 1), (2, 129, "30000", 2)];
    for (nonce, blocks, held, scans) in rounds {
        server.world.accept(&request(1, nonce).1);
        server.world.commit_at_once(blocks, 1);
        let told = escrowed(&server, key(1).address()).await;
        assert_eq!((held, scans), (told.as_str(), server.world.escrow_scans()), "{blocks} blocks");
    }
}

#[tokio::test]
async fn fees_are_those_of_the_last_transfers() {
    let server = TestServer::start().await;
    let estimate = server.found("/api/chain/fee-estimate").await;
    assert_eq!(json!({ "low": "0", "medium": "0", "high": "0", "sample": 0 }), estimate);
    server.world.accept(&transfer(1, 0));
    server.world.commit_many(2);
    let estimate = server.found("/api/chain/fee-estimate").await;
    assert_eq!((&json!(1), &estimate["low"]), (&estimate["sample"], &estimate["high"]));
    server.world.accept(&transfer(1, 1));
    server.world.commit();
    assert_eq!(json!(2), server.found("/api/chain/fee-estimate").await["sample"]);
}

#[tokio::test]
async fn fees_from_before_the_last_128_blocks_do_not_count_however_often_somebody_asks() {
    let server = TestServer::start().await;
    let sample = async || server.found("/api/chain/fee-estimate").await["sample"].clone();
    server.world.accept(&transfer(1, 0));
    server.world.commit();
    assert_eq!(json!(1), sample().await);
    server.world.commit_many(100);
    assert_eq!(json!(1), sample().await);
    server.world.commit_many(27);
    assert_eq!(json!(1), sample().await, "127 blocks followed");
    server.world.commit();
    assert_eq!(json!(0), sample().await);
}

#[tokio::test]
async fn every_run_and_turn_is_listed_where_it_belongs() {
    let server = TestServer::start().await;
    let (submitter, miner) = (key(1).address(), key(2).address());
    let (id, text) = request(1, 0);
    server.world.accept(&text);
    // Another's, which is in none of the lists below.
    server.world.accept(&request(3, 0).1);
    server.world.commit();
    server.world.accept(&claim(2, 0, id));
    server.world.commit();
    let id = id.to_string();
    for list in [
        "by-status/claimed".to_owned(),
        format!("by-submitter/{submitter}"),
        format!("by-miner/{miner}"),
    ] {
        let runs = server.found(&format!("/api/agent/v6/{list}")).await;
        let told = (&runs["count"], &runs["runs"][0]["agentRunId"]);
        assert_eq!((&json!(1), &json!(id)), told, "{list}");
    }
    let run = server.found(&format!("/api/agent/v6/run/{id}")).await;
    assert_eq!(json!("claimed"), run["status"]);
    let steps = server.found(&format!("/api/agent/v6/run/{id}/steps")).await;
    assert_has(&steps, &json!({"count": 0, "steps": []}));
    let search = server.found(&format!("/api/chain/search/{id}")).await;
    assert_eq!(json!("agentRun"), search["type"]);
    let conversation = Hash::digest(b"conversation");
    let turns = server.found(&format!("/api/agent/v6/conversation/{conversation}")).await;
    assert_eq!(json!(0), turns["count"]);
    let search = server.found(&format!("/api/chain/search/{conversation}")).await;
    assert_eq!(json!("conversation"), search["type"]);
    let later_block = server.found("/api/chain/search/9").await;
    assert_eq!(json!({"type": "none", "result": null}), later_block);
}

#[tokio::test]
async fn a_blob_is_a_file_to_be_kept_whatever_its_owner_calls_it() {
    let server = TestServer::start().await;
    server.world.add_blob("page", "text/html", b"<html>");
    let tag = format!("\"{}\"", Hash::digest(b"<html>"));
    let tagged = format!("etag: {tag}\r\n");
    let text = blob_page(&server, "").await;
    for line in [
        "content-type: application/octet-stream\r\n",
        "content-disposition: attachment\r\n",
        "x-content-type-options: nosniff\r\n",
        "x-blob-content-type: text/html\r\n",
        "content-security-policy: default-src 'none'; sandbox\r\n",
        "cache-control: no-cache\r\n",
        &tagged,
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    assert!(text.ends_with("\r\n\r\n<html>"), "{text}");
    // Who has these bytes is told so; who has another chain's gets these.
    let known = blob_page(&server, &format!("if-none-match: {tag}\r\n")).await;
    assert!(known.starts_with("HTTP/1.1 304 ") && known.ends_with("\r\n\r\n"), "{known}");
    let other = blob_page(&server, "if-none-match: \"00\"\r\n").await;
    assert!(other.starts_with("HTTP/1.1 200 ") && other.ends_with("<html>"), "{other}");
}

/// The whole answer to a request for the blob `page` with further headers.
async fn blob_page(server: &TestServer, headers: &str) -> String {
    String::from_utf8(server.get_whole("/api/blob/page", headers).await).unwrap()
}

#[tokio::test]
async fn rubbish_in_a_path_is_the_clients_fault_and_told_as_json() {
    let server = TestServer::start().await;
    server.world.commit();
    let long = "9".repeat(30_000);
    let rubbish = [
        "%ff%fe",
        "%00",
        "%2e%2e%2f",
        "%e2%80%a8",
        "-1",
        "1e3",
        "0x1",
        "%F0%9F%98%80",
        "+1",
        &long,
    ];
    let families = [
        "chain/block/",
        "chain/block/hash/",
        "chain/tx/",
        "chain/account/",
        "chain/blocks?limit=",
        "chain/blocks?offset=",
        "chain/blocks-full?from=",
        "wallet/balance/",
        "miners/",
        "miners/by-address/",
        "miners?after=",
        "tokenomics/holders?limit=",
        "agent/v6/run/",
        "agent/v6/by-status/",
        "agent/v6/by-status/pending?cursor=",
        "agent/v6/conversation/",
        "blob/",
        "chain/search/",
        "nowhere/",
        "",
    ];
    for family in families {
        for rubbish in rubbish {
            let path = format!("/api/{family}{rubbish}");
            let shown: String = path.chars().take(80).collect();
            let (status, body) = server.get(&path).await;
            let json = serde_json::from_str::<Value>(&body);
            let is_search = family == "chain/search/" && status == 200;
            assert!((400..500).contains(&status) || is_search, "{status} {shown}: {body}");
            assert!(json.is_ok(), "{shown}: {body}");
        }
    }
}

#[tokio::test]
async fn rubbish_instead_of_a_transaction_is_the_clients_fault() {
    let server = TestServer::start().await;
    let two_texts = "{\"tx\":{},\"tx\":{}}";
    let forged = "{\"tx\":{},\"signature\":\"00\"}";
    let more = "{\"a\":1}{";
    for body in ["", "{", "[]", "{}", "{\"tx\":1}", forged, two_texts, more, "\u{fffd}"] {
        let (status, answer) = server.post_to("/api/chain/tx", body).await;
        assert_eq!(400, status, "{body}: {answer}");
        let json: Value = serde_json::from_str(&answer).unwrap();
        assert!(json["error"].is_string() && json["code"].is_string(), "{body}: {answer}");
    }
}
