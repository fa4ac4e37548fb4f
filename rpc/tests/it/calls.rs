//! Calls of agents: read in every phase, listed, waited for, followed, and what they are drawn with.

use fixtures::{MANIFEST, SALT, appeal, bond, judge, judge_of, offer, register_judge, retire};
use jsonrpsee::core::client::ClientT;
use jsonrpsee::rpc_params;
use serde_json::{Value, json};
use types::agent::ExecutorId;
use types::ids;
use types::params::EMBEDDED_MODEL;
use types::randomness::Input;
use types::tx::{AgentCall, CallReveal};
use types::vrf::Proof;
use types::{Body, Hash, PublicKey};

use crate::client::{NOT_FOUND, TestServer, assert_has, call, eventually, signed};
use crate::streams::Stream;
use crate::subscriptions::{next, refused, subscribe};
use crate::world::{CHAIN_ID, key};

const PRICES: [u64; 4] = [1_000, 0, 0, 0];
const OWNER: u8 = 1;
const REQUESTER: u8 = 2;
const MEMBERS: [u8; 3] = [11, 12, 13];

fn agent() -> Hash {
    judge_of(key(OWNER).address())
}

fn register(model: Hash) -> Body {
    register_judge(key(OWNER).address(), judge(model, ""))
}

/// A chain on which the agent is there, and three miners offer to run it.
async fn market() -> TestServer {
    market_of(MANIFEST, &MEMBERS).await
}

/// The same for an agent of this model and these miners.
async fn market_of(manifest: Hash, miners: &[u8]) -> TestServer {
    let server = TestServer::start_v8().await;
    server.send(&signed(&key(OWNER), 0, &register(manifest))).await;
    let executor = ExecutorId::Model { manifest };
    for seed in miners {
        server.send(&signed(&key(*seed), 0, &bond(10_000_000))).await;
        server.send(&signed(&key(*seed), 1, &offer(executor, 9, PRICES).into())).await;
    }
    server.world.commit();
    server
}

fn body(nonce: u64) -> AgentCall {
    call(REQUESTER, nonce, agent(), PRICES)
}

/// Asks, with this nonce, for what the body says; answers the call's id.
async fn ask(server: &TestServer, nonce: u64, body: AgentCall) -> Hash {
    let call_id = body.call_id;
    server.send(&signed(&key(REQUESTER), nonce, &Body::AgentCall(body))).await;
    server.world.commit();
    call_id
}

/// The requester's first call, whose members are drawn.
async fn elected(server: &TestServer) -> Hash {
    let call_id = ask(server, 0, body(0)).await;
    server.world.commit();
    call_id
}

fn reveal(call_id: Hash, result: &[u8]) -> CallReveal {
    CallReveal { output_tokens: 2, ..fixtures::reveal(call_id, result) }
}

fn fails(call_id: Hash) -> CallReveal {
    let (outcome, reason) = ("failure".to_owned(), Some("it says no".to_owned()));
    CallReveal { outcome, reason, ..reveal(call_id, b"") }
}

/// The members commit to these answers in a block.
async fn commit(server: &TestServer, shown: &[CallReveal; 3]) {
    for (seed, shown) in MEMBERS.into_iter().zip(shown) {
        let commit = fixtures::commit(key(seed).address(), shown);
        server.send(&signed(&key(seed), 2, &commit.into())).await;
    }
    server.world.commit();
}

/// And show them in the next one.
async fn show(server: &TestServer, shown: [CallReveal; 3]) {
    for (seed, shown) in MEMBERS.into_iter().zip(shown) {
        server.send(&signed(&key(seed), 3, &Body::CallReveal(shown))).await;
    }
    server.world.commit();
}

/// All members say yes, in two blocks.
async fn agree(server: &TestServer, call_id: Hash) {
    let answers = [(); 3].map(|()| reveal(call_id, b"yes"));
    commit(server, &answers).await;
    show(server, answers).await;
}

async fn get(server: &TestServer, call_id: Hash) -> Value {
    server.result("ombra_getCall", json!([call_id])).await
}

