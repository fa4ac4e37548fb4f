//! Bodies of other validators' proposals: taken in, kept for their height, judged.

use std::collections::BTreeSet;
use std::sync::Arc;

use malachitebft_app::types::streaming::StreamMessage;
use malachitebft_app::types::{PeerId, ProposedValue};
use malachitebft_core_types::{Round, Validity};
use malachitebft_engine::util::streaming::StreamContent;
use types::{Address, Hash};

use super::timing::{Arrivals, Moment, UntimelyBodies};
use super::{App, number};
use crate::engine::context::{Ctx, Height, Value};
use crate::engine::signing::Verifier;
use crate::parts::assembler::{Assembler, Body};
use crate::parts::{Form, Head, Part};
use crate::{Candidate, Direction, Encoded, Fault, Missed, Origin, Tip, Verdict};
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

/// Whole bodies of one proposer that are kept for a later height.
const PARKED_PER_PROPOSER_MAX: usize = 2;

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
    /// Outlines since the last round started that were not enough: each by its proposer and digest.
    /// At most [`JUDGED_PER_PROPOSER_MAX`] of one proposer.
    incomplete: Vec<(Address, Hash)>,
}

/// What the ledger made of a body.
enum Finding {
    /// It is a block, or it never will be.
    Judged(Validity),
    /// It is an outline, and the whole body is needed.
    Incomplete,
    /// Its timestamp does not fit its arrival.
    Untimely(Direction),
}

/// A body that was judged.
struct Judged {
    proposer: Address,
    publisher: PeerId,
    digest: Hash,
}

impl Bodies {
    pub(super) fn new(assembler: Assembler) -> Self {
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
        self.start_round();
    }

    /// Forgets what belongs to the last round.
    fn start_round(&mut self) {
        self.judged.clear();
        self.incomplete.clear();
    }

