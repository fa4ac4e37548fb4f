//! The queries of docs/rpc.md, one method each.

use serde::Serialize;
use serde_json::{Map, Value, json};
use types::{Address, Hash};

use super::connection::{Client, NO_PARAMS};
use super::records::{
    Account, ChainInfo, Items, Run, Settlement, Stake, Step, TransactionStatus, Turn,
};
use super::{Answer, ClientError};

/// Which part of a list: after a cursor, at most so many items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The `nextCursor` of the page before; none for the first page.
    pub cursor: Option<String>,
    /// The number of items; the node's default (30) when absent, at most 500.
    pub limit: Option<u32>,
}

impl Page {
    /// The page as the JSON object of the interface, absent members left out.
    fn json(&self) -> Value {
        let mut object = Map::new();
        if let Some(cursor) = &self.cursor {
            object.insert("cursor".into(), json!(cursor));
        }
        if let Some(limit) = self.limit {
            object.insert("limit".into(), json!(limit));
        }
        Value::Object(object)
    }
}

type Result<T> = std::result::Result<Answer<T>, ClientError>;

#[expect(clippy::missing_errors_doc, reason = "all fail alike: see ClientError")]
impl Client {
    /// The chain, its newest block and the node's condition.
    pub async fn chain_info(&self) -> Result<ChainInfo> {
        self.call("ombra_chainInfo", NO_PARAMS).await
    }

    /// A block by `"latest"`, index or hash; its transactions as objects.
    pub async fn block(&self, which: &Value) -> Result<Value> {
        self.call("ombra_getBlock", (which, true)).await
    }

    /// Summaries of blocks, newest first, of indexes `from..=to` where given.
    pub async fn blocks(&self, from: Option<u64>, to: Option<u64>, page: &Page) -> Result<Value> {
        let mut filter = page.json();
        for (key, bound) in [("from", from), ("to", to)] {
            if let Some(index) = bound {
                filter[key] = json!(index);
            }
        }
        self.call("ombra_getBlocks", [filter]).await
    }

    /// A transaction and where it is.
    pub async fn transaction(&self, hash: &Hash) -> Result<TransactionStatus> {
        self.call("ombra_getTransaction", [hash]).await
    }

    /// An account; an unknown one is a zero account.
    pub async fn account(&self, address: &Address) -> Result<Account> {
        self.call("ombra_getAccount", [address]).await
    }

    /// The transactions of an account.
    pub async fn account_transactions(&self, address: &Address, page: &Page) -> Result<Value> {
        self.call("ombra_getAccountTransactions", (address, page.json())).await
    }

    /// A run.
    pub async fn run(&self, id: &Hash) -> Result<Run> {
        self.call("ombra_getAgentRun", [id]).await
    }

    /// The steps of a run, by index.
    pub async fn steps(&self, id: &Hash, page: &Page) -> Result<Items<Step>> {
        self.call("ombra_getAgentSteps", (id, page.json())).await
    }

    /// Runs, newest first, with the members of `filter`: status, submitter, miner, conversationId.
    pub async fn runs(&self, filter: &Map<String, Value>, page: &Page) -> Result<Items<Run>> {
        self.call("ombra_listAgentRuns", (filter, page.json())).await
    }

    /// The turns of a conversation in chain order.
    pub async fn conversation(&self, id: &Hash, page: &Page) -> Result<Items<Turn>> {
        self.call("ombra_getConversation", (id, page.json())).await
    }

    /// The miner directory.
    pub async fn miners(&self, page: &Page) -> Result<Value> {
        self.call("ombra_listMiners", [page.json()]).await
    }

    /// An agent with one of its versions, or the latest.
    pub async fn agent(&self, id: &Hash, version: Option<&str>) -> Result<Value> {
        self.call("ombra_getAgent", (id, version)).await
    }

    /// The versions of an agent, the latest first.
    pub async fn agent_versions(&self, id: &Hash, page: &Page) -> Result<Value> {
        self.call("ombra_getAgentVersions", (id, page.json())).await
    }

    /// Agents with the members of `filter`: owner, tag, executor, text, deterministic.
    pub async fn agents(&self, filter: &Map<String, Value>, page: &Page) -> Result<Value> {
        self.call("ombra_listAgents", (filter, page.json())).await
    }

    /// Supply counters.
    pub async fn supply(&self) -> Result<Value> {
        self.call("ombra_getSupply", NO_PARAMS).await
    }

    /// What an account has at stake as a miner.
    pub async fn bond(&self, address: &Address) -> Result<Stake> {
        self.call("ombra_getBond", [address]).await
    }

    /// Prices and limits.
    pub async fn fee_schedule(&self) -> Result<Value> {
        self.call("ombra_feeSchedule", NO_PARAMS).await
    }

    /// Whether the rules of fork v7 hold in the next block. Nodes that do not know v7 can be asked, too.
    pub async fn is_v7_active(&self) -> std::result::Result<bool, ClientError> {
        // The schedule has the base fee from v7 on only.
        Ok(self.fee_schedule().await?.get("baseFee").is_some())
    }

    /// What a place of so many bytes in the next block costs, and what others tip.
    pub async fn fee_estimate(&self, size: Option<u64>) -> Result<Value> {
        self.call("ombra_feeEstimate", [size]).await
    }

    /// The parameters that votes can change: values, bounds, votes.
    pub async fn params(&self) -> Result<Value> {
        self.call("ombra_params", NO_PARAMS).await
    }

    /// The amounts that AGENT_FINISH must state for a run now.
    pub async fn settlement(&self, id: &Hash) -> Result<Settlement> {
        self.call("ombra_settlement", [id]).await
    }

    /// Offers with the members of `filter`, executor and miner: for one executor those of the largest bonds
    /// first, else in the order of miners.
    pub async fn offers(&self, filter: &Map<String, Value>, page: &Page) -> Result<Value> {
        self.call("ombra_listOffers", (filter, page.json())).await
    }

    /// The keys of validators that lost their power for good.
    pub async fn punished_keys(&self, page: &Page) -> Result<Value> {
        self.call("ombra_listPunishedKeys", [page.json()]).await
    }

    /// The validators now.
    pub async fn validators(&self) -> Result<Value> {
        self.call("ombra_getValidators", NO_PARAMS).await
    }

    /// Forks that are to come: votes and fixed heights.
    pub async fn forks(&self) -> Result<Value> {
        self.call("ombra_forks", NO_PARAMS).await
    }

    /// The node's peers.
    pub async fn peers(&self) -> Result<Value> {
        self.call("net_peers", NO_PARAMS).await
    }

    /// What a signed or unsigned transaction would do now; nothing is kept. `tx` is its JSON object.
    pub async fn simulate<T: Serialize + ?Sized + Sync>(&self, tx: &T) -> Result<Value> {
        self.call("ombra_simulateTransaction", [tx]).await
    }
}
