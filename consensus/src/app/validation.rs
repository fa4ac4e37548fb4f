//! Bodies of other validators' proposals: whether their blocks are valid.

use std::sync::Arc;

use malachitebft_app::types::streaming::StreamMessage;
use malachitebft_app::types::{PeerId, ProposedValue};
use malachitebft_core_types::{Round, Validity};

use super::bodies::{Bodies, is_wanted};
use super::chain::AppChain;
use super::messages::number;
use super::propose::Proposer;
use super::timing::Moment;
use crate::engine::context::{Ctx, Height, Value};
use crate::engine::signing::Verifier;
use crate::parts::assembler::Body;
use crate::parts::{Form, Head, Part};
use crate::quorums::Quorums;
use crate::{
    Candidate, Clock, ConsensusFault, Counters, Direction, Encoded, Missed, Origin, Seen,
    ValidatorSet, Verdict,
};
use types::sign_bytes::BodyFields;

/// What the ledger made of a body.
enum Finding {
    /// It is a block, or it never will be.
    Judged(Validity),
    /// It is a compact block, and the whole body is needed.
    Incomplete,
    /// Its timestamp does not fit its arrival.
    Untimely(Direction),
}

/// Judges bodies.
pub(super) struct Validation {
    pub(super) bodies: Bodies,
    pub(super) verifier: Verifier,
    /// What a quorum has voted for in the open height.
    quorums: Quorums,
    clock: Arc<dyn Clock>,
    /// Whether this node may vote later, although it only follows now.
    will_vote: bool,
    /// The round of the open height that has started last.
    round: u32,
    counters: Counters,
}

impl Validation {
    pub(super) fn new(
        bodies: Bodies,
        verifier: Verifier,
        clock: Arc<dyn Clock>,
        will_vote: bool,
        counters: Counters,
    ) -> Self {
        let quorums = verifier.quorums();
        Self { bodies, verifier, quorums, clock, will_vote, round: 0, counters }
    }

    /// A height is open, with this set.
    pub(super) fn open(&self, height: u64, set: &ValidatorSet) {
        self.quorums.open(height, set);
    }

    /// A height is decided: forgets what belongs to it.
    pub(super) fn prune(&mut self, height: u64) {
        self.round = 0;
        self.bodies.prune(height);
    }

    /// Answers with the kept proposals of a height when its first round starts, and with those
    /// that came too early.
    pub(super) async fn start_round(
        &mut self,
        height: Height,
        round: Round,
        chain: &AppChain,
        proposer: &Proposer,
    ) -> Result<Vec<ProposedValue<Ctx>>, ConsensusFault> {
        self.counters.height.set(i64::try_from(height.0).unwrap_or(i64::MAX));
        self.counters.round.set(round.as_i64());
        self.round = number(round);
        self.bodies.start_round(height.0, self.round, self.clock.now_ms());
        self.quorums.start_round(self.round);
        let mut values = Vec::new();
        if number(round) == 0 {
            let at = height.0;
            let kept = chain.archive(move |archive| archive.undecided(at)).await?;
            self.bodies.remember(&kept);
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
            if is_wanted(chain.tip(), self.round, &self.verifier, &body.head) {
                values.extend(self.judge(body, chain, proposer).await?);
            }
        }
        while let Some(body) = self.take_agreed() {
            values.extend(self.judge(body, chain, proposer).await?);
        }
        Ok(values)
    }

    /// Takes a part of a body. Answers whether a head came with it that is wanted for the open height, and
    /// the body when it is whole.
    pub(super) fn take_part(
        &mut self,
        publisher: PeerId,
        part: StreamMessage<Part>,
        chain: &AppChain,
    ) -> (bool, Option<Body>) {
        let Self { bodies, verifier, clock, round, .. } = self;
        let is_wanted = |head: &Head| is_wanted(chain.tip(), *round, verifier, head);
        let (announced, body) = bodies.add(publisher, part, is_wanted, || clock.now_ms());
        (announced == Some(chain.open_height()), body)
    }

    /// A body is whole; answers with its value if its height is open.
    pub(super) async fn on_body(
        &mut self,
        publisher: PeerId,
        body: Body,
        chain: &AppChain,
        proposer: &Proposer,
    ) -> Result<Option<ProposedValue<Ctx>>, ConsensusFault> {
        self.counters.bodies.inc();
        let fields = body.head.fields();
        if fields.height != chain.open_height() {
            self.bodies.park(body);
            return Ok(None);
        }
        let is_known = self.bodies.is_known(fields.round, fields.value);
        if !is_known && !self.bodies.may_try(&body.head) {
            tracing::debug!(proposer = %fields.proposer, "waiting for the whole body");
            return Ok(None);
        }
        if !is_known && !self.bodies.may_judge(publisher, &fields) {
            tracing::warn!(proposer = %fields.proposer, "too many blocks proposed in one round");
            return Ok(None);
        }
        self.judge(body, chain, proposer).await
    }

