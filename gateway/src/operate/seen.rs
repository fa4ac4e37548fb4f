//! How a gateway is, as it was seen last.

use crate::record::{Phase, Record};

/// The phases that an open request may be in.
pub const PHASES: [&str; 5] = ["reserved", "signed", "refused", "sent", "running"];

/// How a gateway is, as it was seen last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Requests that are not over, in the order of [`PHASES`].
    pub open: [u64; PHASES.len()],
    /// What is reserved for them, micro-OMBRA.
    pub reserved_micro: u64,
    /// What of that is in escrow on the chain, micro-OMBRA.
    pub escrowed_micro: u64,
    /// What may still leave the wallet for them, micro-OMBRA.
    pub outstanding_micro: u64,
    /// Signed transactions whose fate is not known.
    pub outbox: u64,
    /// When the oldest of them was signed, milliseconds since 1970.
    pub oldest_ms: Option<u64>,
    /// What the wallet has in blocks, micro-OMBRA, as the node said last.
    pub balance_micro: Option<u64>,
    /// Whether the node answered at last.
    pub is_node_there: bool,
    /// Whether the store could be read at last.
    pub is_store_readable: bool,
}

/// One check of whether the gateway can work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// `open`, `node`, `store` or `balance`.
    pub name: &'static str,
    /// Whether it passed.
    pub is_ok: bool,
    /// What was found, for people.
    pub detail: String,
}

impl Seen {
    /// What the wallet has that no request needs, micro-OMBRA.
    #[must_use]
    pub fn left_micro(&self) -> Option<u64> {
        self.balance_micro.map(|balance| balance.saturating_sub(self.outstanding_micro))
    }

    /// The same with what the store has now.
    pub(super) fn of_store(self, open: &[Record], outbox: u64, oldest_ms: Option<u64>) -> Self {
        let mut seen = Self { outbox, oldest_ms, ..self };
        (seen.open, seen.reserved_micro, seen.escrowed_micro, seen.outstanding_micro) =
            ([0; PHASES.len()], 0, 0, 0);
        let add = |sum: &mut u64, micro: u64| *sum = sum.saturating_add(micro);
        for record in open {
            if let Some(count) = place(&record.phase).and_then(|it| seen.open.get_mut(it)) {
                add(count, 1);
            }
            add(&mut seen.reserved_micro, record.reserved_micro);
            add(&mut seen.outstanding_micro, record.outstanding_micro());
            if record.request_tx().is_some() {
                add(&mut seen.escrowed_micro, record.max_fee_micro);
            }
        }
        seen
    }
}

/// Where a phase is in [`PHASES`]; nowhere if it is the end.
const fn place(phase: &Phase) -> Option<usize> {
    match phase {
        Phase::Reserved => Some(0),
        Phase::Signed { .. } => Some(1),
        Phase::Refused { .. } => Some(2),
        Phase::Sent { .. } => Some(3),
        Phase::Running { .. } => Some(4),
        Phase::Settled(_) | Phase::Unpaid { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    //! What is added up of open requests.

    use types::Hash;

    use super::Seen;
    use crate::record::{Included, Phase, Purpose, Record};
    use crate::testing::record;

    fn on_chain(phase: Phase) -> Record {
        let included = vec![Included { hash: Hash::ZERO, purpose: Purpose::Request }];
        Record { included, ..record(phase) }
    }

    #[test]
    fn what_is_reserved_is_in_escrow_once_it_is_on_the_chain() {
        let run = Hash::ZERO;
        let open = [
            record(Phase::Reserved),
            record(Phase::Signed { run }),
            on_chain(Phase::Sent { run, since_ms: 1 }),
            on_chain(Phase::Running { run }),
            on_chain(Phase::Running { run }),
        ];
        let before = Seen { balance_micro: Some(5_000), reserved_micro: 7, ..Seen::default() };
        let seen = before.of_store(&open, 1, Some(9));
        assert_eq!([1, 1, 0, 1, 2], seen.open);
        assert_eq!((5_500, 3_000, 2_500), {
            (seen.reserved_micro, seen.escrowed_micro, seen.outstanding_micro)
        });
        assert_eq!((Some(2_500), 1, Some(9)), (seen.left_micro(), seen.outbox, seen.oldest_ms));
        assert_eq!(None, Seen::default().left_micro());
    }
}
