//! Bodies of other validators' proposals: taken in, kept for their height, judged.

use std::collections::BTreeSet;
use std::sync::Arc;

use malachitebft_app::types::streaming::StreamMessage;
use malachitebft_app::types::{PeerId, ProposedValue};
use malachitebft_core_types::{Round, Validity};
use types::{Address, Hash};

use super::{App, number};
use crate::engine::context::{Ctx, Height, Value};
use crate::engine::signing::Verifier;
use crate::parts::assembler::{Assembler, Body};
use crate::parts::{Head, Part};
use crate::sign_bytes::BodyFields;
use crate::{Candidate, Fault, Origin, Tip, Verdict};

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

/// Whole bodies of one proposer that are kept for a later height.
const PARKED_PER_PROPOSER_MAX: usize = 2;

/// What came in and is not done with.
///
/// Only `Valid` is remembered. A block's hash commits neither to the signatures of its transactions
/// nor to its encoding, so a liar can seal other bytes for the hash of a good block; and a clock
/// that is behind catches up. Therefore a body that comes again is judged again, if it was not
/// found valid. How much work a proposer can cause that way is bounded for each round that starts.
pub(super) struct Bodies {
    assembler: Assembler,
    /// Bodies of the height after the open one.
    parked: Vec<Body>,
    /// Valid blocks of the open height, by round and hash.
    valid: BTreeSet<(u32, Hash)>,
    /// What was judged since the last round started.
    judged: Vec<Judged>,
}

/// A body that was judged.
struct Judged {
    proposer: Address,
    publisher: PeerId,
    digest: Hash,
}

impl Bodies {
    pub(super) const fn new(assembler: Assembler) -> Self {
        Self { assembler, parked: Vec::new(), valid: BTreeSet::new(), judged: Vec::new() }
    }

    /// Forgets what belongs to heights up to `height`.
    pub(super) fn prune(&mut self, height: u64) {
        self.assembler.prune(height);
        self.parked.retain(|body| body.head.fields().height > height);
        self.valid.clear();
        self.judged.clear();
    }

    fn park(&mut self, body: Body) {
        let proposer = body.head.fields().proposer;
        let of_proposer =
            self.parked.iter().filter(|other| other.head.fields().proposer == proposer);
        if of_proposer.count() < PARKED_PER_PROPOSER_MAX && !self.parked.contains(&body) {
            self.parked.push(body);
        }
    }

    /// Whether a body may be judged in this round; counts it if so.
    fn may_judge(&mut self, publisher: PeerId, fields: &BodyFields) -> bool {
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

    /// Takes the parked bodies of a height.
    fn take(&mut self, height: u64) -> Vec<Body> {
        let parked = std::mem::take(&mut self.parked);
        let (now, later) = parked.into_iter().partition(|body| body.head.fields().height == height);
        self.parked = later;
        now
    }
}

impl App {
    /// Answers with the kept proposals of a height when its first round starts, and with those
    /// that came too early.
    pub(super) async fn on_started_round(
        &mut self,
        height: Height,
        round: Round,
    ) -> Result<Vec<ProposedValue<Ctx>>, Fault> {
        self.counters.height.set(i64::try_from(height.0).unwrap_or(i64::MAX));
        self.counters.round.set(round.as_i64());
        self.round = number(round);
        self.bodies.judged.clear();
        let mut values = Vec::new();
        if number(round) == 0 {
            let (archive, at) = (Arc::clone(&self.ports.archive), height.0);
            let kept = self.blocking(move || archive.undecided(at)).await?;
            self.bodies.valid.extend(kept.iter().map(|block| (block.round, block.hash)));
            values.extend(kept.into_iter().map(|block| ProposedValue {
                height,
                round: Round::new(block.round),
                valid_round: Round::Nil,
                proposer: block.proposer.into(),
                value: Value::from(block.hash),
                validity: Validity::Valid,
            }));
        }
        for body in self.bodies.take(height.0) {
            if is_wanted(&self.tip, self.round, &self.verifier, &body.head) {
                values.push(self.judge(body).await?);
            }
        }
        Ok(values)
    }

    /// Takes a part of a body; answers with its value when it is whole and its height is open.
    pub(super) async fn on_part(
        &mut self,
        publisher: PeerId,
        part: StreamMessage<Part>,
    ) -> Result<Option<ProposedValue<Ctx>>, Fault> {
        let mut announced = None;
        let Self { tip, round, verifier, bodies, .. } = self;
        let body = bodies.assembler.add(publisher, part, |head| {
            let wanted = is_wanted(tip, *round, verifier, head);
            announced = wanted.then(|| head.fields().height);
            wanted
        });
        if announced == Some(self.open_height()) {
            self.wake();
        }
        let Some(body) = body else { return Ok(None) };
        self.counters.bodies.inc();
        let fields = body.head.fields();
        if fields.height != self.open_height() {
            self.bodies.park(body);
            return Ok(None);
        }
        let is_known = self.bodies.valid.contains(&(fields.round, fields.value));
        if !is_known && !self.bodies.may_judge(publisher, &fields) {
            tracing::warn!(proposer = %fields.proposer, "too many blocks proposed in one round");
            return Ok(None);
        }
        self.judge(body).await.map(Some)
    }

    /// Has the ledger execute a body of the open height, unless its block is known to be valid.
    async fn judge(&mut self, body: Body) -> Result<ProposedValue<Ctx>, Fault> {
        let fields = body.head.fields();
        let block = (fields.round, fields.value);
        let validity = if self.bodies.valid.contains(&block) {
            Validity::Valid
        } else {
            self.execute(body).await?
        };
        if validity.is_valid() {
            self.bodies.valid.insert(block);
        }
        Ok(ProposedValue {
            height: Height(fields.height),
            round: Round::new(fields.round),
            valid_round: Round::Nil,
            proposer: fields.proposer.into(),
            value: Value::from(fields.value),
            validity,
        })
    }

    async fn execute(&self, body: Body) -> Result<Validity, Fault> {
        let fields = body.head.fields();
        let candidate = Candidate {
            height: fields.height,
            round: fields.round,
            proposer: fields.proposer,
            seal: Some(body.head.seal()),
            bytes: body.bytes,
            origin: Origin::Live,
        };
        let ledger = Arc::clone(&self.ports.ledger);
        let reason = match self.blocking(move || ledger.validate(candidate)).await? {
            Verdict::Valid(hash) if hash == fields.value => return Ok(Validity::Valid),
            Verdict::Valid(hash) => format!("the block's hash is {hash}"),
            Verdict::Invalid { reason, .. } | Verdict::Undecodable { reason } => reason,
        };
        self.counters.invalid_proposals.inc();
        tracing::warn!(
            height = fields.height,
            round = fields.round,
            proposer = %fields.proposer,
            hash = %fields.value,
            reason,
            "an invalid block was proposed"
        );
        Ok(Validity::Invalid)
    }
}

/// Whether a head is for a height and round near by, from the validator whose turn it is.
fn is_wanted(tip: &Tip, round: u32, verifier: &Verifier, head: &Head) -> bool {
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
