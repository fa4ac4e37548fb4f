//! A running chain, the people on it, and what it means that a rejection changes nothing.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use state::Forks;
use tempfile::TempDir;
use testkit::actor::{Actor, transfer};
use testkit::http::{self, Connection};
use testkit::node::{DevOptions, Node, wait_until};
use testkit::workload::keys;
use types::{Address, Code, Params};

use super::case::{Case, MARKET};
use super::fork::{V8, begin_chain};

const ACCOUNTS: usize = 10;
/// What every account of a development chain begins with.
pub(super) const FUNDS: u64 = 1_000_000_000;

/// The hash of a text that was taken, or the error.
pub(super) type Outcome = Result<String, Value>;

pub(super) struct Scene {
    pub(super) node: Node,
    connection: Connection,
    actors: Vec<Actor>,
    /// Sends what is right, between what is wrong.
    bystander: Actor,
    /// Whether what is right burns money, too: every transaction costs its place in a block.
    is_priced: bool,
    /// Keeps the files of a chain that has a folder of its own.
    _folder: Option<TempDir>,
}

impl Scene {
    /// A chain of its own with these forks, parameters and settings.
    pub(super) fn of_chain(
        chain_id: &str,
        forks: Forks,
        params: Params,
        settings: Vec<(&'static str, String)>,
    ) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        begin_chain(folder.path(), chain_id, forks, params)?;
        let data_dir = Some(folder.path().to_owned());
        let options = DevOptions { data_dir, settings, ..DevOptions::from_environment() };
        let is_priced = forks.v7.is_some();
        Ok(Self { is_priced, _folder: Some(folder), ..Self::of(options)? })
    }

    /// A chain with the agent market and these parameters.
    pub(super) fn of_market(params: Params) -> anyhow::Result<Self> {
        Self::of_chain(MARKET, V8, params, Vec::new())
    }

    /// A chain with these options.
    pub(super) fn of(options: DevOptions) -> anyhow::Result<Self> {
        let node = Node::start(options)?;
        let connection = Connection::open(node.rpc)?;
        let mut actors: Vec<Actor> = keys(ACCOUNTS)?.into_iter().map(Actor::new).collect();
        let bystander = actors.pop().expect("there are accounts");
        Ok(Self { node, connection, actors, bystander, is_priced: false, _folder: None })
    }

    /// The same after the node was started again.
    pub(super) fn reconnected(self) -> anyhow::Result<Self> {
        Ok(Self { connection: Connection::open(self.node.rpc)?, ..self })
    }

    /// A funded account that has sent nothing yet, from 0.
    pub(super) fn actor(&self, index: usize) -> Actor {
        self.actors[index].clone()
    }

