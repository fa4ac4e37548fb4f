//! A running node that is behind asks a peer for blocks which has only forged proofs of them.

use anyhow::{Context as _, ensure};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use testkit::net::Network;
use testkit::node::{wait_for, wait_until};

use crate::{ALL, Extent};
use testkit::harness::engine_wire::{Answer, Decided, question, read_question, status};
use testkit::harness::{BROADCAST, Load, Plan, Question, Rogue, Town};
use testkit::suite::say;

/// The follower that is cut off.
const BEHIND: usize = 4;
/// The follower whose place the liar takes.
const STOLEN: usize = 5;
/// How many blocks the node is behind.
const BLOCKS: u64 = 40;
/// How often each lie is told.
const ROUNDS: usize = 2;

/// What is wrong with a proof.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Lie {
    /// Nobody made the signatures.
    Forged,
    /// One signature is not the validator's.
    OneForged,
    /// Half of the validators signed.
    TooFew,
    /// One validator's signature, as often as there are validators.
    Doubled,
    /// Somebody signed who is no validator.
    Stranger,
    /// The validators signed another block.
    OtherHash,
    /// They signed this one, and the bytes are those of another.
    OtherBytes,
    /// It is all about the next height.
    OtherHeight,
    /// The signatures are for the next height.
    OtherHeightSigned,
    /// The signatures are for another round.
    OtherRound,
}

const LIES: &[Lie] = &[
    Lie::Forged,
    Lie::OneForged,
    Lie::TooFew,
    Lie::Doubled,
    Lie::Stranger,
    Lie::OtherHash,
    Lie::OtherBytes,
    Lie::OtherHeight,
    Lie::OtherHeightSigned,
    Lie::OtherRound,
];

pub(crate) fn run(_: Extent) -> anyhow::Result<()> {
    let mut town = Town::on_wires(4, 2)?;
    town.kill(STOLEN)?;
    let load = Load::steady(&town.net, ALL, 4)?;
    town.switch()?.part(ALL, &[BEHIND]);
    town.stands_still(&[BEHIND])?;
    let mut stuck = town.node(BEHIND)?.height()?;
    town.goes_on(ALL, BLOCKS)?;

    let liar = Liar::start(&town, stuck + 1)?;
    wait_until("each lie to be told", || {
        liar.claim_blocks();
        let height = town.node(BEHIND)?.height()?;
        if height != stuck {
            // Who was cut off with the proposal of the next block lacks only its certificate, which comes
            // with one of the lies.
            let is_certified = liar.goes_on_about(height + 1) == Some(Lie::OtherBytes);
            let is_true =
                town.node(BEHIND)?.block_hash(height)? == town.node(0)?.block_hash(height)?;
            ensure!(
                is_certified && is_true && height == stuck + 1,
                "a lie was believed: {stuck} became {height}, {:?}",
                liar.told()
            );
            stuck = height;
        }
        Ok(liar.has_told_all())
    })
    .with_context(|| format!("{:?}, {}", liar.told(), liar.rogue.trouble()))?;
    town.stands_still(&[BEHIND])?;
    ensure!(town.node(BEHIND)?.height()? == stuck, "a lie was believed");
    say(&format!("   lies that were refused, at height {stuck}: {:?}", liar.told()));

    // The liar stays, and honest peers are there again.
    town.switch()?.heal();
    let goal = town.height(ALL)?;
    wait_until("the node that was lied to to have the blocks", || {
        liar.claim_blocks();
        Ok(town.node(BEHIND)?.height()? >= goal)
    })?;
    town.goes_on(&[0, 1, 2, 3, BEHIND], 4)?;
    town.check(&*load.stop()?)
}

/// What the liar has told.
struct Told {
    /// How often it told each lie.
    counts: BTreeMap<Lie, usize>,
    /// The last one.
    last: Option<Lie>,
    /// The height that the node wants: all lies are about that one.
    next: u64,
}

/// The peer that lies.
struct Liar {
    rogue: Rogue,
    told: Arc<Mutex<Told>>,
    /// What it says so that it is asked.
    claim: Vec<u8>,
}

