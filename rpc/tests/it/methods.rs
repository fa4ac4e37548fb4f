//! Every query, and builders, on a chain with one whole agent run.

use fixtures::{plain_step, tool_call};
use rpc::ports::PendingAccount;
use serde_json::{Value, json};
use types::tx::{AgentRequest, AgentStep, ChatTurn, MinerRegister};
use types::{Amount, Body, Hash, Keypair, Signature, ids};

use crate::client::{
    INVALID_PARAMS, NOT_FOUND, TestServer, assert_has, claim, request_body, signed, transfer, turn,
};
use crate::world::{FUNDED, FUNDS, NOW, key};

const PROMPT: &str = "What is 1+1? \u{1f600}";

fn request(seed: u8) -> (Hash, String) {
    let body = AgentRequest {
        tools_whitelist: vec!["search".to_owned()],
        max_steps: 5,
        model_hint: Some("big".to_owned()),
        ..request_body(seed, 0, PROMPT)
    };
    (body.agent_run_id, signed(&key(seed), 0, &Body::AgentRequest(body)))
}

/// A step of the miner of [`run_in_progress`].
fn step(nonce: u64, agent_run_id: Hash, step_index: u64) -> String {
    let tool_calls = Some(vec![tool_call("search")]);
    let body = AgentStep { tool_calls, ..plain_step(agent_run_id, step_index, 10) };
    signed(&key(2), nonce, &Body::AgentStep(body))
}

/// Sends and includes request, claim and two steps; answers the run's id.
async fn run_in_progress(server: &TestServer) -> Hash {
    let (id, tx) = request(1);
    server.send(&tx).await;
    server.world.commit();
    server.send(&claim(2, 0, id)).await;
    server.send(&step(1, id, 0)).await;
    server.send(&step(2, id, 3)).await;
    server.world.commit();
    id
}