fn address(seed: u8) -> String {
    key(seed).address().to_string()
}

#[tokio::test]
async fn a_call_is_read_in_every_phase_with_what_was_asked_and_answered() {
    let server = market().await;
    let call_id = ask(&server, 0, body(0)).await;
    let expected = json!({"status": "electing", "rounds": [], "payload": "0x26121ff0",
        "settled": false, "budget": "1000", "maxFee": "10000", "requester": address(REQUESTER)});
    assert_has(&get(&server, call_id).await, &expected);

    server.world.commit();
    let drawn = get(&server, call_id).await;
    let members = drawn["rounds"][0]["members"].as_array().unwrap();
    assert_eq!((&drawn["status"], members.len()), (&json!("committing"), 3));
    assert_has(&members[0], &json!({"seat": 0, "lock": "100000"}));
    assert!(members[0].get("agreed").is_none(), "nothing is decided");

    let answers = [reveal(call_id, b"yes"), reveal(call_id, b"yes"), fails(call_id)];
    commit(&server, &answers).await;
    assert_eq!(get(&server, call_id).await["status"], "revealing");
    show(&server, answers).await;
    let told = get(&server, call_id).await;
    let expected = json!({"status": "success", "settled": true, "agreeing": 2, "wages": "2000",
        "refund": "7400", "royaltyPaid": "0", "bondBehind": "20000000"});
    assert_has(&told, &expected);
    assert_eq!(told["answer"]["result"], "0x796573");
    let member = |seed: u8| {
        let members = told["rounds"][0]["members"].as_array().unwrap();
        members.iter().find(|it| it["address"] == address(seed)).unwrap()
    };
    assert_has(member(11), &json!({"agreed": true, "paid": "1000"}));
    assert!(member(11)["reveal"].get("result").is_none(), "it is the call's answer");
    assert_has(member(13), &json!({"agreed": false, "penalty": "2000"}));
    let reason = json!({"outcome": "failure", "reason": "it says no"});
    assert_has(&member(13)["reveal"], &reason);
    assert!(told.get("notes").is_none(), "{told}");
}

/// What recent calls of the agent took, as an estimate tells.
async fn typical(server: &TestServer) -> Value {
    let told = server.result("ombra_estimateCall", json!({ "agentId": agent() })).await;
    told["typical"].clone()
}

#[tokio::test]
async fn an_estimate_says_what_recent_calls_took() {
    let server = market().await;
    assert_eq!(typical(&server).await, Value::Null, "there were none");
    let call_id = elected(&server).await;
    let answers = [reveal(call_id, b"yes"), reveal(call_id, b"yes"), fails(call_id)];
    commit(&server, &answers).await;
    assert_eq!(typical(&server).await, Value::Null, "nothing is decided");
    show(&server, answers).await;
    let told = typical(&server).await;
    let call = get(&server, call_id).await;
    let [asked, decided] = [&call["createdAt"], &call["rounds"][0]["decidedAt"]];
    let took = decided.as_u64().unwrap() - asked.as_u64().unwrap();
    assert!(took > 0, "{call}");
    let expected = json!({"calls": 1, "inputTokens": 1, "outputTokens": 2, "fuel": 0,
        "latencyMs": took});
    assert_eq!(told, expected);
}

#[tokio::test]
async fn the_answer_of_a_threshold_is_every_success_by_member() {
    let server = market().await;
    let threshold = AgentCall { consensus: "threshold".to_owned(), threshold: Some(2), ..body(0) };
    let call_id = ask(&server, 0, threshold).await;
    server.world.commit();
    let answers = [reveal(call_id, b"a"), reveal(call_id, b"b"), fails(call_id)];
    commit(&server, &answers).await;
    show(&server, answers).await;
    assert_eq!(typical(&server).await, Value::Null, "members agreed on no work");
    let told = get(&server, call_id).await;
    assert_has(&told, &json!({"threshold": 2, "agreeing": 2}));
    assert!(told.get("answer").is_none(), "{told}");
    let mut expected = [(address(11), "0x61"), (address(12), "0x62")];
    expected.sort();
    let answers = told["answers"].as_array().unwrap().iter();
    let found: Vec<_> = answers.map(|it| (&it["member"], &it["result"])).collect();
    assert_eq!(json!(found), json!(expected));
}