    /// Judges one of the bodies that came at the wrong time and that a quorum has voted for: the engine
    /// asks for those only when a round starts, and hears of them whenever it hands in a part.
    pub(super) async fn judge_agreed(
        &mut self,
        chain: &AppChain,
        proposer: &Proposer,
    ) -> Result<Option<ProposedValue<Ctx>>, ConsensusFault> {
        match self.take_agreed() {
            Some(body) => self.judge(body, chain, proposer).await,
            None => Ok(None),
        }
    }

    /// A body that came at the wrong time and that a quorum has voted for since.
    fn take_agreed(&mut self) -> Option<Body> {
        let Self { quorums, bodies, .. } = self;
        bodies.take_agreed(|block| quorums.agreed_on(block))
    }

    /// How the time of a block is judged.
    ///
    /// A node that does not vote asks no clock: it only has to have the block when others decide it. One
    /// that follows until it may vote does, since it keeps what it finds.
    fn moment(&self, head: &BodyFields, chain: &AppChain) -> Moment {
        if !self.verifier.is_v7(head.height) {
            let now_ms = self.clock.now_ms();
            return Moment::Now(Origin::Live(Seen { came_ms: now_ms, open_ms: now_ms }));
        }
        let votes = self.will_vote || chain.own_turn_address().is_some();
        let is_settled = self.bodies.is_valid(&head.value) || self.quorums.agreed_on(&head.value);
        if !votes || is_settled {
            return Moment::Now(Origin::Settled);
        }
        self.bodies.when(head)
    }

    /// Has the ledger execute a body of the open height, unless its block is known to be valid.
    /// Nothing if the body has to come whole first, its round has not started, or it came too late.
    async fn judge(
        &mut self,
        body: Body,
        chain: &AppChain,
        proposer: &Proposer,
    ) -> Result<Option<ProposedValue<Ctx>>, ConsensusFault> {
        let fields = body.head.fields();
        let finding = if self.bodies.is_known(fields.round, fields.value) {
            Finding::Judged(Validity::Valid)
        } else {
            match self.moment(&fields, chain) {
                Moment::Now(origin) => {
                    let is_judged = matches!(origin, Origin::Live(_));
                    let finding = self.execute(body.clone(), origin, chain).await?;
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
                    self.bodies.keep_untimely(body);
                    return Ok(None);
                }
            }
        };
        let validity = match finding {
            Finding::Judged(validity) => validity,
            Finding::Incomplete => {
                self.bodies.was_incomplete(&fields);
                proposer.want(&fields.digest).await;
                return Ok(None);
            }
            Finding::Untimely(direction) => {
                if self.bodies.keep_untimely(body) {
                    self.counters.untimely_proposals.get_or_create(&Missed { direction }).inc();
                }
                Validity::Invalid
            }
        };
        if validity.is_valid() {
            self.bodies.found_valid(fields.round, fields.value);
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

    async fn execute(
        &self,
        body: Body,
        origin: Origin,
        chain: &AppChain,
    ) -> Result<Finding, ConsensusFault> {
        let (fields, form) = (body.head.fields(), body.head.form());
        let content = match form {
            Form::Whole => Encoded::Whole(body.bytes),
            Form::CompactBlock(_) => Encoded::CompactBlock {
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
        let verdict = chain.ledger(move |ledger| ledger.validate(candidate)).await?;
        let reason = match verdict {
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
                    "the time of a proposed block does not fit this machine's clock"
                );
                return Ok(Finding::Untimely(direction));
            }
            Verdict::Incomplete { missing } => {
                return Ok(self.incomplete(&fields, &format!("{missing} transactions missing")));
            }
            // The seal does not cover the compact block: anybody can put other bytes behind a head.
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

    /// A compact block that says nothing about the block, as nobody has to have sealed it.
    fn incomplete(&self, fields: &BodyFields, reason: &str) -> Finding {
        self.counters.incomplete_compact_blocks.inc();
        tracing::debug!(height = fields.height, reason, "a compact block is not enough");
        Finding::Incomplete
    }
}