    pub(super) fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.connection.call(method, params)
    }

    /// Sends texts in one `ombra_sendTransactions`; answers hash or error of each, in order.
    pub(super) fn send_together(&mut self, texts: &[String]) -> anyhow::Result<Vec<Outcome>> {
        let answer = self.connection.post(&http::send_together_body(texts))?;
        let answer: Value = serde_json::from_str(&answer)?;
        let items = answer["result"].as_array().unwrap_or_else(|| panic!("no array: {answer}"));
        assert_eq!(texts.len(), items.len());
        Ok(items.iter().map(outcome).collect())
    }

    /// Sends texts as an array of calls; answers hash or error of each, in order.
    fn send_as_calls(&mut self, texts: &[String]) -> anyhow::Result<Vec<Outcome>> {
        let answer = self.connection.post(&http::send_body(texts))?;
        let answers: Vec<Value> = serde_json::from_str(&answer)?;
        let expected: Vec<Value> = (0..texts.len()).map(Value::from).collect();
        let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
        assert_eq!(expected.iter().collect::<Vec<_>>(), ids);
        Ok(answers.iter().map(|answer| outcome(answer.get("result").unwrap_or(answer))).collect())
    }

    /// Sends texts that are taken, and waits until they are in blocks; answers their hashes.
    pub(super) fn include(&mut self, texts: &[String]) -> anyhow::Result<Vec<String>> {
        let hashes = all_taken(self.send_together(texts)?);
        self.wait_until_included(&hashes)?;
        Ok(hashes)
    }

    pub(super) fn wait_until_included(&mut self, hashes: &[String]) -> anyhow::Result<()> {
        for hash in hashes {
            let seen = self.call("ombra_waitForTransaction", &json!([hash]))?;
            assert_eq!("included", seen["status"], "{seen}");
        }
        Ok(())
    }

    /// Each case is refused, alone and between transactions that are right, and nothing changes.
    /// Together they provoke exactly `codes`.
    pub(super) fn refuse(mut self, codes: &[Code], cases: &[Case]) -> anyhow::Result<()> {
        assert_provoked(codes, cases);
        self.refuse_in_every_way(cases)?;
        self.node.stop()
    }

    /// Each case is refused, alone and between transactions that are right, and nothing changes.
    pub(super) fn refuse_in_every_way(&mut self, cases: &[Case]) -> anyhow::Result<()> {
        for case in cases {
            self.refuse_alone(case)?;
        }
        self.refuse_in_company(cases, Self::send_together)?;
        self.refuse_in_company(cases, Self::send_as_calls)
    }

    /// The case is refused, and nothing changes.
    pub(super) fn refuse_alone(&mut self, case: &Case) -> anyhow::Result<()> {
        let before = self.picture(case.sender)?;
        let answer = self.connection.send(&case.text)?;
        case.assert_told(&answer["error"]);
        assert_eq!(before, self.picture(case.sender)?, "{case:?} changed something");
        self.is_unknown(case)
    }

    /// One bad item never affects another: what is right is taken, what is wrong is told so.
    fn refuse_in_company(
        &mut self,
        cases: &[Case],
        send: impl Fn(&mut Self, &[String]) -> anyhow::Result<Vec<Outcome>>,
    ) -> anyhow::Result<()> {
        let senders: BTreeSet<Address> = cases.iter().map(|case| case.sender).collect();
        let before: Vec<Value> = self.pictures(&senders)?;
        let to = self.bystander.address();
        let mut texts = Vec::new();
        for case in cases {
            texts.push(self.bystander.sign(&transfer(to, 1)));
            texts.push(case.text.clone());
        }
        texts.push(self.bystander.sign(&transfer(to, 1)));

        let (mut taken, mut told) = (Vec::new(), Vec::new());
        for (index, outcome) in send(self, &texts)?.into_iter().enumerate() {
            match (index % 2, outcome) {
                (0, Ok(hash)) => taken.push(hash),
                (1, Err(error)) => told.push(error),
                (_, outcome) => panic!("{index}, {}: {outcome:?}", texts[index]),
            }
        }
        assert_eq!((cases.len() + 1, cases.len()), (taken.len(), told.len()));
        for (case, error) in cases.iter().zip(&told) {
            case.assert_told(error);
        }
        self.wait_until_included(&taken)?;
        // What was taken may leave the pool a moment after its block.
        wait_until("the senders of what was refused to be as before", || {
            Ok(before == self.pictures(&senders)?)
        })
    }

    fn pictures(&mut self, senders: &BTreeSet<Address>) -> anyhow::Result<Vec<Value>> {
        senders.iter().map(|sender| self.picture(*sender)).collect()
    }

    /// Everything that a transaction of this sender could change.
    fn picture(&mut self, sender: Address) -> anyhow::Result<Value> {
        let pool = self.call("txpool_status", &json!([]))?;
        // Its counts by type keep a zero for what has been there.
        let pool = ["pending", "queued", "bytes"].map(|count| pool[count].clone());
        Ok(json!({
            "account": self.call("ombra_getAccount", &json!([sender]))?,
            "waiting": self.call("txpool_contentFrom", &json!([sender]))?,
            "pool": pool,
            "supply": if self.is_priced {
                Value::Null
            } else {
                self.call("ombra_getSupply", &json!([]))?
            },
        }))
    }

    fn is_unknown(&self, case: &Case) -> anyhow::Result<()> {
        let Some(hash) = case.hash() else { return Ok(()) };
        let error = self.node.rejection("ombra_getTransaction", &json!([hash]))?;
        assert_eq!(-32051, error["code"], "{case:?}");
        Ok(())
    }
}

/// The list of a group is what its cases provoke.
pub(super) fn assert_provoked(codes: &[Code], cases: &[Case]) {
    let provoked: BTreeSet<Code> = cases.iter().map(|case| case.code).collect();
    assert_eq!(codes.iter().copied().collect::<BTreeSet<_>>(), provoked);
}

/// The hashes of texts that were all taken.
pub(super) fn all_taken(outcomes: Vec<Outcome>) -> Vec<String> {
    outcomes.into_iter().map(|item| item.unwrap_or_else(|e| panic!("refused: {e}"))).collect()
}

/// `{hash}` or `{error}`.
fn outcome(item: &Value) -> Outcome {
    match item["hash"].as_str() {
        Some(hash) => Ok(hash.to_owned()),
        None => Err(item["error"].clone()),
    }
}
