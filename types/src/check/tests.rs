//! The order of the checks that need no state, with code and message of each.

use super::{StaticRules, verify, verify_blocks, verify_one, verify_unsigned};
use crate::build::{Envelope, build_tx};
use crate::forks::Fork;
use crate::testing::{CHAIN, Draft, bodies, body, golden_key, limits};
use crate::{CheckedTx, Code, Forks, Keypair, Params, Rejection, Transaction};

fn rules(params: &Params) -> StaticRules<'_> {
    let forks = Forks { v6: 10, validator_vote: Some(10), v7: Some(10), v8: None };
    StaticRules { chain_id: CHAIN, params, forks, height: 10 }
}

fn rejection(draft: &Draft, rules: &StaticRules<'_>) -> Rejection {
    let tx = draft.parse().unwrap();
    let rejection = verify_one(tx.clone(), rules).unwrap_err();
    assert_eq!(verify(vec![tx], rules).remove(0).unwrap_err(), rejection, "alone as in a batch");
    rejection
}

/// Asserts for what a draft is refused.
#[track_caller]
fn assert_told(draft: &Draft, rules: &StaticRules<'_>, code: Code, message: &str) -> Rejection {
    let rejection = rejection(draft, rules);
    assert_eq!(rejection.code(), code);
    assert_eq!(rejection.message(), message);
    rejection
}

#[test]
fn the_first_failing_check_wins() {
    let params = Params { require_chain_id: true, ..Params::default() };
    let late = rules(&params);
    let early = StaticRules { height: 9, ..late };
    let (other, golden) = (Keypair::from_seed(&[1; 32]), golden_key().address());
    let other_hash = "ab".repeat(32);
    let other_signature = "ab".repeat(64);

    // Everything is wrong; then what was refused is mended, and the next check speaks.
    let draft = Draft::of(&body("AGENT_REQUEST"))
        .with("from", &format!("\"{}\"", other.address()))
        .with("hash", &format!("\"{other_hash}\""))
        .with("signature", &format!("\"{other_signature}\""))
        .with("maxSteps", "0");
    let expected = "Fork not active: type is AGENT_REQUEST in block 9, expected block 10 or later";
    assert_told(&draft, &early, Code::ForkNotActive, expected);

    let expected = format!(
        "Address mismatch: from is {}, expected {golden}, the address of publicKey",
        other.address()
    );
    assert_told(&draft, &late, Code::AddressMismatch, &expected);

    let draft = draft.with("from", &format!("\"ox{golden}\""));
    let computed = draft.parse().unwrap().hash();
    let expected = format!("Hash mismatch: hash is {other_hash}, expected {computed}");
    let hash = assert_told(&draft, &late, Code::HashMismatch, &expected);
    assert!(hash.extra().eq([("computed", computed.to_string().as_str())]));

    let draft = draft.with("hash", &format!("\"{computed}\""));
    let expected = format!(
        "Bad signature: signature is {}…, expected an Ed25519 signature by publicKey over the 64 \
         characters of hash",
        &other_signature[..80]
    );
    assert_told(&draft, &late, Code::BadSignature, &expected);

    let right = golden_key().sign(&computed.to_hex());
    let draft = draft.with("signature", &format!("\"{right}\""));
    let expected = format!("Chain id mismatch: chainId is missing, expected {CHAIN}");
    assert_told(&draft, &late, Code::ChainIdMismatch, &expected);

    let named =
        Draft::of(&body("AGENT_REQUEST")).with("maxSteps", "0").with("chainId", "\"other\"");
    let chain = rejection(&named, &late);
    assert_eq!((chain.code(), chain.got()), (Code::ChainIdMismatch, "other"));

    let named = named.with("chainId", &format!("\"{CHAIN}\""));
    let expected = "Invalid field: maxSteps is 0, expected 1 to 200";
    assert_told(&named, &late, Code::InvalidField, expected);

    let good = named.with("maxSteps", "1").parse().unwrap();
    assert_eq!(*verify_one(good.clone(), &late).unwrap(), good);
}

