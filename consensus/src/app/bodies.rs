//! Bodies of other validators' proposals: taken in, and kept for their height.

use std::collections::BTreeSet;

use malachitebft_app::types::PeerId;
use malachitebft_app::types::streaming::StreamMessage;
use types::{Address, Hash};

use super::timing::{Arrivals, Moment, UntimelyBodies};
use crate::engine::signing::Verifier;
use crate::parts::assembler::{Assembler, Body, Limits};
use crate::parts::{Form, Head, Part};
use crate::validator_nodes::ValidatorNodes;
use crate::{Tip, Undecided};
use types::sign_bytes::BodyFields;

/// How far beyond the tip bodies are taken in. Others may be a height ahead while this node
/// still commits.
const HEIGHTS_AHEAD: u64 = 2;

/// How many rounds beyond the one that has started here bodies are taken in.
const ROUNDS_AHEAD: u32 = 8;

/// Bodies of one proposer that are judged while a round lasts. An honest proposer has one, and
/// others may send one of an earlier round again.
const JUDGED_PER_PROPOSER_MAX: usize = 4;

/// Of those, the ones that came from the same publisher, and the ones with the same digest.
const JUDGED_ALIKE_MAX: usize = 2;

/// Bodies of one proposer that are kept for a later height or round.
const PARKED_PER_PROPOSER_MAX: usize = 2;

/// Bodies of one proposer that are put together at a time: an honest one has one for each of its
/// turns, and others may send it again at the same time. As the next, without those that validators send.
const STREAMS_PER_PROPOSER_MAX: usize = 4;

/// The same while there is less than a chunk of each.
const LIGHT_STREAMS_PER_PROPOSER_MAX: usize = 64;

/// Bodies of one proposer that one node sends at a time, and streams of one node without heads.
const STREAMS_PER_PUBLISHER_MAX: usize = 2;

/// Streams without heads that are kept at a time.
const EARLY_STREAMS_MAX: usize = 8;

/// Chunks kept of a body whose head has not come yet.
const EARLY_CHUNKS_MAX: usize = 16;

/// What came in and is not done with.
///
/// Only `Valid` is remembered. A block's hash commits neither to the signatures of its transactions
/// nor to its encoding, so a liar can seal other bytes for the hash of a good block; and a clock
/// that is behind catches up. Therefore a body that comes again is judged again, if it was not
/// found valid. How much work a proposer can cause that way is bounded for each round that starts.
/// From v7 on the time of a block is judged by its first head alone, however often it comes.
pub(super) struct Bodies {
    assembler: Assembler,
    pub(super) arrivals: Arrivals,
    /// Bodies that came at the wrong time: valid when a quorum has voted for them.
    pub(super) untimely: UntimelyBodies,
    /// Bodies of the height after the open one, and from v7 on of rounds that have not started.
    parked: Vec<Body>,
    /// Valid blocks of the open height, by round and hash.
    valid: BTreeSet<(u32, Hash)>,
    /// What was judged since the last round started.
    judged: Vec<Judged>,
    /// Compact blocks since the last round started that were not enough: each by its proposer and digest.
    /// At most [`JUDGED_PER_PROPOSER_MAX`] of one proposer.
    incomplete: Vec<(Address, Hash)>,
}

/// A body that was judged.
struct Judged {
    proposer: Address,
    publisher: PeerId,
    digest: Hash,
}

impl Bodies {
    /// Takes in bodies of at most so many bytes.
    pub(super) fn of_size(body_bytes_max: usize, validator_nodes: ValidatorNodes) -> Self {
        let limits = Limits {
            body_bytes_max,
            per_proposer_max: STREAMS_PER_PROPOSER_MAX,
            light_per_proposer_max: LIGHT_STREAMS_PER_PROPOSER_MAX,
            early_streams_max: EARLY_STREAMS_MAX,
            per_publisher_max: STREAMS_PER_PUBLISHER_MAX,
            early_chunks_max: EARLY_CHUNKS_MAX,
        };
        Self::new(Assembler::new(limits, validator_nodes))
    }

    fn new(assembler: Assembler) -> Self {
        Self {
            assembler,
            arrivals: Arrivals::default(),
            untimely: UntimelyBodies::default(),
            parked: Vec::new(),
            valid: BTreeSet::new(),
            judged: Vec::new(),
            incomplete: Vec::new(),
        }
    }

    /// Forgets what belongs to heights up to `height`.
    pub(super) fn prune(&mut self, height: u64) {
        self.assembler.prune(height);
        self.arrivals.prune(height);
        self.untimely.clear();
        self.parked.retain(|body| body.head.fields().height > height);
        self.valid.clear();
        self.forget_round();
    }

    /// Forgets what belongs to the last round.
    fn forget_round(&mut self) {
        self.judged.clear();
        self.incomplete.clear();
    }

    /// A round of the open height has started.
    pub(super) fn start_round(&mut self, height: u64, round: u32, now_ms: u64) {
        self.forget_round();
        self.arrivals.start_round(height, round, now_ms);
    }

