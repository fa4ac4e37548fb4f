//! A key that has been used on a chain signs for no other unless its user says so.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;
use types::Hash;

use super::{Bond, ChainIdentity, ChainMemory, named_id};
use crate::WalletError;

fn chain(id: &str, genesis: &[u8]) -> ChainIdentity {
    ChainIdentity { chain_id: id.into(), genesis_hash: Hash::digest(genesis) }
}

fn home() -> ChainIdentity {
    chain("home", b"home")
}

/// The memory of a key in a folder that is gone at the end.
fn memory() -> (TempDir, ChainMemory) {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("alice.json");
    fs::write(&key, "key").unwrap();
    (folder, ChainMemory::beside(&key))
}

#[test]
fn the_first_use_is_remembered_beside_the_key_for_its_owner_alone() {
    let (folder, memory) = memory();
    assert_eq!(None, memory.recall().unwrap());
    assert_eq!(Bond::New, memory.bind(&home(), None).unwrap());
    assert_eq!(Some(home()), memory.recall().unwrap());
    assert_eq!(Bond::Known, memory.bind(&home(), None).unwrap());
    let file = folder.path().canonicalize().unwrap().join("alice.json.chain");
    assert_eq!(file, memory.path());
    assert_eq!(0o600, fs::metadata(&file).unwrap().permissions().mode() & 0o777);
    assert_eq!(2, fs::read_dir(folder.path()).unwrap().count());
}

#[test]
fn another_chain_is_refused_with_both_ids_and_both_genesis_hashes() {
    let (_folder, memory) = memory();
    memory.bind(&home(), None).unwrap();
    for other in [chain("away", b"home"), chain("home", b"away"), chain("away", b"away")] {
        let refused = memory.bind(&other, None).unwrap_err();
        assert!(matches!(refused, WalletError::OtherChain { .. }), "{refused}");
        let text = refused.to_string();
        for part in [&home(), &other] {
            assert!(text.contains(&part.to_string()), "{text}");
        }
        assert_eq!(Some(home()), memory.recall().unwrap());
    }
}

#[test]
fn a_chain_that_the_user_names_is_signed_for_and_the_first_one_stays_remembered() {
    let (_folder, memory) = memory();
    assert_eq!(Bond::New, memory.bind(&home(), Some("home")).unwrap());
    let away = chain("away", b"away");
    assert_eq!(Bond::Once, memory.bind(&away, Some("away")).unwrap());
    assert_eq!(Bond::Once, memory.bind(&chain("home", b"anew"), Some("home")).unwrap());
    assert!(matches!(memory.bind(&away, None), Err(WalletError::OtherChain { .. })));
    assert_eq!(Bond::Known, memory.bind(&home(), Some("home")).unwrap());
    // A node that is of another chain than the user named is refused whatever is remembered.
    let refused = memory.bind(&home(), Some("away")).unwrap_err();
    assert!(matches!(refused, WalletError::NotTheNamed { .. }), "{refused}");
}

#[test]
fn a_user_who_names_the_genesis_too_leaves_nothing_to_the_first_node() {
    let (_folder, memory) = memory();
    let named = format!("home@{}", home().genesis_hash);
    let forged = chain("home", b"forged");
    let wrong = [&named, "home@", "home@7", "@", &format!("{named}@{named}")];
    for (got, named) in wrong.into_iter().map(|named| (&forged, named)).chain([
        (&home(), "away@"),
        (&home(), named.replace("home", "away").as_str()),
        (&home(), named.to_uppercase().as_str()),
    ]) {
        let refused = memory.bind(got, Some(named)).unwrap_err();
        assert!(matches!(refused, WalletError::NotTheNamed { .. }), "{named}: {refused}");
    }
    assert_eq!(None, memory.recall().unwrap());
    assert_eq!(Bond::New, memory.bind(&home(), Some(&named)).unwrap());
    assert_eq!(Some(home()), memory.recall().unwrap());
    assert_eq!(Bond::Known, memory.bind(&home(), Some(&named)).unwrap());
    assert_eq!(("home", "home", ""), (named_id(&named), named_id("home"), named_id("@x")));
}

