//! MINER_REGISTER: an entry in the miner directory (docs/protocol.md section 5.9).

use types::tx::MinerRegister;
use types::{Address, Event, Hash, Miner, Transaction};

use super::Kind;
use crate::chain::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::tables::{MinerIds, Miners};
use crate::view::Read;

/// The entry to be written; `id_if_first` names a miner that has none yet.
pub(crate) struct Plan {
    address: Address,
    id_if_first: Hash,
    name: String,
    capabilities: Vec<String>,
    model_info: String,
}

impl Kind for MinerRegister {
    type Plan = Plan;

    fn check(&self, tx: &Transaction, _: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        let Self { name, capabilities, model_info } = self.clone();
        let id_if_first = Hash::digest(tx.hash().to_string().as_bytes());
        Ok(Plan { address: tx.from(), id_if_first, name, capabilities, model_info })
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { address, id_if_first, name, capabilities, model_info } = plan;
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
