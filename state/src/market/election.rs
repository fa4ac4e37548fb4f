//! The draw of the members of a call (docs/protocol.md section 17.2): by lot, weighted by bond, from what
//! everybody can compute again. Needs no state.

use std::fmt::Write;

use types::Hash;
pub use types::call::Candidate;

/// What decides a draw, beside the candidates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lot {
    /// The call.
    pub call_id: Hash,
    /// 0, or 1 after an appeal.
    pub round: u8,
    /// That of the block that draws.
    pub randomness: Hash,
}

/// What a draw gave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Election {
    /// Who was drawn, in this order. The seat of a candidate that [`Candidate::is_full`] stays empty.
    pub seats: Vec<Candidate>,
    /// What it was drawn from ([`candidates_hash`]).
    pub candidates_hash: Hash,
}

impl Election {
    /// Who has a seat, in the order of the draws.
    pub fn members(&self) -> impl Iterator<Item = &Candidate> {
        self.seats.iter().filter(|seat| !seat.is_full)
    }
}

/// Draws so many seats without replacement, or as many as there are candidates with a weight. They stand in
/// the order of their addresses, each once.
#[must_use]
pub fn elect(lot: &Lot, candidates: &[Candidate], seats: usize) -> Election {
    let mut left: Vec<Candidate> = candidates.to_vec();
    let mut sum = left.iter().map(weight).fold(0, u128::saturating_add);
    let mut drawn = Vec::with_capacity(seats.min(left.len()));
    for index in 0..seats {
        let Some(place) = lot.number(index).checked_rem(sum).and_then(|at| find(&left, at)) else {
            break;
        };
        let seat = left.remove(place);
        sum = sum.saturating_sub(weight(&seat));
        drawn.push(seat);
    }
    Election { seats: drawn, candidates_hash: candidates_hash(candidates) }
}

/// The first candidate at which the running sum of weights exceeds a number.
fn find(left: &[Candidate], number: u128) -> Option<usize> {
    let mut running = 0_u128;
    left.iter().position(|candidate| {
        running = running.saturating_add(weight(candidate));
        running > number
    })
}

fn weight(candidate: &Candidate) -> u128 {
    u128::from(candidate.weight.get())
}

impl Lot {
    /// The number of a draw: the first sixteen bytes of a hash.
    fn number(&self, draw: usize) -> u128 {
        let Self { call_id, round, randomness } = self;
        let text = format!("elect|{call_id}|{round}|{randomness}|{draw}");
        let hash = Hash::digest(text.as_bytes());
        let half = hash.as_bytes().first_chunk().copied().unwrap_or_default();
        u128::from_be_bytes(half)
    }
}

/// SHA-256 of `address|weight|address|weight…`; the weight of one whose seat would stay empty is followed by
/// `-`.
#[must_use]
pub fn candidates_hash(candidates: &[Candidate]) -> Hash {
    // An address has 40 characters and a weight at most 20.
    let mut text = String::with_capacity(candidates.len().saturating_mul(64));
    for Candidate { miner, weight, is_full } in candidates {
        let separator = if text.is_empty() { "" } else { "|" };
        let mark = if *is_full { "-" } else { "" };
        write!(text, "{separator}{miner}|{weight}{mark}").expect("a text has room");
    }
    Hash::digest(text.as_bytes())
}

#[cfg(test)]
mod tests;
