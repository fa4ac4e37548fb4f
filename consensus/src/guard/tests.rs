//! The guard over restarts, torn writes and strange files.

use super::*;
use crate::testing::key;

const A: Hash = Hash::new([1; 32]);
const B: Hash = Hash::new([2; 32]);
const C: Hash = Hash::new([3; 32]);

struct Desk {
    directory: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a directory") }
    }

    fn open(&self) -> Guard {
        self.try_open("chain", 1).expect("a guard")
    }

    fn try_open(&self, chain: &str, seed: u8) -> Result<Guard, GuardError> {
        self.try_open_in(&domain(chain, 0, None), seed)
    }

    fn try_open_in(&self, domain: &Domain, seed: u8) -> Result<Guard, GuardError> {
        Guard::open(self.directory.path(), domain, &key(seed).public_key(), 0)
    }

    /// Opens it where the key may have signed up to a height if there is no record.
    fn open_after(&self, height: u64) -> Guard {
        let key = key(1).public_key();
        Guard::open(self.directory.path(), &domain("chain", 0, None), &key, height)
            .expect("a guard")
    }

    fn file(&self) -> File {
        let path = self.directory.path().join(FILE_NAME);
        OpenOptions::new().read(true).write(true).open(path).expect("the record")
    }
}

fn domain(chain_id: &str, genesis: u8, v7_from: Option<u64>) -> Domain {
    Domain { chain_id: chain_id.into(), genesis_hash: Hash::new([genesis; 32]), v7_from }
}

fn conflicts(result: Result<(), GuardError>) -> bool {
    matches!(result, Err(GuardError::Conflict { .. }))
}

fn older(result: Result<(), GuardError>) -> bool {
    matches!(result, Err(GuardError::Older { .. }))
}

#[test]
fn a_conflicting_vote_is_refused_after_a_restart() {
    let desk = Desk::new();
    desk.open().permit(5, 0, Kind::Prevote, A).expect("first vote");

    let guard = desk.open();
    assert!(conflicts(guard.permit(5, 0, Kind::Prevote, B)));
    guard.permit(5, 0, Kind::Prevote, A).expect("the same vote again");
    guard.permit(5, 0, Kind::Precommit, B).expect("another kind");
    assert!(conflicts(guard.permit(5, 0, Kind::Precommit, A)));
}

#[test]
fn nothing_below_the_last_position_is_signed() {
    let desk = Desk::new();
    desk.open().permit(5, 3, Kind::Precommit, A).expect("first vote");
    let guard = desk.open();
    assert!(older(guard.permit(5, 2, Kind::Precommit, A)));
    assert!(older(guard.permit(4, 9, Kind::Prevote, B)));
    guard.permit(5, 4, Kind::Prevote, B).expect("a later round");
    guard.permit(6, 0, Kind::Prevote, B).expect("a later height");
    assert!(older(guard.permit(5, 4, Kind::Precommit, A)));
}

#[test]
fn one_record_covers_a_whole_round_of_the_only_validator() {
    let desk = Desk::new();
    {
        let guard = desk.open();
        guard.permit_alone(9, 0, [A, B, C]).expect("proposal");
        let before = guard.state.lock().record.sequence;
        guard.permit(9, 0, Kind::Prevote, B).expect("the reserved prevote");
        guard.permit(9, 0, Kind::Precommit, C).expect("the reserved precommit");
        assert_eq!(guard.state.lock().record.sequence, before, "nothing was written");
        assert!(conflicts(guard.permit(9, 0, Kind::Prevote, C)));
    }
    let guard = desk.open();
    assert!(conflicts(guard.permit(9, 0, Kind::Precommit, A)));
    guard.permit_alone(9, 0, [A, B, C]).expect("the same again");
    assert!(conflicts(guard.permit_alone(9, 0, [B, B, C])));
}

#[test]
fn a_reservation_can_be_replaced_until_it_is_used_or_the_process_ends() {
    let desk = Desk::new();
    let guard = desk.open();
    guard.permit_alone(9, 0, [A, B, C]).expect("proposal");
    guard.permit(9, 0, Kind::Prevote, A).expect("prevote nil instead");
    assert!(conflicts(guard.permit(9, 0, Kind::Prevote, B)));
    drop(guard);
    let guard = desk.open();
    assert!(conflicts(guard.permit(9, 0, Kind::Precommit, A)));
    guard.permit(9, 0, Kind::Precommit, C).expect("as reserved");
}

#[test]
fn a_key_without_a_record_may_have_signed_until_its_operator_says_otherwise() {
    let desk = Desk::new();
    let unknown = LastSigned { height: 9, round: -1 };
    for height in [9, 20, 0] {
        assert_eq!(desk.open_after(height).last(), unknown, "only the first start counts");
    }
    assert_eq!(last_signed(desk.directory.path()).expect("a record"), Some(unknown));
    assert!(older(desk.open().permit(8, 9, Kind::Prevote, A)));
    desk.open().permit(10, 0, Kind::Prevote, A).expect("a later height");

    crate::archive_last_signed(desk.directory.path()).expect("moved");
    let guard = desk.open_after(9);
    assert_eq!(guard.last(), LastSigned { height: 0, round: -1 });
    guard.permit(5, 0, Kind::Prevote, A).expect("whatever it signs first");
    drop(guard);
    assert!(conflicts(desk.open().permit(5, 0, Kind::Prevote, B)));
    assert!(matches!(desk.try_open("chain", 2), Err(GuardError::Owner { .. })), "it has an owner");
}

