//! Who holds how much: looks at every account, or at every run that holds money.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use rpc::ports::{Census, Escrows, Group};
use state::StorageError;
use store::Snapshot;
use types::{Address, Amount};

/// Amounts of one moment cannot overflow: they are parts of the supply.
const OVERFLOW: StorageError =
    StorageError::Inconsistent { what: "amounts add up to more than there can be" };

/// Miners that are read at the same time.
const MINERS_TOGETHER: usize = 1_024;

/// Some accounts, being added up.
#[derive(Default)]
struct Sum {
    accounts: u64,
    amount: u128,
}

impl Sum {
    fn add(&mut self, amount: Amount) {
        self.accounts = self.accounts.saturating_add(1);
        self.amount = self.amount.saturating_add(amount.get().into());
    }

    fn group(&self) -> Result<Group, StorageError> {
        let amount = u64::try_from(self.amount).map_err(|_error| OVERFLOW)?;
        Ok(Group { accounts: self.accounts, amount: Amount::new(amount) })
    }
}

/// Counts the accounts of a moment.
pub(super) fn count(
    snapshot: &Snapshot<'_>,
    validators: &BTreeSet<Address>,
    richest_max: usize,
) -> Result<Census, StorageError> {
    let miners = miners(snapshot)?;
    let (mut all, mut by_validators, mut by_miners) = Default::default();
    // The poorest of the richest is on top, and goes first.
    let mut richest: BinaryHeap<Reverse<(Amount, Reverse<Address>)>> = BinaryHeap::new();
    snapshot.visit_accounts(|address, account| {
        Sum::add(&mut all, account.balance);
        if validators.contains(&address) {
            Sum::add(&mut by_validators, account.balance);
        } else if miners.contains(&address) {
            Sum::add(&mut by_miners, account.balance);
        }
        richest.push(Reverse((account.balance, Reverse(address))));
        if richest.len() > richest_max {
            richest.pop();
        }
    })?;
    let held = all.group()?;
    let richest = richest.into_sorted_vec().into_iter();
    Ok(Census {
        height: snapshot.tip()?.height,
        accounts: held.accounts,
        miners: u64::try_from(miners.len()).unwrap_or(u64::MAX),
        held: held.amount,
        escrowed: snapshot.supply()?.escrowed,
        held_by_validators: by_validators.group()?,
        held_by_miners: by_miners.group()?,
        richest: richest.map(|Reverse((balance, Reverse(address)))| (address, balance)).collect(),
    })
}

fn miners(snapshot: &Snapshot<'_>) -> Result<BTreeSet<Address>, StorageError> {
    let (mut all, mut after) = (BTreeSet::new(), None);
    loop {
        let part = snapshot.miners(after.as_ref(), MINERS_TOGETHER)?;
        after = part.last().map(|entry| entry.miner.address);
        all.extend(part.iter().map(|entry| entry.miner.address));
        if part.len() < MINERS_TOGETHER {
            return Ok(all);
        }
    }
}

/// What the runs of each account hold at a moment: open ones their escrow, ended ones a reward that is held.
pub(super) fn escrows(snapshot: &Snapshot<'_>) -> Result<Escrows, StorageError> {
    let mut by_submitter: BTreeMap<Address, Amount> = BTreeMap::new();
    let mut overflow = None;
    snapshot.visit_escrows(|run, amount| {
        if amount.is_zero() {
            return;
        }
        let held = by_submitter.entry(run.submitter).or_default();
        match held.checked_add(amount) {
            Some(more) => *held = more,
            None => overflow = Some(OVERFLOW),
        }
    })?;
    match overflow {
        Some(error) => Err(error),
        None => Ok(Escrows { height: snapshot.tip()?.height, by_submitter }),
    }
}
