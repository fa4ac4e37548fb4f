//! Bodies of other validators' proposals: taken in, kept for their height, judged.

use std::collections::BTreeMap;
use std::sync::Arc;

use malachitebft_app::types::streaming::StreamMessage;
use malachitebft_app::types::{PeerId, ProposedValue};
use malachitebft_core_types::{Round, Validity};
use types::Hash;

use super::{App, number};
use crate::engine::context::{Ctx, Height, Value};
use crate::engine::signing::Verifier;
use crate::parts::assembler::{Assembler, Body};
use crate::parts::{Head, Part};
use crate::{Candidate, Fault, Origin, Tip, Verdict};

/// How far beyond the tip bodies are taken in. Others may be a height ahead while this node
/// still commits.
const HEIGHTS_AHEAD: u64 = 2;

/// How many rounds beyond the one that has started here bodies are taken in.
const ROUNDS_AHEAD: u32 = 8;

/// Bodies of one round that are judged. An honest proposer has one.
const BODIES_PER_ROUND_MAX: usize = 2;

/// Whole bodies kept for a later height.
const PARKED_MAX: usize = 4;

/// What came in and is not done with.
pub(super) struct Bodies {
    assembler: Assembler,
    /// Bodies of the height after the open one.
    parked: Vec<Body>,
    /// Judged bodies of the open height, by round and hash.
    judged: BTreeMap<(u32, Hash), Validity>,
}

impl Bodies {
    pub(super) const fn new(assembler: Assembler) -> Self {
        Self { assembler, parked: Vec::new(), judged: BTreeMap::new() }
    }

    /// Forgets what belongs to heights up to `height`.
    pub(super) fn prune(&mut self, height: u64) {
        self.assembler.prune(height);
        self.parked.retain(|body| body.head.fields().height > height);
        self.judged.clear();
    }

    fn park(&mut self, body: Body) {
        if self.parked.len() < PARKED_MAX && !self.parked.contains(&body) {
            self.parked.push(body);
        }
    }

    /// Whether other bodies of the round were judged, as many as may be.
    fn is_crowded(&self, round: u32, hash: Hash) -> bool {
        let of_round = (round, Hash::ZERO)..=(round, Hash::new([0xff; 32]));
        !self.judged.contains_key(&(round, hash))
            && self.judged.range(of_round).count() >= BODIES_PER_ROUND_MAX
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
        let mut values = Vec::new();
        if number(round) == 0 {
            let (archive, at) = (Arc::clone(&self.ports.archive), height.0);
            let kept = self.blocking(move || archive.undecided(at)).await?;
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
            self.start_height();
        }
        let Some(body) = body else { return Ok(None) };
        self.counters.bodies.inc();
        let fields = body.head.fields();
        if fields.height != self.open_height() {
            self.bodies.park(body);
            return Ok(None);
        }
        if self.bodies.is_crowded(fields.round, fields.value) {
            tracing::warn!(proposer = %fields.proposer, "too many blocks proposed in one round");
            return Ok(None);
        }
        self.judge(body).await.map(Some)
    }

    /// Has the ledger execute a body of the open height, once.
    async fn judge(&mut self, body: Body) -> Result<ProposedValue<Ctx>, Fault> {
        let fields = body.head.fields();
        let known = self.bodies.judged.get(&(fields.round, fields.value)).copied();
        let validity = match known {
            Some(validity) => validity,
            None => self.execute(body).await?,
        };
        self.bodies.judged.insert((fields.round, fields.value), validity);
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