#[test]
fn a_vote_for_nil_alone_forbids_nothing_and_is_not_old() {
    let desk = Desk::new();
    let guard = desk.open();
    guard.permit_nil_alone(9, 1).expect("nothing was signed");
    guard.permit_alone(9, 1, [A, B, C]).expect("proposal");
    guard.permit_nil_alone(9, 1).expect("the same round");
    guard.permit(9, 1, Kind::Prevote, B).expect("the reserved prevote");
    assert!(older(guard.permit_nil_alone(9, 0)));
    assert!(older(guard.permit_nil_alone(8, 7)));
}

#[test]
fn a_torn_write_leaves_the_record_before_it() {
    let desk = Desk::new();
    let last = {
        let guard = desk.open();
        guard.permit(1, 0, Kind::Prevote, A).expect("vote");
        guard.permit(2, 0, Kind::Prevote, A).expect("vote");
        guard.state.lock().record.sequence
    };
    let torn = SLOT_OFFSETS[usize::from(!last.is_multiple_of(2))];
    desk.file().write_all_at(&[0xff; 100], torn + 50).expect("damage");
    let guard = desk.open();
    assert!(older(guard.permit(0, 9, Kind::Prevote, A)));
    assert!(conflicts(guard.permit(1, 0, Kind::Prevote, B)));
    guard.permit(2, 0, Kind::Prevote, A).expect("the torn vote was never released");
}

#[test]
fn what_is_found_is_written_again_before_anything_is_signed() {
    let desk = Desk::new();
    {
        let guard = desk.open();
        guard.permit(1, 0, Kind::Prevote, A).expect("vote");
        guard.permit(2, 0, Kind::Prevote, A).expect("vote");
    }
    let last = desk.open().state.lock().record.sequence;
    // The slot in which it was found: its bytes may never have come to the disk.
    let found = SLOT_OFFSETS[usize::from(last.is_multiple_of(2))];
    desk.file().write_all_at(&[0xff; 100], found + 50).expect("damage");
    assert!(conflicts(desk.open().permit(2, 0, Kind::Prevote, B)));
}

#[test]
fn a_damaged_foreign_or_busy_record_is_an_error() {
    let desk = Desk::new();
    let guard = desk.open();
    assert!(matches!(desk.try_open("chain", 1), Err(GuardError::InUse { .. })));
    guard.permit(1, 0, Kind::Prevote, A).expect("vote");
    drop(guard);
    assert!(matches!(desk.try_open("other", 1), Err(GuardError::Owner { .. })));
    assert!(matches!(desk.try_open("chain", 2), Err(GuardError::Owner { .. })));
    desk.file().write_all_at(&[0xff; 1024], 0).expect("damage");
    assert!(matches!(desk.try_open("chain", 1), Err(GuardError::Damaged { .. })));
}

#[test]
fn the_record_of_a_stopped_node_can_be_read_and_set_aside() {
    let desk = Desk::new();
    let look = || last_signed(desk.directory.path());
    assert_eq!(look().expect("no record"), None);
    for _ in 0..2 {
        let guard = desk.open();
        assert!(matches!(look(), Err(GuardError::InUse { .. })));
        drop(guard);
        assert_eq!(look().expect("a record"), None, "nothing was signed");
        desk.open().permit(7, 2, Kind::Prevote, A).expect("the first");
        assert_eq!(look().expect("a record"), Some(LastSigned { height: 7, round: 2 }));
        let kept = crate::archive_last_signed(desk.directory.path()).expect("moved");
        assert!(kept.is_some_and(|kept| kept.exists()));
        assert_eq!(look().expect("a blank record"), None);
    }
}

#[test]
fn the_record_of_a_chain_that_goes_over_to_v7_is_taken_as_it_is() {
    let desk = Desk::new();
    desk.open().permit(5, 0, Kind::Prevote, A).expect("before v7");
    let guard = desk.try_open_in(&domain("chain", 0, Some(6)), 1).expect("the same record");
    assert!(conflicts(guard.permit(5, 0, Kind::Prevote, B)));
    drop(guard);
    desk.open();
}

#[test]
fn a_record_of_a_v7_chain_is_refused_on_another_genesis_with_the_same_id() {
    let desk = Desk::new();
    desk.try_open_in(&domain("chain", 1, Some(0)), 1).expect("a new record");
    desk.try_open_in(&domain("chain", 1, Some(0)), 1).expect("the same chain");
    let other = desk.try_open_in(&domain("chain", 2, Some(0)), 1);
    assert!(matches!(other, Err(GuardError::Owner { .. })));
}
