//! The client against a scripted server: every class of error, texts kept, streams resumed.

mod script;

use std::net::TcpListener;
use std::time::Duration;

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::{Map, Value, json};
use types::tx::AgentCancel;
use types::{Body, Hash, Keypair};

use super::records::Status;
use super::{Client, ClientError, Kind, NO_PARAMS, Page};
use crate::{Envelope, Signed};
use script::{Script, rejection};

const SOON: Duration = Duration::from_secs(20);

fn signed(nonce: u64) -> Signed {
    let envelope = Envelope::new(nonce, 1, Some("test".into()));
    let body = Body::AgentCancel(AgentCancel { agent_run_id: Hash::ZERO });
    Signed::new(&Keypair::from_seed(&[7; 32]), &envelope, &body)
}

#[tokio::test]
async fn a_node_that_is_not_there_is_not_reachable() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let client = Client::new(&url).unwrap();
    assert_eq!(0, client.failures());
    let refused = client.clone().chain_info().await;
    assert!(matches!(refused, Err(ClientError::Unreachable { .. })), "{refused:?}");
    assert_eq!(1, client.failures());
    let refused = client.subscribe(Kind::Blocks, Map::new(), None).await;
    assert!(matches!(refused, Err(ClientError::Unreachable { .. })), "{refused:?}");
}

#[tokio::test]
async fn every_error_number_has_its_class() {
    let script = Script::start().await;
    let client = script.client();
    let stale = rejection(-32050, "Nonce stale: tx=4, state=5", json!({"code": "NONCE_STALE"}));
    type IsOfClass = fn(&ClientError) -> bool;
    let old = rejection(-32052, "no blocks before 9", json!({"code": "HISTORY_UNAVAILABLE"}));
    let cases: [(ErrorObjectOwned, IsOfClass); 7] = [
        (rejection(-32602, "bad", Value::Null), |it| matches!(it, ClientError::BadParams { .. })),
        (stale, |it| matches!(it, ClientError::Rejected(_))),
        (rejection(-32051, "no such run", Value::Null), |it| {
            matches!(it, ClientError::NotFound { .. })
        }),
        (rejection(-32052, "syncing", Value::Null), |it| {
            matches!(it, ClientError::NotServing { .. })
        }),
        (old, |it| {
            matches!(it, ClientError::HistoryUnavailable { .. }) && it.retry_after().is_none()
        }),
        (rejection(-32053, "too fast", json!({"retryAfterMs": 250})), |it| {
            matches!(it, ClientError::Limited { .. })
        }),
        (rejection(-32601, "no such method", Value::Null), |it| {
            matches!(it, ClientError::Other { .. })
        }),
    ];
    for (object, is_right) in cases {
        let number = object.code();
        script.answer_error(object);
        let error = client.call::<Value, _>("scripted", NO_PARAMS).await.unwrap_err();
        assert!(is_right(&error), "{number}: {error:?}");
        if let ClientError::Rejected(rejection) = &error {
            assert_eq!("NONCE_STALE", rejection.code);
            assert_eq!("Nonce stale: tx=4, state=5", rejection.message);
        }
        if let ClientError::Limited { retry_after_ms, .. } = error {
            assert_eq!(Some(250), retry_after_ms);
        }
    }
    // A node that says no has answered.
    assert_eq!(2, client.failures());
}

