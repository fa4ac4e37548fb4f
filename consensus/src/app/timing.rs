//! When proposals came: what the ledger is told so that it can judge their timestamps
//! (docs/protocol.md section 6.2), and what is kept of those that came at the wrong time.

use types::Hash;
use types::sign_bytes::BodyFields;

use crate::parts::Form;
use crate::parts::assembler::Body;
use crate::{Origin, Seen};

/// Heads of one round of which the arrival is kept. An honest proposer seals one; what a dishonest one
/// seals beyond these counts as late.
const HEADS_PER_ROUND_MAX: usize = 4;

/// How many rounds the arrival of a head is kept after its own: its body may still be on its way.
const ROUNDS_KEPT: u32 = 2;

/// Bodies that are kept because they came at the wrong time, one of each proposer. A validator that is
/// bound to such a block sends it again when it proposes it, so the bound costs a round at most.
const UNTIMELY_MAX: usize = 8;

/// When the heads of bodies came.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// The height and round that have started last; none until the first round of the open height.
    open: Option<(u64, u32)>,
    heads: Vec<Arrival>,
}

/// The first head of a block in a round.
#[derive(Debug)]
struct Arrival {
    height: u64,
    round: u32,
    block: Hash,
    came_ms: u64,
    /// When its round was open and it had come; none until its round starts.
    open_ms: Option<u64>,
}

/// How the time of a block is judged.
#[derive(Debug)]
pub(super) enum Moment {
    /// The ledger is asked, with this origin.
    Now(Origin),
    /// When its round starts.
    Later,
    /// Never: its head came too late. A quorum may make it valid.
    Past,
}

impl Arrivals {
    /// A head that is wanted came, maybe not for the first time.
    pub(super) fn note(&mut self, head: &BodyFields, now_ms: u64) {
        let BodyFields { height, round, value: block, .. } = *head;
        let place = (height, round);
        let is_late = self.open.is_some_and(|open| place < open);
        let of_round = || self.heads.iter().filter(|it| (it.height, it.round) == place);
        let is_known = of_round().any(|it| it.block == block);
        if is_late || is_known || of_round().count() >= HEADS_PER_ROUND_MAX {
            return;
        }
        let open_ms = (self.open == Some(place)).then_some(now_ms);
        self.heads.push(Arrival { height, round, block, came_ms: now_ms, open_ms });
    }

    /// A round of the open height has started.
    pub(super) fn start_round(&mut self, height: u64, round: u32, now_ms: u64) {
        self.open = Some((height, round));
        let oldest = round.saturating_sub(ROUNDS_KEPT);
        self.heads.retain(|it| {
            let is_missed = it.open_ms.is_none() && (it.height, it.round) < (height, round);
            (it.height, it.round) >= (height, oldest) && !is_missed
        });
        let of_round = |it: &&mut Arrival| (it.height, it.round) == (height, round);
        for head in self.heads.iter_mut().filter(of_round) {
            head.open_ms.get_or_insert(now_ms);
        }
    }

    /// Forgets what belongs to heights up to `height`.
    pub(super) fn prune(&mut self, height: u64) {
        self.open = self.open.filter(|(open, _)| *open > height);
        self.heads.retain(|it| it.height > height);
    }

    /// When the head of a body came, for the ledger.
    pub(super) fn when(&self, head: &BodyFields) -> Moment {
        let BodyFields { height, round, value: block, .. } = *head;
        let found =
            self.heads.iter().find(|it| (it.height, it.round, it.block) == (height, round, block));
        match found {
            Some(Arrival { came_ms, open_ms: Some(open_ms), .. }) => {
                Moment::Now(Origin::Live(Seen { came_ms: *came_ms, open_ms: *open_ms }))
            }
            Some(Arrival { open_ms: None, .. }) => Moment::Later,
            None => Moment::Past,
        }
    }
}

/// Bodies that came at the wrong time, oldest first.
#[derive(Debug, Default)]
pub(super) struct UntimelyBodies(Vec<Body>);

impl UntimelyBodies {
    /// Keeps a body, the last of its proposer; answers whether its block was not kept before. A compact block
    /// takes no whole body's place: anybody can send one.
    pub(super) fn keep(&mut self, body: Body) -> bool {
        let place = |body: &Body| {
            let BodyFields { round, proposer, value, .. } = body.head.fields();
            (round, proposer, value)
        };
        let same = self.0.iter().find(|kept| place(kept) == place(&body));
        let is_new = same.is_none();
        if same.is_some_and(|kept| kept.head.form() == Form::Whole) {
            return is_new;
        }
        self.0.retain(|kept| place(kept).1 != place(&body).1);
        if self.0.len() >= UNTIMELY_MAX {
            self.0.remove(0);
        }
        self.0.push(body);
        is_new
    }

    /// Takes the first that a quorum has voted for.
    pub(super) fn take_agreed(&mut self, agreed: impl Fn(&Hash) -> bool) -> Option<Body> {
        let at = self.0.iter().position(|body| agreed(&body.head.fields().value))?;
        Some(self.0.remove(at))
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests;
