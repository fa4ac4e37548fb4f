//! What docs/market.md says of metadata is what the code takes.

use std::collections::BTreeSet;

use types::abi::{is_identifier, is_reserved};
use types::agent::{Document, REGISTER_FEE, REGISTER_FEE_PER_BYTE, ROYALTY_MAX};
use types::ids::compute_agent_id;
use types::{Amount, Params};

use super::{code_spans, read, section};

/// The first fenced block of this kind below a heading.
fn block<'a>(document: &'a str, heading: &str, kind: &str) -> &'a str {
    let body = section(document, heading);
    let (_, after) = body.split_once(&format!("```{kind}\n")).expect("there is such a block");
    after.split_once("```").expect("it ends").0
}

#[test]
fn the_example_of_metadata_is_good_and_is_told_as_the_document_says() {
    let document = read("docs/market.md");
    let example = block(&document, "## 1. ", "json");
    let checked = Document::read(example.as_bytes()).unwrap().check(ROYALTY_MAX);
    let metadata = checked.outcome.unwrap();
    let told = block(&document, "## 1. ", "text");
    let owner = "de133ca6f509c74f6e2e849403cc461d2d5b3e3c".parse().unwrap();
    for fact in [
        metadata.name.clone(),
        metadata.version.to_string(),
        metadata.executor.to_string(),
        compute_agent_id(&owner, &metadata.name).to_string(),
        format!("{} of at most 65536 bytes", example.len()),
        fee(example.len()),
    ] {
        assert!(told.contains(&fact), "{fact}");
    }
    for method in &metadata.methods {
        let row = [method.selector().to_string(), method.signature(), method.answers()];
        let words: BTreeSet<_> = row.iter().map(String::as_str).collect();
        let is_told = |line: &str| line.split_whitespace().collect::<BTreeSet<_>>() == words;
        assert!(told.lines().any(is_told), "{row:?}");
    }
    for pending in checked.pending {
        assert!(told.contains(&format!("{}: {}", pending.path, pending.question)), "{pending:?}");
    }
}

/// What registering burns, in OMBRA.
fn fee(bytes: usize) -> String {
    let bytes = u64::try_from(bytes).unwrap();
    Amount::new(REGISTER_FEE.get() + bytes * REGISTER_FEE_PER_BYTE.get()).ombra()
}

#[test]
fn the_words_that_cannot_name_a_method_are_listed() {
    let document = read("docs/market.md");
    let grammars = section(&document, "## 4. ");
    let (_, words) = grammars.split_once("the language keeps for itself: ").unwrap();
    let (words, others) = words.split_once(".\n").unwrap();
    let words = code_spans(words);
    assert_eq!(words.len(), 104 + 6, "the plain words, and the ends of three rows of sizes");
    for word in words {
        assert!(is_reserved(word), "{word}");
    }
    let others = code_spans(others.lines().next().unwrap());
    assert_eq!(others.len(), 7);
    for word in others {
        assert!(is_identifier(word) && !is_reserved(word), "{word}");
    }
}

#[test]
fn what_a_member_can_lose_is_told_as_the_parameters_have_it() {
    let document = read("docs/market.md");
    let working = section(&document, "## 6. ");
    let params = Params::default();
    for (name, value) in [
        ("minBond", params.min_bond),
        ("absencePenalty", params.absence_penalty),
        ("unrevealedPenalty", params.unrevealed_penalty),
        ("dissentPenalty", params.dissent_penalty),
        ("outsidePenalty", params.outside_penalty),
    ] {
        let ombra = value.ombra();
        let told =
            format!("{} OMBRA (`{name}`)", ombra.trim_end_matches('0').trim_end_matches('.'));
        assert!(working.contains(&told), "{told}");
    }
}
