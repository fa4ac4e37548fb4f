//! The books of a chain on which only runs were worked on: who asked, who worked, who was paid.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::http::Connection;
use crate::miners::{MinerHome, micro, text};

/// What `ombra dev` gives to each account, micro-OMBRA.
const FUNDS: u64 = 1_000_000_000;
/// What the network keeps of each step.
const STEP_FEE: u64 = 100;

/// Everything of a chain that books need.
#[derive(Debug)]
pub struct Books {
    /// The runs' records by prompt.
    pub runs: BTreeMap<String, Value>,
    supply: Value,
    /// Account and transactions of each address that was asked about.
    accounts: BTreeMap<String, (Value, Vec<Value>)>,
}

impl Books {
    /// Reads the chain; `miners` are all that could work.
    pub fn of(node: SocketAddr, miners: &[MinerHome]) -> anyhow::Result<Self> {
        let mut connection = Connection::open(node)?;
        let listed = connection.pages("ombra_listAgentRuns", |page| json!([{}, page]))?;
        let runs = listed.into_iter().map(|run| (text(&run, "prompt").to_owned(), run)).collect();
        let supply = connection.call("ombra_getSupply", &json!([]))?;
        let mut accounts = BTreeMap::new();
        for miner in miners {
            let address = miner.address().to_string();
            let account = connection.call("ombra_getAccount", &json!([address]))?;
            let list = |page: &Value| json!([address, page]);
            let sent = connection.pages("ombra_getAccountTransactions", list)?;
            let sent = sent.into_iter().filter(|tx| is_from(tx, &address)).collect();
            accounts.insert(address, (account, sent));
        }
        Ok(Self { runs, supply, accounts })
    }

    /// Checks all that must hold when every run is settled and miners sent nothing but claims, steps
    /// and settlements.
    pub fn check(&self, miners: &[MinerHome]) -> anyhow::Result<()> {
        self.check_supply()?;
        for run in self.runs.values() {
            check_run(run).with_context(|| run.to_string())?;
        }
        for miner in miners {
            self.check_miner(miner).with_context(|| format!("account {}", miner.account()))?;
        }
        Ok(())
    }

    fn check_supply(&self) -> anyhow::Result<()> {
        let [genesis, minted, burned, escrowed, circulating] =
            ["genesis", "minted", "burned", "escrowed", "circulating"]
                .map(|part| micro(&self.supply, part));
        let burned = burned?;
        ensure!(escrowed? == 0, "money is left in escrow: {}", self.supply);
        ensure!(genesis? + minted? == burned + circulating?, "money is lost: {}", self.supply);
        let steps: u64 = self.runs.values().filter_map(|run| run["stepCount"].as_u64()).sum();
        ensure!(burned == steps * STEP_FEE, "{burned} were burned for {steps} steps");
        Ok(())
    }

    /// The chain's record, what the program says, the balance, and the transactions agree.
    fn check_miner(&self, miner: &MinerHome) -> anyhow::Result<()> {
        let address = miner.address().to_string();
        let (account, sent) = self.accounts.get(&address).context("an account")?;
        let own: Vec<_> =
            self.runs.values().filter(|run| text(run, "minerAddress") == address).collect();
        let earned =
            own.iter().map(|run| micro(run, "minerReward")).sum::<anyhow::Result<u64>>()?;
        let told = miner.told(&["earnings"])?;
        ensure!(told["earned_micro"] == json!(earned), "{earned} were earned; it says {told}");
        let gained = micro(account, "balance")?.checked_sub(FUNDS);
        ensure!(gained == Some(earned), "{earned} were earned, and {gained:?} gained");

        ensure!(account["nonce"] == account["pendingNonce"], "something waits: {account}");
        ensure!(account["nonce"] == json!(sent.len()), "{} transactions, {account}", sent.len());
        let count = |kind: &str| sent.iter().filter(|tx| tx["type"] == kind).count();
        let steps: u64 = own.iter().filter_map(|run| run["stepCount"].as_u64()).sum();
        let counts = [count("AGENT_CLAIM"), count("AGENT_STEP"), count("AGENT_FINISH")];
        let expected = [own.len(), usize::try_from(steps)?, own.len()];
        ensure!(counts == expected, "claims, steps and settlements: {counts:?}, not {expected:?}");
        // Of the rest only fillers of gaps of nonces are right: a death may take a transaction before others.
        let worked = ["AGENT_CLAIM", "AGENT_STEP", "AGENT_FINISH"];
        let rest = sent.iter().filter(|tx| !worked.contains(&text(tx, "type")));
        let rest: Vec<_> = rest.filter(|tx| !is_filler(tx, &address)).collect();
        ensure!(rest.is_empty(), "it sent something else, too: {rest:?}");
        Ok(())
    }
}

/// A run that one miner claimed once and settled.
fn check_run(run: &Value) -> anyhow::Result<()> {
    ensure!(run["finishedAt"].is_number(), "it is not settled");
    ensure!(run["reopens"] == 0 && run["excludedMiners"] == json!([]), "a claim lapsed");
    let parts = ["minerReward", "userRefund", "networkFee"].map(|part| micro(run, part));
    let [reward, refund, fee] = parts;
    let (reward, fee) = (reward?, fee?);
    ensure!(reward + refund? + fee == micro(run, "maxFee")?, "the parts are not the whole");
    ensure!(run["totalTokensOut"] == json!(reward), "every token pays one micro");
    ensure!(run["stepCount"] == json!(fee / STEP_FEE), "every step costs the same");
    Ok(())
}

/// Whether it is a transfer of nothing to oneself.
fn is_filler(tx: &Value, address: &str) -> bool {
    tx["type"] == "TRANSFER" && text(tx, "to") == address && tx["amount"] == "0"
}

fn is_from(tx: &Value, address: &str) -> bool {
    text(tx, "from").eq_ignore_ascii_case(address)
}
