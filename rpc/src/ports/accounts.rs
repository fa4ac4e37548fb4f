//! Accounts, what they have at stake, and the supply.

use std::collections::BTreeMap;

use types::{Account, Address, Amount, Bond, SubmitterFigures, Supply, TxLocation};

use super::{PortFault, Slice};

/// What an account has at stake as a miner, and what it has done as a submitter.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Stake {
    /// Its bond.
    pub bond: Bond,
    /// What it took out of its bond: when it is paid, and how much. The earliest first.
    pub unbonding: Vec<(u64, Amount)>,
    /// What it has done as a submitter of runs.
    pub submitter: SubmitterFigures,
}

/// Accounts and the supply.
pub trait Accounts: Send + Sync {
    /// The account; zeros if it does not exist.
    ///
    /// # Errors
    /// [`PortFault`].
    fn account(&self, address: &Address) -> Result<Account, PortFault>;

    /// Where the account's transactions are (sent by it, or moving money to it), newest first,
    /// before `before`.
    ///
    /// # Errors
    /// [`PortFault`].
    fn transactions(
        &self,
        address: &Address,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<TxLocation, TxLocation>, PortFault>;

    /// The counters of the supply.
    ///
    /// # Errors
    /// [`PortFault`].
    fn supply(&self) -> Result<Supply, PortFault>;

    /// Who holds how much at one moment, with the `richest_max` richest accounts. Reads every
    /// account, about a microsecond each.
    ///
    /// # Errors
    /// [`PortFault`].
    fn census(&self, richest_max: usize) -> Result<Census, PortFault>;

    /// What each account's runs hold at one moment. Reads every run that holds money.
    ///
    /// # Errors
    /// [`PortFault`].
    fn escrows(&self) -> Result<Escrows, PortFault>;
}

/// Who holds how much.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Census {
    /// After which block.
    pub height: u64,
    /// How many accounts there are.
    pub accounts: u64,
    /// How many miners are in the directory.
    pub miners: u64,
    /// What all accounts hold.
    pub held: Amount,
    /// What is in escrow.
    pub escrowed: Amount,
    /// What validators of the next height hold.
    pub held_by_validators: Group,
    /// What miners of the directory hold that are not among these validators.
    pub held_by_miners: Group,
    /// The richest accounts, richest first, and by address where they hold the same.
    pub richest: Vec<(Address, Amount)>,
}

/// Some accounts together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Group {
    /// How many there are.
    pub accounts: u64,
    /// What they hold.
    pub amount: Amount,
}

/// What each account's runs hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Escrows {
    /// After which block.
    pub height: u64,
    /// Sums of `maxFee` of open runs and of rewards that are held; only accounts that have some.
    pub by_submitter: BTreeMap<Address, Amount>,
}
