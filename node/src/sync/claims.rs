//! How far the chain is believed to be, out of what peers claim.
//!
//! A claim costs nothing, and neither does a name under which to make it. So only peers that the
//! settings name are counted, and where they are too few for a liar among them to be outvoted, a
//! claim counts once its peer has shown a decided block after the own tip.

use p2p::{Peer, PeerKey};

use super::trust::VOICES;

/// So many named peers outvote a liar among them.
const NAMED_MIN: usize = 3;

/// What one peer claims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Claim {
    pub(super) tip: u64,
    /// The settings name the peer.
    pub(super) is_named: bool,
    /// It has shown a decided block that this node had not got.
    pub(super) is_proved: bool,
}

/// The height that is believed, and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Belief {
    /// At least half of several named peers claim it.
    Named(u64),
    /// The highest claim of peers that have shown a block.
    Proved(u64),
    /// Nobody has to be believed.
    Nothing,
}

impl Belief {
    /// What is to be believed of these claims.
    pub(super) fn of(claims: &[Claim]) -> Self {
        let named = claims.iter().filter(|claim| claim.is_named);
        let mut tips: Vec<u64> = named.map(|claim| claim.tip).collect();
        tips.sort_unstable();
        if tips.len() >= NAMED_MIN
            && let Some(common) = common(&tips)
        {
            return Self::Named(common);
        }
        let proved = claims.iter().filter(|claim| claim.is_proved).map(|claim| claim.tip).max();
        proved.map_or(Self::Nothing, Self::Proved)
    }

    /// The height that several named peers claim, at least two: the common one, or of two the lower.
    pub(super) fn agreed(claims: &[Claim]) -> Option<u64> {
        let mut tips: Vec<u64> =
            claims.iter().filter(|claim| claim.is_named).map(|claim| claim.tip).collect();
        tips.sort_unstable();
        common(&tips).filter(|_| tips.len() >= VOICES)
    }

    /// The height.
    pub(super) const fn height(self) -> Option<u64> {
        match self {
            Self::Named(height) | Self::Proved(height) => Some(height),
            Self::Nothing => None,
        }
    }

    /// The height up to which blocks are fetched before consensus starts. `is_fresh` says that the own
    /// last block has just been made: then the end of the chain is near, whatever a single peer claims.
    /// Otherwise a stranger that claims any height and passes on each new block could keep a node from
    /// consensus for as long as it likes.
    pub(super) const fn goal(self, is_fresh: bool) -> Option<u64> {
        match self {
            Self::Proved(_) if is_fresh => None,
            Self::Named(_) | Self::Proved(_) | Self::Nothing => self.height(),
        }
    }
}

/// The height that more than half of the claimants say they have reached; the claims ascend.
fn common(ascending: &[u64]) -> Option<u64> {
    let middle = ascending.len().saturating_sub(1) / 2;
    ascending.get(middle).copied()
}

/// What a peer of the network claims; none while it has not said.
pub(super) fn claim(peer: &Peer, is_proved: impl Fn(PeerKey) -> bool) -> Option<Claim> {
    let tip = peer.status?.tip;
    Some(Claim { tip, is_named: peer.is_named, is_proved: is_proved(peer.key) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIE: u64 = 1_000_000_000;

    fn named(tips: &[u64]) -> Vec<Claim> {
        tips.iter().map(|tip| Claim { tip: *tip, is_named: true, is_proved: false }).collect()
    }

    fn strange(tips: &[u64]) -> Vec<Claim> {
        named(tips).into_iter().map(|claim| Claim { is_named: false, ..claim }).collect()
    }

    fn proved(tips: &[u64]) -> Vec<Claim> {
        strange(tips).into_iter().map(|claim| Claim { is_proved: true, ..claim }).collect()
    }

    fn belief(parts: &[Vec<Claim>]) -> Belief {
        Belief::of(&parts.concat())
    }

    #[test]
    fn one_liar_among_three_or_more_named_peers_moves_the_height_out_of_no_honest_claim() {
        let honest = [69, 70, 71, 72, 73, 74, 75];
        for count in 2..=honest.len() {
            for lie in [0, 1, 68, 76, LIE, u64::MAX] {
                let mut tips = honest[..count].to_vec();
                tips.push(lie);
                let Belief::Named(height) = belief(&[named(&tips)]) else { panic!("{tips:?}") };
                assert!((69..=75).contains(&height), "{tips:?} gave {height}");
            }
        }
    }

    #[test]
    fn half_of_the_named_peers_and_no_fewer_are_believed() {
        assert_eq!(Belief::Named(70), belief(&[named(&[3, 70, 71, LIE])]));
        assert_eq!(Belief::Named(3), belief(&[named(&[3, 3, 3, LIE, LIE])]));
        assert_eq!(Belief::Named(70), belief(&[named(&[70, LIE, LIE, 70])]));
    }

    #[test]
    fn two_named_peers_agree_on_what_both_claim() {
        let agreed = |parts: &[Vec<Claim>]| Belief::agreed(&parts.concat());
        assert_eq!(None, agreed(&[named(&[70]), strange(&[70]), proved(&[70])]));
        assert_eq!(Some(70), agreed(&[named(&[LIE, 70])]));
        assert_eq!(Some(71), agreed(&[named(&[70, LIE, 71]), strange(&[LIE])]));
    }

    #[test]
    fn strangers_are_not_heard_while_enough_named_peers_are_there() {
        for count in [1, 5, 48] {
            let strangers = [strange(&vec![LIE; count]), proved(&vec![LIE; count])].concat();
            assert_eq!(Belief::Named(70), belief(&[named(&[70, 70, 71]), strangers]));
        }
    }

    #[test]
    fn a_node_whose_last_block_is_fresh_fetches_no_more_for_the_claim_of_a_single_peer() {
        let liar = belief(&[named(&[70]), proved(&[LIE])]);
        assert_eq!((Some(LIE), None), (liar.goal(false), liar.goal(true)));
        let honest = belief(&[named(&[70, 70, 71]), proved(&[LIE])]);
        assert_eq!((Some(70), Some(70)), (honest.goal(false), honest.goal(true)));
        assert_eq!((None, None), (Belief::Nothing.goal(false), Belief::Nothing.goal(true)));
    }

    #[test]
    fn of_few_named_peers_and_of_strangers_only_those_are_believed_that_have_shown_a_block() {
        assert_eq!(Belief::Nothing, belief(&[]));
        assert_eq!(Belief::Nothing, belief(&[named(&[70])]));
        assert_eq!(Belief::Nothing, belief(&[named(&[LIE, LIE]), strange(&[LIE; 48])]));
        assert_eq!(Belief::Proved(70), belief(&[strange(&[LIE; 48]), proved(&[69, 70])]));
        let shown = Claim { tip: 70, is_named: true, is_proved: true };
        assert_eq!(Belief::Proved(70), belief(&[vec![shown], named(&[LIE]), strange(&[LIE])]));
    }
}
