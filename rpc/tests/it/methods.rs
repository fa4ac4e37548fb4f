//! Every query and builder on a chain with one whole agent run.

use serde_json::{Value, json};
use types::randomness::Input;
use types::tx::{AgentRequest, AgentStep, ChatTurn, MinerRegister, ToolCall};
use types::{Amount, Body, Hash, Keypair, Signature, ids};

use crate::client::{TestServer, chat_turn, claim, signed, transfer, turn};
use crate::world::{CHAIN_ID, FUNDED, FUNDS, NOW, key};

const PROMPT: &str = "What is 1+1? \u{1f600}";

fn request(submitter: &Keypair, nonce: u64) -> (Hash, String) {
    let from = submitter.address().to_string();
    let agent_run_id = ids::compute_agent_run_id(&from, nonce, PROMPT);
    let body = AgentRequest {
        agent_run_id,
        conversation_id: Hash::digest(b"conversation"),
        prompt: PROMPT.to_owned(),
        tools_whitelist: vec!["search".to_owned()],
        max_fee: Amount::new(10_000),
        max_steps: 5,
        prompt_blob_id: None,
        model_hint: Some("big".to_owned()),
        protection: types::Late::default(),
        agent: types::Late::default(),
    };
    (agent_run_id, signed(submitter, nonce, &Body::AgentRequest(body)))
}

fn step(miner: &Keypair, nonce: u64, agent_run_id: Hash, step_index: u64) -> String {
    let call = ToolCall {
        name: "search".to_owned(),
        args_hash: Hash::ZERO,
        result_hash: Hash::ZERO,
        duration_ms: 12,
        ok: true,
    };
    let body = AgentStep {
        agent_run_id,
        step_index,
        output_tokens: 10,
        output_hash: Hash::digest(b"2"),
        thought_blob_id: None,
        tool_calls: Some(vec![call]),
        output_blob_id: None,
    };
    signed(miner, nonce, &Body::AgentStep(body))
}

/// Sends and includes request, claim and two steps; answers the run's id.
async fn run_in_progress(server: &TestServer) -> Hash {
    let (id, tx) = request(&key(1), 0);
    server.send(&tx).await;
    server.world.commit();
    server.send(&claim(2, 0, id)).await;
    server.send(&step(&key(2), 1, id, 0)).await;
    server.send(&step(&key(2), 2, id, 3)).await;
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
    assert_eq!(built["hash"], built["signingMessage"]);
    assert_eq!(Hash::digest(built["payload"].as_str().unwrap().as_bytes()).to_string(), message);
    let signature: Signature = key.sign(message.as_bytes());
    // The text and not the value, whose members are in another order.
    let payload = built["payload"].as_str().unwrap();
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
    server.send(&request(&key(1), 0).1).await;
    server.world.commit();
    let info = server.result("ombra_chainInfo", json!([])).await;
    assert_eq!(info["chainId"], "test-chain");
    assert_eq!((&info["height"], &info["validators"]), (&json!(1), &json!(1)));
    assert_eq!(info["forks"], json!({"v6": 0, "validatorVote": 0}));
    assert_eq!(info["params"]["maxTxBytes"], 131_072);
    assert_eq!(info["syncing"], false);
    let fees = server.result("ombra_feeSchedule", json!([])).await;
    assert_eq!(fees["chatTurnFee"], "100");
    let supply = server.result("ombra_getSupply", json!([])).await;
    let all = u64::from(FUNDED) * FUNDS;
    assert_eq!(supply["circulating"], (all - 10_000).to_string());
    let validators = server.result("ombra_getValidators", json!([])).await;
    assert_eq!(validators[0]["power"], 10);
    let vote = json!({"candidateKey": key(98).public_key(), "power": 3, "expiresAt": NOW});
    assert_eq!(
        (&validators[0]["votes"], &validators[0]["equivocations"]),
        (&json!([vote]), &json!(5))
    );
    let evidence = &validators[0]["evidence"][0];
    assert_eq!((&evidence["height"], &evidence["kind"]), (&json!(7), &json!("precommit")));
    assert_eq!(evidence["messages"][0]["blockHash"], json!(Hash::ZERO));
    assert_eq!(evidence["messages"][1].get("blockHash"), None);
    let (number, code, _) = server.error("ombra_getValidators", json!([99])).await;
    assert_eq!((-32051, "NOT_FOUND"), (number, code.as_str()));
}

