//! Every rejection of docs/protocol.md section 9, provoked in a running node through its public
//! interface: the number, the code, the values and the message are exact, and nothing changed.
//!
//! A file is a group of cases on one node. It lists the codes that it provokes; the list is compared
//! with the cases while they run, and the lists together with the protocol's by the test below.

mod agents;
mod appeals;
mod blobs;
mod calls;
mod case;
mod fork;
mod offers;
mod pool;
mod runs;
mod scene;
mod texts;
mod v7;
mod validators;

use std::collections::BTreeSet;

use types::Code;

const GROUPS: [&[Code]; 11] = [
    texts::CODES,
    fork::CODES,
    runs::CODES,
    blobs::CODES,
    pool::CODES,
    pool::DROPS,
    validators::CODES,
    v7::CODES,
    agents::CODES,
    offers::CODES,
    calls::CODES,
];

#[test]
fn every_code_of_the_protocol_is_provoked() {
    let provoked: BTreeSet<Code> = GROUPS.into_iter().flatten().copied().collect();
    let all: BTreeSet<Code> = Code::ALL.into_iter().collect();
    let missing: Vec<&Code> = all.difference(&provoked).collect();
    assert!(missing.is_empty(), "no case provokes {missing:?}");
}
