//! Files and the key store, in temporary folders.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tempfile::TempDir;

use super::{KeyStore, read_wallet_file, write_wallet_file};
use crate::error::WalletFileFault;
use crate::{Wallet, WalletError};

/// A folder that is gone at the end, and the place of a wallet file in it.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.json");
    (folder, path)
}

fn wallet(byte: &str) -> Wallet {
    Wallet::from_private_key(&byte.repeat(32)).unwrap()
}

#[test]
fn a_wallet_file_is_private_to_its_owner_and_nothing_else_is_left() {
    let (folder, path) = place();
    write_wallet_file(&path, &wallet("01"), "pw").unwrap();
    assert_eq!(0o600, fs::metadata(&path).unwrap().permissions().mode() & 0o777);
    assert_eq!(1, fs::read_dir(folder.path()).unwrap().count());
    assert_eq!(wallet("01").address(), read_wallet_file(&path, "pw").unwrap().address());
}

#[test]
fn an_existing_file_is_never_overwritten() {
    let (folder, path) = place();
    fs::write(&path, "mine").unwrap();
    let refused = write_wallet_file(&path, &wallet("01"), "pw");
    assert!(matches!(refused, Err(WalletError::Exists(taken)) if taken == path));
    assert_eq!("mine", fs::read_to_string(&path).unwrap());
    assert_eq!(1, fs::read_dir(folder.path()).unwrap().count());
}

#[test]
fn a_huge_file_is_refused_without_being_read() {
    let (_folder, path) = place();
    fs::File::create(&path).unwrap().set_len(1 << 40).unwrap();
    let refused = read_wallet_file(&path, "pw");
    assert!(matches!(refused, Err(WalletError::NotAWalletFile(WalletFileFault::TooLarge))));
}

#[test]
fn the_key_store_lists_by_name_and_opens_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = KeyStore::at(folder.path().join("deep/keys"));
    assert!(store.list().unwrap().is_empty());
    let second = store.add("bob", &wallet("02"), "b").unwrap();
    let first = store.add("alice", &wallet("01"), "a").unwrap();
    fs::write(store.folder().join("notes.txt"), "").unwrap();
    fs::write(store.folder().join("x.y.json"), "").unwrap();
    assert_eq!(vec![first.clone(), second], store.list().unwrap());
    assert_eq!(0o700, fs::metadata(store.folder()).unwrap().permissions().mode() & 0o777);
    assert_eq!(first.address, store.open("alice", "a").unwrap().address());
    assert!(matches!(store.open("alice", "b"), Err(WalletError::WrongPassword)));
    assert!(matches!(store.open("carol", "b"), Err(WalletError::NotFound { .. })));
}

#[test]
fn a_name_is_taken_once_and_must_be_plain() {
    let folder = tempfile::tempdir().unwrap();
    let store = KeyStore::at(folder.path().to_owned());
    store.add("alice", &wallet("01"), "a").unwrap();
    assert!(matches!(store.add("alice", &wallet("02"), "a"), Err(WalletError::Exists(_))));
    let long = "x".repeat(65);
    for name in ["", "..", "a/b", "a.b", "a b", long.as_str()] {
        let refused = store.add(name, &wallet("02"), "a");
        assert!(matches!(refused, Err(WalletError::BadName)), "{name}");
    }
}

#[test]
fn a_name_that_two_files_have_opens_neither_and_both_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = KeyStore::at(folder.path().to_owned());
    let mut files = vec![store.add("alice", &wallet("01"), "a").unwrap().path];
    // A backup that was copied into the folder.
    files.push(folder.path().join(format!("alice.{}.json", wallet("02").address())));
    write_wallet_file(&files[1], &wallet("02"), "a").unwrap();
    files.sort();
    for refused in [store.find("alice").unwrap_err(), store.open("alice", "a").unwrap_err()] {
        let WalletError::Ambiguous { first, other, .. } = &refused else { panic!("{refused}") };
        assert_eq!(files, [first.clone(), other.clone()]);
    }
    assert_eq!(2, store.list().unwrap().len());
}

#[test]
fn a_file_under_anothers_address_is_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let store = KeyStore::at(folder.path().to_owned());
    let stored = store.add("alice", &wallet("01"), "a").unwrap();
    let other = folder.path().join(format!("bob.{}.json", wallet("02").address()));
    fs::rename(stored.path, other).unwrap();
    assert!(matches!(store.open("bob", "a"), Err(WalletError::Inconsistent("file name"))));
}