#[tokio::test]
async fn a_block_from_v7_on_tells_its_randomness_and_proves_it() {
    let server = TestServer::start_v7().await;
    server.world.commit();
    let block = server.result("ombra_getBlock", json!([1])).await;
    let input = Input { chain_id: CHAIN_ID, previous: Hash::digest(b"genesis"), height: 1 };
    let proof = block["randomnessProof"].as_str().unwrap().parse().unwrap();
    let proved = input.verify(&key(99).public_key(), &proof).expect("a proof of the proposer");
    assert_eq!(block["randomness"], json!(proved));
    let (_, rest) = server.get("/api/chain/block/1").await;
    let rest: Value = serde_json::from_str(&rest).unwrap();
    for member in ["randomness", "randomnessProof"] {
        assert_eq!(block[member], rest[member]);
    }
    let before = TestServer::start().await;
    before.world.commit();
    let block = before.result("ombra_getBlock", json!([1])).await;
    assert_eq!(None, block.get("randomness").or_else(|| block.get("randomnessProof")));
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
        let (number, code, _) = server.error("ombra_getBlock", missing).await;
        assert_eq!((-32051, "NOT_FOUND"), (number, code.as_str()));
    }
}

#[tokio::test]
async fn blocks_are_paged_newest_first_while_new_ones_arrive() {
    let server = TestServer::start().await;
    for _ in 0..5 {
        server.world.commit();
    }
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
    assert_eq!((&account["nonce"], &account["pendingNonce"]), (&json!(0), &json!(1)));
    assert_eq!(account["balanceOmbra"], "1500.000000");
    assert_eq!(account["isMiner"], false);
    let other_form = server.result("ombra_getAccount", json!([format!("ox{address}")])).await;
    assert_eq!(other_form, account);
    let nobody = server.result("ombra_getAccount", json!([key(77).address()])).await;
    assert_eq!((&nobody["balance"], &nobody["nonce"]), (&json!("0"), &json!(0)));
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
            assert_eq!((&item["direction"], &item["type"]), (&json!("out"), &json!("TRANSFER")));
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
    assert_eq!((&run["status"], &run["prompt"]), (&json!("running"), &json!(PROMPT)));
    assert_eq!((&run["modelInfo"], &run["stepCount"]), (&json!("model-7b"), &json!(2)));
    assert_eq!(run["minerAddress"], json!(key(2).address()));
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
        let (number, _, _) = server.error(method, json!([Hash::ZERO])).await;
        assert_eq!(-32051, number, "{method}");
    }
}

#[tokio::test]
async fn punished_keys_are_listed_page_by_page_by_both_interfaces() {
    let server = TestServer::start().await;
    let first = server.result("ombra_listPunishedKeys", json!({"limit": 2})).await;
    let rest = json!([{"cursor": first["nextCursor"]}]);
    let rest = server.result("ombra_listPunishedKeys", rest).await;
    assert_eq!(json!(null), rest["nextCursor"]);
    let items: Vec<Value> =
        [&first, &rest].iter().flat_map(|page| page["items"].as_array().unwrap().clone()).collect();
    let mut keys = [96, 97, 98].map(|seed| key(seed).public_key());
    keys.sort_unstable();
    let expected = keys
        .iter()
        .zip(5..)
        .map(|(key, at)| json!({"publicKey": key, "address": key.address(), "punishedAt": at}));
    assert_eq!(expected.collect::<Vec<_>>(), items);
    let (status, all) = server.get("/api/chain/punished-keys").await;
    let all: Value = serde_json::from_str(&all).unwrap();
    assert_eq!((200, &json!(items), &Value::Null), (status, &all["items"], &all["nextCursor"]));
}

#[tokio::test]
async fn runs_are_listed_by_filter_newest_first() {
    let server = TestServer::start().await;
    let id = run_in_progress(&server).await;
    let (newer, tx) = request(&key(3), 0);
    server.send(&tx).await;
    server.world.commit();
    let ids = |page: Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap().clone();
        items.iter().map(|run| run["agentRunId"].as_str().unwrap().to_owned()).collect()
    };
    let all = server.result("ombra_listAgentRuns", json!([])).await;
    assert_eq!(vec![newer.to_string(), id.to_string()], ids(all));
    let running = server.result("ombra_listAgentRuns", json!({"status": "running"})).await;
    assert_eq!(vec![id.to_string()], ids(running));
    let by_submitter = json!([{"submitter": key(3).address()}, {"limit": 5}]);
    let by_submitter = server.result("ombra_listAgentRuns", by_submitter).await;
    assert_eq!(vec![newer.to_string()], ids(by_submitter));
    let (number, code, error) =
        server.error("ombra_listAgentRuns", json!({"status": "sleeping"})).await;
    assert_eq!((-32602, "INVALID_PARAMS"), (number, code.as_str()));
    assert_eq!(error["data"]["field"], "status");
}

