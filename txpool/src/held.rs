//! Transactions about calls that come before their time, and wait for the call's phase (docs/protocol.md
//! section 15.6): of each sender at most one, the one with its next nonce. They are queued, because what
//! their sender sent after them cannot come before them.

use std::collections::{BTreeMap, BTreeSet};

use types::tx::Subject;
use types::{Address, CheckedTx, Code, Hash, Rejection};

/// Whether a rejection is one for a call's phase: before the members are drawn nobody is one.
pub(crate) const fn is_about_the_phase(reason: &Rejection) -> bool {
    matches!(reason.code(), Code::CallPhase | Code::NotMember)
}

/// Who waits for which call.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// The transaction of each sender, and the call that it is about.
    waiting: BTreeMap<Address, (Hash, Hash)>,
    by_call: BTreeSet<(Hash, Address)>,
}

impl Held {
    /// The transaction waits for its call's next phase.
    pub(crate) fn hold(&mut self, tx: &CheckedTx) {
        let Some(Subject::Call(call)) = tx.body().subject() else { return };
        if let Some((_, before)) = self.waiting.insert(tx.from(), (tx.hash(), call)) {
            self.by_call.remove(&(before, tx.from()));
        }
        self.by_call.insert((call, tx.from()));
    }

    /// Whether a transaction of the sender waits.
    pub(crate) fn is_of(&self, sender: Address) -> bool {
        self.waiting.contains_key(&sender)
    }

    /// The transaction is in the queue no more.
    pub(crate) fn forget(&mut self, tx: &CheckedTx) {
        let sender = tx.from();
        if let Some((hash, call)) = self.waiting.get(&sender).copied()
            && hash == tx.hash()
        {
            self.waiting.remove(&sender);
            self.by_call.remove(&(call, sender));
        }
    }

    /// A phase of the call has begun. Answers who has waited for it.
    pub(crate) fn release(&mut self, call: Hash) -> Vec<Address> {
        let from = (call, Address::new([0; 20]));
        let those = self.by_call.range(from..).take_while(|(other, _)| *other == call);
        let senders: Vec<Address> = those.map(|(_, sender)| *sender).collect();
        for sender in &senders {
            self.waiting.remove(sender);
            self.by_call.remove(&(call, *sender));
        }
        senders
    }

    /// Nobody waits any more.
    pub(crate) fn release_all(&mut self) {
        *self = Self::default();
    }
}
