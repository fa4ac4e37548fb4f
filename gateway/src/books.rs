//! The books: whether what the store has of the wallet is what the chain has of it. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use types::{Address, Hash};

use crate::keys::KeyId;
use crate::money::Tally;
use crate::record::{Phase, Purpose, Record};
use crate::store::{Loose, Opening};

/// A transaction of the wallet's account, as the chain has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainTx {
    /// Its hash.
    pub hash: Hash,
    /// Its kind: `AGENT_REQUEST`.
    pub kind: String,
    /// Whether the wallet signed it.
    pub is_own: bool,
    /// The run that it names, or the call that it makes, if it does.
    pub run: Option<Hash>,
    /// What a transfer moved, micro-OMBRA.
    pub amount_micro: u64,
    /// Whether a transfer came back to the wallet itself.
    pub is_to_self: bool,
    /// What the wallet paid for a transfer of its own, and for its place, micro-OMBRA.
    pub fee_micro: u64,
}

/// A run or a call of the wallet, as the chain has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainRun {
    /// Its id.
    pub id: Hash,
    /// Its status.
    pub status: String,
    /// Its escrow, micro-OMBRA.
    pub max_fee_micro: u64,
    /// What miners and the agent's owner got and what was burned, once it is settled, micro-OMBRA.
    pub cost_micro: Option<u64>,
}

/// What the chain has of the wallet.
#[derive(Clone, Debug, Default)]
pub struct ChainBooks {
    /// What it has, micro-OMBRA.
    pub balance_micro: u64,
    /// What it had before its first transaction, micro-OMBRA.
    pub opening_micro: u64,
    /// All of its transactions.
    pub txs: Vec<ChainTx>,
    /// Its runs and calls.
    pub runs: Vec<ChainRun>,
}

/// What the store has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OwnBooks {
    /// The wallet.
    pub wallet: Option<Address>,
    /// How the wallet stood when the books were opened; none if the gateway never worked.
    pub opening: Option<Opening>,
    /// All requests.
    pub requests: Vec<Record>,
    /// What is counted of each key.
    pub tallies: Vec<(KeyId, Tally)>,
    /// Transactions of no request.
    pub loose: Vec<Loose>,
    /// Hashes of signed transactions whose fate is not known.
    pub outbox: Vec<Hash>,
}

/// What a comparison found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Everything that is not as it should be; nothing if the books agree.
    pub faults: Vec<String>,
    /// Requests in the store.
    pub requests: u64,
    /// Those that are not over.
    pub open: u64,
    /// What ended requests have cost, micro-OMBRA.
    pub spent_micro: u64,
    /// What runs that are not settled hold, micro-OMBRA.
    pub escrowed_micro: u64,
    /// What the wallet has, micro-OMBRA.
    pub balance_micro: u64,
}

/// Compares the two.
#[must_use]
pub fn compare(own: &OwnBooks, chain: &ChainBooks) -> Verdict {
    let mut faults = Vec::new();
    check_runs(own, chain, &mut faults);
    check_transactions(own, chain, &mut faults);
    check_tallies(own, &mut faults);
    check_balance(chain, &mut faults);
    let open = own.requests.iter().filter(|it| !it.is_over()).count();
    Verdict {
        faults,
        requests: u64::try_from(own.requests.len()).unwrap_or(u64::MAX),
        open: u64::try_from(open).unwrap_or(u64::MAX),
        spent_micro: own.requests.iter().map(Record::cost_micro).fold(0, u64::saturating_add),
        escrowed_micro: escrowed_micro(chain),
        balance_micro: chain.balance_micro,
    }
}

/// Each run and each call of the wallet is of one request, which says the same of it.
fn check_runs(own: &OwnBooks, chain: &ChainBooks, faults: &mut Vec<String>) {
    let mut by_run: BTreeMap<Hash, Vec<&Record>> = BTreeMap::new();
    for record in &own.requests {
        if let Some(run) = record.made() {
            by_run.entry(run).or_default().push(record);
        }
    }
    for run in &chain.runs {
        let id = run.id;
        match by_run.remove(&id).as_deref() {
            None => faults.push(format!("{id} is on the chain, but no request made it")),
            Some([record]) => check_run(record, run, faults),
            Some(several) => faults.push(format!("{id} was made by {} requests", several.len())),
        }
    }
    for (id, records) in by_run {
        let on_chain = records.iter().filter(|it| it.request_tx().is_some());
        for record in on_chain {
            faults
                .push(format!("request {} made {id}, which the chain does not have", record.id.0));
        }
    }
}