#[tokio::test]
async fn every_builder_gives_what_its_signer_can_send() {
    let server = TestServer::start().await;
    let (user, miner) = (key(1), key(2));
    let request = json!({"prompt": PROMPT, "maxFee": "10000", "maxSteps": 5, "seed": "s"});
    let tx = build_and_send(&server, "ombra_buildAgentRequest", &user, request).await;
    let expected = ids::compute_agent_run_id(&user.address().to_string(), 0, PROMPT);
    assert_eq!(tx["agentRunId"], json!(expected));
    let now = json!([user.address(), "s", NOW]);
    let conversation = server.result("ombra_computeConversationId", now).await;
    assert_eq!(tx["conversationId"], conversation["conversationId"]);
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
    assert_eq!((&finish["minerReward"], &finish["nonce"]), (&json!("9"), &json!(2)));
    server.world.commit();
    let run = server.result("ombra_getAgentRun", json!([id])).await;
    assert_eq!((&run["status"], &run["finalAnswerInline"]), (&json!("completed"), &json!("2")));
    assert_eq!(run["userRefund"], "9891");

    let turn = json!({"conversationId": Hash::ZERO, "role": "user", "content": "hi",
        "agentRunId": id, "attachments": [{"type": "file", "blobId": "b"}]});
    build_and_send(&server, "ombra_buildChatTurn", &user, turn).await;
    let cancel = json!({"agentRunId": id});
    build_and_send(&server, "ombra_buildAgentCancel", &user, cancel).await;
    let transfer = json!({"to": miner.address(), "amount": "5"});
    build_and_send(&server, "ombra_buildTransfer", &user, transfer).await;
    let register = json!({"name": "n", "capabilities": ["a"], "modelInfo": "m"});
    build_and_send(&server, "ombra_buildMinerRegister", &miner, register).await;
    let init = json!({"blobId": "b", "contentType": "text/plain", "totalBytes": 400_001,
        "contentHash": Hash::ZERO});
    let init = build_and_send(&server, "ombra_buildBlobInit", &user, init).await;
    assert_eq!(init["totalChunks"], 2);
    let chunk = json!({"blobId": "b", "chunkIndex": 0, "chunkDataBase64": "AAEC"});
    build_and_send(&server, "ombra_buildBlobChunk", &user, chunk).await;
    build_and_send(&server, "ombra_buildBlobFinalize", &user, json!({"blobId": "b"})).await;
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
    let (number, code, error) = server.error("ombra_buildChatTurn", role).await;
    assert_eq!((-32050, "INVALID_FIELD"), (number, code.as_str()));
    assert_eq!(error["data"]["field"], "role");
    let other = json!({"from": crate::world::key(9).address(), "publicKey": key,
        "to": from, "amount": "1"});
    let (number, code, _) = server.error("ombra_buildTransfer", other).await;
    assert_eq!((-32050, "ADDRESS_MISMATCH"), (number, code.as_str()));
    let amount = json!([{"from": from, "publicKey": key, "to": from, "amount": 1}]);
    let (number, _, error) = server.error("ombra_buildTransfer", amount).await;
    assert_eq!((-32602, &json!("amount")), (number, &error["data"]["field"]));
    assert_eq!(error["data"]["got"], "1");
}

