//! The checks that need no state: fork, address, hash, signature, chain id, field limits
//! (docs/protocol.md section 9, in that order).

use crate::forks::Fork;
use crate::keys::{Claim, verify_batch};
use crate::params::UNKNOWN_BYTES_MAX;
use crate::tx::StaticView;
use crate::tx::declare::Members;
use crate::{Address, Bid, Body, CheckedTx, Code, Forks, Hash, Params, Rejection, Transaction};

/// What the chain requires of transactions, independent of its state.
#[derive(Clone, Copy, Debug)]
pub struct StaticRules<'a> {
    /// The id of the chain.
    pub chain_id: &'a str,
    /// The chain's parameters.
    pub params: &'a Params,
    /// The heights from which kinds are valid.
    pub forks: Forks,
    /// The height of the block that would contain the transaction.
    pub height: u64,
}

/// How many signatures go into one batch.
const BATCH: usize = 256;

/// The answer for one transaction.
type Answer = Result<CheckedTx, Rejection>;

/// Checks transactions. The answers are in the order of the input, and each is the one that the
/// transaction would get on its own. Signatures are checked in batches.
#[must_use]
pub fn verify(txs: Vec<Transaction>, rules: &StaticRules<'_>) -> Vec<Answer> {
    verify_blocks(vec![(txs, *rules)]).pop().unwrap_or_default()
}

/// Checks the transactions of several blocks, each with its own rules, with the same answers as one
/// call of [`verify`] for each block. Signatures are checked in batches across all blocks, which
/// makes small blocks cheap.
#[must_use]
pub fn verify_blocks(blocks: Vec<(Vec<Transaction>, StaticRules<'_>)>) -> Vec<Vec<Answer>> {
    let early: Vec<Vec<Result<[u8; 64], Rejection>>> = blocks
        .iter()
        .map(|(txs, rules)| {
            let early = |tx| check_before_signature(tx, rules).map(|()| tx.hash().to_hex());
            txs.iter().map(early).collect()
        })
        .collect();
    let txs = blocks.iter().flat_map(|(txs, _)| txs).zip(early.iter().flatten());
    let claims: Vec<Claim<'_>> = txs
        .filter_map(|(tx, early)| {
            let message = early.as_ref().ok()?;
            Some(Claim { key: tx.public_key(), signature: tx.signature(), message })
        })
        .collect();
    let mut signed = verify_signatures(&claims).into_iter();
    drop(claims);
    let mut finish = |tx: Transaction, early: Result<_, Rejection>, rules: &StaticRules<'_>| {
        early?;
        if !signed.next().unwrap_or(false) {
            return Err(bad_signature(&tx));
        }
        check_after_signature(&tx, rules)?;
        Ok(CheckedTx::new(tx))
    };
    let blocks = blocks.into_iter().zip(early);
    blocks
        .map(|((txs, rules), early)| {
            txs.into_iter().zip(early).map(|(tx, early)| finish(tx, early, &rules)).collect()
        })
        .collect()
}