fn check_run(record: &Record, run: &ChainRun, faults: &mut Vec<String>) {
    let (request, id) = (record.id.0, run.id);
    if record.max_fee_micro != run.max_fee_micro {
        let (own, chain) = (record.max_fee_micro, run.max_fee_micro);
        faults.push(format!("request {request}: escrow {own} micro, {id} has {chain} micro"));
    }
    match (&record.phase, run.cost_micro) {
        (Phase::Settled(bill), Some(cost_micro)) => {
            let own_micro = bill.reward_micro.saturating_add(bill.network_fee_micro);
            if own_micro != cost_micro {
                faults.push(format!(
                    "request {request}: cost {own_micro} micro, {id} cost {cost_micro} micro"
                ));
            }
        }
        (Phase::Unpaid { .. }, Some(0)) => (),
        (Phase::Unpaid { .. } | Phase::Settled(_), cost) => {
            let cost =
                cost.map_or_else(|| "is not settled".to_owned(), |it| format!("cost {it} micro"));
            faults.push(format!("request {request} is over, and {id} {cost}"));
        }
        // A request whose run has ended is about to learn of it.
        (
            Phase::Reserved
            | Phase::Signed { .. }
            | Phase::Refused { .. }
            | Phase::Sent { .. }
            | Phase::Running { .. },
            _,
        ) => (),
    }
}

/// Each transaction that the wallet signed is in the store, and the other way round.
fn check_transactions(own: &OwnBooks, chain: &ChainBooks, faults: &mut Vec<String>) {
    let of_requests = own.requests.iter().flat_map(|it| it.included.iter().map(|tx| tx.hash));
    let loose = own.loose.iter().map(|it| it.hash);
    let known: Vec<Hash> = of_requests.chain(loose).collect();
    let distinct: BTreeSet<Hash> = known.iter().copied().collect();
    if distinct.len() != known.len() {
        faults.push("a transaction is in the store twice".to_owned());
    }
    let signed: BTreeSet<Hash> =
        chain.txs.iter().filter(|it| it.is_own).map(|it| it.hash).collect();
    // What is included and not yet noted is still in the outbox.
    let waiting: BTreeSet<Hash> = own.outbox.iter().copied().collect();
    for hash in signed.difference(&distinct).filter(|hash| !waiting.contains(hash)) {
        faults
            .push(format!("transaction {hash} of the wallet is on the chain and not in the store"));
    }
    for hash in distinct.difference(&signed) {
        faults.push(format!("transaction {hash} is in the store as included and not on the chain"));
    }
    for record in &own.requests {
        let asked = record.included.iter().filter(|it| it.purpose == Purpose::Request).count();
        if asked > 1 {
            faults.push(format!("request {} is on the chain {asked} times", record.id.0));
        }
    }
}

/// What is counted of the keys is what their requests say.
fn check_tallies(own: &OwnBooks, faults: &mut Vec<String>) {
    for (key, tally) in &own.tallies {
        let (mut open, mut reserved_micro, mut spent_micro) = (0_u64, 0_u64, 0_u64);
        for record in own.requests.iter().filter(|it| it.key == *key) {
            if !record.is_over() {
                open = open.saturating_add(1);
                reserved_micro = reserved_micro.saturating_add(record.reserved_micro);
            }
            spent_micro = spent_micro.saturating_add(record.cost_micro());
        }
        let counted = (tally.open, tally.reserved_micro, tally.spent_micro);
        if counted != (open, reserved_micro, spent_micro) {
            faults.push(format!(
                "key {}: counted {} open, {} micro reserved, {} micro spent; its requests say {open}, \
                 {reserved_micro} and {spent_micro}",
                key.0, counted.0, counted.1, counted.2
            ));
        }
    }
}

/// What the wallet had, got and paid is what it has.
fn check_balance(chain: &ChainBooks, faults: &mut Vec<String>) {
    let (mut came_micro, mut went_micro) = (u128::from(chain.opening_micro), 0_u128);
    for tx in &chain.txs {
        let amount_micro = u128::from(tx.amount_micro);
        if tx.is_own {
            went_micro = went_micro.saturating_add(u128::from(tx.fee_micro));
            if !tx.is_to_self {
                went_micro = went_micro.saturating_add(amount_micro);
            }
        } else {
            came_micro = came_micro.saturating_add(amount_micro);
        }
    }
    for run in &chain.runs {
        let micro = run.cost_micro.unwrap_or(run.max_fee_micro);
        went_micro = went_micro.saturating_add(u128::from(micro));
    }
    let expected_micro = came_micro.checked_sub(went_micro);
    if expected_micro != Some(u128::from(chain.balance_micro)) {
        faults.push(format!(
            "the wallet got {came_micro} micro and paid {went_micro} micro, and has {} micro",
            chain.balance_micro
        ));
    }
}

