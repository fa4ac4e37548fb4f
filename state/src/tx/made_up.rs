//! A kind that does not exist, with a table and rules as CONTRIBUTING.md describes them: a note
//! that costs a deposit, waits for a fork and keeps its rows in a table of its own. Shows that a
//! new kind is an addition: no row of before is read differently or written again.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use types::build::{Envelope, build_tx};
use types::codec::{self, DecodeError};
use types::tx::ValidatorVote;
use types::{
    Address, Amount, Body, Code, Event, Forks, Hash, Keypair, Params, Rejection, SetMember,
    Transaction,
};

use super::{Cost, Kind, envelope};
use crate::chain::ChainRules;
use crate::context::Context;
use crate::draft::Draft;
use crate::error::{StorageError, TxError};
use crate::ledger;
use crate::memory::Memory;
use crate::rules::Rules;
use crate::table::{Table, TableId};
use crate::tables::{self, Accounts};
use crate::view::{self, Read};
use crate::work;

/// The height of the made-up fork.
const V7: u64 = 5;
const DEPOSIT: Amount = Amount::new(1_000);

/// `NOTE`: a note of a name.
struct NoteTaken {
    name: String,
}

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Note {
    owner: Address,
    /// Added by version 2 of the record.
    registered_at: u64,
}

struct Notes;
impl Table for Notes {
    const ID: TableId = TableId::plain(63, "notes");
    const VERSION: u8 = 2;
    type Key = String;
    type Value = Note;

    fn decode_earlier(version: u8, bytes: &[u8]) -> Option<Result<Note, DecodeError>> {
        let read = || codec::decode(bytes).map(|owner| Note { owner, registered_at: 0 });
        (version == 1).then(read)
    }
}

struct Plan {
    name: String,
    owner: Address,
}

impl Kind for NoteTaken {
    type Plan = Plan;

    fn cost(&self, _: &Transaction, _: &dyn Read, _: &Rules) -> Result<Cost, StorageError> {
        Ok(Cost { field: "deposit", total: Some(DEPOSIT) })
    }

    fn check(&self, tx: &Transaction, state: &dyn Read, _: &Context<'_>) -> Result<Plan, TxError> {
        if view::contains::<Notes>(state, &self.name)? {
            let name = &self.name;
            // A code that blames no peer, whose state may be another. A real kind has one of its own.
            return Err(Rejection::new(Code::BlobExists, "name", name, "a new name").into());
        }
        Ok(Plan { name: self.name.clone(), owner: tx.from() })
    }

    fn work(_: &Plan) -> u64 {
        work::rows(2)
    }

    fn apply(plan: Plan, draft: &mut Draft, ctx: &Context<'_>) -> Result<Event, StorageError> {
        let Plan { name, owner } = plan;
        // A real kind has an event of its own.
        let miner_id = Hash::digest(name.as_bytes());
        ledger::burn(draft, DEPOSIT)?;
        draft.put::<Notes>(&name, &Note { owner, registered_at: ctx.timestamp });
        Ok(Event::MinerRegistered { miner_id })
    }
}

fn key() -> Keypair {
    Keypair::from_seed(&[1; 32])
}

fn chain() -> ChainRules {
    let forks = Forks { validator_vote: Some(V7), ..Forks::default() };
    let params = Params::default();
    let validators = vec![SetMember { public_key: key().public_key(), power: 1 }];
    ChainRules { chain_id: "test".to_owned(), genesis_hash: Hash::ZERO, params, forks, validators }
}

fn state() -> Arc<Memory> {
    let memory = Arc::new(Memory::default());
    let accounts = [(key().address(), Amount::new(2_500))].into();
    memory.apply(&chain().first_state(&accounts).unwrap());
    memory
}

/// A signed envelope. The made-up body does not travel in it, but one of a kind that waits for the same
/// height; everything else is the real thing.
fn envelope_of(nonce: u64) -> Transaction {
    let candidate_key = key().public_key();
    let body = Body::ValidatorVote(ValidatorVote::new(candidate_key, 1, 1));
    fixtures::parsed(&build_tx(&key(), &body, &Envelope::new(nonce, 0, None)))
}