#[tokio::test]
async fn an_answer_keeps_the_nodes_text_and_key_order() {
    let script = Script::start().await;
    script.answer_text(r#"{"zebra":1,"apple":{"y":"1","x":2}}"#);
    let answer = script.client().call::<Value, _>("scripted", NO_PARAMS).await.unwrap();
    assert_eq!(r#"{"zebra":1,"apple":{"y":"1","x":2}}"#, answer.text());
    assert_eq!(2, answer["apple"]["x"]);
}

#[tokio::test]
async fn an_answer_of_another_shape_is_unreadable() {
    let script = Script::start().await;
    script.answer_text(r#"{"height":"many"}"#);
    let refused = script.client().call::<super::records::ChainInfo, _>("scripted", NO_PARAMS).await;
    assert!(matches!(refused, Err(ClientError::Unreadable { method: "scripted", .. })));
}

#[tokio::test]
async fn a_transaction_is_sent_as_it_was_signed() {
    let script = Script::start().await;
    let one = signed(0);
    assert_eq!(one.hash(), script.client().send(&one).await.unwrap());
    assert_eq!(one.text(), script.received());
}

#[tokio::test]
async fn another_hash_than_the_signed_one_is_an_error() {
    let script = Script::start().await;
    script.lie_about_hashes();
    let refused = script.client().send(&signed(0)).await;
    assert!(matches!(refused, Err(ClientError::WrongHash { answered: Hash::ZERO, .. })));
}

#[tokio::test]
async fn one_rejection_in_an_array_leaves_the_others() {
    let script = Script::start().await;
    let three = [signed(0), signed(1), signed(2)];
    script.refuse_place(1);
    let outcomes = script.client().send_many(&three).await.unwrap();
    assert_eq!(three[0].hash(), *outcomes[0].as_ref().unwrap());
    assert_eq!(three[2].hash(), *outcomes[2].as_ref().unwrap());
    let Err(ClientError::Rejected(rejection)) = &outcomes[1] else { panic!("{outcomes:?}") };
    assert_eq!("POOL_FULL", rejection.code);
}

#[tokio::test]
async fn waiting_goes_on_until_the_transaction_leaves_the_pool() {
    let script = Script::start().await;
    script.include_at_call(3);
    let answer = script.client().wait(&Hash::ZERO, SOON).await.unwrap();
    assert_eq!((Status::Included, Some(12)), (answer.status, answer.block_index));
    let pending = script.client().wait(&Hash::ZERO, Duration::ZERO).await.unwrap();
    assert_eq!(Status::Included, pending.status);
}

#[tokio::test]
async fn a_wait_ends_in_time_with_the_last_state() {
    let script = Script::start().await;
    script.include_at_call(u64::MAX);
    let answer = script.client().wait(&Hash::ZERO, Duration::ZERO).await.unwrap();
    assert_eq!(Status::Pending, answer.status);
}

#[tokio::test]
async fn absent_page_members_are_left_out() {
    let script = Script::start().await;
    let page = Page { cursor: Some("next".into()), limit: None };
    script.client().blocks(Some(3), None, &page).await.unwrap();
    assert_eq!(r#"[{"cursor":"next","from":3}]"#, script.received());
}

#[tokio::test]
async fn a_stream_goes_on_after_a_lost_connection_without_repeats() {
    let script = Script::start().await;
    script.drop_streams_after(3);
    let client = script.client();
    let mut events = client.subscribe(Kind::Chat, Map::new(), Some(5)).await.unwrap();
    let mut numbers = Vec::new();
    for _ in 0..7 {
        let event = tokio::time::timeout(SOON, events.next()).await.unwrap().unwrap();
        numbers.push(event["number"].as_u64().unwrap());
    }
    assert_eq!(vec![0, 1, 2, 3, 4, 5, 6], numbers);
    assert!(script.streams_opened() > 1);
}

#[tokio::test]
async fn a_live_stream_that_is_lost_before_its_first_event_loses_none() {
    let script = Script::start().await;
    let client = script.client();
    let mut events = client.subscribe(Kind::Chat, Map::new(), None).await.unwrap();
    let first = tokio::time::timeout(SOON, events.next()).await.unwrap().unwrap();
    assert_eq!((6, 2), (first["blockIndex"].as_u64().unwrap(), first["number"].as_u64().unwrap()));
}

#[tokio::test]
async fn a_pool_stream_tells_of_its_gap() {
    let script = Script::start().await;
    let mut events = script.client().subscribe(Kind::Pool, Map::new(), None).await.unwrap();
    let event = tokio::time::timeout(SOON, events.next()).await.unwrap().unwrap();
    assert_eq!(r#"{"gap":true}"#, event.text());
}

#[tokio::test]
async fn a_pool_stream_that_told_of_a_block_begins_again_without_a_block() {
    let script = Script::start().await;
    script.drop_streams_after(1);
    let mut events = script.client().subscribe(Kind::Pool, Map::new(), None).await.unwrap();
    for expected in [r#"{"blockIndex":5,"number":0}"#, r#"{"gap":true}"#] {
        let event = tokio::time::timeout(SOON, events.next()).await.unwrap().unwrap();
        assert_eq!(expected, event.text());
    }
    let event = tokio::time::timeout(SOON, events.next()).await.unwrap().unwrap();
    assert_eq!(Some(0), event["number"].as_u64(), "{}", event.text());
}

fn busy() -> ErrorObjectOwned {
    rejection(-32053, "too many waiting", json!({"code": "TOO_MANY_WAITING", "retryAfterMs": 1}))
}

#[tokio::test]
async fn a_node_that_is_busy_gets_the_same_bytes_again() {
    let script = Script::start().await;
    let restarting = rejection(-32052, "syncing", Value::Null);
    let forgotten = rejection(-32051, "no such transaction", Value::Null);
    // Two attempts at sending fail; the third is accepted, and the wait for it fails.
    script.disturb(vec![forgotten, busy(), restarting]);
    let one = signed(0);
    let answer = script.client().send_and_wait(&one, SOON).await.unwrap();
    assert_eq!(Status::Included, answer.status);
    assert_eq!((4, one.text().to_owned()), (script.sends(), script.received()));
}

#[tokio::test]
async fn a_rejection_and_a_lasting_limit_are_not_tried_again() {
    let script = Script::start().await;
    let lasting = [
        rejection(-32050, "stale", json!({"code": "NONCE_STALE"})),
        rejection(-32053, "too large", json!({"code": "TOO_MANY_ITEMS"})),
    ];
    for (times, error) in (1..).zip(lasting) {
        let told = error.message().to_owned();
        script.disturb(vec![error]);
        let refused = script.client().send_again(&signed(0), SOON).await.unwrap_err();
        assert!(refused.to_string().ends_with(&told), "{refused}");
        assert_eq!(times, script.sends());
    }
}

#[tokio::test]
async fn patience_has_an_end() {
    let script = Script::start().await;
    script.disturb(vec![busy(); 10]);
    let refused = script.client().send_again(&signed(0), Duration::ZERO).await;
    assert!(matches!(refused, Err(ClientError::Limited { .. })), "{refused:?}");
}