    /// Takes a part of a body. Answers the height of a head that is wanted and that came with it, and
    /// the body when it is whole.
    pub(super) fn add(
        &mut self,
        publisher: PeerId,
        part: StreamMessage<Part>,
        is_wanted: impl Fn(&Head) -> bool,
        now_ms: impl Fn() -> u64,
    ) -> (Option<u64>, Option<Body>) {
        let mut announced = None;
        let Self { assembler, arrivals, .. } = self;
        let body = assembler.add(publisher, part, |head| {
            let wanted = is_wanted(head);
            if wanted {
                arrivals.note(&head.fields(), now_ms());
                announced = Some(head.fields().height);
            }
            wanted
        });
        (announced, body)
    }

    /// When the head of a body came, for the ledger.
    pub(super) fn when(&self, head: &BodyFields) -> Moment {
        self.arrivals.when(head)
    }

    /// Remembers blocks that the ledger has kept as valid.
    pub(super) fn remember(&mut self, kept: &[Undecided]) {
        self.valid.extend(kept.iter().map(|block| (block.round, block.hash)));
    }

    /// A block was found valid in a round.
    pub(super) fn found_valid(&mut self, round: u32, block: Hash) {
        self.valid.insert((round, block));
    }

    /// Whether a block was found valid in a round.
    pub(super) fn is_known(&self, round: u32, block: Hash) -> bool {
        self.valid.contains(&(round, block))
    }

    /// A compact block was not enough. The same bytes, when they come, are judged as if nothing had been
    /// before.
    pub(super) fn was_incomplete(&mut self, fields: &BodyFields) {
        self.incomplete.push((fields.proposer, fields.digest));
        self.judged.pop_if(|last| last.digest == fields.digest);
    }

    /// Keeps a body that came at the wrong time; answers whether its block was not kept before.
    pub(super) fn keep_untimely(&mut self, body: Body) -> bool {
        self.untimely.keep(body)
    }

    /// Takes a body that came at the wrong time and that a quorum has voted for since.
    pub(super) fn take_agreed(&mut self, agreed: impl Fn(&Hash) -> bool) -> Option<Body> {
        self.untimely.take_agreed(agreed)
    }

    /// Whether a block was found valid, in whichever round.
    pub(super) fn is_valid(&self, block: &Hash) -> bool {
        self.valid.iter().any(|(_, valid)| valid == block)
    }

    /// Keeps a body for later: one of what its proposer sealed, and the whole one if it comes. Anybody
    /// can send compact blocks of it.
    pub(super) fn park(&mut self, body: Body) {
        let sealed = body.head.fields();
        if let Some(same) = self.parked.iter_mut().find(|it| it.head.fields() == sealed) {
            if body.head.form() == Form::Whole {
                *same = body;
            }
            return;
        }
        let of_proposer = |it: &&Body| it.head.fields().proposer == sealed.proposer;
        if self.parked.iter().filter(of_proposer).count() < PARKED_PER_PROPOSER_MAX {
            self.parked.push(body);
        }
    }

    /// Whether a body may be judged in this round; counts it if so.
    pub(super) fn may_judge(&mut self, publisher: PeerId, fields: &BodyFields) -> bool {
        let BodyFields { proposer, digest, .. } = *fields;
        let count = |alike: &dyn Fn(&Judged) -> bool| {
            let of_proposer = self.judged.iter().filter(|it| it.proposer == proposer);
            of_proposer.filter(|it| alike(it)).count()
        };
        let has_room = count(&|_| true) < JUDGED_PER_PROPOSER_MAX
            && count(&|it| it.publisher == publisher) < JUDGED_ALIKE_MAX
            && count(&|it| it.digest == digest) < JUDGED_ALIKE_MAX;
        if has_room {
            self.judged.push(Judged { proposer, publisher, digest });
        }
        has_room
    }

    /// Whether a compact block may be tried in this round: not again if it was not enough, and only a
    /// few of one proposer. A whole body always may.
    pub(super) fn may_try(&self, head: &Head) -> bool {
        if head.form() == Form::Whole {
            return true;
        }
        let BodyFields { proposer, digest, .. } = head.fields();
        let of_proposer = || self.incomplete.iter().filter(|(other, _)| *other == proposer);
        of_proposer().count() < JUDGED_PER_PROPOSER_MAX
            && of_proposer().all(|(_, other)| *other != digest)
    }

    /// Whether a body of a height was parked.
    pub(super) fn has_parked(&self, height: u64) -> bool {
        self.parked.iter().any(|body| body.head.fields().height == height)
    }

    /// Takes the parked bodies of a height.
    pub(super) fn take(&mut self, height: u64) -> Vec<Body> {
        let parked = std::mem::take(&mut self.parked);
        let (now, later) = parked.into_iter().partition(|body| body.head.fields().height == height);
        self.parked = later;
        now
    }
}

/// Whether a head is for a height and round near by, from the validator whose turn it is.
pub(super) fn is_wanted(tip: &Tip, round: u32, verifier: &Verifier, head: &Head) -> bool {
    let fields = head.fields();
    let ahead = fields.height.saturating_sub(tip.height);
    let round = if ahead == 1 { round } else { 0 };
    if !(1..=HEIGHTS_AHEAD).contains(&ahead) || fields.round > round.saturating_add(ROUNDS_AHEAD) {
        return false;
    }
    let set = if ahead == 1 { &tip.validators } else { &tip.next_validators };
    let turn = set.proposer(fields.height, fields.round);
    turn.address == fields.proposer && verifier.is_sealed(&fields, &turn.public_key, &head.seal())
}

#[cfg(test)]
mod tests;