/// Whether each signature is good, in the order of the claims. What one key has signed costs less
/// together, so batches are cut from the claims in the order of their keys.
fn verify_signatures(claims: &[Claim<'_>]) -> Vec<bool> {
    if claims.len() <= BATCH {
        return verify_batch(claims);
    }
    let mut sorted: Vec<(usize, &Claim<'_>)> = claims.iter().enumerate().collect();
    sorted.sort_by_key(|(_, claim)| claim.key);
    let mut answers = vec![false; claims.len()];
    for chunk in sorted.chunks(BATCH) {
        let batch: Vec<Claim<'_>> = chunk.iter().map(|(_, claim)| **claim).collect();
        for ((position, _), answer) in chunk.iter().zip(verify_batch(&batch)) {
            if let Some(place) = answers.get_mut(*position) {
                *place = answer;
            }
        }
    }
    answers
}

/// Checks one transaction.
///
/// # Errors
/// The first failing check of docs/protocol.md section 9.
pub fn verify_one(tx: Transaction, rules: &StaticRules<'_>) -> Result<CheckedTx, Rejection> {
    check_before_signature(&tx, rules)?;
    if !tx.public_key().verify(&tx.hash().to_hex(), &tx.signature()) {
        return Err(bad_signature(&tx));
    }
    check_after_signature(&tx, rules)?;
    Ok(CheckedTx::new(tx))
}

/// Checks an unsigned transaction, for simulation: everything except the signature.
///
/// # Errors
/// The first failing check of docs/protocol.md section 9.
pub fn verify_unsigned(tx: Transaction, rules: &StaticRules<'_>) -> Result<CheckedTx, Rejection> {
    check_before_signature(&tx, rules)?;
    check_after_signature(&tx, rules)?;
    Ok(CheckedTx::new(tx))
}

/// Checks the signatures of transactions that passed [`verify_unsigned`]. Together, the two
/// functions check the same as [`verify`], but in another order. The answers are in the order of
/// the input.
#[must_use]
pub fn verify_signed(txs: Vec<CheckedTx>) -> Vec<Answer> {
    let messages: Vec<[u8; 64]> = txs.iter().map(|tx| tx.hash().to_hex()).collect();
    let claims: Vec<Claim<'_>> = txs
        .iter()
        .zip(&messages)
        .map(|(tx, message)| Claim { key: tx.public_key(), signature: tx.signature(), message })
        .collect();
    let signed = verify_signatures(&claims);
    let answer = |(tx, is_good): (CheckedTx, bool)| {
        if is_good { Ok(tx) } else { Err(bad_signature(&tx)) }
    };
    txs.into_iter().zip(signed).map(answer).collect()
}

fn check_before_signature(tx: &Transaction, rules: &StaticRules<'_>) -> Result<(), Rejection> {
    let active_from = rules.forks.active_from(tx.body());
    let is_known = tx.body().fork().is_none_or(Fork::is_fixed_by_genesis);
    if is_known && rules.height < active_from {
        return Err(fork_not_active(tx, rules.height, active_from));
    }
    let derived = Address::from_public_key(&tx.public_key());
    if tx.from() != derived {
        let expected = format_args!("{derived}, the address of publicKey");
        return Err(Rejection::new(Code::AddressMismatch, "from", tx.from(), expected));
    }
    let (stated, hash): (Hash, Hash) = (tx.stated_hash(), tx.hash());
    if stated != hash {
        return Err(Rejection::new(Code::HashMismatch, "hash", stated, hash).with("computed", hash));
    }
    Ok(())
}

/// The rejection of a transaction in block `height` whose kind is valid from block `active_from`
/// on.
#[must_use]
pub fn fork_not_active(tx: &Transaction, height: u64, active_from: u64) -> Rejection {
    let got = format_args!("{} in block {height}", tx.body().type_name());
    if active_from == Forks::NEVER {
        let expected = "a chain whose genesis has the fork";
        return Rejection::new(Code::ForkNotActive, "type", got, expected);
    }
    let expected = format_args!("block {active_from} or later");
    Rejection::new(Code::ForkNotActive, "type", got, expected)
}

/// Checks what every transaction must satisfy from v7 on, in addition to [`verify`]: its members
/// that v7 added have the right form, and its unknown members are short. Returns what it offers for
/// its place in a block. Execution calls this, because only the state knows from which block on v7
/// applies.
///
/// # Errors
/// MALFORMED or INVALID_FIELD.
pub fn check_v7<'tx>(tx: &'tx Transaction, params: &Params) -> Result<&'tx Bid, Rejection> {
    check_members_of_v7(tx, params).map_err(|rejection| rejection.since(Fork::V7.name()))
}

fn check_members_of_v7<'tx>(tx: &'tx Transaction, params: &Params) -> Result<&'tx Bid, Rejection> {
    let bid = tx.bid().get()?;
    let unknown = tx.unknown_bytes();
    if unknown > UNKNOWN_BYTES_MAX {
        let got =
            format_args!("{unknown} bytes of members that {} does not have", tx.body().type_name());
        let expected = format_args!("at most {UNKNOWN_BYTES_MAX} bytes");
        return Err(Rejection::invalid("transaction", got, expected));
    }
    let (signer, timestamp) = (tx.from(), tx.timestamp());
    let view = StaticView { params, signer, timestamp };
    bid.check_members(&view)?;
    tx.body().check_later(&view)?;
    if let Some(tip) = bid.tip.filter(|_| tx.body().has_own_tip()) {
        let expected = "no tip, because the member fee is the tip of a TRANSFER";
        return Err(Rejection::invalid("tip", tip, expected));
    }
    Ok(bid)
}

/// Checks what a transaction must satisfy in addition from v8 on: its members that v8 added have
/// the right form.
///
/// # Errors
/// MALFORMED or INVALID_FIELD.
pub fn check_v8(tx: &Transaction, params: &Params) -> Result<(), Rejection> {
    let (signer, timestamp) = (tx.from(), tx.timestamp());
    let checked = tx.body().check_latest(&StaticView { params, signer, timestamp });
    checked.map_err(|rejection| rejection.since(Fork::V8.name()))
}

/// Checks what a transaction must satisfy in addition before v8: nothing is longer than the limits
/// of that time. Programs that do not know v8 yet require this of their peers.
///
/// # Errors
/// INVALID_FIELD.
pub fn check_before_v8(tx: &Transaction) -> Result<(), Rejection> {
    let Body::AgentRequest(request) = tx.body() else { return Ok(()) };
    request.check_before_v8().map_err(|rejection| rejection.since(Fork::V8.name()))
}

fn bad_signature(tx: &Transaction) -> Rejection {
    let expected = "an Ed25519 signature by publicKey over the 64 characters of hash";
    Rejection::new(Code::BadSignature, "signature", tx.signature(), expected)
}

fn check_after_signature(tx: &Transaction, rules: &StaticRules<'_>) -> Result<(), Rejection> {
    let wrong_chain = match tx.chain_id() {
        Some(chain_id) => chain_id != rules.chain_id,
        None => rules.params.require_chain_id || tx.body().fork() == Some(Fork::V8),
    };
    if wrong_chain {
        let got = tx.chain_id().unwrap_or("missing");
        return Err(Rejection::new(Code::ChainIdMismatch, "chainId", got, rules.chain_id));
    }
    let (params, signer, timestamp) = (rules.params, tx.from(), tx.timestamp());
    tx.body().check_static(&StaticView { params, signer, timestamp })
}

#[cfg(test)]
mod tests;
