//! A ledger of a few rules, enough for the pool to be wrong about.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use txpool::Fault;
use txpool::ports::{AdmitError, Chain, Extent, PendingLedger};
use types::{Account, Address, Amount, Body, CheckedTx, Code, Hash, Rejection};

/// What a run costs its submitter in these tests.
pub(crate) const MAX_FEE: u64 = 1_000;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RunIs {
    Open,
    Claimed(Address),
    Ended,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) submitter: Address,
    pub(crate) is: RunIs,
    pub(crate) steps: u64,
}

/// The state of the test chain.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Ledger {
    pub(crate) accounts: BTreeMap<Address, Account>,
    pub(crate) runs: BTreeMap<Hash, Run>,
    pub(crate) blobs: BTreeMap<String, Address>,
    pub(crate) turns: BTreeSet<Hash>,
    /// Who may vote on the validators.
    pub(crate) validators: BTreeSet<Address>,
}

fn reject(code: Code, got: impl std::fmt::Display) -> Rejection {
    Rejection::new(code, "field", got, "something else")
}

impl Ledger {
    pub(crate) fn account(&self, address: Address) -> Account {
        self.accounts.get(&address).copied().unwrap_or_default()
    }

    pub(crate) fn credit(&mut self, address: Address, amount: u64) {
        let account = self.accounts.entry(address).or_default();
        account.balance = account.balance.checked_add(Amount::new(amount)).unwrap();
    }

    fn spend(&mut self, address: Address, amount: Amount) -> Result<(), Rejection> {
        let account = self.accounts.entry(address).or_default();
        let left = account.balance.checked_sub(amount);
        account.balance =
            left.ok_or_else(|| Rejection::insufficient_balance("amount", amount, account.balance))?;
        Ok(())
    }

    /// Executes; a refusal changes nothing.
    pub(crate) fn execute(&mut self, tx: &CheckedTx) -> Result<(), Rejection> {
        let mut after = self.clone();
        after.apply(tx)?;
        *self = after;
        Ok(())
    }

    fn apply(&mut self, tx: &CheckedTx) -> Result<(), Rejection> {
        let from = tx.from();
        let nonce = self.account(from).nonce;
        match tx.nonce().cmp(&nonce) {
            std::cmp::Ordering::Less => return Err(reject(Code::NonceStale, tx.nonce())),
            std::cmp::Ordering::Greater => return Err(reject(Code::NonceTooHigh, tx.nonce())),
            std::cmp::Ordering::Equal => {
                self.accounts.entry(from).or_default().nonce = nonce + 1;
            }
        }
        self.apply_body(tx, from)
    }

    fn apply_body(&mut self, tx: &CheckedTx, from: Address) -> Result<(), Rejection> {
        match tx.body() {
            Body::Transfer(body) => {
                self.spend(from, body.amount.checked_add(body.fee).unwrap())?;
                self.credit(body.to.address, body.amount.get());
            }
            Body::AgentRequest(body) => {
                self.spend(from, body.max_fee)?;
                if self.runs.contains_key(&body.agent_run_id) {
                    return Err(reject(Code::RunExists, body.agent_run_id));
                }
                let run = Run { submitter: from, is: RunIs::Open, steps: 0 };
                self.runs.insert(body.agent_run_id, run);
            }
            Body::AgentClaim(body) => {
                let run = self.run(body.agent_run_id)?;
                if run.is != RunIs::Open {
                    return Err(reject(Code::RunNotPending, body.agent_run_id));
                }
                run.is = RunIs::Claimed(from);
            }
            Body::AgentStep(body) => {
                let run = self.run_of_miner(body.agent_run_id, from)?;
                if body.step_index < run.steps {
                    return Err(reject(Code::StepOutOfOrder, body.step_index));
                }
                run.steps = body.step_index + 1;
            }
            Body::AgentFinish(body) => {
                let run = self.run_of_miner(body.agent_run_id, from)?;
                run.is = RunIs::Ended;
                let submitter = run.submitter;
                self.credit(from, body.miner_reward.get());
                self.credit(submitter, body.user_refund.get());
            }
            Body::AgentCancel(body) => {
                let run = self.run(body.agent_run_id)?;
                if run.is != RunIs::Open {
                    return Err(reject(Code::RunNotPending, body.agent_run_id));
                }
                if run.submitter != from {
                    return Err(reject(Code::NotSubmitter, from));
                }
                run.is = RunIs::Ended;
                self.credit(from, MAX_FEE);
            }
            Body::ChatTurn(body) => {
                self.spend(from, Amount::new(100))?;
                if let Some(parent) = body.parent_turn_hash
                    && !self.turns.contains(&parent)
                {
                    return Err(reject(Code::TurnNotFound, parent));
                }
                self.turns.insert(tx.hash());
            }
            Body::BlobInit(body) => {
                if self.blobs.contains_key(&body.blob_id) {
                    return Err(reject(Code::BlobExists, &body.blob_id));
                }
                self.blobs.insert(body.blob_id.clone(), from);
            }
            Body::BlobChunk(body) => {
                if self.blobs.get(&body.blob_id) != Some(&from) {
                    return Err(reject(Code::BlobNotFound, &body.blob_id));
                }
            }
            Body::MinerRegister(_) | Body::BlobFinalize(_) => {}
            Body::ValidatorVote(_) if self.validators.contains(&from) => {}
            Body::ValidatorVote(_) => return Err(reject(Code::NotValidator, from)),
        }
        Ok(())
    }

