//! MINER_REGISTER: an entry in the miner directory (docs/protocol.md section 5.9).

use types::tx::MinerRegister;
use types::{Address, Amount, Event, Hash, Miner, Transaction};

use super::{Cost, Kind};
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::ledger;
use crate::rules::Rules;
use crate::tables::{MinerIds, Miners};
use crate::view::{self, Read};
use crate::work;

/// The entry to be written; `id_if_first` names a miner that has none yet.
pub(crate) struct Plan {
    address: Address,
    fee: Amount,
    id_if_first: Hash,
    name: String,
    capabilities: Vec<String>,
    model_info: String,
}

impl Kind for MinerRegister {
    type Plan = Plan;

    fn cost(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        rules: &Rules,
    ) -> Result<Cost, StorageError> {
        Ok(Cost { field: "balance", total: Some(fee(tx.from(), state, rules)?) })
    }

    fn check(
        &self,
        tx: &Transaction,
        state: &dyn Read,
        ctx: &Context<'_>,
    ) -> Result<Plan, TxError> {
        let fee = fee(tx.from(), state, ctx.rules)?;
        let Self { name, capabilities, model_info } = self.clone();
        let id_if_first = Hash::digest(tx.hash().to_string().as_bytes());
        Ok(Plan { address: tx.from(), fee, id_if_first, name, capabilities, model_info })
    }

    fn work(_: &Plan) -> u64 {
        work::rows(4)
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { address, fee, id_if_first, name, capabilities, model_info } = plan;
        ledger::burn(draft, fee)?;
        let miner_id = match draft.get::<Miners>(&address)? {
            Some(miner) => miner.miner_id,
            None => {
                draft.put::<MinerIds>(&id_if_first, &address);
                id_if_first
            }
        };
        let registered_at = ctx.timestamp;
        let miner = Miner { miner_id, address, name, capabilities, model_info, registered_at };
        draft.put::<Miners>(&address, &miner);
        Ok(Event::MinerRegistered { miner_id })
    }
}

/// `registerFee` from v7 on, for an account that has no entry yet.
fn fee(sender: Address, state: &dyn Read, rules: &Rules) -> Result<Amount, StorageError> {
    let is_free = !rules.is_v7() || view::contains::<Miners>(state, &sender)?;
    Ok(if is_free { Amount::ZERO } else { rules.params.register_fee })
}
