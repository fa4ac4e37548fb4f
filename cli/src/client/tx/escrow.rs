//! The escrow of a run for which none is named: from fork v7 on a multiple of what runs have cost lately,
//! because a claim locks a bond as large.

use serde_json::{Map, json};
use types::Amount;
use wallet::client::records::Run;
use wallet::{Client, ClientError, Page};

use crate::client::CliError;

/// So many completed runs are looked at, the newest.
const RUNS_MAX: u32 = 30;
/// Of fewer nothing is concluded.
const RUNS_MIN: usize = 5;
/// How much more than nine of ten of them a run may cost.
const TIMES: u64 = 4;
/// The least that is put into escrow, micro-OMBRA: what others ask for cheaply says nothing.
const LEAST: u64 = 50_000;
/// The escrow where nothing is known, and the most: 1 OMBRA.
pub(super) const USUAL: Amount = Amount::new(Amount::MICRO_PER_OMBRA);

/// The escrow for a run on the chain of a node.
///
/// # Errors
/// When the node is away.
pub(super) async fn lately(client: &Client) -> Result<Amount, CliError> {
    let filter = Map::from_iter([("status".to_owned(), json!("completed"))]);
    let page = Page { cursor: None, limit: Some(RUNS_MAX) };
    match client.runs(&filter, &page).await {
        Ok(runs) => Ok(of(runs.items.iter().map(cost).collect())),
        // The node began with a snapshot, and its list ends there.
        Err(ClientError::HistoryUnavailable { .. }) => Ok(of(Vec::new())),
        Err(error) => Err(error.into()),
    }
}

/// What a settled run cost who asked for it, micro-OMBRA.
fn cost(run: &Run) -> u64 {
    let back = run.user_refund.unwrap_or_default();
    run.max_fee.checked_sub(back).unwrap_or_default().get()
}

fn of(mut costs: Vec<u64>) -> Amount {
    if costs.len() < RUNS_MIN {
        return USUAL;
    }
    costs.sort_unstable();
    let place = costs.len().saturating_mul(9).div_ceil(10).saturating_sub(1);
    let cost = costs.get(place).copied().unwrap_or_default();
    Amount::new(cost.saturating_mul(TIMES).clamp(LEAST, USUAL.get()))
}

#[cfg(test)]
mod tests {
    //! What is put into escrow unasked.

    use axum::Router;
    use axum::routing::post;
    use serde_json::{Value, json};
    use tokio::net::TcpListener;
    use types::Amount;
    use wallet::{Client, ClientError};

    use super::{USUAL, lately, of};
    use crate::client::CliError;

    /// A node that answers everything with this error.
    async fn refusing(code: i32, data: Value) -> Client {
        let answer = move |asked: String| async move {
            let asked: Value = serde_json::from_str(&asked).unwrap();
            let error = json!({ "code": code, "message": "no", "data": data });
            json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }).to_string()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let node = Router::new().route("/", post(answer));
        tokio::spawn(async move { axum::serve(listener, node).await });
        Client::new(&url).unwrap()
    }

    #[tokio::test]
    async fn where_a_node_began_with_a_snapshot_and_has_no_runs_since_the_escrow_is_the_usual_one()
    {
        let missing = json!({ "code": "HISTORY_UNAVAILABLE", "earliestBlock": 9 });
        assert_eq!(USUAL, lately(&refusing(-32052, missing).await).await.unwrap());
        let limited = json!({ "code": "RATE_LIMITED", "retryAfterMs": 250 });
        let refused = lately(&refusing(-32053, limited).await).await.unwrap_err();
        let is_limited = matches!(refused, CliError::Client(ClientError::Limited { .. }));
        assert!(is_limited, "{refused}");
    }

    #[test]
    fn the_escrow_is_a_multiple_of_what_nine_of_ten_runs_cost_within_bounds() {
        assert_eq!(USUAL, of(vec![]));
        assert_eq!(USUAL, of(vec![20_000; 4]));
        assert_eq!(Amount::new(80_000), of(vec![20_000; 5]));
        // One of ten does not count.
        let costs = [900_000, 20_000, 19_000, 1, 1, 1, 1, 1, 1, 1];
        assert_eq!(Amount::new(80_000), of(costs.to_vec()));
        assert_eq!(Amount::new(50_000), of(vec![300; 30]));
        assert_eq!(USUAL, of(vec![u64::MAX; 30]));
    }
}
