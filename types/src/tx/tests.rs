//! The limits of each kind: the last value that passes, the first that does not, and the message.

use std::collections::BTreeSet;

use crate::check::{StaticRules, verify_unsigned};
use crate::forks::Fork;
use crate::json::{self, Json};
use crate::testing::{CHAIN, Draft, bodies, body, golden_key, items, member};
use crate::tx::Subject;
use crate::tx::spec::{Form, ListLimit, TextLimit};
use crate::{Address, Amount, Body, Code, Forks, Hash, Params, PublicKey, Rejection, Signature};

mod calls;

fn check(draft: &Draft) -> Result<(), Rejection> {
    let params = Params::default();
    let forks = Forks { v6: 0, validator_vote: Some(0), v7: Some(0), v8: None };
    let rules = StaticRules { chain_id: CHAIN, params: &params, forks, height: 1 };
    draft.parse().and_then(|tx| verify_unsigned(tx, &rules)).map(|_| ())
}

fn draft(kind: &str) -> Draft {
    Draft::of(&body(kind))
}

#[track_caller]
fn assert_invalid(draft: &Draft, field: &str, got: &str, expected: &str) {
    let rejection = check(draft).unwrap_err();
    assert_eq!(rejection.code(), Code::InvalidField, "{rejection}");
    assert_eq!((rejection.field(), rejection.got(), rejection.expected()), (field, got, expected));
    assert_eq!(
        rejection.message(),
        format!("Invalid field: {field} is {got}, expected {expected}")
    );
}

/// Each of these values of a member passes.
#[track_caller]
fn assert_valid<Raw: AsRef<str>>(draft: &Draft, field: &str, raws: &[Raw]) {
    for raw in raws.iter().map(AsRef::as_ref) {
        assert_eq!(check(&draft.clone().with(field, raw)), Ok(()), "{field}: {raw}");
    }
}

/// Each of these values of a member is refused and told as it stands there.
#[track_caller]
fn assert_each_invalid<Raw: AsRef<str>>(draft: &Draft, field: &str, raws: &[Raw], expected: &str) {
    for raw in raws.iter().map(AsRef::as_ref) {
        assert_invalid(&draft.clone().with(field, raw), field, raw, expected);
    }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

fn array(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(","))
}

#[test]
fn a_kind_says_its_fork_what_it_works_on_and_whom_it_pays() {
    let sender = golden_key().address();
    let told: Vec<_> = bodies()
        .iter()
        .map(|body| {
            let subject = match body.subject() {
                Some(Subject::Run(id)) => {
                    assert_eq!(body.agent_run_id(), Some(id));
                    "run"
                }
                Some(Subject::Blob(_)) => "blob",
                Some(Subject::Validators) => "validators",
                Some(Subject::Agent(_)) => "agent",
                Some(Subject::Call(_)) => "call",
                None => "nothing",
            };
            let payee = body.payee(sender).map(|payee| payee == sender);
            (body.type_name(), body.fork(), subject, payee)
        })
        .collect();
    let v6 = Some(Fork::V6);
    let expected = [
        ("CHAT_TURN", v6, "nothing", None),
        ("AGENT_REQUEST", v6, "run", None),
        ("AGENT_CLAIM", v6, "run", None),
        ("AGENT_STEP", v6, "run", None),
        ("AGENT_FINISH", v6, "run", Some(true)),
        ("AGENT_CANCEL", v6, "run", Some(true)),
        ("TRANSFER", None, "nothing", Some(false)),
        ("MINER_REGISTER", None, "nothing", None),
        ("SOCIAL_BLOB_INIT", None, "blob", None),
        ("SOCIAL_BLOB_CHUNK", None, "blob", None),
        ("SOCIAL_BLOB_FINALIZE", None, "blob", None),
        ("VALIDATOR_VOTE", Some(Fork::ValidatorVote), "validators", None),
        ("FORK_VOTE", Some(Fork::V7), "validators", None),
        ("PARAM_VOTE", Some(Fork::V7), "validators", None),
        ("MINER_BOND", Some(Fork::V7), "nothing", None),
        ("MINER_UNBOND", Some(Fork::V7), "nothing", None),
        ("AGENT_REFUSE", Some(Fork::V7), "run", None),
        ("EVIDENCE", Some(Fork::V7), "validators", None),
        ("AGENT_REGISTER", Some(Fork::V8), "nothing", None),
        ("AGENT_RETIRE", Some(Fork::V8), "nothing", None),
        ("MINER_OFFER", Some(Fork::V8), "nothing", None),
        ("AGENT_CALL", Some(Fork::V8), "agent", None),
        ("CALL_COMMIT", Some(Fork::V8), "call", None),
        ("CALL_REVEAL", Some(Fork::V8), "call", None),
        ("CALL_APPEAL", Some(Fork::V8), "call", None),
    ];
    assert_eq!(told, expected);
}

