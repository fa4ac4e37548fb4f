//! The chain below the pool: the ledger's own rules on a state in memory, and what a test breaks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use state::tables::{Accounts, Bonds, Runs};
use state::{
    BlockBuilder, Draft, Executed, Memory, MemoryChain, PendingState, PushError, Read, view,
};
use txpool::PoolFault;
use txpool::ports::{
    AdmitError, CommittedChain, Extent, PendingLedger, PhasedDraft, PricedDraft, ReadyDraft,
    TakenBack,
};
use types::tx::AgentRequest;
use types::{
    Account, Address, Amount, Body, BondChange, CheckedTx, Code, Forks, Hash, Params, Rejection,
    SetMember,
};

use self::rules::Blocks;
use super::make::Wallet;

#[path = "../../../benches/ledger/rules.rs"]
#[expect(dead_code, reason = "shared with benchmarks, which use more of it")]
mod rules;

/// What a run costs its submitter in these tests.
pub(crate) const MAX_FEE: u64 = 1_000;
/// What the proposer of a block gets.
pub(crate) const REWARD: u64 = 900;

/// Milliseconds between two blocks, if a test does not say otherwise.
const SECOND: u64 = 1_000;
const GENESIS_TIME: u64 = 1_000_000;

/// A lapsed claim ends its run, and no block is too large.
pub(crate) fn params() -> Params {
    let block_reward = Amount::new(REWARD);
    Params { max_reopens: 0, block_reward, max_block_bytes: u32::MAX, ..Params::default() }
}

/// Whoever makes a block if it is none of the test's wallets.
pub(crate) fn stranger() -> Wallet {
    Wallet::new(200)
}

/// An account in a state.
pub(crate) fn account_in(state: &dyn Read, address: Address) -> Account {
    view::get::<Accounts>(state, &address).unwrap().unwrap_or_default()
}

/// Executes a transaction as the block's next one; a refused one changes nothing.
pub(crate) fn execute(block: &mut BlockBuilder, tx: &CheckedTx) -> Result<(), Code> {
    block.push(tx).map_err(|error| match error {
        PushError::Rejected(rejection) => rejection.code(),
        PushError::Full { .. } | PushError::Storage(_) => {
            unreachable!("a block of a test has room and a state: {error}")
        }
    })
}

/// The committed chain.
#[derive(Debug)]
pub(crate) struct TestChain {
    blocks: Arc<Mutex<Blocks>>,
    pub(crate) included: Mutex<BTreeSet<Hash>>,
    /// Whether it was asked what blocks hold.
    pub(crate) is_asked: AtomicBool,
    /// Executions on the draft.
    pub(crate) admits: AtomicUsize,
    /// The store has failed.
    pub(crate) is_broken: AtomicBool,
}

impl TestChain {
    /// A chain with these balances; all wallets of `validators` have so much power.
    pub(crate) fn new(
        params: Params,
        balances: &[(&Wallet, u64)],
        validators: &[(&Wallet, u64)],
    ) -> Arc<Self> {
        let is_voting = !validators.is_empty();
        let forks = Forks { validator_vote: is_voting.then_some(0), ..Forks::default() };
        Self::with_forks(params, forks, balances, validators)
    }

    /// The same with rules of these heights.
    pub(crate) fn with_forks(
        params: Params,
        forks: Forks,
        balances: &[(&Wallet, u64)],
        validators: &[(&Wallet, u64)],
    ) -> Arc<Self> {
        let member = |(wallet, power): &(&Wallet, u64)| SetMember {
            public_key: wallet.0.public_key(),
            power: *power,
        };
        let validators = validators.iter().map(member).collect();
        let rules = state::ChainRules {
            chain_id: "test".to_owned(),
            genesis_hash: Hash::ZERO,
            params,
            forks,
            validators,
        };
        let accounts = balances.iter().map(|(it, balance)| (it.address(), Amount::new(*balance)));
        let (rules, accounts) = (Arc::new(rules), accounts.collect());
        let chain = MemoryChain::new(rules, Hash::ZERO, GENESIS_TIME, &accounts).unwrap();
        Arc::new(Self {
            blocks: Blocks::of(chain),
            included: Mutex::default(),
            is_asked: AtomicBool::default(),
            admits: AtomicUsize::default(),
            is_broken: AtomicBool::default(),
        })
    }

    /// Begins a block, a second after the last one. If it is thrown away, nothing has happened.
    pub(crate) fn begin(&self) -> BlockBuilder {
        self.begin_by(&stranger())
    }

    pub(crate) fn begin_by(&self, proposer: &Wallet) -> BlockBuilder {
        let now = self.blocks.lock().chain.tip().timestamp + SECOND;
        self.begin_at(now, proposer)
    }

