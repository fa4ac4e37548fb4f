//! What the loop makes of proposals that come at the wrong time, and of those that try again.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use malachitebft_app::types::ProposedValue;
use malachitebft_core_types::{Context as _, NilOrVal, Round, Validity};
use malachitebft_signing::Verifier as _;
use state::timely::{self, check_timely};
use tokio_util::sync::CancellationToken;
use types::sign_bytes::{Domain, VoteFields, VoteKind};
use types::{Hash, Params};

use super::*;
use crate::app::{App, Follows, Setup};
use crate::engine::context::{Ctx, Height, Value};
use crate::parts::{self, Form, Head};
use crate::testing::{CHAIN, Kept, NodeSide, TIP, domain, keys, on_turn, peer, tip};
use crate::{Candidate, Direction, Encoded, LedgerFault, Missed, Verdict};

/// What the machine's clock says when a test begins.
const NOW: u64 = 1_700_000_000_000;
/// How far a liar's clock is off.
const MINUTES: u64 = 120_000;

/// Blocks are nothing but timestamps, with the rule of the real ledger.
fn judge(candidate: &Candidate) -> Result<Verdict, LedgerFault> {
    let (Encoded::Whole(bytes) | Encoded::CompactBlock { bytes, .. }) = &candidate.content;
    let hash = Hash::digest(bytes);
    let timestamp = bytes.as_ref().try_into().map_err(LedgerFault::new)?;
    let timestamp = u64::from_be_bytes(timestamp);
    if let Origin::Live(Seen { came_ms, open_ms }) = candidate.origin {
        let seen = timely::Seen { came_ms, open_ms };
        if let Err(missed) = check_timely(timestamp, candidate.round, seen, &Params::default()) {
            let direction = match missed {
                timely::Untimely::Ahead { .. } => Direction::Ahead,
                timely::Untimely::Behind { .. } => Direction::Behind,
            };
            return Ok(Verdict::Untimely { hash, direction, reason: missed.to_string() });
        }
    }
    Ok(Verdict::Valid(hash))
}

/// A validator's loop that sees what others send.
struct Scene {
    app: App,
    side: Arc<NodeSide>,
    domain: Domain,
}

impl Scene {
    /// A chain that has v7 from the first block on.
    fn new() -> Self {
        Self::with(Some(0), Arc::default(), true)
    }

    async fn in_first_round() -> Self {
        let mut scene = Self::new();
        scene.start_round(0).await;
        scene
    }

    /// The same of a node that has kept these blocks.
    fn with(v7_from: Option<u64>, kept: Arc<Kept>, will_vote: bool) -> Self {
        let side = NodeSide::new(judge, kept);
        side.now_ms.store(NOW, Ordering::SeqCst);
        let domain = Domain { v7_from, ..domain(CHAIN) };
        let follows = Follows { until: Some(u64::MAX), may_sign: CancellationToken::new() };
        let setup = side.setup(domain.clone());
        let app = App::new(Setup { follows: will_vote.then_some(follows), ..setup });
        app.validation.open(TIP + 1, &tip().validators);
        Self { app, side, domain }
    }

    fn executed(&self) -> usize {
        self.side.kept.0.lock().len()
    }

    fn untimely(&self, direction: Direction) -> u64 {
        self.app.counters.untimely_proposals.get_or_create(&Missed { direction }).get()
    }

    fn pass(&self, millis: u64) {
        self.side.now_ms.fetch_add(millis, Ordering::SeqCst);
    }

    async fn start_round(&mut self, round: u32) -> Vec<ProposedValue<Ctx>> {
        let round = Round::new(round);
        self.app.on_started_round(Height(TIP + 1), round).await.expect("no fault")
    }

    /// A block of this time, proposed in a round by whose turn it is; what the engine is told when its
    /// last part has come.
    async fn propose(&mut self, round: u32, timestamp: u64) -> Option<Validity> {
        self.send_head(round, timestamp).await;
        self.send_rest(round, timestamp).await
    }

    async fn send_head(&mut self, round: u32, timestamp: u64) {
        let told = self.send(round, timestamp, 0).await;
        assert_eq!(told, None, "a head alone tells nothing");
    }

    async fn send_rest(&mut self, round: u32, timestamp: u64) -> Option<Validity> {
        self.send(round, timestamp, 1).await
    }

    /// Sends one of the two parts of a body.
    async fn send(&mut self, round: u32, timestamp: u64, part: usize) -> Option<Validity> {
        let bytes = Bytes::copy_from_slice(&timestamp.to_be_bytes());
        let key = on_turn(TIP + 1, round);
        let fields = parts::describe(TIP + 1, round, key.address(), block(timestamp), &bytes);
        let fields = fields.expect("a small body");
        let head = Head::new(&fields, Form::Whole, &key.sign(&self.domain.body(&fields)));
        let stream = parts::body_stream(&fields.digest, Form::Whole, round);
        let message = parts::cut(&stream, head, &bytes).nth(part).expect("a part");
        // Of one publisher few are judged in a round.
        let publisher = peer(fields.digest.as_bytes()[0]);
        let told = self.app.on_part(publisher, message).await.expect("no fault");
        told.map(|value| value.validity)
    }