#[test]
fn words_are_those_of_the_protocol() {
    let cases: [(&str, &str, &[&str]); 3] = [
        ("CHAT_TURN", "role", &["user", "assistant", "system", "tool"]),
        ("AGENT_CLAIM", "hardwareTier", &["laptop", "desktop", "workstation", "server", "cluster"]),
        (
            "AGENT_FINISH",
            "status",
            &["completed", "failed", "timeout", "insufficient_funds", "cancelled"],
        ),
    ];
    for (kind, field, words) in cases {
        let all_quoted =
            |words: &[&str]| -> Vec<String> { words.iter().map(|it| quoted(it)).collect() };
        assert_valid(&draft(kind), field, &all_quoted(words));
        let expected = format!("one of {}", words.join(", "));
        let others = all_quoted(&["", "User", "pending", "user "]);
        assert_each_invalid(&draft(kind), field, &others, &expected);
    }
}

#[test]
fn texts_have_at_most_so_many_bytes() {
    for (kind, field, most) in [
        ("CHAT_TURN", "content", 16_384),
        ("AGENT_REQUEST", "prompt", 16_384),
        ("AGENT_FINISH", "finalAnswerInline", 16_384),
        ("AGENT_REQUEST", "modelHint", 256),
        ("AGENT_CLAIM", "modelInfo", 256),
        ("MINER_REGISTER", "name", 256),
        ("MINER_REGISTER", "modelInfo", 256),
        ("SOCIAL_BLOB_INIT", "contentType", 256),
        ("CALL_REVEAL", "reason", 1_024),
    ] {
        let (narrow, wide) = ("a".repeat(most), "ț".repeat(most / 2));
        assert_valid(&draft(kind), field, &[&narrow, &wide].map(|text| quoted(text)));
        let (got, expected) = (format!("{} bytes", most + 1), format!("at most {most} bytes"));
        for text in [narrow, wide] {
            let long = draft(kind).with(field, &quoted(&(text + "a")));
            assert_invalid(&long, field, &got, &expected);
        }
    }
}

#[test]
fn content_may_be_empty_only_beside_a_blob() {
    let empty = draft("CHAT_TURN").with("content", "\"\"");
    assert_eq!(check(&empty), Ok(()));
    let expected = "some text, or a contentBlobId";
    assert_invalid(&empty.without("contentBlobId"), "content", "empty", expected);
    let prompt = draft("AGENT_REQUEST").with("prompt", "\"\"");
    assert_invalid(&prompt, "prompt", "empty", "1 to 16384 bytes");
}

#[test]
fn lists_of_names_have_64_entries_of_limited_length_each_once() {
    for (kind, field, bytes_max) in
        [("AGENT_REQUEST", "toolsWhitelist", 192), ("MINER_REGISTER", "capabilities", 64)]
    {
        let names = |count: usize| array((0..count).map(|number| format!("\"n{number}\"")));
        let with = |raw: &str| draft(kind).with(field, raw);
        assert_eq!(check(&with("[]")), Ok(()));
        assert_eq!(check(&with(&names(64))), Ok(()));
        assert_invalid(&with(&names(65)), field, "65 entries", "at most 64 entries");
        assert_eq!(check(&with(&array([quoted(&"a".repeat(bytes_max))]))), Ok(()));
        let long = with(&array([quoted(&"a".repeat(bytes_max + 1))]));
        let (seen, expected) =
            (format!("{} bytes", bytes_max + 1), format!("at most {bytes_max} bytes"));
        assert_invalid(&long, field, &seen, &expected);
        let twice = with("[\"a\",\"b\",\"a\"]");
        assert_invalid(&twice, field, "\"a\" twice", "each entry once");
    }
}

#[test]
fn blob_ids_have_128_plain_characters() {
    let expected = "1 to 128 characters of [A-Za-z0-9_-]";
    for (kind, field) in [
        ("CHAT_TURN", "contentBlobId"),
        ("AGENT_REQUEST", "promptBlobId"),
        ("AGENT_STEP", "thoughtBlobId"),
        ("AGENT_STEP", "outputBlobId"),
        ("AGENT_FINISH", "finalAnswerBlobId"),
        ("SOCIAL_BLOB_INIT", "blobId"),
        ("SOCIAL_BLOB_CHUNK", "blobId"),
        ("SOCIAL_BLOB_FINALIZE", "blobId"),
    ] {
        let with = |id: &str| draft(kind).with(field, &quoted(id));
        let good = ["a", "AZaz09_-", &"x".repeat(128)].map(quoted);
        assert_valid(&draft(kind), field, &good);
        for id in ["", "a b", "a.b", "a/b", "é", "a\u{7f}"] {
            assert_invalid(&with(id), field, &format!("{id:?}"), expected);
        }
        let long = format!("\"{}…", "x".repeat(79));
        assert_invalid(&with(&"x".repeat(129)), field, &long, expected);
    }
}