#[tokio::test]
async fn during_an_appeal_only_the_bonds_of_members_that_are_counted_stand_behind_the_answer() {
    let miners = [11, 12, 13, 14];
    // Decisions of agents with this model can be appealed.
    let server = market_of(EMBEDDED_MODEL, &miners).await;
    let one = AgentCall { committee_size: 1, appealable: Some(true), ..body(0) };
    let call_id = ask(&server, 0, one).await;
    // The members of the new round commit to a yes, and the first ones reveal it.
    let go_on = async |round: u8, revealing: usize| {
        server.world.commit();
        let drawn = get(&server, call_id).await["rounds"][usize::from(round)]["members"].take();
        let drawn = drawn.as_array().unwrap().iter().map(|it| it["address"].clone());
        let drawn: Vec<Value> = drawn.collect();
        let members =
            miners.map(key).into_iter().filter(|key| drawn.contains(&json!(key.address())));
        let shown = CallReveal { round: round.into(), ..reveal(call_id, b"yes") };
        let members: Vec<_> = members.collect();
        for member in &members {
            let commit = fixtures::commit(member.address(), &shown);
            server.send(&signed(member, 2, &commit.into())).await;
        }
        server.world.commit();
        for member in &members[..revealing] {
            server.send(&signed(member, 3, &Body::CallReveal(shown.clone()))).await;
        }
        server.world.commit();
    };
    go_on(0, 1).await;
    let expected = json!({"status": "success", "settled": false, "agreeing": 1,
        "bondBehind": "10000000"});
    assert_has(&get(&server, call_id).await, &expected);
    server.send(&signed(&key(OWNER), 1, &appeal(call_id))).await;
    server.world.commit();
    go_on(1, 2).await;
    let told = get(&server, call_id).await;
    let expected = json!({"status": "revealing", "agreeing": 1, "bondBehind": "10000000"});
    assert_has(&told, &expected);
    let of_second = told["rounds"][1]["members"].as_array().unwrap();
    assert!(of_second.iter().all(|member| member.get("agreed").is_none()), "{told}");
}

#[tokio::test]
async fn texts_that_are_not_here_are_left_out_with_a_note() {
    let server = market().await;
    let call_id = ask(&server, 0, body(0)).await;
    server.world.state().earliest = 4;
    let told = get(&server, call_id).await;
    assert!(told.get("payload").is_none(), "its block is not here: {told}");
    assert_eq!(told["notes"], json!(["texts of transactions before block 4 are not on this node"]));
}

#[tokio::test]
async fn calls_are_listed_by_agent_requester_member_and_status_page_by_page() {
    let server = market().await;
    let first = elected(&server).await;
    agree(&server, first).await;
    let second = ask(&server, 1, body(1)).await;
    let ids = async |question: Value| -> Vec<Value> {
        let calls = server.items("ombra_listCalls", question).await;
        calls.iter().map(|it| it["callId"].clone()).collect()
    };
    let both = [json!(second), json!(first)];
    assert_eq!(ids(json!({"limit": 1})).await, both, "the newest first");
    assert_eq!(ids(json!({"agentId": agent()})).await, both);
    assert_eq!(ids(json!({"requester": address(REQUESTER), "limit": 1})).await, both);
    assert_eq!(ids(json!({"member": address(12)})).await, [json!(first)]);
    assert_eq!(ids(json!({"status": "electing"})).await, [json!(second)]);
    assert_eq!(ids(json!({"status": "success", "agentId": agent()})).await, [json!(first)]);
    assert_eq!(ids(json!({"requester": address(OWNER)})).await, Vec::<Value>::new());
    let page = server.result("ombra_listCalls", json!({"limit": 1})).await;
    assert!(page["items"][0].get("payload").is_none(), "lists have no texts");
    server.wrong_param("ombra_listCalls", json!({"status": "done"}), "status").await;
    server.refused("ombra_getCall", json!([Hash::ZERO]), NOT_FOUND).await;
}

