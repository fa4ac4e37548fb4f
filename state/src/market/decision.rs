//! What the members of a round decide (docs/protocol.md section 18.5): the largest group that is large
//! enough, or why there is none.

use types::call::{Answer, CallMember, CallStatus, Consensus, Group, Outcome, Said};

/// What a round decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// How the call ends, if no other round follows.
    pub status: CallStatus,
    /// The group that decided.
    pub group: Option<Group>,
    /// How many members belong to it.
    pub agreeing: u8,
}

/// Decides a round of `size` seats, of which those without a member are silent.
#[must_use]
pub fn decide(consensus: Consensus, size: u8, members: &[CallMember]) -> Decision {
    let needed = consensus.needed(size);
    let groups = groups(consensus, members);
    if let Some((group, agreeing)) = groups.iter().find(|(_, count)| *count >= needed) {
        return Decision { status: group.status(), group: Some(*group), agreeing: *agreeing };
    }
    let largest = groups.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let (mut committed, mut withheld) = (0_u8, 0_u8);
    for member in members {
        committed = committed.saturating_add(u8::from(member.commitment.is_some()));
        withheld = withheld.saturating_add(u8::from(member.said() == Said::Withheld));
    }
    let could_have_decided = largest.saturating_add(withheld) >= needed;
    let status = if committed == 0 || could_have_decided {
        CallStatus::TimedOut
    } else {
        CallStatus::Failed
    };
    Decision { status, group: None, agreeing: 0 }
}

/// The groups of a round, each with its size, in the order in which they may decide: of a threshold the
/// successes first; of a majority at most one can.
fn groups(consensus: Consensus, members: &[CallMember]) -> Vec<(Group, u8)> {
    let mut groups: Vec<(Group, u8)> = match consensus {
        Consensus::Majority => Vec::new(),
        Consensus::Threshold(_) => {
            vec![(Group::Of(Outcome::Success), 0), (Group::Of(Outcome::Failure), 0)]
        }
    };
    for answer in members.iter().filter_map(answer) {
        match groups.iter_mut().find(|(group, _)| group.has(answer)) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => groups.push((Group::Same(*answer), 1)),
        }
    }
    groups
}

/// What a member answered, if it did.
pub(super) fn answer(member: &CallMember) -> Option<&Answer> {
    match member.said() {
        Said::Answered(answer) => Some(answer),
        Said::Nothing | Said::Withheld | Said::Unable => None,
    }
}

#[cfg(test)]
mod tests;
