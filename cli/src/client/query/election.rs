//! `ombra query call ID --check-election`: who was drawn is drawn again from what the node says that it was
//! drawn from, and each part of that is checked by what proves it (docs/market.md section 5.5).

use std::fmt;

use serde::Deserialize;
use serde_json::{Value, json};
use state::market::election::{Candidate, Election, Lot, candidates_hash, elect};
use state::tables::Calls;
use types::call::{Call, CallRound};
use types::randomness::Input;
use types::{Address, Amount, Hash};
use wallet::{Answer, Client};

use super::certified::Checker;
use crate::client::options::NodeArgs;
use crate::client::output::{one_line, table};
use crate::client::{CliError, Out, Outcome};

const WHY_CHARS_MAX: usize = 300;

/// What came of one part of the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Right,
    Wrong,
    /// What would prove it cannot be had.
    Unproved,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Right => "ok",
            Self::Wrong => "WRONG",
            Self::Unproved => "not proved",
        })
    }
}

/// One part of the check.
#[derive(Debug)]
struct Part {
    round: u8,
    what: &'static str,
    found: Found,
    says: String,
}

/// A candidate as the interface shows it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownCandidate {
    address: Address,
    weight: Amount,
    left_out: bool,
}

/// A member as the interface shows it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Member {
    address: Address,
    seat: u8,
    bond: Amount,
}

/// A round as the call's record has it.
struct Round {
    index: u8,
    size: usize,
    /// How many members were drawn.
    elected: usize,
    elected_in: u64,
    candidates_hash: Hash,
    members: Vec<Member>,
}

/// Carries out the check; tells what it found.
///
/// # Errors
/// When something is wrong or could not be checked, and when nothing has been drawn.
pub(super) async fn check(
    client: &Client,
    id: &Hash,
    call: &Value,
    node: &NodeArgs,
    out: Out<'_>,
) -> Outcome {
    let rounds = call["rounds"].as_array().into_iter().flatten().enumerate();
    let rounds: Result<Vec<Round>, CliError> =
        rounds.map(|(index, round)| read_round(index, round)).collect();
    let rounds = rounds?;
    if rounds.is_empty() {
        let text = "no members have been drawn for this call yet".to_owned();
        return Err(CliError::Failed(text));
    }
    let checker = Checker::of(client).await?;
    let mut parts = vec![record(&checker, id, &rounds).await];
    for round in &rounds {
        parts.extend(check_round(client, &checker, id, round).await);
    }
    let is_wrong = parts.iter().any(|part| part.found == Found::Wrong);
    tell(&parts, node, out)?;
    if is_wrong {
        return Err(CliError::Failed("the election is wrong".to_owned()));
    }
    if parts.iter().any(|part| part.found == Found::Unproved) {
        return Err(CliError::Failed("the election could not be checked completely".to_owned()));
    }
    Ok(())
}

fn read_round(index: usize, round: &Value) -> Result<Round, CliError> {
    let unread = |what: &str| CliError::Failed(format!("the node's round {index} has no {what}"));
    let hash = round["candidatesHash"].as_str().and_then(|text| text.parse().ok());
    let told = &round["members"];
    let members = if told.is_null() { Ok(Vec::new()) } else { Vec::deserialize(told) };
    let members = members.map_err(|error| unread(&format!("members: {error}")))?;
    let count = |key: &str| round[key].as_u64().and_then(|count| usize::try_from(count).ok());
    Ok(Round {
        index: u8::try_from(index).unwrap_or(u8::MAX),
        size: count("size").ok_or_else(|| unread("size"))?,
        elected: count("elected").ok_or_else(|| unread("elected"))?,
        elected_in: round["electedIn"].as_u64().ok_or_else(|| unread("electedIn"))?,
        candidates_hash: hash.ok_or_else(|| unread("candidatesHash"))?,
        members,
    })
}

/// Whether the call's record is in the state that a certified header names.
async fn record(checker: &Checker<'_>, id: &Hash, rounds: &[Round]) -> Part {
    let proved = checker.row::<Calls>(&json!({ "call": id }), id).await;
    let (found, says) = match proved {
        Ok((call, height)) if has_rounds(&call, rounds) => {
            (Found::Right, format!("the record is in the certified state after block {height}"))
        }
        Ok((_, height)) => {
            (Found::Wrong, format!("the certified state after block {height} has other rounds"))
        }
        Err(why) => (Found::Unproved, why),
    };
    Part { round: 0, what: "record", found, says }
}