#[test]
fn a_turn_has_16_attachments_of_three_kinds() {
    let attachment = |kind: &str, id: &str| format!("{{\"type\":\"{kind}\",\"blobId\":\"{id}\"}}");
    let with = |raw: String| draft("CHAT_TURN").with("attachments", &raw);
    for kind in ["image", "audio", "file"] {
        assert_eq!(check(&with(array(vec![attachment(kind, "a"); 16]))), Ok(()));
    }
    let many = with(array(vec![attachment("file", "a"); 17]));
    assert_invalid(&many, "attachments", "17 entries", "at most 16 entries");
    let kind = with(array([attachment("file", "a"), attachment("video", "a")]));
    assert_invalid(&kind, "attachments[1].type", "\"video\"", "one of image, audio, file");
    let id = with(array([attachment("file", "")]));
    let expected = "1 to 128 characters of [A-Za-z0-9_-]";
    assert_invalid(&id, "attachments[0].blobId", "\"\"", expected);
}

#[test]
fn a_step_has_64_tool_calls() {
    let call = |name: &str| {
        let hash = "0".repeat(64);
        format!(
            "{{\"name\":\"{name}\",\"argsHash\":\"{hash}\",\"resultHash\":\"{hash}\",\
             \"durationMs\":0,\"ok\":true}}"
        )
    };
    let with = |raw: String| draft("AGENT_STEP").with("toolCalls", &raw);
    assert_eq!(check(&with("[]".to_owned())), Ok(()));
    assert_eq!(check(&with(array(vec![call("a"); 64]))), Ok(()));
    let many = with(array(vec![call("a"); 65]));
    assert_invalid(&many, "toolCalls", "65 entries", "at most 64 entries");
    let long = with(array([call("a"), call(&"n".repeat(257))]));
    assert_invalid(&long, "toolCalls[1].name", "257 bytes", "at most 256 bytes");
}

#[test]
fn a_request_has_1_to_200_steps_and_pays_for_one() {
    let request = draft("AGENT_REQUEST");
    assert_valid(&request, "maxSteps", &["1", "200"]);
    assert_each_invalid(&request, "maxSteps", &["0", "201", "9007199254740991"], "1 to 200");
    assert_valid(&request, "maxFee", &["100", &Amount::MAX.to_string()].map(quoted));
    for fee in ["0", "99"] {
        let request = request.clone().with("maxFee", &quoted(fee));
        assert_invalid(&request, "maxFee", fee, "at least 100");
    }
}

#[test]
fn a_claim_names_its_sender_in_either_form() {
    let address = golden_key().address();
    let forms = [format!("\"{address}\""), format!("\"ox{address}\"")];
    assert_valid(&draft("AGENT_CLAIM"), "minerAddress", &forms);
    let other = "0".repeat(40);
    let claim = draft("AGENT_CLAIM").with("minerAddress", &quoted(&other));
    assert_invalid(&claim, "minerAddress", &other, &format!("the sender {address}"));
}

#[test]
fn a_blob_has_its_number_of_chunks() {
    let with = |bytes: u64, chunks: u64| {
        draft("SOCIAL_BLOB_INIT")
            .with("totalBytes", &bytes.to_string())
            .with("totalChunks", &chunks.to_string())
    };
    for (bytes, chunks) in
        [(1, 1), (399_999, 1), (400_000, 1), (400_001, 2), (800_000, 2), (16_777_216, 42)]
    {
        assert_eq!(check(&with(bytes, chunks)), Ok(()));
        for wrong in [chunks - 1, chunks + 1] {
            let blob = with(bytes, wrong);
            assert_invalid(&blob, "totalChunks", &wrong.to_string(), &chunks.to_string());
        }
    }
    for bytes in [0, 16_777_217, crate::params::INTEGER_MAX] {
        assert_invalid(&with(bytes, 1), "totalBytes", &bytes.to_string(), "1 to 16777216");
    }
}

#[test]
fn a_candidate_has_a_key_that_can_sign() {
    let with = |key: &str| draft("VALIDATOR_VOTE").with("candidateKey", &quoted(key));
    let good = golden_key().public_key().to_string();
    assert_eq!(check(&with(&good)), Ok(()));
    let identity = format!("01{}", "0".repeat(62));
    let no_point = format!("02{}", "0".repeat(62));
    for bad in [identity, no_point] {
        assert_invalid(&with(&bad), "candidateKey", &bad, "an Ed25519 key that can sign");
    }
    for text in ["", "ed55", &good.to_uppercase()] {
        assert_eq!(check(&with(text)).unwrap_err().code(), Code::Malformed, "{text}");
    }
}