    pub(crate) fn begin_at(&self, now_ms: u64, proposer: &Wallet) -> BlockBuilder {
        self.blocks.lock().chain.begin(&proposer.0, now_ms).unwrap()
    }

    /// From when on a block sweeps a run, if nothing happens to it before.
    pub(crate) fn sweep_of(&self, run: Hash) -> Option<u64> {
        let run = view::get::<Runs>(&**self.blocks.lock().chain.state(), &run).unwrap();
        run.and_then(|run| run.deadline_at).map(|deadline| deadline + 1)
    }

    /// Makes the block part of the chain.
    pub(crate) fn append(&self, block: BlockBuilder) -> Executed {
        let executed = block.finish().unwrap();
        let mut blocks = self.blocks.lock();
        blocks.chain.append(&executed).unwrap();
        blocks.last.clone_from(&executed.block.transactions);
        self.included.lock().extend(blocks.last.iter().map(|tx| tx.hash()));
        drop(blocks);
        executed
    }

    /// Takes an account away without a block.
    pub(crate) fn lose_account(&self, address: Address) {
        let blocks = self.blocks.lock();
        let mut draft = Draft::new(Arc::<Memory>::clone(blocks.chain.state()));
        draft.delete::<Accounts>(&address);
        blocks.chain.state().apply(&draft.into_changes());
    }

    /// Changes a bond as elections and settlements of calls do, without a call.
    pub(crate) fn change_bond(&self, miner: Address, change: BondChange) {
        let BondChange { locked, unlocked, burned } = change;
        let blocks = self.blocks.lock();
        let mut draft = Draft::new(Arc::<Memory>::clone(blocks.chain.state()));
        let mut bond = draft.get::<Bonds>(&miner).unwrap().unwrap();
        let less = |from: Amount, by: Amount| from.checked_sub(by).unwrap();
        bond.locked = less(less(bond.locked.checked_add(locked).unwrap(), unlocked), burned);
        bond.bonded = less(bond.bonded, burned);
        draft.put::<Bonds>(&miner, &bond);
        blocks.chain.state().apply(&draft.into_changes());
    }

    pub(crate) fn account(&self, address: Address) -> Account {
        account_in(&**self.blocks.lock().chain.state(), address)
    }

    /// The state with nothing pending.
    pub(crate) fn pending(&self) -> PendingState {
        let blocks = self.blocks.lock();
        PendingState::new(blocks.chain.base(), Arc::clone(blocks.chain.rules())).unwrap()
    }
}

impl CommittedChain for TestChain {
    fn is_included(&self, hash: Hash) -> Result<bool, PoolFault> {
        self.is_asked.store(true, Ordering::SeqCst);
        Ok(self.included.lock().contains(&hash))
    }
}

/// The draft. When the chain moves on, what stays must be valid in its order: the pool says that it
/// is.
#[derive(Debug)]
pub(crate) struct TestDraft {
    chain: Arc<TestChain>,
    draft: rules::Draft,
    /// The base fee at which the draft was begun: what is set aside depends on it.
    begun_at: Option<u64>,
    admitted: Vec<CheckedTx>,
}

impl TestDraft {
    pub(crate) fn new(chain: Arc<TestChain>) -> Self {
        let draft = rules::Draft::over(Arc::clone(&chain.blocks));
        let begun_at = draft.base_fee();
        Self { chain, draft, begun_at, admitted: Vec::new() }
    }

    fn fail_if_broken(&self) -> Result<(), PoolFault> {
        if self.chain.is_broken.load(Ordering::SeqCst) {
            return Err(PoolFault::new("the store has failed"));
        }
        Ok(())
    }

    /// Who has a call, or a request for a run, waiting of an agent that a block retired.
    fn callers_of_retired(&self, block: &[CheckedTx]) -> Vec<Address> {
        let retired = |tx: &CheckedTx| {
            if let Body::AgentRetire(retire) = tx.body() { Some(retire.agent_id) } else { None }
        };
        let retired: BTreeSet<Hash> = block.iter().filter_map(retired).collect();
        let is_hit = |tx: &&CheckedTx| {
            let is_call =
                matches!(tx.body(), Body::AgentCall(call) if retired.contains(&call.agent_id));
            let of_run = |request: &AgentRequest| request.agent.get().ok()?.agent_id;
            let is_run = matches!(tx.body(), Body::AgentRequest(request)
                if of_run(request).is_some_and(|agent| retired.contains(&agent)));
            is_call || is_run
        };
        self.admitted.iter().filter(is_hit).map(|tx| tx.from()).collect()
    }