fn has_rounds(call: &Call, rounds: &[Round]) -> bool {
    let is_same = |(proved, told): (&CallRound, &Round)| {
        usize::from(proved.size) == told.size
            && usize::from(proved.members) == told.elected
            && proved.elected_in == told.elected_in
            && proved.candidates_hash == told.candidates_hash
    };
    call.rounds.len() >= rounds.len() && call.rounds.iter().zip(rounds).all(is_same)
}

async fn check_round(
    client: &Client,
    checker: &Checker<'_>,
    id: &Hash,
    round: &Round,
) -> Vec<Part> {
    let part = |what, found, says| Part { round: round.index, what, found, says };
    let randomness = randomness(checker, round.elected_in).await;
    let mut parts = Vec::new();
    let value = match randomness {
        Ok(value) => {
            let says =
                format!("{value}, proved by the proposer of certified block {}", round.elected_in);
            parts.push(part("randomness", Found::Right, says));
            Some(value)
        }
        Err((found, why)) => {
            parts.push(part("randomness", found, why));
            None
        }
    };
    let candidates = match candidates(client, id, round.index).await {
        Ok(candidates) => candidates,
        Err(why) => {
            let says = format!("the node does not report the candidates: {why}");
            parts.push(part("candidates", Found::Unproved, says));
            return parts;
        }
    };
    let (found, says) = hash_of(&candidates, round);
    parts.push(part("candidates", found, says));
    if let Some(randomness) = value {
        let lot = Lot { call_id: *id, round: round.index, randomness };
        let (found, says) = draw(&lot, &candidates, round);
        parts.push(part("draw", found, says));
    }
    parts
}

/// The randomness of a block, proved by the key of the proposer of its certified header.
async fn randomness(checker: &Checker<'_>, height: u64) -> Result<Hash, (Found, String)> {
    let unproved = |why| (Found::Unproved, why);
    let block = checker.block(height).await.map_err(unproved)?;
    let previous = checker.randomness_before(height).await.map_err(unproved)?;
    let wrong = |why: &str| (Found::Wrong, why.to_owned());
    let told = block.header.randomness.ok_or_else(|| wrong("the header has no randomness"))?;
    let input = Input { chain_id: checker.chain_id(), previous, height };
    let proved = input.verify(&block.proposer_key, &told.proof);
    if proved == Some(told.value) {
        return Ok(told.value);
    }
    Err(wrong("the proof was not made with the proposer's key for this block"))
}

async fn candidates(client: &Client, id: &Hash, round: u8) -> Result<Vec<Candidate>, String> {
    let asked = client.call("ombra_getElection", (id, round)).await;
    let told: Answer = asked.map_err(|error| error.to_string())?;
    let shown = Vec::<ShownCandidate>::deserialize(&told["candidates"]);
    let shown = shown.map_err(|error| error.to_string())?;
    let candidate = |it: ShownCandidate| Candidate {
        miner: it.address,
        weight: it.weight,
        is_full: it.left_out,
    };
    Ok(shown.into_iter().map(candidate).collect())
}

/// Whether the candidates are those whose hash the record has, each once and in order.
fn hash_of(candidates: &[Candidate], round: &Round) -> (Found, String) {
    let hash = candidates_hash(candidates);
    if hash != round.candidates_hash {
        let expected = round.candidates_hash;
        return (Found::Wrong, format!("their hash is {hash}, the record has {expected}"));
    }
    if !candidates.is_sorted_by(|one, next| one.miner < next.miner) {
        return (Found::Wrong, "they are not sorted by address without duplicates".to_owned());
    }
    let full = candidates.iter().filter(|it| it.is_full).count();
    let left_out = if full == 0 { String::new() } else { format!(", {full} of them left out") };
    (Found::Right, format!("{}{left_out}, with the hash that the record has", candidates.len()))
}

/// Whether the draw gives the members of the record.
fn draw(lot: &Lot, candidates: &[Candidate], round: &Round) -> (Found, String) {
    let Election { seats, .. } = elect(lot, candidates, round.size);
    let drawn: Vec<Member> = (0_u8..)
        .zip(&seats)
        .filter(|(_, seat)| !seat.is_full)
        .map(|(seat, it)| Member { address: it.miner, seat, bond: it.weight })
        .collect();
    let empty = seats.len().saturating_sub(drawn.len());
    // The node must not hide members: the record has their number.
    if round.members.len() != round.elected {
        let says = format!(
            "the node shows {} members, the record has {}",
            round.members.len(),
            round.elected
        );
        return (Found::Wrong, says);
    }
    match (round.members.is_empty(), drawn == round.members) {
        (_, true) => {
            let says =
                format!("gives the {} members of the record, {empty} seats empty", drawn.len());
            (Found::Right, says)
        }
        // Of a call that is unassigned nobody became a member.
        (true, false) => (Found::Right, format!("{} could be drawn: too few", drawn.len())),
        (false, false) => {
            let text = |members: &[Member]| {
                let addresses: Vec<String> =
                    members.iter().map(|it| it.address.to_string()).collect();
                addresses.join(", ")
            };
            let (drawn, told) = (text(&drawn), text(&round.members));
            (Found::Wrong, format!("gives {drawn}; the record has {told}"))
        }
    }
}