#[test]
fn a_candidate_has_at_most_two_to_the_48_power() {
    let vote = draft("VALIDATOR_VOTE");
    assert_valid(&vote, "power", &["0", "1", "281474976710656"]);
    assert_each_invalid(&vote, "power", &["281474976710657"], "0 to 281474976710656");
}

#[test]
fn a_vote_expires_within_30_days() {
    // The timestamp of the drafts.
    let now = 1_715_990_000_000_u64;
    let last = now + 30 * 24 * 3_600_000;
    let vote = draft("VALIDATOR_VOTE");
    assert_valid(&vote, "expiresAt", &[now + 1, last].map(|at| at.to_string()));
    let expected = format!("{} to {last}, 30 days after timestamp", now + 1);
    let others = [0, now, last + 1].map(|at| at.to_string());
    assert_each_invalid(&vote, "expiresAt", &others, &expected);
}

#[test]
fn an_offer_names_an_executor_and_up_to_64_calls() {
    let with = |field: &str, raw: &str| draft("MINER_OFFER").with(field, raw);
    let hex = "0a".repeat(32);
    let forms = ["wasm-1", "model-1", "container"].map(|form| format!("\"{form}:{hex}\""));
    assert_valid(&draft("MINER_OFFER"), "executor", &["\"wasm-1\""]);
    assert_valid(&draft("MINER_OFFER"), "executor", &forms);
    let expected = "wasm-1, or wasm-1:, model-1: or container: and 64 lowercase hex characters";
    for executor in ["wasm-2", "model-1:", "Container:00"] {
        assert_invalid(&with("executor", &quoted(executor)), "executor", executor, expected);
    }
    assert_invalid(&with("executor", "\"\""), "executor", "empty", "1 to 74 bytes");
    let long = quoted(&format!("container:{hex}0"));
    assert_invalid(&with("executor", &long), "executor", "75 bytes", "at most 74 bytes");
    assert_valid(&draft("MINER_OFFER"), "capacity", &["0", "1", "64"]);
    assert_each_invalid(&draft("MINER_OFFER"), "capacity", &["65"], "0 to 64");
}

#[test]
fn what_is_written_has_the_declared_form() {
    for body in bodies() {
        let spec = Body::KINDS.iter().find(|kind| kind.type_name == body.type_name()).unwrap();
        let text = Draft::of(&body).text();
        let value = json::parse(text.as_bytes(), 8).unwrap();
        for field in spec.fields {
            let place = format!("{}.{}", spec.type_name, field.name);
            assert!(has_form(member(&value, field.name), field.form), "{place}");
        }
        for field in spec.all_fields() {
            let place = format!("{}.{}", spec.type_name, field.name);
            assert!(field.doc().ends_with('.'), "{place} is described in sentences");
        }
    }
}

fn has_form(value: &Json<'_>, form: Form) -> bool {
    let text = value.as_str().unwrap_or_default();
    match form {
        Form::Hash => Hash::parse(text).is_ok(),
        Form::Key => text.parse::<PublicKey>().is_ok(),
        Form::Signature => text.parse::<Signature>().is_ok(),
        Form::Address => Address::parse(text).is_ok(),
        Form::Addresses(max) => {
            let is_address = |item: &Json<'_>| Address::parse(item.as_str().unwrap()).is_ok();
            items(value).len() <= max && items(value).iter().all(is_address)
        }
        Form::Amount(_) => text.parse::<Amount>().is_ok(),
        Form::Integer(_) => value.as_number().is_some(),
        Form::Boolean => value.as_bool().is_some(),
        Form::Text(TextLimit::OneOf(words)) => words.contains(&text),
        Form::Text(_) | Form::Base64 => value.as_str().is_some(),
        Form::Names(_) => items(value).iter().all(|item| item.as_str().is_some()),
        Form::Hex(max) => {
            let digits = text.strip_prefix("0x").unwrap();
            const_hex::decode(digits).unwrap().len() <= max
        }
        Form::Object(members) => members.iter().all(|it| has_form(member(value, it.name), it.form)),
        Form::Objects(ListLimit { members, max }) => {
            items(value).len() <= max
                && items(value)
                    .iter()
                    .all(|item| members.iter().all(|it| has_form(member(item, it.name), it.form)))
        }
    }
}

#[test]
fn kinds_and_their_fields_have_names_of_their_own() {
    let types: BTreeSet<_> = Body::KINDS.iter().map(|kind| kind.type_name).collect();
    let names: BTreeSet<_> = Body::KINDS.iter().map(|kind| kind.name).collect();
    assert_eq!((types.len(), names.len()), (Body::KINDS.len(), Body::KINDS.len()));
    for kind in Body::KINDS {
        let fields: BTreeSet<_> = kind.all_fields().map(|field| field.name).collect();
        assert_eq!(fields.len(), kind.all_fields().count(), "{}", kind.type_name);
    }
}