fn rules(chain: &ChainRules, state: &Arc<Memory>, height: u64) -> Rules {
    Rules::at(chain, &**state, height).unwrap()
}

fn register(state: &Arc<Memory>, height: u64, nonce: u64, name: &str) -> Result<(), Code> {
    let chain = chain();
    let proposer = Address::default();
    let rules = rules(&chain, state, height);
    let ctx =
        Context { rules: &rules, height, timestamp: 77, proposer, position: 0, rankings: None };
    let mut draft = Draft::new(Arc::<Memory>::clone(state));
    let kind = NoteTaken { name: name.to_owned() };
    let fits = |_| Ok::<_, TxError>(());
    match envelope::execute(&kind, &envelope_of(nonce), &mut draft, &ctx, fits) {
        Ok(_) => {
            state.apply(&draft.into_changes());
            Ok(())
        }
        Err(TxError::Rejected(rejection)) => Err(rejection.code()),
        Err(TxError::Storage(fault)) => panic!("{fault}"),
    }
}

#[test]
fn a_new_kind_gets_fork_nonce_and_balance_from_the_envelope() {
    let state = state();
    assert_eq!(register(&state, V7 - 1, 0, "a"), Err(Code::ForkNotActive));
    assert_eq!(register(&state, V7, 1, "a"), Err(Code::NonceTooHigh));
    assert_eq!(register(&state, V7, 0, "a"), Ok(()));
    assert_eq!(register(&state, V7, 0, "b"), Err(Code::NonceStale));
    assert_eq!(register(&state, V7, 1, "a"), Err(Code::BlobExists));
    assert_eq!(register(&state, V7, 1, "b"), Ok(()));
    assert_eq!(register(&state, V7, 2, "c"), Err(Code::InsufficientBalance));
    let account = view::get::<Accounts>(&*state, &key().address()).unwrap().unwrap();
    assert_eq!((account.balance, account.nonce), (Amount::new(500), 2));
    let report = crate::invariants::verify(&*state, &Params::default()).unwrap();
    assert_eq!(report.broken, []);
}

#[test]
fn a_new_kind_touches_no_row_but_its_own_and_the_money() {
    let state = state();
    let before = state.rows();
    register(&state, V7, 0, "a").unwrap();
    let changed: Vec<_> = state.rows().into_iter().filter(|row| !before.contains(row)).collect();
    let names: Vec<_> = changed.iter().map(|(table, ..)| *table).collect();
    assert_eq!(names, ["accounts", "supply", "notes"]);
    assert!(tables::ALL.iter().all(|table| *table != Notes::ID), "the number is free");
}

#[test]
fn a_record_with_a_new_field_is_read_in_both_versions() {
    let owner = key().address();
    let old = [vec![1], codec::encode(&owner)].concat();
    let read = crate::table::decode_value::<Notes>(&old).unwrap();
    assert_eq!(read, Note { owner, registered_at: 0 });
    let new = crate::table::encode_value::<Notes>(&Note { owner, registered_at: 9 });
    assert_eq!(new.first(), Some(&2));
    assert_eq!(crate::table::decode_value::<Notes>(&new).unwrap().registered_at, 9);
    let unknown = [vec![3], codec::encode(&owner)].concat();
    assert!(matches!(
        crate::table::decode_value::<Notes>(&unknown),
        Err(StorageError::ValueVersion { found: 3, expected: 2, .. })
    ));
}

#[test]
fn tables_have_numbers_names_and_tags_of_their_own() {
    let numbers: BTreeSet<u8> = tables::ALL.iter().map(|table| table.number).collect();
    let names: BTreeSet<&str> = tables::ALL.iter().map(|table| table.name).collect();
    let tags: Vec<u8> = tables::ALL.iter().filter_map(|table| table.tag).collect();
    assert_eq!((numbers.len(), names.len()), (tables::ALL.len(), tables::ALL.len()));
    assert_eq!(tags.iter().collect::<BTreeSet<_>>().len(), tags.len());
    assert!(numbers.iter().all(|number| *number < 63), "from 64 on they are the database's");
}