fn escrowed_micro(chain: &ChainBooks) -> u64 {
    let open = chain.runs.iter().filter(|it| it.cost_micro.is_none());
    open.map(|it| it.max_fee_micro).fold(0, u64::saturating_add)
}

impl Verdict {
    /// Whether the books agree.
    #[must_use]
    pub const fn agrees(&self) -> bool {
        self.faults.is_empty()
    }
}

#[cfg(test)]
mod tests {
    //! What a comparison finds.

    use types::Hash;

    use super::{ChainBooks, ChainRun, ChainTx, OwnBooks, compare};
    use crate::keys::KeyId;
    use crate::money::Tally;
    use crate::record::{Included, Phase, Purpose, Record, Unpaid};
    use crate::testing;

    fn hash(text: &str) -> Hash {
        Hash::digest(text.as_bytes())
    }

    fn record(phase: Phase) -> Record {
        let included = vec![Included { hash: hash("tx"), purpose: Purpose::Request }];
        Record { included, ..testing::record(phase) }
    }

    fn settled() -> Phase {
        Phase::Settled(testing::bill(hash("run")))
    }

    fn own(record: Record) -> OwnBooks {
        let tally = Tally { spent_micro: record.cost_micro(), ..Tally::default() };
        OwnBooks { tallies: vec![(KeyId(1), tally)], requests: vec![record], ..OwnBooks::default() }
    }

    fn chain() -> ChainBooks {
        let came = || ChainTx {
            hash: hash("fund"),
            kind: "TRANSFER".to_owned(),
            is_own: false,
            run: None,
            amount_micro: 5_000,
            is_to_self: false,
            fee_micro: 9,
        };
        let request = ChainTx {
            hash: hash("tx"),
            kind: "AGENT_REQUEST".to_owned(),
            is_own: true,
            run: Some(hash("run")),
            amount_micro: 0,
            fee_micro: 30,
            ..came()
        };
        let run = ChainRun {
            id: hash("run"),
            status: "completed".to_owned(),
            max_fee_micro: 1_000,
            cost_micro: Some(120),
        };
        ChainBooks {
            balance_micro: 4_850,
            opening_micro: 0,
            txs: vec![request, came()],
            runs: vec![run],
        }
    }

    fn assert_found(own: &OwnBooks, chain: &ChainBooks, expected: &[&str]) {
        let found = compare(own, chain).faults.join("\n");
        assert!(expected.iter().all(|fault| found.contains(fault)), "{found}");
    }

    #[test]
    fn books_that_say_the_same_agree() {
        let verdict = compare(&own(record(settled())), &chain());
        assert_eq!(Vec::<String>::new(), verdict.faults);
        assert_eq!((1, 0), (verdict.requests, verdict.open));
        assert_eq!((150, 0), (verdict.spent_micro, verdict.escrowed_micro));
    }

    #[test]
    fn a_run_that_no_request_has_is_a_forgotten_escrow() {
        assert_found(&OwnBooks::default(), &chain(), &["no request made it", "not in the store"]);
    }

    #[test]
    fn a_request_of_two_runs_and_a_wrong_sum_are_told() {
        let mut twice = record(settled());
        twice.included.push(Included { hash: hash("tx2"), purpose: Purpose::Request });
        assert_found(&own(twice), &chain(), &["is on the chain 2 times", "not on the chain"]);
        let mut dearer = chain();
        dearer.runs[0].cost_micro = Some(121);
        assert_found(&own(record(settled())), &dearer, &["cost 120 micro,", "and has 4850"]);
        let unpaid = Phase::Unpaid { run: Some(hash("run")), why: Unpaid::NoMiner, fees_micro: 30 };
        assert_found(&own(record(unpaid)), &chain(), &["is over, and "]);
    }

    #[test]
    fn what_is_counted_of_a_key_is_what_its_requests_say() {
        let mut books = own(record(settled()));
        books.tallies[0].1.open = 1;
        assert_found(&books, &chain(), &["counted 1 open"]);
    }
}