    fn run(&mut self, id: Hash) -> Result<&mut Run, Rejection> {
        self.runs.get_mut(&id).ok_or_else(|| reject(Code::RunNotFound, id))
    }

    fn run_of_miner(&mut self, id: Hash, miner: Address) -> Result<&mut Run, Rejection> {
        let run = self.run(id)?;
        match run.is {
            RunIs::Claimed(by) if by == miner => Ok(run),
            RunIs::Claimed(_) => Err(reject(Code::NotRunMiner, miner)),
            RunIs::Open | RunIs::Ended => Err(reject(Code::RunNotActive, id)),
        }
    }

    /// What a sweep does to a run whose deadline has passed: the escrow goes back.
    pub(crate) fn time_out(&mut self, id: Hash) -> Option<Address> {
        let run = self.runs.get_mut(&id).filter(|run| run.is != RunIs::Ended)?;
        run.is = RunIs::Ended;
        let submitter = run.submitter;
        self.credit(submitter, MAX_FEE);
        Some(submitter)
    }
}

/// The committed chain.
#[derive(Debug, Default)]
pub(crate) struct TestChain {
    pub(crate) state: Mutex<Ledger>,
    pub(crate) included: Mutex<BTreeSet<Hash>>,
    /// Whether it was asked what blocks hold.
    pub(crate) is_asked: AtomicBool,
    /// Executions on the draft.
    pub(crate) admits: AtomicUsize,
    /// The store has failed.
    pub(crate) is_broken: AtomicBool,
}

impl Chain for TestChain {
    fn is_included(&self, hash: Hash) -> Result<bool, Fault> {
        self.is_asked.store(true, Ordering::SeqCst);
        Ok(self.included.lock().contains(&hash))
    }
}

/// The draft. When the chain moves on, it executes again what stays, which must be valid then: the
/// pool says that it is.
#[derive(Debug)]
pub(crate) struct TestDraft {
    chain: Arc<TestChain>,
    draft: Ledger,
    admitted: Vec<CheckedTx>,
}

impl TestDraft {
    pub(crate) fn new(chain: Arc<TestChain>) -> Self {
        let draft = chain.state.lock().clone();
        Self { chain, draft, admitted: Vec::new() }
    }

    fn fail_if_broken(&self) -> Result<(), Fault> {
        if self.chain.is_broken.load(Ordering::SeqCst) {
            return Err(Fault::new("the store has failed"));
        }
        Ok(())
    }
}

impl PendingLedger for TestDraft {
    fn account(&self, address: Address) -> Result<Account, Fault> {
        self.fail_if_broken()?;
        Ok(self.draft.account(address))
    }

    fn check(&self, tx: &CheckedTx, extent: Extent) -> Result<(), AdmitError> {
        self.fail_if_broken()?;
        let mut draft = self.draft.clone();
        match extent {
            Extent::Whole => Ok(draft.apply(tx)?),
            Extent::Funds => match draft.apply_body(tx, tx.from()) {
                Err(reason) if reason.code() == Code::InsufficientBalance => Err(reason.into()),
                Ok(()) | Err(_) => Ok(()),
            },
        }
    }

    fn admit(&mut self, tx: &CheckedTx) -> Result<(), AdmitError> {
        self.fail_if_broken()?;
        self.chain.admits.fetch_add(1, Ordering::SeqCst);
        self.draft.execute(tx)?;
        self.admitted.push(tx.clone());
        Ok(())
    }

    fn advance(&mut self, _: &BTreeMap<Address, Amount>) -> Result<(), Fault> {
        self.fail_if_broken()?;
        self.draft = self.chain.state.lock().clone();
        let included = self.chain.included.lock();
        self.admitted.retain(|tx| !included.contains(&tx.hash()));
        for tx in &self.admitted {
            let executed = self.draft.execute(tx);
            executed.expect("what stays is valid in the new state, in its order");
        }
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Fault> {
        self.fail_if_broken()?;
        self.draft = self.chain.state.lock().clone();
        self.admitted.clear();
        Ok(())
    }
}