#[test]
fn codes_are_listed_in_the_order_of_the_checks() {
    let is_sorted = Code::ALL.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(is_sorted);
    let texts: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(
        texts.join(" "),
        "MALFORMED UNSUPPORTED_TYPE FORK_NOT_ACTIVE ADDRESS_MISMATCH HASH_MISMATCH BAD_SIGNATURE \
         CHAIN_ID_MISMATCH INVALID_FIELD NONCE_STALE NONCE_TOO_HIGH NONCE_TAKEN FEE_ABOVE_MAX \
         INSUFFICIENT_BALANCE AGENT_ID_MISMATCH AGENT_METADATA AGENT_NOT_FOUND NOT_AGENT_OWNER \
         AGENT_RETIRED CALL_ID_MISMATCH SELECTOR_UNKNOWN CALL_LIMITS MAX_FEE_TOO_LOW CALL_NOT_FOUND \
         NOT_MEMBER CALL_PHASE COMMIT_EXISTS REVEAL_EXISTS REVEAL_MISMATCH APPEAL_CLOSED OFFER_LIMIT \
         RUN_ID_MISMATCH RUN_EXISTS RUN_NOT_FOUND RUN_NOT_PENDING \
         RUN_NOT_ACTIVE NOT_RUN_MINER NOT_SUBMITTER MINER_EXCLUDED MINER_NOT_ALLOWED BOND_TOO_SMALL \
         REFUSE_CLOSED STEP_OUT_OF_ORDER STEP_LIMIT \
         TOKENS_LIMIT ESCROW_EXHAUSTED SETTLEMENT_MISMATCH BLOB_NOT_FOUND BLOB_NOT_FINAL \
         BLOB_EXISTS BLOB_CHUNK BLOB_HASH NOT_BLOB_OWNER TURN_NOT_FOUND EVIDENCE_INVALID NOT_VALIDATOR \
         VALIDATOR_UNCHANGED VALIDATOR_SET_LIMIT VOTE_LIMIT ACCEPTANCE_INVALID FORK_UNKNOWN PARAM_BOUNDS \
         POOL_FULL SENDER_LIMIT CLOCK_SKEW EVICTED"
    );
    assert_eq!(
        Rejection::new(Code::NonceStale, "nonce", 4, 5).message(),
        "Nonce stale: tx=4, state=5"
    );
}

#[test]
fn a_fork_gates_its_kinds_and_no_other() {
    let params = Params::default();
    for body in bodies() {
        let tx = Draft::of(&body).parse().unwrap();
        let kind = body.type_name();
        for (forks, is_gated) in [
            (
                Forks { v6: 5, validator_vote: Some(0), v7: Some(5), v8: None },
                body.fork() == Some(Fork::V6),
            ),
            (
                Forks { v6: 0, validator_vote: Some(5), v7: Some(5), v8: None },
                body.fork() == Some(Fork::ValidatorVote),
            ),
        ] {
            let early = StaticRules { forks, height: 4, ..rules(&params) };
            let refused = verify_one(tx.clone(), &early).err().map(|rejection| rejection.code());
            assert_eq!(refused, is_gated.then_some(Code::ForkNotActive), "{kind}");
            let at_fork = StaticRules { height: 5, ..early };
            assert!(verify_one(tx.clone(), &at_fork).is_ok(), "{kind}");
        }
    }
}

#[test]
fn a_fork_that_genesis_does_not_name_never_comes() {
    let params = Params::default();
    let forks = Forks::default();
    let rules = StaticRules { forks, height: u64::MAX - 1, ..rules(&params) };
    let rejection = rejection(&Draft::of(&body("VALIDATOR_VOTE")), &rules);
    assert_eq!(rejection.code(), Code::ForkNotActive);
    assert_eq!(rejection.expected(), "a chain whose genesis has the fork");
}

#[test]
fn a_chain_id_is_optional_unless_genesis_wants_it() {
    let draft = Draft::of(&body("TRANSFER"));
    let named = draft.clone().with("chainId", &format!("\"{CHAIN}\""));
    for (require_chain_id, draft, is_good) in
        [(false, &draft, true), (false, &named, true), (true, &draft, false), (true, &named, true)]
    {
        let params = Params { require_chain_id, ..Params::default() };
        assert_eq!(verify_one(draft.parse().unwrap(), &rules(&params)).is_ok(), is_good);
    }
    let empty = draft.with("chainId", "\"\"");
    assert_eq!(rejection(&empty, &rules(&Params::default())).code(), Code::ChainIdMismatch);
}

#[test]
fn a_key_of_small_order_signs_nothing() {
    let key = format!("01{}", "00".repeat(31));
    let address = crate::Hash::digest(&const_hex::decode(&key).unwrap()).to_string();
    let draft = Draft::of(&body("TRANSFER"))
        .with("publicKey", &format!("\"{key}\""))
        .with("from", &format!("\"{}\"", &address[..40]))
        .with("signature", &format!("\"{key}{}\"", "00".repeat(32)));
    assert_eq!(rejection(&draft, &rules(&Params::default())).code(), Code::BadSignature);
}

/// How many were refused with a code.
fn count(answers: &[Result<CheckedTx, Rejection>], code: Code) -> usize {
    let refused = answers.iter().filter_map(|answer| answer.as_ref().err());
    refused.filter(|rejection| rejection.code() == code).count()
}