impl Liar {
    /// Starts it beside the node that is behind and wants blocks from this height on.
    fn start(town: &Town, first: u64) -> anyhow::Result<Self> {
        let (honest, key) = (town.node(0)?, town.node(STOLEN)?.node_key()?);
        let blocks = decided(honest, key, first)?;
        let claim = status(key, u64::MAX)?;
        let told = Told { counts: BTreeMap::new(), last: None, next: first };
        let told = Arc::new(Mutex::new(told));
        let count = Arc::clone(&told);
        let answer = move |question: &Question| {
            if !question.protocol.contains("/sync/") {
                return None;
            }
            let (wanted, _) = read_question(&question.bytes)?;
            let mut told = count.lock().unwrap_or_else(PoisonError::into_inner);
            if wanted != told.next {
                // Of what comes after the height at which the node stands it has nothing.
                return Answer { start: wanted, blocks: Vec::new() }.write().ok();
            }
            let at = usize::try_from(wanted.checked_sub(first)?).ok()?;
            let so_far: usize = told.counts.values().sum();
            let lie = *LIES.get(so_far % LIES.len())?;
            *told.counts.entry(lie).or_default() += 1;
            told.last = Some(lie);
            lie.tell(wanted, blocks.get(at..)?).and_then(|answer| answer.write().ok())
        };
        let plan = Plan::consensus(honest, key, BROADCAST)?.without_topics();
        let address = town.node(BEHIND)?.p2p_address(Network::Consensus);
        let rogue = Rogue::start_with(plan, &[address], Box::new(answer))?;
        Ok(Self { rogue, told, claim })
    }

    fn claim_blocks(&self) {
        // It goes out when the node is connected, again and again.
        let _told = self.rogue.ask(self.claim.clone());
    }

    fn told(&self) -> BTreeMap<Lie, usize> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).counts.clone()
    }

    /// The last lie. From now on all are about this height.
    fn goes_on_about(&self, height: u64) -> Option<Lie> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.next = height;
        told.last
    }

    fn has_told_all(&self) -> bool {
        let told = self.told();
        LIES.iter().all(|lie| told.get(lie).is_some_and(|count| *count >= ROUNDS))
    }
}

/// Decided blocks from a height on, as an honest node gives them.
fn decided(
    honest: &testkit::net::Member,
    key: [u8; 32],
    first: u64,
) -> anyhow::Result<Vec<Decided>> {
    let plan = Plan::consensus(honest, key, "sync")?.without_topics();
    let rogue = Rogue::start(plan, &[honest.p2p_address(Network::Consensus)])?;
    rogue.connects()?;
    rogue.ask(question(first, first + 9)?);
    let answer = wait_for("decided blocks of an honest node", || {
        Ok(rogue.answer_bytes().into_iter().find(|bytes| bytes.len() > 100))
    })?;
    let answer = Answer::read(&answer)?;
    ensure!(answer.start == first && answer.blocks.len() > 1, "no decided blocks");
    Ok(answer.blocks)
}

impl Lie {
    /// Turns what is true into a lie.
    fn tell(self, first: u64, blocks: &[Decided]) -> Option<Answer> {
        let [block, next, ..] = blocks else { return None };
        let (mut lie, next) = (block.clone(), next.clone());
        let Decided { bytes, certificate } = &mut lie;
        let signatures = &mut certificate.signatures;
        let one = *signatures.first()?;
        match self {
            Self::Forged => signatures.iter_mut().for_each(|(_, signature)| *signature = [7; 64]),
            Self::OneForged => signatures.last_mut()?.1 = one.1,
            Self::TooFew => signatures.truncate(2),
            Self::Doubled => *signatures = vec![one; signatures.len()],
            Self::Stranger => signatures.push(([9; 20], one.1)),
            Self::OtherHash => certificate.hash = next.certificate.hash,
            Self::OtherBytes => *bytes = next.bytes,
            Self::OtherHeight => lie = next,
            Self::OtherHeightSigned => {
                let height = certificate.height;
                *certificate = next.certificate;
                certificate.height = height;
            }
            Self::OtherRound => certificate.round = Some(certificate.round? + 1),
        }
        Some(Answer { start: first, blocks: vec![lie] })
    }
}