fn wait(server: &TestServer, call_id: Hash, until: &str) -> tokio::task::JoinHandle<Value> {
    let client = server.http();
    let params = rpc_params![call_id, json!({"until": until, "timeoutMs": 20_000})];
    tokio::spawn(async move { client.request("ombra_waitForCall", params).await.unwrap() })
}

#[tokio::test]
async fn a_wait_for_a_call_is_answered_at_its_decision_or_settlement() {
    let server = market().await;
    let call_id = elected(&server).await;
    let before = server.world.lookups();
    let waits = ["decided", "settled"].map(|until| wait(&server, call_id, until));
    eventually("both wait", || server.world.lookups() >= before + 2).await;
    let answers = [(); 3].map(|()| reveal(call_id, b"yes"));
    commit(&server, &answers).await;
    let asked = server.world.lookups();
    show(&server, answers).await;
    for wait in waits {
        assert_eq!(wait.await.unwrap()["status"], "success");
    }
    assert_eq!(server.world.lookups(), asked + 2, "each looks again once, when it is told");
    let params = json!({"callId": call_id, "until": "settled"});
    assert_eq!(server.result("ombra_waitForCall", params).await["settled"], true, "at once");
}

#[tokio::test]
async fn a_wait_that_ends_tells_the_call_as_it_is_and_waits_are_counted() {
    let server = market().await;
    let call_id = ask(&server, 0, body(0)).await;
    let told = server.result("ombra_waitForCall", json!([call_id, {"timeoutMs": 10}])).await;
    assert_eq!(told["status"], "electing");
    server.refused("ombra_waitForCall", json!([Hash::ZERO]), NOT_FOUND).await;
    let long = json!([call_id, {"timeoutMs": 60_001}]);
    server.wrong_param("ombra_waitForCall", long, "timeoutMs").await;
    let limits = rpc::Limits { waiting_calls_max: 0, ..rpc::Limits::default() };
    let full = TestServer::start_with(limits).await;
    let params = json!([Hash::ZERO]);
    full.refused("ombra_waitForCall", params, (-32053, "TOO_MANY_WAITING")).await;
}

/// The events of a call in their order, and how often each comes.
const LIFE: [(&str, usize); 7] = [
    ("created", 1),
    ("elected", 1),
    ("committed", 3),
    ("revealing", 1),
    ("revealed", 3),
    ("decided", 1),
    ("settled", 1),
];

fn life() -> impl Iterator<Item = &'static str> {
    LIFE.into_iter().flat_map(|(event, times)| std::iter::repeat_n(event, times))
}

#[tokio::test]
async fn what_happens_to_calls_is_told_the_same_live_and_replayed() {
    let server = market().await;
    let client = server.websocket().await;
    let mut live = subscribe(&client, "calls", json!({"agentId": agent()})).await;
    let mut of_member = subscribe(&client, "calls", json!({"member": address(11)})).await;
    let mut of_nobody = subscribe(&client, "calls", json!({"requester": address(OWNER)})).await;
    let call_id = elected(&server).await;
    agree(&server, call_id).await;
    let mut told = Vec::new();
    for expected in life() {
        let event = next(&mut live).await;
        assert_has(&event, &json!({"event": expected, "callId": call_id}));
        told.push(event);
    }
    let of_event = |name: &str| told.iter().find(|event| event["event"] == name).unwrap();
    assert_eq!(of_event("elected")["members"].as_array().unwrap().len(), 3);
    assert_eq!(of_event("committed")["tx"]["type"], "CALL_COMMIT");
    assert_eq!(of_event("revealed")["answer"]["inputTokens"], 1);
    assert_eq!(of_event("settled")["wages"], "3000");
    assert_eq!(next(&mut of_member).await["event"], "elected", "before it was no member");
    let from_start = json!({"callId": call_id, "fromBlock": 1});
    let mut replayed = subscribe(&client, "calls", from_start).await;
    for event in &told {
        assert_eq!(next(&mut replayed).await, *event);
    }
    // Something that the other one hears comes after everything that it should not hear.
    let other = Body::AgentCall(call(OWNER, 1, agent(), PRICES));
    server.send(&signed(&key(OWNER), 1, &other)).await;
    server.world.commit();
    assert_eq!(next(&mut of_nobody).await["requester"], address(OWNER));
}