/// Builds with a builder, signs the message, sends the parts.
async fn build_and_send(server: &TestServer, method: &str, key: &Keypair, fields: Value) -> Value {
    let mut params = fields;
    params["from"] = json!(key.address());
    params["publicKey"] = json!(key.public_key());
    let built = server.result(method, params).await;
    let message = built["signingMessage"].as_str().unwrap();
    // The text and not the value, whose members are in another order.
    let payload = built["payload"].as_str().unwrap();
    assert_eq!(built["hash"], built["signingMessage"]);
    assert_eq!(Hash::digest(payload.as_bytes()).to_string(), message);
    let signature: Signature = key.sign(message.as_bytes());
    let params = format!(r#"{{"tx":{payload},"signature":"{signature}"}}"#);
    let sent = server.call_raw("ombra_sendSigned", &params).await;
    assert_eq!(sent["result"]["hash"], built["hash"], "{method}: {sent}");
    assert_eq!(serde_json::from_str::<Value>(payload).unwrap(), built["tx"]);
    built["tx"].clone()
}

#[tokio::test]
async fn chain_info_names_the_chain_and_its_tip() {
    let server = TestServer::start().await;
    // Holds 10,000.
    server.send(&request(1).1).await;
    server.world.commit();
    let info = server.result("ombra_chainInfo", json!([])).await;
    let expected = json!({"chainId": "test-chain", "height": 1, "validators": 1, "syncing": false,
        "forks": {"v6": 0, "validatorVote": 0}});
    assert_has(&info, &expected);
    assert_eq!(info["params"]["maxTxBytes"], 131_072);
    let fees = server.result("ombra_feeSchedule", json!([])).await;
    assert_eq!(fees["chatTurnFee"], "100");
    let supply = server.result("ombra_getSupply", json!([])).await;
    let all = u64::from(FUNDED) * FUNDS;
    assert_eq!(supply["circulating"], (all - 10_000).to_string());
    let validators = server.result("ombra_getValidators", json!([])).await;
    let vote = json!({"candidateKey": key(98).public_key(), "power": 3, "expiresAt": NOW});
    assert_has(&validators[0], &json!({"power": 10, "votes": [vote], "equivocations": 5}));
    let evidence = &validators[0]["evidence"][0];
    assert_has(evidence, &json!({"height": 7, "kind": "precommit"}));
    assert_eq!(evidence["messages"][0]["blockHash"], json!(Hash::ZERO));
    assert_eq!(evidence["messages"][1].get("blockHash"), None);
    server.refused("ombra_getValidators", json!([99]), NOT_FOUND).await;
}

#[tokio::test]
async fn a_block_is_found_by_index_by_hash_and_as_the_latest() {
    let server = TestServer::start().await;
    let hash = server.send(&transfer(1, 0)).await;
    server.world.commit();
    let block = server.result("ombra_getBlock", json!([1])).await;
    assert_eq!(block["transactions"][0]["hash"], hash.as_str());
    assert_eq!(block["commit"]["blockHash"], block["hash"]);
    assert_eq!(block["txCount"], 1);
    let by_hash = server.result("ombra_getBlock", json!({"hash": block["hash"]})).await;
    assert_eq!(by_hash, block);
    let latest = server.result("ombra_getBlock", json!(["latest", false])).await;
    assert_eq!(latest["transactions"], json!([hash]));
    for missing in [json!([2]), json!([0]), json!([Hash::ZERO])] {
        server.refused("ombra_getBlock", missing, NOT_FOUND).await;
    }
}

#[tokio::test]
async fn blocks_are_paged_newest_first_while_new_ones_arrive() {
    let server = TestServer::start().await;
    server.world.commit_many(5);
    let indexes = |page: &Value| -> Vec<u64> {
        page["items"].as_array().unwrap().iter().map(|b| b["index"].as_u64().unwrap()).collect()
    };
    let first = server.result("ombra_getBlocks", json!({"limit": 2})).await;
    assert_eq!(vec![5, 4], indexes(&first));
    server.world.commit();
    let second = json!([{"limit": 2, "cursor": first["nextCursor"]}]);
    let second = server.result("ombra_getBlocks", second).await;
    assert_eq!(vec![3, 2], indexes(&second));
    let last = json!({"limit": 2, "cursor": second["nextCursor"]});
    let last = server.result("ombra_getBlocks", last).await;
    assert_eq!((vec![1], &Value::Null), (indexes(&last), &last["nextCursor"]));
    let range = server.result("ombra_getBlocks", json!({"from": 2, "to": 3})).await;
    assert_eq!((vec![3, 2], &Value::Null), (indexes(&range), &range["nextCursor"]));
}

#[tokio::test]
async fn an_account_shows_what_is_pending_and_an_unknown_one_is_zero() {
    let server = TestServer::start().await;
    let address = key(1).address();
    server.send(&transfer(1, 0)).await;
    let account = server.result("ombra_getAccount", json!([address])).await;
    let expected = json!({"nonce": 0, "pendingNonce": 1, "balanceOmbra": "1500.000000",
        "isMiner": false});
    assert_has(&account, &expected);
    let other_form = server.result("ombra_getAccount", json!([format!("ox{address}")])).await;
    assert_eq!(other_form, account);
    let nobody = server.result("ombra_getAccount", json!([key(77).address()])).await;
    assert_has(&nobody, &json!({"balance": "0", "nonce": 0}));
}

#[tokio::test]
async fn a_pool_that_has_not_followed_the_block_yet_does_not_take_an_account_back_before_it() {
    let server = TestServer::start().await;
    let address = key(1).address();
    let before = server.result("ombra_getAccount", json!([address])).await;
    server.send(&transfer(1, 0)).await;
    server.world.commit();
    let outdated = PendingAccount { nonce: 0, balance: Amount::new(FUNDS) };
    server.world.state().outdated = Some(outdated);
    let account = server.result("ombra_getAccount", json!([address])).await;
    assert_has(&account, &json!({"nonce": 1, "pendingNonce": 1}));
    assert_ne!(before["balance"], account["balance"]);
    assert_eq!(account["balance"], account["pendingBalance"]);
    let balance = server.found(&format!("/api/wallet/balance/{address}")).await;
    assert_eq!(json!(1), balance["nonce"]);
}

#[tokio::test]
async fn account_transactions_are_paged_without_gap_or_repeat() {
    let server = TestServer::start().await;
    for nonce in 0..5 {
        server.send(&transfer(1, nonce)).await;
        server.world.commit();
    }
    let address = key(1).address();
    let mut nonces = Vec::new();
    let mut params = json!({"address": address, "limit": 2});
    loop {
        let page = server.result("ombra_getAccountTransactions", params.clone()).await;
        for item in page["items"].as_array().unwrap() {
            assert_has(item, &json!({"direction": "out", "type": "TRANSFER"}));
            nonces.push(item["nonce"].as_u64().unwrap());
        }
        if page["nextCursor"].is_null() {
            break;
        }
        params["cursor"] = page["nextCursor"].clone();
        server.world.commit();
    }
    assert_eq!(vec![4, 3, 2, 1, 0], nonces);
    let receiver = json!([key(200).address(), {"limit": 1}]);
    let page = server.result("ombra_getAccountTransactions", receiver).await;
    assert_eq!(page["items"][0]["direction"], "in");
}

#[tokio::test]
async fn a_run_is_told_with_the_texts_of_its_transactions() {
    let server = TestServer::start().await;
    let id = run_in_progress(&server).await;
    let run = server.result("ombra_getAgentRun", json!([id])).await;
    let expected = json!({"status": "running", "prompt": PROMPT, "modelInfo": "model-7b",
        "stepCount": 2, "minerAddress": key(2).address()});
    assert_has(&run, &expected);
    assert!(run.get("finishTx").is_none() && run.get("minerReward").is_none(), "{run}");

    let steps = server.result("ombra_getAgentSteps", json!({"agentRunId": id, "limit": 1})).await;
    assert_eq!(steps["items"][0]["stepIndex"], 0);
    assert_eq!(steps["items"][0]["toolCalls"][0]["name"], "search");
    let rest = json!([id, {"cursor": steps["nextCursor"]}]);
    let rest = server.result("ombra_getAgentSteps", rest).await;
    assert_eq!((&rest["items"][0]["stepIndex"], &rest["nextCursor"]), (&json!(3), &Value::Null));

    let settlement = server.result("ombra_settlement", json!([id])).await;
    let expected = json!({"totalTokensOut": 20, "stepCount": 2, "minerReward": "20",
        "userRefund": "9780", "networkFee": "200"});
    assert_eq!(settlement, expected);
    for method in ["ombra_getAgentRun", "ombra_getAgentSteps", "ombra_settlement"] {
        server.refused(method, json!([Hash::ZERO]), NOT_FOUND).await;
    }
}

#[tokio::test]
async fn punished_keys_are_listed_page_by_page_by_both_interfaces() {
    let server = TestServer::start().await;
    let pages = server.pages("ombra_listPunishedKeys", json!({"limit": 2})).await;
    let mut keys = [96, 97, 98].map(|seed| key(seed).public_key());
    keys.sort_unstable();
    let items: Vec<Value> = (5..)
        .zip(&keys)
        .map(|(at, key)| json!({"publicKey": key, "address": key.address(), "punishedAt": at}))
        .collect();
    let told: Vec<&Value> = pages.iter().map(|page| &page["items"]).collect();
    assert_eq!(json!([items[..2], items[2..]]), json!(told));
    let all = server.found("/api/chain/punished-keys").await;
    assert_has(&all, &json!({"items": items, "nextCursor": null}));
}

#[tokio::test]
async fn runs_are_listed_by_filter_newest_first() {
    let server = TestServer::start().await;
    let id = run_in_progress(&server).await;
    let (newer, tx) = request(3);
    server.send(&tx).await;
    server.world.commit();
    for (filter, expected) in [
        (json!([]), vec![newer, id]),
        (json!({"status": "running"}), vec![id]),
        (json!([{"submitter": key(3).address()}, {"limit": 5}]), vec![newer]),
    ] {
        let page = server.result("ombra_listAgentRuns", filter.clone()).await;
        let runs = page["items"].as_array().unwrap().iter();
        let ids: Vec<&Value> = runs.map(|run| &run["agentRunId"]).collect();
        assert_eq!(json!(expected), json!(ids), "{filter}");
    }
    server.wrong_param("ombra_listAgentRuns", json!({"status": "sleeping"}), "status").await;
}

#[tokio::test]
async fn what_builders_make_for_a_run_and_a_vote_can_be_signed_and_sent() {
    let server = TestServer::start().await;
    let (user, miner) = (key(1), key(2));
    let request = json!({"prompt": PROMPT, "maxFee": "10000", "maxSteps": 5, "seed": "s"});
    let tx = build_and_send(&server, "ombra_buildAgentRequest", &user, request).await;
    let expected = ids::compute_agent_run_id(&user.address().to_string(), 0, PROMPT);
    let now = json!([user.address(), "s", NOW]);
    let conversation = server.result("ombra_computeConversationId", now).await;
    let conversation = &conversation["conversationId"];
    assert_has(&tx, &json!({"agentRunId": expected, "conversationId": conversation}));
    server.world.commit();
    let id = tx["agentRunId"].clone();

    let claim = json!({"agentRunId": id, "modelInfo": "m", "hardwareTier": "server"});
    build_and_send(&server, "ombra_buildAgentClaim", &miner, claim).await;
    let step = json!({"agentRunId": id, "stepIndex": 0, "outputTokens": 9,
        "outputHash": Hash::ZERO, "toolCalls": []});
    build_and_send(&server, "ombra_buildAgentStep", &miner, step).await;
    server.world.commit();
    let finish = json!({"agentRunId": id, "status": "completed", "finalAnswerInline": "2"});
    let finish = build_and_send(&server, "ombra_buildAgentFinish", &miner, finish).await;
    assert_has(&finish, &json!({"minerReward": "9", "nonce": 2}));
    server.world.commit();
    let run = server.result("ombra_getAgentRun", json!([id])).await;
    let expected = json!({"status": "completed", "finalAnswerInline": "2", "userRefund": "9891"});
    assert_has(&run, &expected);

    let vote = json!({"candidateKey": user.public_key(), "power": 7, "timestamp": NOW});
    let vote = build_and_send(&server, "ombra_buildValidatorVote", &user, vote).await;
    assert_eq!(vote["expiresAt"], NOW + 7 * 24 * 3_600_000);
}

#[tokio::test]
async fn a_builder_refuses_what_the_chain_would_refuse() {
    let server = TestServer::start().await;
    let (from, key) = (key(1).address(), key(1).public_key());
    let role = json!({"from": from, "publicKey": key, "conversationId": Hash::ZERO,
        "role": "robot", "content": "x"});
    let data = server.refused("ombra_buildChatTurn", role, (-32050, "INVALID_FIELD")).await;
    assert_eq!(data["field"], "role");
    let other = json!({"from": crate::world::key(9).address(), "publicKey": key,
        "to": from, "amount": "1"});
    server.refused("ombra_buildTransfer", other, (-32050, "ADDRESS_MISMATCH")).await;
    let amount = json!([{"from": from, "publicKey": key, "to": from, "amount": 1}]);
    let data = server.wrong_param("ombra_buildTransfer", amount, "amount").await;
    assert_eq!(data["got"], "1");
}

#[tokio::test]
async fn conversations_tell_who_speaks_for_the_run() {
    let server = TestServer::start().await;
    let id = run_in_progress(&server).await;
    let turn = |content: &str| {
        Body::ChatTurn(ChatTurn { agent_run_id: Some(id), ..fixtures::turn(content) })
    };
    for (seed, nonce, content) in [(1, 1, "a"), (2, 3, "b"), (9, 0, "c")] {
        server.send(&signed(&key(seed), nonce, &turn(content))).await;
    }
    server.world.commit();
    let page = server.result("ombra_getConversation", json!([Hash::digest(b"conversation")])).await;
    let turns = page["items"].as_array().unwrap().iter();
    let told: Vec<_> = turns.map(|turn| (&turn["content"], &turn["relation"])).collect();
    assert_eq!(json!([["a", "submitter"], ["b", "miner"], ["c", "other"]]), json!(told));
    let hash = page["items"][0]["hash"].clone();
    let one = server.result("ombra_getChatTurn", json!([hash])).await;
    assert_eq!(one, page["items"][0]);
    server.refused("ombra_getChatTurn", json!([Hash::ZERO]), NOT_FOUND).await;
}

#[tokio::test]
async fn a_page_of_long_texts_ends_early_and_goes_on() {
    let limits = rpc::Limits { page_bytes_max: 40_000, ..rpc::Limits::default() };
    let server = TestServer::start_with(limits).await;
    for nonce in 0..5 {
        server.send(&turn(1, nonce, &"x".repeat(16_000))).await;
    }
    server.world.commit();
    let all = json!({"conversationId": Hash::ZERO});
    let pages = server.pages("ombra_getConversation", all).await;
    let lengths: Vec<_> =
        pages.iter().map(|page| page["items"].as_array().unwrap().len()).collect();
    assert_eq!(vec![2, 2, 1], lengths);
}

#[tokio::test]
async fn miners_and_blobs_are_answered() {
    let server = TestServer::start().await;
    let body = MinerRegister {
        name: "m".to_owned(),
        capabilities: vec!["search".to_owned()],
        model_info: "7b".to_owned(),
    };
    for seed in [3, 4] {
        server.send(&signed(&key(seed), 0, &Body::MinerRegister(body.clone()))).await;
    }
    server.world.commit();
    let pages = server.pages("ombra_listMiners", json!({"limit": 1})).await;
    assert_eq!(2, pages.len());
    let [miner, other] = [&pages[0]["items"][0], &pages[1]["items"][0]];
    assert_ne!(miner["address"], other["address"]);
    for params in [json!([miner["minerId"]]), json!({"address": miner["address"]})] {
        assert_eq!(&server.result("ombra_getMiner", params).await, miner);
    }
    let account = server.result("ombra_getAccount", json!([miner["address"]])).await;
    assert_eq!(&account["miner"], miner);

    server.world.add_blob("b", "text/plain", b"abc");
    assert_eq!(server.result("ombra_getBlob", json!(["b"])).await["final"], true);
    server.refused("ombra_getBlob", json!(["c"]), NOT_FOUND).await;
}

#[tokio::test]
async fn one_thing_at_a_time_is_proved() {
    let server = TestServer::start_v8().await;
    server.world.commit_many(2);
    let (who, id) = (key(1).address(), Hash::digest(b"id"));
    let offer = json!({"miner": who, "executor": "wasm-1"});
    for of in [
        json!({"account": who}),
        json!({"validators": true}),
        json!({"bond": who}),
        json!({"offer": offer}),
    ] {
        let proof = server.result("ombra_getProof", of.clone()).await;
        let told = (&proof["value"], &proof["header"]["index"]);
        assert_eq!(told, (&json!("0001ff"), &json!(2)), "{of}");
        assert_eq!(proof["commit"]["blockHash"], proof["blockHash"], "{of}");
    }
    for kind in ["agentRun", "agent", "call"] {
        let proof = server.result("ombra_getProof", json!({kind: id})).await;
        assert_eq!(proof["key"], json!(id), "{kind}");
    }
    for of in [
        json!({}),
        json!({"validators": false}),
        json!({"offer": {"miner": who}}),
        json!({"account": who, "agentRun": id}),
        json!({"bond": who, "offer": offer}),
        json!({"agent": id, "call": id}),
    ] {
        server.refused("ombra_getProof", of, INVALID_PARAMS).await;
    }
}

#[tokio::test]
async fn the_pool_is_shown_by_type_and_by_sender() {
    let server = TestServer::start().await;
    server.send(&transfer(1, 0)).await;
    server.send(&transfer(1, 1)).await;
    server.send(&transfer(2, 0)).await;
    let status = server.result("txpool_status", json!([])).await;
    assert_has(&status, &json!({"pending": 3, "queued": 0}));
    assert_eq!(status["types"]["TRANSFER"]["pending"], 3);
    let page = server.result("txpool_content", json!({"limit": 1})).await;
    let next = json!({"limit": 1, "cursor": page["nextCursor"]});
    let next = server.result("txpool_content", next).await;
    let senders = |page: &Value| page["pending"].as_object().unwrap().len();
    assert_eq!((1, 1, &Value::Null), (senders(&page), senders(&next), &next["nextCursor"]));
    let address = key(1).address();
    let mine = server.result("txpool_contentFrom", json!([address])).await;
    assert_eq!(mine["pending"]["1"]["nonce"], 1);
}

#[tokio::test]
async fn ids_are_computed_as_the_protocol_says() {
    let server = TestServer::start().await;
    let from = key(1).address();
    let id = server.result("ombra_computeAgentRunId", json!([from, 4, PROMPT])).await;
    assert_eq!(id, json!(ids::compute_agent_run_id(&from.to_string(), 4, PROMPT)));
    let hash = server.result("ombra_computeContentHash", json!({"content": "x"})).await;
    assert_eq!(hash, json!(Hash::digest(b"x")));
    let id = server.result("ombra_computeConversationId", json!([from])).await;
    assert_eq!(id["now"], NOW);
    server.wrong_param("ombra_computeAgentRunId", json!(["me", 4, ""]), "from").await;
}

#[tokio::test]
async fn a_simulation_says_what_would_happen_and_keeps_nothing() {
    let server = TestServer::start().await;
    let tx = transfer(1, 0);
    let good = server.call_raw("ombra_simulateTransaction", &format!("[{tx}]")).await;
    let good = &good["result"];
    assert_eq!(good["valid"], true);
    let from = key(1).address().to_string();
    let (before, after) = (FUNDS.to_string(), (FUNDS - 1).to_string());
    assert_eq!(good["effects"]["balances"][from], json!({"before": before, "after": after}));
    let mut tx: Value = serde_json::from_str(&tx).unwrap();
    tx.as_object_mut().unwrap().remove("signature");
    tx["amount"] = json!("x");
    let bad = server.result("ombra_simulateTransaction", json!([tx])).await;
    let told = (&bad["valid"], &bad["error"]["data"]["code"]);
    assert_eq!(told, (&json!(false), &json!("MALFORMED")));
    assert!(server.world.state().pending.is_empty());
}

#[tokio::test]
async fn the_node_tells_of_itself_and_its_peers() {
    let server = TestServer::start().await;
    let info = server.result("net_info", json!([])).await;
    assert_has(&info, &json!({"peerId": "12D3", "peers": 0}));
    assert_eq!(server.result("net_peers", json!([])).await, json!([]));
}
