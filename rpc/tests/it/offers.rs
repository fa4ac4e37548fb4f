//! Offers of miners: listed for an executor and for a miner, page by page.

use fixtures::{bond, offer, unbond};
use serde_json::{Value, json};
use types::Hash;

use crate::client::{TestServer, signed};
use crate::world::key;

const LEAST: u64 = 10_000_000;
const PRICES: [u64; 4] = [1, 2, 3, 4];

fn model() -> String {
    format!("model-1:{}", Hash::ZERO)
}

/// Three miners with offers for the model, of whom 2 has the largest bond; 1 has one more.
async fn market() -> TestServer {
    let server = TestServer::start_v8().await;
    for (seed, amount) in [(1, LEAST), (2, LEAST + 1), (3, LEAST)] {
        server.send(&signed(&key(seed), 0, &bond(amount))).await;
        server.send(&signed(&key(seed), 1, &offer(model(), 7, PRICES).into())).await;
    }
    server.send(&signed(&key(1), 2, &offer("wasm-1", 7, PRICES).into())).await;
    server.world.commit();
    server
}

/// Miners and executors of a list that is asked for page by page.
async fn listed(server: &TestServer, question: Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let items = server.items("ombra_listOffers", question).await;
    items.iter().map(|it| (text(&it["miner"]), text(&it["executor"]))).collect()
}

fn address(seed: u8) -> String {
    key(seed).address().to_string()
}

#[tokio::test]
async fn offers_for_an_executor_come_in_the_order_of_bonds_and_others_in_that_of_miners() {
    let server = market().await;
    let mut tied = [address(1), address(3)];
    tied.sort_unstable();
    let of = |miner: &String| (miner.clone(), model());
    for limit in [1, 2, 500] {
        let for_it = listed(&server, json!({"executor": model(), "limit": limit})).await;
        assert_eq!(for_it, [of(&address(2)), of(&tied[0]), of(&tied[1])]);
        let of_one = listed(&server, json!({"miner": address(1), "limit": limit})).await;
        assert_eq!(of_one, [(address(1), "wasm-1".to_owned()), of(&address(1))]);
        let mut all = [1, 2, 3].map(|seed| of(&address(seed))).to_vec();
        all.push((address(1), "wasm-1".to_owned()));
        let rank = |(miner, executor): &(String, String)| (miner.clone(), executor != "wasm-1");
        all.sort_by_key(rank);
        assert_eq!(listed(&server, json!({"limit": limit})).await, all);
    }
    let mut both = json!({"executor": "wasm-1", "miner": address(1)});
    assert_eq!(listed(&server, both.clone()).await, [(address(1), "wasm-1".to_owned())]);
    let page = server.result("ombra_listOffers", json!({"limit": 1})).await;
    both["cursor"] = page["nextCursor"].clone();
    assert_eq!(listed(&server, both).await, [], "there is no second one");
    let neither = json!({"executor": "wasm-1", "miner": address(2)});
    assert_eq!(listed(&server, neither).await, []);
}

#[tokio::test]
async fn an_offer_is_told_with_what_its_miner_has_at_stake() {
    let server = market().await;
    let page = server.result("ombra_listOffers", json!([{"executor": "wasm-1"}])).await;
    let expected = json!({
        "miner": address(1), "executor": "wasm-1", "capacity": 7, "open": 0,
        "perCall": "1", "promptPerM": "2", "completionPerM": "3", "fuelPerG": "4",
        "bonded": LEAST.to_string(), "free": LEAST.to_string(), "counts": true,
    });
    assert_eq!(page, json!({"items": [expected], "nextCursor": null}));
    server.send(&signed(&key(1), 3, &unbond(1))).await;
    server.world.commit();
    let page = server.result("ombra_listOffers", json!([{"executor": "wasm-1"}])).await;
    assert_eq!(page["items"][0]["counts"], false, "its bond is too small");
    let page = server.result("ombra_listOffers", json!([{"miner": address(1)}])).await;
    assert_eq!(page["items"][0]["counts"], Value::Null, "not asked for one executor");
    assert_eq!(-32602, server.error("ombra_listOffers", json!([{"executor": "wasm-2"}])).await.0);
}