fn tell(parts: &[Part], node: &NodeArgs, out: Out<'_>) -> Outcome {
    let is_right = parts.iter().all(|part| part.found == Found::Right);
    let is_wrong = parts.iter().any(|part| part.found == Found::Wrong);
    if node.json {
        let parts = parts.iter().map(|Part { round, what, found, says }| {
            json!({ "round": round, "part": what, "found": found.to_string(), "says": says })
        });
        let parts: Vec<Value> = parts.collect();
        writeln!(out, "{}", json!({ "proved": is_right, "wrong": is_wrong, "parts": parts }))?;
        return Ok(());
    }
    let mut rows = table(["ROUND", "PART", "FOUND", "WHAT"]);
    for Part { round, what, found, says } in parts {
        let says = one_line(says, WHY_CHARS_MAX);
        rows.add_row([round.to_string(), (*what).to_owned(), found.to_string(), says]);
    }
    let conclusion = match (is_right, is_wrong) {
        (true, _) => "the members are those that the draw gives",
        (_, true) => "the election is WRONG",
        (false, false) => {
            "nothing is wrong as far as this could be checked; for what is not proved you have \
             only the node's word"
        }
    };
    writeln!(out, "{rows}\n\n{conclusion}")?;
    writeln!(
        out,
        "The validators' keys are those that the node names. The validators agreed on the record's \
         hash of the candidates; this command does not check again that no candidate was missing."
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    //! A draw that is right, and what is found when a part of it was changed.

    use types::{Address, Amount, Hash};

    use super::*;

    fn candidates() -> Vec<Candidate> {
        let candidate = |number: u8| Candidate {
            miner: Address::new([number; 20]),
            weight: Amount::new(10_000_000 + u64::from(number)),
            is_full: number == 2,
        };
        (1..=6).map(candidate).collect()
    }

    const LOT: Lot = Lot { call_id: Hash::new([7; 32]), round: 0, randomness: Hash::new([8; 32]) };

    fn round() -> Round {
        let election = elect(&LOT, &candidates(), 5);
        let members = (0_u8..).zip(&election.seats).filter(|(_, it)| !it.is_full);
        Round {
            index: 0,
            size: 5,
            elected: members.clone().count(),
            elected_in: 9,
            candidates_hash: election.candidates_hash,
            members: members
                .map(|(seat, it)| Member { address: it.miner, seat, bond: it.weight })
                .collect(),
        }
    }

    #[test]
    fn an_election_as_it_was_is_right() {
        assert_eq!(hash_of(&candidates(), &round()).0, Found::Right);
        assert_eq!(draw(&LOT, &candidates(), &round()).0, Found::Right);
    }

    #[test]
    fn a_weight_a_mark_an_order_a_lot_or_a_member_that_was_changed_is_found() {
        let mut heavier = candidates();
        heavier[0].weight = Amount::new(10_000_002);
        let mut marked = candidates();
        marked[4].is_full = true;
        let mut turned = candidates();
        turned.swap(0, 1);
        for changed in [heavier, marked, turned.clone()] {
            let (found, says) = hash_of(&changed, &round());
            assert_eq!(found, Found::Wrong);
            assert!(says.contains("the record has"), "{says}");
        }
        let in_disorder = Round { candidates_hash: candidates_hash(&turned), ..round() };
        assert!(hash_of(&turned, &in_disorder).1.contains("not sorted by address"));
        let other = Lot { randomness: Hash::ZERO, ..LOT };
        assert_eq!(draw(&other, &candidates(), &round()).0, Found::Wrong);
        let hidden = Round { members: Vec::new(), ..round() };
        let (found, says) = draw(&LOT, &candidates(), &hidden);
        let expected = (Found::Wrong, "the node shows 0 members, the record has 4");
        assert_eq!((found, says.as_str()), expected);
        let nobody = Round { members: Vec::new(), elected: 0, ..round() };
        assert_eq!(draw(&LOT, &candidates(), &nobody).0, Found::Right, "an unassigned call");
        let mut richer = round();
        richer.members[0].bond = Amount::ZERO;
        assert_eq!(draw(&LOT, &candidates(), &richer).0, Found::Wrong);
    }
}
