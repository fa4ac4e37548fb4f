//! Clients that hang up while their requests are taken in.

use std::sync::Arc;
use std::time::Duration;

use agent::clock::Clock;
use miner::chain::client::Node as MinersNode;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use types::Keypair;
use wallet::Client;

use super::{Job, Parts, RequestService};
use crate::chain::Node;
use crate::model::Model;
use crate::money::Limits;
use crate::question::Question;
use crate::record::{Delivery, RequestId};
use crate::settings::Settings;
use crate::store::Store;
use crate::testing::{TestClock, wants};

/// A service whose node is away.
fn service(folder: &TempDir) -> Arc<RequestService> {
    let key = Keypair::from_seed(&[7; 32]);
    let clock: Arc<dyn Clock> = TestClock::new();
    let path = folder.path().join("store");
    let store = Store::open(&path, key.address(), None, Arc::clone(&clock)).unwrap();
    let client = Client::new("http://127.0.0.1:9").unwrap();
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
    let (prompt, blob, model) = ("{}".to_owned(), None, Model::Any);
    let question = Question { prompt, blob, model, max_fee_micro: 1_000, steps_max: 1 };
    {
        let mut taking =
            std::pin::pin!(service.take(wants(&key, "body", 1_100), Job::Ask(question)));
        assert!(futures::poll!(&mut taking).is_pending());
    }
    let is_known = async {
        loop {
            let record = service.store.request(RequestId(1)).unwrap();
            if record.is_some_and(|it| it.delivery == Delivery::Lost) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    let known = tokio::time::timeout(Duration::from_secs(10), is_known).await;
    service.stop.cancel();
    known.expect("the request is said to be waited for, and nobody does");
}
