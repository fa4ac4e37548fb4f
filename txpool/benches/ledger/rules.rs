//! The ledger's own rules, on a chain in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use state::{ChainRules, MemoryChain, PendingState, Retracted, TxError, fees};
use txpool::PoolFault;
use txpool::ports::{
    AdmitError, Extent, PendingLedger, PhasedDraft, PricedDraft, ReadyDraft, TakenBack,
};
use types::{
    Account, Address, Amount, BondChange, CheckedTx, Forks, Hash, Keypair, Params, Rejection,
    SetMember,
};

/// A chain, and the transactions of its last block.
#[derive(Debug)]
pub(crate) struct Blocks {
    pub(crate) chain: MemoryChain,
    pub(crate) last: Vec<CheckedTx>,
}

impl Blocks {
    pub(crate) fn of(chain: MemoryChain) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { chain, last: Vec::new() }))
    }

    /// A chain by the rules of v7 with this validator, on which each of these keys has so much.
    pub(crate) fn of_v7(keys: &[Keypair], validator: &Keypair, micro: u64) -> Arc<Mutex<Self>> {
        let rules = ChainRules {
            chain_id: "bench".to_owned(),
            genesis_hash: Hash::ZERO,
            params: Params::default(),
            forks: Forks { validator_vote: Some(0), v7: Some(0), ..Forks::default() },
            validators: vec![SetMember { public_key: validator.public_key(), power: 1 }],
        };
        let accounts = keys.iter().map(|key| (key.address(), Amount::new(micro))).collect();
        Self::of(MemoryChain::new(Arc::new(rules), Hash::ZERO, 1, &accounts).unwrap())
    }
}

/// The draft over a chain that somebody else may move on.
#[derive(Debug)]
pub(crate) struct Draft {
    blocks: Arc<Mutex<Blocks>>,
    draft: PendingState,
}

impl Draft {
    pub(crate) fn over(blocks: Arc<Mutex<Blocks>>) -> Self {
        let draft = {
            let Blocks { chain, .. } = &*blocks.lock();
            PendingState::new(chain.base(), Arc::clone(chain.rules())).unwrap()
        };
        Self { blocks, draft }
    }
}

fn admit_error(error: TxError) -> AdmitError {
    match error {
        TxError::Rejected(reason) => AdmitError::Rejected(*reason),
        TxError::Storage(fault) => AdmitError::Fault(PoolFault::new(fault)),
    }
}

impl PricedDraft for Draft {
    fn take_back(&mut self, tx: &CheckedTx) -> Result<TakenBack, PoolFault> {
        Ok(match self.draft.retract(tx).map_err(PoolFault::new)? {
            Retracted::Yes => TakenBack::Yes,
            Retracted::After(hash) => TakenBack::After(hash),
            Retracted::Spent(address) => TakenBack::Spent(address),
            Retracted::Unknown => TakenBack::Unknown,
        })
    }

    fn base_fee(&self) -> Option<u64> {
        self.draft.rules().price.map(|price| price.base_fee)
    }

    fn highest_base_fee(&self, tx: &CheckedTx) -> Option<u64> {
        fees::highest_base_fee(tx)
    }

    fn is_late(&self, tx: &CheckedTx) -> bool {
        self.draft.is_late(tx)
    }

    fn check_base_fee(&self, tx: &CheckedTx) -> Result<(), Rejection> {
        self.base_fee().map_or(Ok(()), |base_fee| fees::check_base_fee(tx, base_fee))
    }
}

impl ReadyDraft for Draft {
    fn stands_alone(&self, tx: &CheckedTx, before: &[CheckedTx]) -> Result<bool, PoolFault> {
        self.draft.stands_alone(tx, before).map_err(PoolFault::new)
    }

    fn check_lowest_fee(&self, tx: &CheckedTx) -> Result<(), Rejection> {
        let rules = self.draft.rules();
        let lowest = rules.price.map_or(0, |_| rules.params.base_fee_floor);
        fees::check_base_fee(tx, lowest)
    }
}

impl PhasedDraft for Draft {
    fn is_early(&self, tx: &CheckedTx) -> Result<bool, PoolFault> {
        self.draft.is_early(tx).map_err(PoolFault::new)
    }

    fn check_form(&self, tx: &CheckedTx) -> Result<(), Rejection> {
        self.draft.check_form(tx)
    }
}

impl PendingLedger for Draft {
    fn account(&self, address: Address) -> Result<Account, PoolFault> {
        self.draft.account(address).map_err(PoolFault::new)
    }

    fn check(&self, tx: &CheckedTx, extent: Extent) -> Result<(), AdmitError> {
        let checked = match extent {
            Extent::Whole => self.draft.check(tx),
            Extent::Funds => self.draft.check_funds(tx),
        };
        checked.map_err(admit_error)
    }

    fn admit(&mut self, tx: &CheckedTx) -> Result<(), AdmitError> {
        self.draft.admit(tx).map_err(admit_error)
    }

    fn advance(
        &mut self,
        credits: &BTreeMap<Address, Amount>,
        bonds: &BTreeMap<Address, BondChange>,
    ) -> Result<bool, PoolFault> {
        let blocks = self.blocks.lock();
        let (base, last) = (blocks.chain.base(), &blocks.last);
        self.draft.advance(base, last, credits, bonds).map_err(PoolFault::new)
    }

    fn reset(&mut self) -> Result<(), PoolFault> {
        let base = self.blocks.lock().chain.base();
        self.draft.reset(base).map(drop).map_err(PoolFault::new)
    }
}
