//! Clients and operators that hang up, refused blobs, and nodes that know only a part of the chain.

use std::sync::Arc;

use agent::clock::Clock;
use miner::chain::client::Node as MinersNode;
use miner::outbox::Slip;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use types::{Address, Hash, Keypair};
use wallet::Client;

use super::{Job, Parts, RequestService};
use crate::chain::Node;
use crate::model::Model;
use crate::money::Limits;
use crate::question::Question;
use crate::record::{Called, Delivery, Phase, Purpose, RequestId, Unpaid, Work};
use crate::settings::Settings;
use crate::store::{About, Admission, NewRequest, Store};
use crate::testing::{FakeNode, NOW_MS, SOON, TestClock, wants};

/// A service whose node is away.
fn service(folder: &TempDir) -> Arc<RequestService> {
    service_at(folder, "http://127.0.0.1:9")
}

fn service_at(folder: &TempDir, url: &str) -> Arc<RequestService> {
    let key = Keypair::from_seed(&[7; 32]);
    let clock: Arc<dyn Clock> = TestClock::new();
    let path = folder.path().join("store");
    let store = Store::open(&path, key.address(), None, Arc::clone(&clock)).unwrap();
    let client = Client::new(url).unwrap();
    let node = Node::new(client.clone(), MinersNode::new(client).unwrap());
    let (settings, stop) = (Settings::default(), CancellationToken::new());
    let (store, chain_id, pinned) = (Arc::new(store), "ombra-dev".to_owned(), Vec::new());
    RequestService::new(Parts { settings, key, store, node, chain_id, pinned, clock, stop })
}

#[tokio::test]
async fn who_hangs_up_while_the_request_is_taken_in_is_known_to_be_gone() {
    let folder = tempfile::tempdir().unwrap();
    let service = service(&folder);
    let (key, _secret) = service.store.new_key("one", Limits::default()).await.unwrap();
    {
        let mut taking =
            std::pin::pin!(service.take(wants(&key, "body", 1_100), Job::Ask(question(None))));
        assert!(futures::poll!(&mut taking).is_pending());
    }
    let is_lost = || {
        let record = service.store.request(RequestId(1)).unwrap();
        record.is_some_and(|it| it.delivery == Delivery::Lost)
    };
    let known = until(is_lost).await;
    service.stop.cancel();
    assert!(known, "the request is said to be waited for, and nobody does");
}

#[tokio::test]
async fn clients_are_not_told_where_the_node_is() {
    let folder = tempfile::tempdir().unwrap();
    let service = service_at(&folder, "http://user:secret@127.0.0.1:9");
    let fault = service.published(Hash::ZERO, "1.0.0").await.unwrap_err();
    assert_eq!((503, "node_unavailable"), (fault.status, fault.code));
    for part in ["user", "secret", "127.0.0.1"] {
        assert!(!fault.message.contains(part), "{}", fault.message);
    }
}

/// A question, with a blob if it is long.
fn question(blob: Option<&str>) -> Question {
    let (prompt, blob, model) = ("{}".to_owned(), blob.map(str::to_owned), Model::Any);
    Question { prompt, blob, model, max_fee_micro: 1_000, steps_max: 1 }
}

/// Waits until it is so; whether it is.
async fn until(is_so: impl Fn() -> bool) -> bool {
    let waits = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, waits).await.is_ok()
}

/// A node whose chain is at its first blocks, and whose wallet has money.
async fn rich_node() -> Arc<FakeNode> {
    let node = FakeNode::start().await;
    node.answers(
        "ombra_chainInfo",
        json!({
            "chainId": "ombra-dev", "genesisHash": Hash::ZERO, "height": 9,
            "latestBlockHash": Hash::ZERO, "latestBlockTime": NOW_MS,
        }),
    );
    node.answers(
        "ombra_getAccount",
        json!({
            "address": Keypair::from_seed(&[7; 32]).address(), "nonce": 3, "pendingNonce": 3,
            "balance": "1000000", "pendingBalance": "1000000",
        }),
    );
    node.answers("ombra_feeSchedule", json!({ "baseFee": "10", "blobInitFee": "1000" }));
    node
}

const OTHER: Address = Address::new([8; 20]);

#[tokio::test]
async fn a_signed_transfer_goes_on_though_its_operator_hung_up() {
    let folder = tempfile::tempdir().unwrap();
    let node = rich_node().await;
    let service = service_at(&folder, node.url());
    service.recovered.cancel();
    tokio::select! {
        moved = service.drain(OTHER, Some(5)) => panic!("the node did not answer yet: {moved:?}"),
        () = node.is_asked("ombra_sendTransaction") => (),
    }
    // The drain is dropped, as it is when the operator presses ctrl-C.
    assert_eq!(1, service.store.outbox().unwrap().len());
    node.answers("ombra_sendTransaction", json!({}));
    node.answers("ombra_waitForTransaction", json!({ "hash": Hash::ZERO, "status": "included" }));
    let has_fate = until(|| service.store.outbox().unwrap().is_empty()).await;
    service.stop.cancel();
    assert!(has_fate, "everything after the transfer waits for its nonce");
    assert_eq!(1, service.store.loose().unwrap().len());
}