#[tokio::test]
async fn conversations_tell_who_speaks_for_the_run() {
    let server = TestServer::start().await;
    let id = run_in_progress(&server).await;
    let turn = |content: &str| {
        let turn = chat_turn(Hash::digest(b"conversation"), content);
        Body::ChatTurn(ChatTurn { agent_run_id: Some(id), ..turn })
    };
    for (seed, nonce, content) in [(1, 1, "a"), (2, 3, "b"), (9, 0, "c")] {
        server.send(&signed(&key(seed), nonce, &turn(content))).await;
    }
    server.world.commit();
    let page = server.result("ombra_getConversation", json!([Hash::digest(b"conversation")])).await;
    let told: Vec<(&Value, &Value)> = page["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|turn| (&turn["content"], &turn["relation"]))
        .collect();
    let (user, miner, other) = (json!("submitter"), json!("miner"), json!("other"));
    let expected = [(json!("a"), user), (json!("b"), miner), (json!("c"), other)];
    assert_eq!(expected.iter().map(|(a, b)| (a, b)).collect::<Vec<_>>(), told);
    let hash = page["items"][0]["hash"].clone();
    let one = server.result("ombra_getChatTurn", json!([hash])).await;
    assert_eq!(one, page["items"][0]);
    let (number, _, _) = server.error("ombra_getChatTurn", json!([Hash::ZERO])).await;
    assert_eq!(-32051, number);
}

#[tokio::test]
async fn a_page_of_long_texts_ends_early_and_goes_on() {
    let limits = rpc::Limits { page_bytes_max: 40_000, ..rpc::Limits::default() };
    let server = TestServer::start_with(limits).await;
    for nonce in 0..5 {
        server.send(&turn(1, nonce, &"x".repeat(16_000))).await;
    }
    server.world.commit();
    let mut lengths = Vec::new();
    let mut params = json!({"conversationId": Hash::ZERO});
    loop {
        let page = server.result("ombra_getConversation", params.clone()).await;
        lengths.push(page["items"].as_array().unwrap().len());
        if page["nextCursor"].is_null() {
            break;
        }
        params["cursor"] = page["nextCursor"].clone();
    }
    assert_eq!(vec![2, 2, 1], lengths);
}

#[tokio::test]
async fn miners_blobs_and_proofs_are_answered() {
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
    let first = server.result("ombra_listMiners", json!([{"limit": 1}])).await;
    let second = json!([{"limit": 1, "cursor": first["nextCursor"]}]);
    let second = server.result("ombra_listMiners", second).await;
    assert_eq!(second["nextCursor"], Value::Null);
    assert_ne!(first["items"][0]["address"], second["items"][0]["address"]);
    let miner = &first["items"][0];
    for params in [json!([miner["minerId"]]), json!({"address": miner["address"]})] {
        assert_eq!(&server.result("ombra_getMiner", params).await, miner);
    }
    let account = server.result("ombra_getAccount", json!([miner["address"]])).await;
    assert_eq!(&account["miner"], miner);

    server.world.add_blob("b", "text/plain", b"abc");
    assert_eq!(server.result("ombra_getBlob", json!(["b"])).await["final"], true);
    assert_eq!(-32051, server.error("ombra_getBlob", json!(["c"])).await.0);

    let of = json!({"account": key(1).address()});
    let proof = server.result("ombra_getProof", of).await;
    assert_eq!((&proof["value"], &proof["header"]["index"]), (&json!("0001ff"), &json!(2)));
    assert_eq!(proof["commit"]["blockHash"], proof["blockHash"]);
    server.result("ombra_getProof", json!({"validators": true})).await;
    for of in [
        json!({}),
        json!({"validators": false}),
        json!({"account": key(1).address(), "agentRun": Hash::ZERO}),
    ] {
        assert_eq!(-32602, server.error("ombra_getProof", of).await.0);
    }
}

#[tokio::test]
async fn the_pool_is_shown_by_type_and_by_sender() {
    let server = TestServer::start().await;
    server.send(&transfer(1, 0)).await;
    server.send(&transfer(1, 1)).await;
    server.send(&transfer(2, 0)).await;
    let status = server.result("txpool_status", json!([])).await;
    assert_eq!((&status["pending"], &status["queued"]), (&json!(3), &json!(0)));
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
    let (number, _, error) = server.error("ombra_computeAgentRunId", json!(["me", 4, ""])).await;
    assert_eq!((-32602, &json!("from")), (number, &error["data"]["field"]));
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
    assert_eq!(
        (&bad["valid"], &bad["error"]["data"]["code"]),
        (&json!(false), &json!("MALFORMED"))
    );
    assert!(server.world.state().pending.is_empty());
}

#[tokio::test]
async fn the_node_tells_of_itself_and_its_peers() {
    let server = TestServer::start().await;
    let info = server.result("net_info", json!([])).await;
    assert_eq!((&info["peerId"], &info["peers"]), (&json!("12D3"), &json!(0)));
    assert_eq!(server.result("net_peers", json!([])).await, json!([]));
}
