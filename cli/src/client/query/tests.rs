//! Lists of which whole pages are left out, and answers as people read them.

use std::cell::RefCell;

use serde_json::json;
use types::Hash;
use wallet::{ClientError, Page};

use super::command::trusted;
use super::pages::PAGES_MAX;
use super::{lists, single};

#[test]
fn the_pair_to_trust_is_ready_for_the_settings() {
    let hash = Hash::new([9; 32]);
    let chain = json!({"height": 7, "latestBlockHash": hash, "peers": 3}).to_string();
    let pair = trusted(&chain).unwrap();
    assert_eq!(json!({"height": 7, "hash": hash}), pair);
    let text = single::trusted(&pair);
    let read: toml::Table = text.parse().expect("TOML");
    let set = &read["sync"]["trusted"];
    assert_eq!(Some(7), set["height"].as_integer());
    assert_eq!(Some(hash.to_string()), set["hash"].as_str().map(str::to_owned));
    for chain in [json!({"height": 0, "latestBlockHash": hash}), json!({"height": 7}), json!([])] {
        assert_eq!(1, trusted(&chain.to_string()).unwrap_err().exit_code(), "{chain}");
    }
}

#[test]
fn fees_and_parameters_say_whether_the_fork_is_active() {
    let tips = json!({"p10": "0", "p50": "5", "p90": "9", "sample": 30, "blocks": 20});
    let mut fees = json!({
        "estimate": {"blockIndex": 8, "active": true, "baseFee": "10", "size": 512,
            "inclusionFee": "5", "suggestedMaxBaseFee": "2000", "tips": tips},
        "schedule": {"baseFeeFloor": "10", "registerFee": "10000", "blobInitFee": "1000"},
    });
    let said = single::fees(&fees).to_string();
    assert!(said.contains("5 micro for 512 bytes") && said.contains("0, 5, 9 micro"), "{said}");
    fees["estimate"]["active"] = json!(false);
    let said = single::fees(&fees).to_string();
    assert!(said.contains("fork v7 is not active") && !said.contains("512 bytes"), "{said}");
    fees["estimate"]["activeFrom"] = json!(90);
    assert!(single::fees(&fees).to_string().contains("begins with block 90"));

    let voter = json!({"address": "ab", "power": 3, "blockIndex": 2});
    let vote = json!({"value": 20, "height": 90, "power": "3", "voters": [voter]});
    let next = json!({"value": 30, "height": 60});
    let param = json!({"name": "baseFeeFloor", "value": 10, "min": 1, "max": 1_000_000,
        "next": next, "votes": [vote]});
    let mut params = json!({"active": true, "totalPower": "10", "params": [param]});
    let said = lists::params(&params);
    for wanted in ["1 to 1000000", "30 from block 60", "20 from block 90", "3 of 10"] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert!(!said.contains("not active"), "{said}");
    params["active"] = json!(false);
    assert!(lists::params(&params).contains("fork v7 is not active"));
}

/// A node with a list of so many pages, `at` being what it has been asked.
async fn listed(
    pages: &[(&[u32], Option<&str>)],
    limit: u32,
) -> (String, Vec<(Option<String>, Option<u32>)>) {
    let asked = RefCell::new(Vec::new());
    let page = Page { cursor: None, limit: Some(limit) };
    let list = super::pages::items(page, async |page| {
        let (items, next) = pages[asked.borrow().len() % pages.len()];
        asked.borrow_mut().push((page.cursor, page.limit));
        Ok(json!({"items": items, "nextCursor": next}).to_string())
    });
    (list.await.unwrap(), asked.into_inner())
}

/// A first one that is refused is all that there is to say.
#[tokio::test]
async fn a_later_page_that_is_refused_leaves_what_there_is() {
    let nothing: &[u32] = &[];
    for (items, expected) in
        [(&[7][..], Some(r#"{"items":[7],"nextCursor":"a"}"#)), (nothing, None)]
    {
        let page = Page { cursor: None, limit: Some(3) };
        let list = super::pages::items(page, async |page| match page.cursor {
            None => Ok(json!({"items": items, "nextCursor": "a"}).to_string()),
            Some(_) => Err(ClientError::NotFound { message: "it is gone".to_owned() }),
        });
        assert_eq!(list.await.ok().as_deref(), expected);
    }
}

#[tokio::test]
async fn short_pages_are_joined_until_there_are_as_many_items_as_were_asked_for() {
    let pages: [(&[u32], _); 4] =
        [(&[], Some("a")), (&[1, 2], Some("b")), (&[3], Some("c")), (&[4], Some("d"))];
    let (list, asked) = listed(&pages, 3).await;
    assert_eq!(r#"{"items":[1,2,3],"nextCursor":"c"}"#, list);
    let cursor = |text: &str| Some(text.to_owned());
    assert_eq!(vec![(None, Some(3)), (cursor("a"), Some(3)), (cursor("b"), Some(1))], asked);

    let (list, asked) = listed(&[(&[7], None)], 3).await;
    assert_eq!((r#"{"items":[7],"nextCursor":null}"#, 1), (list.as_str(), asked.len()));
    let (list, asked) = listed(&[(&[], Some("on"))], 3).await;
    assert_eq!(PAGES_MAX, asked.len(), "nobody asks for ever");
    let empty = serde_json::from_str(&list).unwrap();
    assert_eq!("none yet\n\nmore: --cursor on", lists::runs(&empty));
}