    /// The engine checks prevotes of these validators for a block.
    async fn prevote(&self, who: std::ops::Range<usize>, round: u32, block: Hash) {
        for at in who {
            let set = tip().validators;
            let voter = &set.validators()[at];
            let key = keys().into_iter().find(|key| key.address() == voter.address);
            let fields = VoteFields {
                kind: VoteKind::Prevote,
                height: TIP + 1,
                round: i64::from(round),
                value: Some(block),
                validator: voter.address,
            };
            let signature = key.expect("a key").sign(&self.domain.vote(&fields));
            let choice = NilOrVal::Val(Value::from(block));
            let address = voter.address.into();
            let vote = Ctx.new_prevote(Height(TIP + 1), Round::new(round), choice, address);
            let (signature, key) = (signature.into(), voter.public_key.into());
            let verifier = &self.app.validation.verifier;
            let checked = verifier.verify_signed_vote(&vote, &signature, &key).await;
            assert!(checked.expect("an answer").is_valid());
        }
    }
}

/// The hash of the block of a time.
fn block(timestamp: u64) -> Hash {
    Hash::digest(&timestamp.to_be_bytes())
}

#[tokio::test]
async fn a_block_whose_time_is_minutes_off_is_invalid_and_not_executed() {
    let mut scene = Scene::in_first_round().await;
    assert_eq!(scene.propose(0, NOW + MINUTES).await, Some(Validity::Invalid));
    assert_eq!(scene.propose(0, NOW - MINUTES).await, Some(Validity::Invalid));
    assert_eq!(scene.executed(), 0);
    assert_eq!((scene.untimely(Direction::Ahead), scene.untimely(Direction::Behind)), (1, 1));
    assert_eq!(scene.propose(0, NOW).await, Some(Validity::Valid));
}

#[tokio::test]
async fn the_head_says_when_a_block_came_and_not_its_last_part() {
    let mut scene = Scene::in_first_round().await;
    scene.send_head(0, NOW - 2_400).await;
    scene.pass(60_000);
    scene.start_round(1).await;
    assert_eq!(scene.send_rest(0, NOW - 2_400).await, Some(Validity::Valid));
}

#[tokio::test]
async fn a_block_is_judged_by_the_first_time_that_it_came() {
    let mut scene = Scene::in_first_round().await;
    assert_eq!(scene.propose(0, NOW + 1_000).await, Some(Validity::Invalid));
    // By now it would be timely.
    scene.pass(1_000);
    assert_eq!(scene.propose(0, NOW + 1_000).await, Some(Validity::Invalid));
    assert_eq!((scene.executed(), scene.untimely(Direction::Ahead)), (0, 1), "it is counted once");
}

#[tokio::test]
async fn what_is_proposed_again_in_a_later_round_is_judged_by_when_it_came_then() {
    let mut scene = Scene::new();
    let proposer = |round| on_turn(TIP + 1, round).address();
    assert_eq!(proposer(0), proposer(4), "the same one's turn");
    scene.start_round(0).await;
    assert_eq!(scene.propose(0, NOW + MINUTES).await, Some(Validity::Invalid));
    assert_eq!(scene.propose(0, NOW - MINUTES).await, Some(Validity::Invalid));
    scene.pass(10_000);
    scene.start_round(4).await;
    assert_eq!(scene.propose(4, NOW + MINUTES).await, Some(Validity::Invalid));
    assert_eq!(scene.propose(4, NOW - MINUTES).await, Some(Validity::Invalid));
    assert_eq!(scene.executed(), 0);
}

#[tokio::test]
async fn a_head_that_comes_after_its_round_is_not_judged_by_the_clock() {
    let mut scene = Scene::new();
    scene.start_round(1).await;
    assert_eq!(scene.propose(0, NOW).await, None);
    assert_eq!(scene.executed(), 0);
    scene.prevote(0..3, 0, block(NOW)).await;
    let told = scene.start_round(2).await;
    assert_eq!(told.len(), 1);
    assert!(told[0].validity.is_valid() && told[0].value.hash() == block(NOW));
}

