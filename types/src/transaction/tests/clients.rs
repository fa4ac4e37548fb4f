//! What JavaScript and Python wallets sign and send (fixtures/clients.mjs made the texts).

use crate::json::Json;
use crate::testing::{CLIENTS, Draft, body, fixture, items, limits, member, text, text_of};
use crate::{Transaction, ids};

#[test]
fn every_wire_form_means_the_payload_that_was_signed() {
    let clients = fixture(CLIENTS);
    assert_eq!(items(&clients).len(), 14);
    for case in items(&clients) {
        let name = text_of(case, "name");
        let forms = items(member(case, "wires"));
        assert!(forms.len() >= 5, "{name}");
        for form in forms.iter().map(text) {
            let tx = Transaction::parse(form.as_bytes(), &limits())
                .unwrap_or_else(|rejection| panic!("{name}: {rejection}\n{form}"));
            assert_eq!(tx.payload(), text_of(case, "payload"), "{name}");
            assert_eq!(tx.hash().to_string(), text_of(case, "hash"), "{name}");
            assert_eq!(tx.stated_hash(), tx.hash(), "{name}");
            assert_eq!(tx.signature().to_string(), text_of(case, "signature"), "{name}");
            assert!(tx.public_key().verify(&tx.hash().to_hex(), &tx.signature()), "{name}");
        }
    }
}

#[test]
fn run_ids_are_those_of_javascript() {
    let clients = fixture(CLIENTS);
    let has_prompt = |case: &&Json<'_>| matches!(case, Json::Object(members) if members.iter().any(|(key, _)| key == "prompt"));
    let requests: Vec<_> = items(&clients).iter().filter(has_prompt).collect();
    assert_eq!(requests.len(), 6);
    for case in requests {
        let form = text(&items(member(case, "wires"))[0]);
        let tx = Transaction::parse(form.as_bytes(), &limits()).unwrap();
        let id = ids::compute_agent_run_id(&tx.from_text(), tx.nonce(), text_of(case, "prompt"));
        assert_eq!(id.to_string(), text_of(case, "agentRunId"), "{}", text_of(case, "name"));
        assert_eq!(tx.body().agent_run_id(), Some(id));
    }
}

#[test]
fn another_order_is_another_hash() {
    let draft = Draft::of(&body("TRANSFER"));
    let moved = draft.clone().without("nonce").with("nonce", "6");
    let (tx, other) = (draft.parse().unwrap(), moved.parse().unwrap());
    assert_ne!(tx.hash(), other.hash());
    assert_eq!(tx.body(), other.body());
}

#[test]
fn unknown_members_are_hashed_as_they_were_written() {
    let draft = Draft::of(&body("TRANSFER"));
    let plain = draft.parse().unwrap();
    for raw in ["1", "1.0", "1e0", "10e-1", "\"1\"", "null", "[1]", "{\"a\":-0.0}"] {
        let tx = draft.clone().with("extra", raw).parse().unwrap();
        assert!(tx.payload().ends_with(&format!(",\"extra\":{raw}}}")), "{}", tx.payload());
        assert_ne!(tx.hash(), plain.hash());
        assert_eq!(tx.stated_hash(), tx.hash());
    }
}