#[test]
fn without_a_place_to_remember_only_a_named_chain_is_signed_for() {
    let folder = tempfile::tempdir().unwrap();
    // A folder that is not there refuses everybody; one without write permission not root.
    let memory = ChainMemory::beside(&folder.path().join("gone/alice.json"));
    let refused = memory.bind(&home(), None).unwrap_err();
    assert!(matches!(refused, WalletError::ChainNotKept { .. }), "{refused}");
    assert_eq!(Bond::Once, memory.bind(&home(), Some("home")).unwrap());
}

#[test]
fn a_memory_that_cannot_be_understood_is_no_first_use() {
    let (_folder, memory) = memory();
    let hash = Hash::ZERO;
    for text in [
        String::new(),
        "{}".into(),
        format!(r#"{{"v":2,"chainId":"home","genesisHash":"{hash}"}}"#),
        format!(r#"{{"v":1,"chainId":"a b","genesisHash":"{hash}"}}"#),
        format!(r#"{{"v":1,"chainId":"{}","genesisHash":"{hash}"}}"#, "x".repeat(5_000)),
    ] {
        fs::write(memory.path(), &text).unwrap();
        let refused = memory.bind(&home(), None).unwrap_err();
        assert!(matches!(refused, WalletError::ChainDamaged { .. }), "{text}: {refused}");
    }
    fs::remove_file(memory.path()).unwrap();
    fs::create_dir(memory.path()).unwrap();
    assert!(matches!(memory.bind(&home(), None), Err(WalletError::Io { .. })));
}

#[test]
fn a_chain_id_that_no_genesis_can_have_is_refused() {
    let (_folder, memory) = memory();
    for id in ["", "a\u{1b}[2J", "a b", &"x".repeat(65)] {
        let refused = memory.bind(&chain(id, b""), Some(id)).unwrap_err();
        assert!(matches!(refused, WalletError::BadChainId { .. }), "{refused}");
    }
    assert_eq!(None, memory.recall().unwrap());
}

#[expect(clippy::needless_collect, reason = "all threads are started before one is waited for")]
#[test]
fn of_many_first_uses_at_once_one_decides() {
    let (_folder, memory) = memory();
    let chains: Vec<_> = (0..16).map(|number| chain(&format!("c{number}"), b"")).collect();
    let memory = &memory;
    let bound: Vec<_> = std::thread::scope(|scope| {
        let bind = |chain| scope.spawn(move || memory.bind(chain, None).ok());
        let threads: Vec<_> = chains.iter().map(bind).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let winners: Vec<_> = chains
        .iter()
        .zip(&bound)
        .filter(|(_, bond)| bond.is_some())
        .map(|(chain, _)| chain)
        .collect();
    let [winner] = winners.as_slice() else { panic!("{bound:?}") };
    assert_eq!(Some((*winner).clone()), memory.recall().unwrap());
}

#[test]
fn a_copy_of_a_key_takes_over_what_the_first_remembers() {
    let (folder, memory) = memory();
    let copy = ChainMemory::beside(&folder.path().join("copy.json"));
    copy.inherit(&memory).unwrap();
    assert_eq!(None, copy.recall().unwrap());
    memory.bind(&home(), None).unwrap();
    copy.inherit(&memory).unwrap();
    assert_eq!(Some(home()), copy.recall().unwrap());
}

#[test]
fn a_symbolic_link_shares_the_memory_of_the_key_that_it_leads_to() {
    let (folder, memory) = memory();
    let link = folder.path().join("link.json");
    std::os::unix::fs::symlink(folder.path().join("alice.json"), &link).unwrap();
    assert_eq!(memory, ChainMemory::beside(&link));
}

#[test]
fn a_remembered_chain_on_a_read_only_file_is_still_known() {
    let (folder, memory) = memory();
    memory.bind(&home(), None).unwrap();
    fs::set_permissions(memory.path(), Permissions::from_mode(0o400)).unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o500)).unwrap();
    assert_eq!(Bond::Known, memory.bind(&home(), None).unwrap());
    fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
}