#[tokio::test]
async fn a_head_that_comes_before_its_round_is_judged_when_the_round_starts() {
    let mut scene = Scene::in_first_round().await;
    // In time for a message that is early, and one that was made long before its round.
    assert_eq!(scene.propose(1, NOW).await, None);
    assert_eq!(scene.propose(2, NOW + 1).await, None);
    scene.pass(2_000);
    let told = scene.start_round(1).await;
    assert_eq!(told.iter().map(|it| it.validity).collect::<Vec<_>>(), [Validity::Valid]);
    assert_eq!(scene.propose(3, NOW + 2_001).await, None);
    scene.pass(60_000);
    let told = scene.start_round(3).await;
    assert!(told.iter().any(|it| it.value.hash() == block(NOW + 2_001) && !it.validity.is_valid()));
}

#[tokio::test]
async fn an_untimely_block_becomes_valid_when_a_quorum_has_prevoted_it_and_not_before() {
    let mut scene = Scene::in_first_round().await;
    assert_eq!(scene.propose(0, NOW + MINUTES).await, Some(Validity::Invalid));
    scene.prevote(0..2, 0, block(NOW + MINUTES)).await;
    assert!(scene.start_round(1).await.is_empty(), "two of four are no quorum");
    scene.prevote(2..3, 0, block(NOW + MINUTES)).await;
    let told = scene.start_round(2).await;
    assert_eq!(told.iter().map(|it| it.validity).collect::<Vec<_>>(), [Validity::Valid]);
    assert_eq!(told[0].round, Round::new(0), "as it was proposed");
    assert_eq!(scene.executed(), 1);
    assert!(scene.start_round(3).await.is_empty(), "it was told");
}

#[tokio::test]
async fn what_a_quorum_has_prevoted_is_told_with_the_next_part_of_anything() {
    let mut scene = Scene::in_first_round().await;
    assert_eq!(scene.propose(0, NOW + MINUTES).await, Some(Validity::Invalid));
    scene.prevote(0..3, 0, block(NOW + MINUTES)).await;
    let told = scene.send(0, NOW, 0).await;
    assert_eq!(told, Some(Validity::Valid));
}

#[tokio::test]
async fn the_same_block_sent_again_is_valid_as_soon_as_a_quorum_has_prevoted_it() {
    let mut scene = Scene::in_first_round().await;
    assert_eq!(scene.propose(0, NOW - MINUTES).await, Some(Validity::Invalid));
    scene.start_round(1).await;
    assert_eq!(scene.propose(0, NOW - MINUTES).await, Some(Validity::Invalid), "bound to nothing");
    // Nothing is kept of it any more.
    scene.app.validation.bodies.untimely.clear();
    scene.prevote(1..4, 0, block(NOW - MINUTES)).await;
    assert_eq!(scene.propose(0, NOW - MINUTES).await, Some(Validity::Valid));
}

#[tokio::test]
async fn a_restarted_node_has_kept_what_was_timely_and_nothing_else() {
    let mut scene = Scene::in_first_round().await;
    assert_eq!(scene.propose(0, NOW).await, Some(Validity::Valid));
    assert_eq!(scene.propose(0, NOW + MINUTES).await, Some(Validity::Invalid));
    let mut again = Scene::with(Some(0), Arc::clone(&scene.side.kept), true);
    let told = again.start_round(0).await;
    assert_eq!(told.iter().map(|it| it.value.hash()).collect::<Vec<_>>(), [block(NOW)]);
    again.start_round(1).await;
    assert_eq!(again.propose(0, NOW + MINUTES).await, None, "no second chance");
}

#[tokio::test]
async fn who_does_not_vote_asks_no_clock() {
    let mut scene = Scene::with(Some(0), Arc::default(), false);
    scene.start_round(0).await;
    assert_eq!(scene.propose(0, NOW + MINUTES).await, Some(Validity::Valid));
}

#[tokio::test]
async fn before_v7_a_body_is_judged_by_the_clock_when_it_has_come_and_again_when_it_comes_again() {
    let mut scene = Scene::with(Some(TIP + 2), Arc::default(), true);
    scene.start_round(0).await;
    assert_eq!(scene.propose(0, NOW + 1_000).await, Some(Validity::Invalid));
    scene.pass(1_000);
    assert_eq!(scene.propose(0, NOW + 1_000).await, Some(Validity::Valid));
    assert_eq!(scene.propose(1, NOW + 1_001).await, Some(Validity::Valid), "before its round");
}

#[tokio::test]
async fn a_proposer_fills_neither_the_arrivals_nor_what_is_kept() {
    let mut scene = Scene::in_first_round().await;
    for number in 0..20 {
        scene.send_head(0, NOW + number).await;
    }
    assert_eq!(scene.app.validation.bodies.arrivals.heads.len(), HEADS_PER_ROUND_MAX);
    for round in 1..9 {
        scene.start_round(round).await;
        for number in 0..4 {
            scene.propose(round, NOW + MINUTES + number).await;
        }
    }
    assert_eq!(scene.app.validation.bodies.untimely.0.len(), 4, "one of each validator");
}
