//! `ombra tx evidence`: sends what a node has kept of a validator that contradicted itself.

use clap::Args;
use serde_json::Value;
use types::tx::{Evidence, NIL};
use types::{Address, Body, PublicKey, Signature};

use super::SendArgs;
use super::deliver::Delivery;
use crate::client::{CliError, Out, Outcome, input};

/// Evidence against a validator.
#[derive(Args, Debug)]
pub struct EvidenceArgs {
    /// Address of the validator
    #[arg(value_parser = input::address)]
    validator: Address,
    #[command(flatten)]
    send: SendArgs,
}

pub(super) async fn run(args: EvidenceArgs, out: Out<'_>) -> Outcome {
    let EvidenceArgs { validator, send } = args;
    let delivery = Delivery::open(send)?;
    let answer = delivery.client().validators().await?.into_value();
    let evidence = newest(&answer, &validator).ok_or_else(|| {
        CliError::Failed(format!(
            "the node has not seen {validator} sign two different blocks in one round, or \
             {validator} is not a validator now"
        ))
    })?;
    delivery.deliver(&Body::Evidence(evidence), out).await
}

/// The newest pair that proves something, from the answer of `ombra_getValidators`.
fn newest(validators: &Value, accused: &Address) -> Option<Evidence> {
    let accused = accused.to_string();
    let mut members = validators.as_array()?.iter();
    let member = members.find(|member| member["address"] == accused.as_str())?;
    let key: PublicKey = member["publicKey"].as_str()?.parse().ok()?;
    member["evidence"].as_array()?.iter().rev().find_map(|pair| evidence(key, pair))
}

fn evidence(validator_key: PublicKey, pair: &Value) -> Option<Evidence> {
    let [first, second] = pair["messages"].as_array()?.as_slice() else { return None };
    let (first_value, first_signature, first_valid_round) = message(first)?;
    let (second_value, second_signature, second_valid_round) = message(second)?;
    if first_value == second_value {
        return None;
    }
    Some(Evidence {
        validator_key,
        height: pair["height"].as_u64()?,
        round: pair["round"].as_u64()?,
        kind: pair["kind"].as_str()?.to_owned(),
        first_value,
        first_signature,
        second_value,
        second_signature,
        first_valid_round,
        second_valid_round,
    })
}

/// What it is for, its signature, and its valid round; −1 is none.
fn message(message: &Value) -> Option<(String, Signature, Option<u64>)> {
    let value = message["blockHash"].as_str().unwrap_or(NIL).to_owned();
    let signature = message["signature"].as_str()?.parse().ok()?;
    Some((value, signature, message["validRound"].as_u64()))
}

#[cfg(test)]
mod tests {
    //! What a node answers, as a transaction.

    use serde_json::json;
    use types::{Hash, Keypair};

    use super::*;

    #[test]
    fn the_newest_pair_that_proves_something_is_sent() {
        let key = Keypair::from_seed(&[1; 32]);
        let (hash, other) = (Hash::new([1; 32]).to_string(), Hash::new([2; 32]).to_string());
        let signature = |byte: u8| Signature::new([byte; 64]);
        let message = |hash: Option<&str>, valid_round: i64, byte: u8| json!({ "blockHash": hash, "validRound": valid_round, "signature": signature(byte) });
        let pair = |height: u64, kind: &str, messages: [Value; 2]| json!({ "height": height, "round": 3, "kind": kind, "messages": messages });
        let evidence = [
            pair(5, "prevote", [message(Some(&hash), -1, 1), message(None, -1, 2)]),
            pair(6, "proposal", [message(Some(&hash), -1, 3), message(Some(&other), 2, 4)]),
            // These differ in their valid rounds alone.
            pair(7, "proposal", [message(Some(&hash), -1, 5), message(Some(&hash), 2, 6)]),
        ];
        let member = |count: usize| {
            json!([{
                "address": key.address(), "publicKey": key.public_key(),
                "evidence": evidence[..count],
            }])
        };
        let found = newest(&member(3), &key.address()).unwrap();
        assert_eq!((found.height, found.round, found.kind.as_str()), (6, 3, "proposal"));
        assert_eq!((&found.first_value, &found.second_value), (&hash, &other));
        assert_eq!((found.first_valid_round, found.second_valid_round), (None, Some(2)));
        assert_eq!((found.first_signature, found.second_signature), (signature(3), signature(4)));
        let found = newest(&member(1), &key.address()).unwrap();
        assert_eq!((found.height, found.second_value.as_str()), (5, "nil"));
        assert_eq!(newest(&member(0), &key.address()), None);
        assert_eq!(newest(&member(3), &Address::new([9; 20])), None);
    }
}
