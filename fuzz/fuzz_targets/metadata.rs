//! Any bytes are the metadata of an agent or refused by one of its rules, and what is accepted keeps
//! them.
#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use types::agent::{Document, Metadata, ROYALTY_MAX};
use types::json;

fuzz_target!(|bytes: &[u8]| {
    let document = match Document::read(bytes) {
        Ok(document) => document,
        Err(fault) => return assert_eq!(fault.rule, 1, "{fault}"),
    };
    let checked = document.check(ROYALTY_MAX);
    for pending in &checked.pending {
        assert!(matches!(pending.rule, 2 | 6), "{pending:?}");
    }
    match &checked.outcome {
        Err(fault) => {
            assert!((2..=7).contains(&fault.rule), "{fault}");
            assert!(checked.pending.iter().all(|it| it.rule <= fault.rule));
        }
        Ok(metadata) => keeps_the_rules(metadata),
    }
    // White space between the values changes nothing.
    let mut written = String::new();
    json::parse(bytes, 32).expect("it was read").write_to(&mut written);
    let again = Document::read(written.as_bytes()).expect("its own text");
    assert_eq!(again.check(ROYALTY_MAX), checked);
});

fn keeps_the_rules(metadata: &Metadata) {
    assert!((1..=64).contains(&metadata.name.len()));
    assert!((1..=64).contains(&metadata.methods.len()));
    assert!(metadata.royalty <= ROYALTY_MAX);
    let selectors: BTreeSet<_> = metadata.methods.iter().map(|it| it.selector()).collect();
    let names: BTreeSet<_> = metadata.methods.iter().map(|it| &it.name).collect();
    assert_eq!((selectors.len(), names.len()), (metadata.methods.len(), metadata.methods.len()));
    for method in &metadata.methods {
        assert!(method.signature().is_ascii());
    }
}