#[test]
fn each_of_many_gets_the_answer_that_it_would_get_alone() {
    let params = Params { require_chain_id: false, ..Params::default() };
    let wrong = format!("\"{}\"", "cd".repeat(64));
    let drafts: Vec<Draft> = (0..600_u32)
        .map(|number| {
            let draft =
                Draft::of(&bodies()[number as usize % 11]).with("nonce", &number.to_string());
            match number % 13 {
                3 => draft.with("signature", &wrong),
                5 => draft.with("hash", &format!("\"{}\"", "ef".repeat(32))),
                7 => draft.with("chainId", "\"elsewhere\""),
                11 => draft.with("from", &format!("\"{}\"", "0".repeat(40))),
                _ => draft,
            }
        })
        .collect();
    let txs: Vec<Transaction> = drafts.iter().map(|draft| draft.parse().unwrap()).collect();
    let alone: Vec<_> = txs.iter().map(|tx| verify_one(tx.clone(), &rules(&params))).collect();
    let together = verify(txs, &rules(&params));
    assert_eq!(together, alone);
    let bad = |code| count(&alone, code);
    assert!(bad(Code::BadSignature) >= 46 && bad(Code::HashMismatch) >= 46);
    assert!(bad(Code::ChainIdMismatch) >= 46 && bad(Code::AddressMismatch) >= 46);
    assert!(verify(Vec::new(), &rules(&params)).is_empty());
}

#[test]
fn the_transactions_of_several_blocks_get_the_answers_of_each_block_alone() {
    let params = Params::default();
    let keys: Vec<Keypair> = (0..5).map(|seed| Keypair::from_seed(&[seed; 32])).collect();
    let tx = |number: usize| {
        let envelope = Envelope::new(0, 1, None);
        let mut text = build_tx(&keys[number % 5], &bodies()[number % 11], &envelope);
        if number % 97 == 3 {
            let end = text.len() - 2;
            text.replace_range(end - 4..end, "0000");
        }
        Transaction::parse(text.as_bytes(), &limits()).unwrap()
    };
    // Heights before and after the fork, a block without transactions, more than one batch.
    let heights = [8, 9, 10, 11, 12].map(|height| StaticRules { height, ..rules(&params) });
    let sizes = [130, 0, 400, 1, 200];
    let mut number = 0..;
    let blocks: Vec<(Vec<Transaction>, StaticRules<'_>)> = sizes
        .iter()
        .zip(heights)
        .map(|(size, rules)| (number.by_ref().take(*size).map(tx).collect(), rules))
        .collect();
    let alone: Vec<Vec<_>> = blocks
        .iter()
        .map(|(txs, rules)| txs.iter().map(|tx| verify_one(tx.clone(), rules)).collect())
        .collect();
    assert_eq!(verify_blocks(blocks), alone);
    let codes = |code| alone.iter().map(|block| count(block, code)).sum::<usize>();
    assert!(codes(Code::BadSignature) > 3 && codes(Code::ForkNotActive) > 30);
    assert!(alone.iter().flatten().any(Result::is_ok));
    assert!(verify_blocks(Vec::new()).is_empty());
}

#[test]
fn simulation_checks_everything_but_the_signature() {
    let params = Params::default();
    let spoilt =
        Draft::of(&body("TRANSFER")).with("signature", &format!("\"{}\"", "00".repeat(64)));
    let tx = spoilt.parse().unwrap();
    assert!(verify_unsigned(tx.clone(), &rules(&params)).is_ok());
    assert_eq!(rejection(&spoilt, &rules(&params)).code(), Code::BadSignature);

    let invalid = Draft::of(&body("AGENT_REQUEST")).with("maxSteps", "201").parse().unwrap();
    let code = verify_unsigned(invalid, &rules(&params)).unwrap_err().code();
    assert_eq!(code, Code::InvalidField);
    let payload = Transaction::parse_unsigned(tx.payload().as_bytes(), &limits()).unwrap();
    assert!(verify_unsigned(payload, &rules(&params)).is_ok());
}

#[test]
fn kinds_of_the_market_name_their_chain() {
    let params = Params::default();
    let forks = Forks { v8: Some(10), ..rules(&params).forks };
    let rules = StaticRules { forks, ..rules(&params) };
    let of_market = bodies().into_iter().filter(|body| body.fork() == Some(Fork::V8));
    for body in of_market {
        let draft = Draft::of(&body);
        verify_unsigned(draft.parse().unwrap(), &rules).unwrap();
        let rejection = rejection(&draft.without("chainId"), &rules);
        assert_eq!(rejection.code(), Code::ChainIdMismatch, "{}", body.type_name());
        assert_eq!((rejection.field(), rejection.got()), ("chainId", "missing"));
    }
}