#[tokio::test]
async fn a_transfer_is_not_signed_once_its_operator_hung_up() {
    let folder = tempfile::tempdir().unwrap();
    let node = FakeNode::start().await;
    let service = service_at(&folder, node.url());
    service.recovered.cancel();
    tokio::select! {
        moved = service.drain(OTHER, Some(5)) => panic!("the node did not answer yet: {moved:?}"),
        () = node.is_asked("ombra_getAccount") => (),
    }
    let is_called_off = until(|| service.tasks.is_empty()).await;
    service.stop.cancel();
    assert!(is_called_off, "somebody waits for the node");
    assert_eq!(0, service.store.outbox().unwrap().len());
}

#[tokio::test]
async fn what_a_blob_burned_is_charged_though_the_rest_of_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let node = rich_node().await;
    let service = service_at(&folder, node.url());
    let (key, _secret) = service.store.new_key("one", Limits::default()).await.unwrap();
    node.refuses("ombra_getBlob", -32051, "NOT_FOUND");
    let asks = Job::Ask(question(Some("long")));
    let (id, _progress) = service.take(wants(&key, "body", 5_000), asks).await.unwrap();
    node.is_asked("ombra_sendTransaction").await;
    // The announcement of the blob is included.
    node.answers(
        "ombra_getBlob",
        json!({
            "owner": service.wallet(), "received": 0, "final": false,
            "contentHash": Hash::digest(b"long"),
        }),
    );
    node.answers("ombra_sendTransaction", json!({}));
    node.is_asked("ombra_waitForTransaction").await;
    // Its chunk is not.
    node.refuses("ombra_sendTransaction", -32050, "INSUFFICIENT_BALANCE");
    node.answers("ombra_getTransaction", json!({ "inclusionFee": "7" }));
    node.answers("ombra_waitForTransaction", json!({ "hash": Hash::ZERO, "status": "included" }));
    let phase = || service.store.request(id).unwrap().unwrap().phase;
    let has_ended = until(|| matches!(phase(), Phase::Unpaid { .. })).await;
    service.stop.cancel();
    assert!(has_ended, "{:?}", phase());
    let why = Unpaid::Refused("INSUFFICIENT_BALANCE".to_owned());
    assert_eq!(Phase::Unpaid { run: None, why, fees_micro: 1_007 }, phase());
}

/// A slip that was signed for a request before the gateway was killed, and what it was to make.
async fn signed_before(service: &RequestService, new: NewRequest) -> (RequestId, Slip, Hash) {
    let Admission::New(id) = service.store.admit(new).await.unwrap() else { panic!("it is new") };
    let made = Hash::digest(&id.0.to_be_bytes());
    let slip = Slip { nonce: 2, hash: Hash::digest(b"tx"), text: "{}".to_owned() };
    let about = About::Request { id, purpose: Purpose::Request };
    service.store.sign(&slip, about, Some(Phase::Signed { run: made })).await.unwrap();
    (id, slip, made)
}

fn run_on_chain(run: Hash, status: &str) -> Value {
    json!({
        "agentRunId": run, "conversationId": Hash::ZERO, "submitter": OTHER, "prompt": "",
        "maxFee": "1090", "maxSteps": 1, "status": status, "stepCount": 1, "totalTokensOut": 3,
        "minerReward": "20", "networkFee": "100", "submittedAt": NOW_MS,
    })
}

#[tokio::test]
async fn a_run_that_a_node_without_its_block_has_is_followed_and_not_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let node = rich_node().await;
    let service = service_at(&folder, node.url());
    let (key, _secret) = service.store.new_key("one", Limits::default()).await.unwrap();
    let (id, slip, run) = signed_before(&service, wants(&key, "body", 1_100)).await;
    node.refuses("ombra_sendTransaction", -32050, "NONCE_STALE");
    node.answers("ombra_getAgentRun", run_on_chain(run, "completed"));
    service.outbox.recover(std::slice::from_ref(&slip)).await.unwrap();
    let record = || service.store.request(id).unwrap().unwrap();
    assert_eq!(Phase::Sent { run, since_ms: NOW_MS }, record().phase);
    assert_eq!(Some(slip.hash), record().request_tx());
    // Nor can the node tell what its place in the block cost.
    node.refuses("ombra_getTransaction", -32052, "HISTORY_UNAVAILABLE");
    let _progress = service.spawn(id, None);
    let has_ended = until(|| record().is_over()).await;
    service.stop.cancel();
    assert!(has_ended, "{:?}", record());
    assert_eq!(120, record().cost_micro());
}

