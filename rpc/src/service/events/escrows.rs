//! What the runs of each account hold in escrow, rewards that are held included. The ledger has only the
//! sum of all; this is made of the runs when it is first asked for, and from then on follows the blocks as
//! they come: looking through the runs takes long, and strangers ask.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use types::{Address, Amount, BlockEvents, EscrowChange};

use crate::error::RpcError;
use crate::ports::{Escrows as AtHeight, Ports};

/// Farther behind, the runs are looked through again instead.
const BLOCKS_FOLLOWED_MAX: u64 = 128;
/// How long others wait while somebody looks through the runs: they have places among the readers meanwhile.
const OTHERS_WAIT_MAX: Duration = Duration::from_millis(50);
/// When they may ask again.
const RETRY_AFTER_MS: u64 = 1_000;

/// The escrows at some height. Empty until they are asked for.
#[derive(Default)]
pub(crate) struct Escrows(Mutex<Option<AtHeight>>);

impl Escrows {
    /// A block has come. Who looks through the runs just now is not waited for.
    pub(super) fn follow(&self, ports: &Ports) -> Result<(), RpcError> {
        let Some(mut kept) = self.0.try_lock() else { return Ok(()) };
        let tip = ports.chain.tip().height;
        if let Some(mut at) = kept.take().filter(|at| is_near(at, tip))
            && follow(&mut at, tip, ports)?
        {
            *kept = Some(at);
        }
        Ok(())
    }

    /// What the account's runs hold after the latest block.
    pub(crate) fn of(&self, ports: &Ports, address: &Address) -> Result<Amount, RpcError> {
        self.latest(ports, |all| all.get(address).copied().unwrap_or_default())
    }

    /// How many accounts have runs that hold money.
    pub(crate) fn accounts(&self, ports: &Ports) -> Result<u64, RpcError> {
        self.latest(ports, |all| u64::try_from(all.len()).unwrap_or(u64::MAX))
    }

    fn latest<T>(
        &self,
        ports: &Ports,
        read: impl FnOnce(&BTreeMap<Address, Amount>) -> T,
    ) -> Result<T, RpcError> {
        let Some(mut kept) = self.0.try_lock_for(OTHERS_WAIT_MAX) else {
            let message = "the runs are being looked through";
            return Err(RpcError::busy("BUSY", message, RETRY_AFTER_MS));
        };
        let tip = ports.chain.tip().height;
        // What could not be followed to its end must not be used again.
        let followed = match kept.take() {
            Some(mut at) if is_near(&at, tip) => follow(&mut at, tip, ports)?.then_some(at),
            _ => None,
        };
        let at = match followed {
            Some(at) => at,
            None => ports.accounts.escrows()?,
        };
        Ok(read(&kept.insert(at).by_submitter))
    }
}

/// Whether the blocks up to `tip` are few enough to be followed.
const fn is_near(at: &AtHeight, tip: u64) -> bool {
    tip.saturating_sub(at.height) <= BLOCKS_FOLLOWED_MAX
}

/// Applies the blocks up to `tip`; false if the figures do not fit them, which is for example so
/// after a database was rolled back.
fn follow(at: &mut AtHeight, tip: u64, ports: &Ports) -> Result<bool, RpcError> {
    for height in at.height.saturating_add(1)..=tip {
        let Some(committed) = ports.chain.block(height)? else { return Ok(false) };
        let applied = committed.events.as_ref().and_then(|did| apply(&mut at.by_submitter, did));
        if applied.is_none() {
            return Ok(false);
        }
        at.height = height;
    }
    // Who reads the database itself may be a block ahead.
    Ok(at.height >= tip)
}

/// Applies what a block did; none if the figures do not fit it.
fn apply(all: &mut BTreeMap<Address, Amount>, events: &BlockEvents) -> Option<()> {
    for (submitter, change) in events.iter().filter_map(|(_, event)| event.escrow_change()) {
        let held = all.get(&submitter).copied().unwrap_or_default();
        let held = match change {
            EscrowChange::Held(more) => held.checked_add(more)?,
            EscrowChange::Released(settlement) => held.checked_sub(settlement.total()?)?,
        };
        if held.is_zero() {
            all.remove(&submitter);
        } else {
            all.insert(submitter, held);
        }
    }
    Some(())
}