#[tokio::test]
async fn agents_are_told_of_when_they_are_registered_and_retired() {
    let server = TestServer::start_v8().await;
    let client = server.websocket().await;
    let filter = json!({"owner": address(OWNER), "fromBlock": 1});
    let mut events = subscribe(&client, "agents", filter).await;
    server.send(&signed(&key(OWNER), 0, &register(MANIFEST))).await;
    server.send(&signed(&key(OWNER), 1, &retire(agent()))).await;
    server.world.commit();
    assert_has(&next(&mut events).await, &json!({"event": "registered", "version": "1.0.0"}));
    assert_has(&next(&mut events).await, &json!({"event": "retired", "agentId": agent()}));
    let error = refused(&client, "agents", json!({"member": address(OWNER)})).await;
    assert_eq!(-32602, error.code(), "no such condition for agents");
}

#[tokio::test]
async fn the_same_is_in_rest_and_in_the_stream_of_a_call() {
    let server = market().await;
    let call_id = ask(&server, 0, body(0)).await;
    let id = agent();
    assert_eq!(server.found("/api/agents?text=JUDGE").await["items"][0]["agentId"], json!(id));
    let none = json!({"items": [], "nextCursor": null});
    assert_eq!(server.found("/api/agents?deterministic=false").await, none);
    let shown = server.result("ombra_getAgent", json!([id])).await;
    assert_eq!(server.found(&format!("/api/agents/{id}?version=1.0.0")).await, shown);
    let versions = server.found(&format!("/api/agents/{id}/versions")).await;
    assert_eq!(versions["items"][0]["version"], "1.0.0");
    let listed = server.result("ombra_listCalls", json!({})).await;
    assert_eq!(server.found(&format!("/api/calls?agentId={id}&limit=3")).await, listed);
    assert_eq!(server.found(&format!("/api/calls/{call_id}")).await, get(&server, call_id).await);
    assert_eq!(404, server.get(&format!("/api/calls/{}", Hash::ZERO)).await.0);
    assert_eq!(400, server.get("/api/calls?status=done").await.0);

    let path = format!("/api/calls/{call_id}/events");
    let mut stream = Stream::open(&server, &path, "").await;
    let (_, name, data) = stream.event().await;
    assert_eq!(("hello", &json!("electing")), (name.as_str(), &data["call"]["status"]));
    server.world.commit();
    agree(&server, call_id).await;
    let mut last = None;
    for expected in life().skip(1) {
        let (id, name, data) = stream.event().await;
        assert_eq!(("call", &json!(expected)), (name.as_str(), &data["event"]));
        last = id;
    }
    assert_eq!(last, Some(server.world.commit() - 1), "the last one of a block has its index");
    // What came after the block with the election.
    let header = format!("Last-Event-ID: {}\r\n", last.unwrap() - 2);
    let mut again = Stream::open(&server, &path, &header).await;
    assert_eq!(again.event().await.2["call"]["status"], "success");
    assert_eq!(again.event().await.2["event"], "committed");
    let over = server.get_whole(&path, "last-event-id: 99\r\n").await;
    assert!(over.starts_with(b"HTTP/1.1 204"), "who has seen the end need not come again");
    assert_eq!(404, server.get(&format!("/api/calls/{}/events", Hash::ZERO)).await.0);
    assert_eq!(400, server.get("/api/calls/7/events").await.0);
}