    /// Who has a claim waiting of a run that a block claimed or cancelled, or something that needs such a
    /// claim.
    fn rivals_of(&self, block: &[CheckedTx]) -> Vec<Address> {
        let runs = block
            .iter()
            .filter(|tx| matches!(tx.body(), Body::AgentClaim(_) | Body::AgentCancel(_)));
        let runs: BTreeSet<Hash> = runs.filter_map(|tx| tx.body().agent_run_id()).collect();
        let is_about =
            |tx: &&CheckedTx| tx.body().agent_run_id().is_some_and(|run| runs.contains(&run));
        let about = || self.admitted.iter().filter(is_about);
        if about().any(|tx| matches!(tx.body(), Body::AgentClaim(_))) {
            return about().map(|tx| tx.from()).collect();
        }
        Vec::new()
    }

    /// Executes again what stays, but for that of some senders; the draft must have come to the same, as long
    /// as as much is set aside.
    fn assert_right(&self, mut late: BTreeSet<Address>) {
        let mut anew = self.chain.pending();
        for tx in &self.admitted {
            if late.contains(&tx.from()) || anew.is_late(tx) {
                late.insert(tx.from());
            } else {
                anew.admit(tx).expect("what stays is valid in the new state");
            }
        }
        if anew.rules().price.map(|price| price.base_fee) != self.begun_at {
            return;
        }
        for tx in self.admitted.iter().filter(|tx| !late.contains(&tx.from())) {
            let expected = anew.account(tx.from()).unwrap();
            assert_eq!(expected, self.draft.account(tx.from()).unwrap());
        }
    }
}

impl PricedDraft for TestDraft {
    fn take_back(&mut self, tx: &CheckedTx) -> Result<TakenBack, PoolFault> {
        self.fail_if_broken()?;
        let taken = self.draft.take_back(tx)?;
        if taken == TakenBack::Yes {
            self.admitted.retain(|other| other != tx);
        }
        Ok(taken)
    }

    fn base_fee(&self) -> Option<u64> {
        self.draft.base_fee()
    }

    fn highest_base_fee(&self, tx: &CheckedTx) -> Option<u64> {
        self.draft.highest_base_fee(tx)
    }

    fn is_late(&self, tx: &CheckedTx) -> bool {
        self.draft.is_late(tx)
    }

    fn check_base_fee(&self, tx: &CheckedTx) -> Result<(), Rejection> {
        self.draft.check_base_fee(tx)
    }
}

impl ReadyDraft for TestDraft {
    fn stands_alone(&self, tx: &CheckedTx, before: &[CheckedTx]) -> Result<bool, PoolFault> {
        self.fail_if_broken()?;
        self.draft.stands_alone(tx, before)
    }

    fn check_lowest_fee(&self, tx: &CheckedTx) -> Result<(), Rejection> {
        self.draft.check_lowest_fee(tx)
    }
}

impl PhasedDraft for TestDraft {
    fn is_early(&self, tx: &CheckedTx) -> Result<bool, PoolFault> {
        self.fail_if_broken()?;
        self.draft.is_early(tx)
    }

    fn check_form(&self, tx: &CheckedTx) -> Result<(), Rejection> {
        self.draft.check_form(tx)
    }
}

impl PendingLedger for TestDraft {
    fn account(&self, address: Address) -> Result<Account, PoolFault> {
        self.fail_if_broken()?;
        self.draft.account(address)
    }

    fn check(&self, tx: &CheckedTx, extent: Extent) -> Result<(), AdmitError> {
        self.fail_if_broken()?;
        self.draft.check(tx, extent)
    }

    fn admit(&mut self, tx: &CheckedTx) -> Result<(), AdmitError> {
        self.fail_if_broken()?;
        self.chain.admits.fetch_add(1, Ordering::SeqCst);
        self.draft.admit(tx)?;
        self.admitted.push(tx.clone());
        Ok(())
    }

    fn advance(
        &mut self,
        credits: &BTreeMap<Address, Amount>,
        bonds: &BTreeMap<Address, BondChange>,
    ) -> Result<bool, PoolFault> {
        self.fail_if_broken()?;
        let is_right = self.draft.advance(credits, bonds)?;
        let last = self.chain.blocks.lock().last.clone();
        let included = self.chain.included.lock();
        self.admitted.retain(|tx| !included.contains(&tx.hash()));
        if is_right {
            // What counts on such a bond is executed again later.
            let is_hit =
                |change: &BondChange| !(change.locked.is_zero() && change.burned.is_zero());
            let hit = bonds.iter().filter(|(_, change)| is_hit(change));
            let hit = hit.map(|(miner, _)| *miner).chain(self.callers_of_retired(&last));
            let hit = hit.chain(self.rivals_of(&last));
            self.assert_right(hit.collect());
        }
        Ok(is_right)
    }

    fn reset(&mut self) -> Result<(), PoolFault> {
        self.fail_if_broken()?;
        self.draft.reset()?;
        self.begun_at = self.draft.base_fee();
        self.admitted.clear();
        Ok(())
    }
}