    /// Whether a block was found valid, in whichever round.
    pub(super) fn is_valid(&self, block: &Hash) -> bool {
        self.valid.iter().any(|(_, valid)| valid == block)
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

    /// Whether an outline may be tried in this round: not again if it was not enough, and only a
    /// few of one proposer. A whole body always may.
    fn may_try(&self, head: &Head) -> bool {
        if head.form() == Form::Whole {
            return true;
        }
        let BodyFields { proposer, digest, .. } = head.fields();
        let of_proposer = || self.incomplete.iter().filter(|(other, _)| *other == proposer);
        of_proposer().count() < JUDGED_PER_PROPOSER_MAX
            && of_proposer().all(|(_, other)| *other != digest)
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
        self.bodies.start_round();
        self.bodies.arrivals.start_round(height.0, self.round, self.ports.clock.now_ms());
        self.quorums.start_round(self.round);
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
                values.extend(self.judge(body).await?);
            }
        }
        while let Some(body) = self.take_agreed() {
            values.extend(self.judge(body).await?);
        }
        Ok(values)
    }

    /// Takes a part of a body; answers with its value when it is whole and its height is open, or else
    /// with that of one that a quorum has voted for although it came at the wrong time: the engine asks
    /// for that only when a round starts, and hears of it whenever it hands in a part.
    pub(super) async fn on_part(
        &mut self,
        publisher: PeerId,
        part: StreamMessage<Part>,
    ) -> Result<Option<ProposedValue<Ctx>>, Fault> {
        if let Some(value) = self.take_part(publisher, part).await? {
            return Ok(Some(value));
        }
        match self.take_agreed() {
            Some(body) => self.judge(body).await,
            None => Ok(None),
        }
    }

    async fn take_part(
        &mut self,
        publisher: PeerId,
        part: StreamMessage<Part>,
    ) -> Result<Option<ProposedValue<Ctx>>, Fault> {
        if let StreamContent::Data(Part::Want(digest)) = part.content {
            self.on_want(&Hash::new(digest)).await;
            return Ok(None);
        }
        let mut announced = None;
        let Self { tip, round, verifier, ports, bodies, .. } = self;
        let Bodies { assembler, arrivals, .. } = bodies;
        let body = assembler.add(publisher, part, |head| {
            let wanted = is_wanted(tip, *round, verifier, head);
            if wanted {
                arrivals.note(&head.fields(), ports.clock.now_ms());
                announced = Some(head.fields().height);
            }
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
        if !is_known && !self.bodies.may_try(&body.head) {
            tracing::debug!(proposer = %fields.proposer, "the whole body is waited for");
            return Ok(None);
        }
        if !is_known && !self.bodies.may_judge(publisher, &fields) {
            tracing::warn!(proposer = %fields.proposer, "too many blocks proposed in one round");
            return Ok(None);
        }
        self.judge(body).await
    }

    /// Has the ledger execute a body of the open height, unless its block is known to be valid.
    /// Nothing if the body has to come whole first, its round has not started, or it came too late.
    async fn judge(&mut self, body: Body) -> Result<Option<ProposedValue<Ctx>>, Fault> {
        let fields = body.head.fields();
        let block = (fields.round, fields.value);
        let finding = if self.bodies.valid.contains(&block) {
            Finding::Judged(Validity::Valid)
        } else {
            match self.moment(&fields) {
                Moment::Now(origin) => {
                    let is_judged = matches!(origin, Origin::Live(_));
                    let finding = self.execute(body.clone(), origin).await?;
                    if is_judged && self.verifier.is_v7(fields.height) {
                        self.note_time(&fields, &finding);
                    }
                    finding
                }
                Moment::Later => {
                    self.bodies.park(body);
                    return Ok(None);
                }
                Moment::Past => {
                    self.bodies.untimely.keep(body);
                    return Ok(None);
                }
            }
        };
        let validity = match finding {
            Finding::Judged(validity) => validity,
            Finding::Incomplete => {
                self.bodies.incomplete.push((fields.proposer, fields.digest));
                // The same bytes, when they come, are judged as if nothing had been before.
                self.bodies.judged.pop_if(|last| last.digest == fields.digest);
                self.want(&fields.digest).await;
                return Ok(None);
            }
            Finding::Untimely(direction) => {
                if self.bodies.untimely.keep(body) {
                    self.counters.untimely_proposals.get_or_create(&Missed { direction }).inc();
                }
                Validity::Invalid
            }
        };
        if validity.is_valid() {
            self.bodies.valid.insert(block);
        }
        Ok(Some(ProposedValue {
            height: Height(fields.height),
            round: Round::new(fields.round),
            valid_round: Round::Nil,
            proposer: fields.proposer.into(),
            value: Value::from(fields.value),
            validity,
        }))
    }

    /// Remembers whether a block that was judged by the clock came in time.
    fn note_time(&self, fields: &BodyFields, finding: &Finding) {
        let missed = match finding {
            Finding::Judged(Validity::Valid) => None,
            Finding::Untimely(direction) => Some(*direction),
            Finding::Judged(Validity::Invalid) | Finding::Incomplete => return,
        };
        self.counters.punctuality.note(fields.proposer, fields.height, missed);
    }

    async fn execute(&self, body: Body, origin: Origin) -> Result<Finding, Fault> {
        let (fields, form) = (body.head.fields(), body.head.form());
        let content = match form {
            Form::Whole => Encoded::Whole(body.bytes),
            Form::Outline(_) => Encoded::Outline {
                bytes: body.bytes,
                size: usize::try_from(fields.size).unwrap_or(usize::MAX),
                digest: fields.digest,
            },
        };
        let candidate = Candidate {
            height: fields.height,
            round: fields.round,
            proposer: fields.proposer,
            seal: Some(body.head.seal()),
            content,
            origin,
        };
        let ledger = Arc::clone(&self.ports.ledger);
        let reason = match self.blocking(move || ledger.validate(candidate)).await? {
            Verdict::Valid(hash) if hash == fields.value => {
                return Ok(Finding::Judged(Validity::Valid));
            }
            Verdict::Untimely { hash, direction, reason } if hash == fields.value => {
                tracing::warn!(
                    height = fields.height,
                    round = fields.round,
                    proposer = %fields.proposer,
                    %hash,
                    reason,
                    "a block was proposed whose time is not that of this machine's clock"
                );
                return Ok(Finding::Untimely(direction));
            }
            Verdict::Incomplete { missing } => {
                return Ok(self.incomplete(&fields, &format!("{missing} transactions missing")));
            }
            // The seal does not cover the outline: anybody can put other bytes behind a head.
            Verdict::Undecodable { reason } if form != Form::Whole => {
                return Ok(self.incomplete(&fields, &reason));
            }
            Verdict::Valid(hash) | Verdict::Untimely { hash, .. } => {
                format!("the block's hash is {hash}")
            }
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
        Ok(Finding::Judged(Validity::Invalid))
    }

    /// An outline that says nothing about the block, as nobody has to have sealed it.
    fn incomplete(&self, fields: &BodyFields, reason: &str) -> Finding {
        self.counters.incomplete_outlines.inc();
        tracing::debug!(height = fields.height, reason, "an outline is not enough");
        Finding::Incomplete
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