#[tokio::test]
async fn who_comes_back_to_a_settled_call_hears_what_is_new_and_the_stream_ends() {
    let server = market().await;
    let call_id = elected(&server).await;
    agree(&server, call_id).await;
    let settled = server.world.commit() - 1;
    server.world.commit();
    let answer = async |header: &str| {
        let path = format!("/api/calls/{call_id}/events");
        String::from_utf8(server.get_whole(&path, header).await).unwrap()
    };
    let back = async |seen: u64| answer(&format!("last-event-id: {seen}\r\n")).await;
    let first = answer("").await;
    assert!(first.contains("event: hello") && !first.contains("event: call"), "{first}");
    let end = "\"event\":\"settled\"";
    let new = back(settled - 1).await;
    assert!(new.contains(end), "{new}");
    for seen in settled..=settled + 2 {
        let over = back(seen).await;
        assert!(over.starts_with("HTTP/1.1 204"), "{over}");
    }

    // Too many blocks to look through them before an answer.
    server.world.commit_many(100);
    let late = back(settled - 1).await;
    assert!(late.contains(end), "{late}");
    let late = back(settled).await;
    assert!(late.starts_with("HTTP/1.1 200") && !late.contains("event: call"), "{late}");
    let tip = server.world.commit() - 1;
    assert!(late.contains(&format!("id: {tip}\nevent: ping")), "{late}");
    let over = back(tip).await;
    assert!(over.starts_with("HTTP/1.1 204"), "{over}");
}

#[tokio::test]
async fn randomness_is_told_with_what_proves_it() {
    let server = market().await;
    server.world.commit();
    for height in [1, 2] {
        let told = server.result("ombra_getRandomness", json!([height])).await;
        let text = |name: &str| told[name].as_str().unwrap().to_owned();
        let previous = match height {
            1 => Hash::digest(b"genesis"),
            _ => {
                let before = server.result("ombra_getBlock", json!([height - 1])).await;
                Hash::parse(before["randomness"].as_str().unwrap()).unwrap()
            }
        };
        let input = Input { chain_id: CHAIN_ID, previous, height };
        assert_eq!(text("input"), input.message());
        let key: PublicKey = text("publicKey").parse().unwrap();
        let proof: Proof = text("proof").parse().unwrap();
        assert_eq!(input.verify(&key, &proof), Some(Hash::parse(&text("value")).unwrap()));
        assert_eq!(text("proposer"), key.address().to_string());
        let rest = server.found(&format!("/api/chain/block/{height}")).await;
        let in_header = (&rest["randomness"], &rest["randomnessProof"]);
        assert_eq!(in_header, (&told["value"], &told["proof"]));
    }
    assert_eq!(-32051, server.error("ombra_getRandomness", json!([3])).await.0);
    assert_eq!(-32051, server.error("ombra_getRandomness", json!([0])).await.0);
    let before_v7 = TestServer::start().await;
    before_v7.world.commit();
    assert_eq!(-32051, before_v7.error("ombra_getRandomness", json!([1])).await.0);
}

#[tokio::test]
async fn ids_and_commitments_are_computed() {
    let server = TestServer::start_v8().await;
    let from = address(REQUESTER);
    let id = server.result("ombra_computeCallId", json!({"from": from, "nonce": 7})).await;
    assert_eq!(id, json!(body(7).call_id));
    let shown = reveal(Hash::ZERO, b"yes");
    let answer = json!({"callId": Hash::ZERO, "round": 0, "member": address(11), "salt": SALT,
        "outcome": "success", "resultHash": ids::compute_result_hash(b"yes"),
        "inputTokens": 1, "outputTokens": 2, "fuel": 0, "receiptHash": SALT});
    let told = server.result("ombra_computeCommitment", answer.clone()).await;
    assert_eq!(told, json!(fixtures::commit(key(11).address(), &shown).commitment));
    for (field, value) in [("round", json!(2)), ("outcome", json!("perhaps"))] {
        let mut wrong = answer.clone();
        wrong[field] = value;
        server.wrong_param("ombra_computeCommitment", wrong, field).await;
    }
}