#[tokio::test]
async fn a_call_that_a_node_without_its_block_has_is_not_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let node = rich_node().await;
    let service = service_at(&folder, node.url());
    let (key, _secret) = service.store.new_key("one", Limits::default()).await.unwrap();
    let (version, method) = ("1.0.0".to_owned(), "judge(string)".to_owned());
    let work = Work::Call(Called { agent: Hash::ZERO, version, method, committee: 3 });
    node.refuses("ombra_sendTransaction", -32050, "NONCE_STALE");
    // Another call of the wallet has its id if something else has signed it.
    for (max_fee, is_its) in [("1090", true), ("7", false)] {
        let new = NewRequest { work: work.clone(), ..wants(&key, max_fee, 1_100) };
        let (id, slip, call) = signed_before(&service, new).await;
        node.answers(
            "ombra_getCall",
            json!({
                "callId": call, "status": "electing", "settled": false, "maxFee": max_fee,
                "committeeSize": 3,
            }),
        );
        service.outbox.recover(std::slice::from_ref(&slip)).await.unwrap();
        let phase = service.store.request(id).unwrap().unwrap().phase;
        let sent = Phase::Sent { run: call, since_ms: NOW_MS };
        assert_eq!(if is_its { sent } else { Phase::Reserved }, phase);
    }
}

#[tokio::test]
async fn a_run_that_the_chain_does_not_have_can_be_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let node = rich_node().await;
    let service = service_at(&folder, node.url());
    let (key, _secret) = service.store.new_key("one", Limits::default()).await.unwrap();
    let (id, slip, _run) = signed_before(&service, wants(&key, "body", 1_100)).await;
    node.refuses("ombra_sendTransaction", -32050, "NONCE_STALE");
    node.refuses("ombra_getAgentRun", -32051, "NOT_FOUND");
    service.outbox.recover(&[slip]).await.unwrap();
    assert_eq!(Phase::Reserved, service.store.request(id).unwrap().unwrap().phase);
}

#[tokio::test]
async fn a_node_that_says_again_and_again_that_the_nonce_is_taken_gets_a_few_signed_requests() {
    let folder = tempfile::tempdir().unwrap();
    let node = rich_node().await;
    let service = service_at(&folder, node.url());
    let (key, _secret) = service.store.new_key("one", Limits::default()).await.unwrap();
    node.refuses("ombra_sendTransaction", -32050, "NONCE_STALE");
    node.refuses("ombra_getAgentRun", -32051, "NOT_FOUND");
    let (id, _progress) =
        service.take(wants(&key, "body", 1_100), Job::Ask(question(None))).await.unwrap();
    let record = || service.store.request(id).unwrap().unwrap();
    let has_ended = until(|| record().is_over()).await;
    service.stop.cancel();
    assert!(has_ended, "{:?}", record());
    let why = Unpaid::Refused("NONCE_STALE".to_owned());
    assert_eq!(Phase::Unpaid { run: None, why, fees_micro: 0 }, record().phase);
    assert_eq!(3, node.times("ombra_sendTransaction"));
}

#[tokio::test]
async fn a_run_that_costs_more_than_its_escrow_is_believed_of_no_node() {
    let folder = tempfile::tempdir().unwrap();
    let node = rich_node().await;
    let service = service_at(&folder, node.url());
    let id = Hash::digest(b"run");
    let costs = |reward: &str| {
        let mut run = run_on_chain(id, "completed");
        run["minerReward"] = json!(reward);
        run
    };
    node.answers("ombra_getAgentRun", costs("990"));
    assert_eq!(Some(id), service.node.run(&id, 1_090).await.unwrap().map(|it| it.agent_run_id));
    service.node.run(&id, 1_091).await.unwrap_err();
    service.node.run(&Hash::ZERO, 1_090).await.unwrap_err();
    node.answers("ombra_getAgentRun", costs("991"));
    service.node.run(&id, 1_090).await.unwrap_err();
}

#[tokio::test]
async fn whoever_repeats_a_request_while_its_answer_is_read_shares_it() {
    let folder = tempfile::tempdir().unwrap();
    let node = rich_node().await;
    let service = service_at(&folder, node.url());
    let (key, _secret) = service.store.new_key("one", Limits::default()).await.unwrap();
    let Admission::New(id) = service.store.admit(wants(&key, "body", 1_100)).await.unwrap() else {
        panic!("it is new")
    };
    // Nobody signed it before the gateway ended.
    let mut reader = service.spawn(id, None);
    let first = reader.wait_for(|it| it.ended.is_some()).await.unwrap().ended.clone().unwrap();
    let again = service.spawn(id, None).borrow().ended.clone().expect("it is there at once");
    assert!(Arc::ptr_eq(&first, &again));
    drop(reader);
    let is_forgotten = until(|| service.live.lock().is_empty()).await;
    service.stop.cancel();
    assert!(is_forgotten, "nobody reads it any more");
}
