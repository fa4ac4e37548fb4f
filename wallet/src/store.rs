//! Wallet files on disk: written whole or not at all, readable by their owner only, kept by name in a folder.
//!
//! A wallet file of the public format does not tell its address, so the key store puts it into the
//! file's name: `NAME.ADDRESS.json`.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use types::Address;
use zeroize::Zeroizing;

use crate::encrypted::{decrypt, encrypt};
use crate::error::WalletFileFault;
use crate::file::write_new_file;
use crate::{Wallet, WalletError};

/// No wallet file is larger; a larger one is not read into memory.
const FILE_BYTES_MAX: u64 = 64 * 1024;
const NAME_CHARS_MAX: usize = 64;

/// Writes an encrypted wallet file with mode 0600. An existing file is never overwritten.
///
/// # Errors
/// When the file exists, the password is empty, or writing fails; then nothing is left behind.
pub fn write_wallet_file(path: &Path, wallet: &Wallet, password: &str) -> Result<(), WalletError> {
    let text = encrypt(wallet, password)?;
    write_new_file(path, text.as_bytes(), 0o600).map_err(|source| {
        let (path, is_taken) = (path.to_owned(), source.kind() == ErrorKind::AlreadyExists);
        if is_taken { WalletError::Exists(path) } else { WalletError::Io { path, source } }
    })
}

/// Opens an encrypted wallet file.
///
/// # Errors
/// When it cannot be read, is not a wallet file, or the password does not open it.
pub fn read_wallet_file(path: &Path, password: &str) -> Result<Wallet, WalletError> {
    let fault = |source| WalletError::Io { path: path.to_owned(), source };
    let mut text = Zeroizing::new(Vec::new());
    let file = File::open(path).map_err(fault)?;
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).map_err(fault)?;
    if u64::try_from(read).is_ok_and(|bytes| bytes > FILE_BYTES_MAX) {
        return Err(WalletError::NotAWalletFile(WalletFileFault::TooLarge));
    }
    decrypt(&text, password)
}

/// One wallet of a key store, as its file's name tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredWallet {
    /// The name given by its owner.
    pub name: String,
    /// The account's address.
    pub address: Address,
    /// The encrypted file.
    pub path: PathBuf,
}

/// A folder of wallet files.
#[derive(Clone, Debug)]
pub struct KeyStore {
    folder: PathBuf,
}

impl KeyStore {
    /// The key store in `folder`, which need not exist until the first wallet is added.
    #[must_use]
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The folder of this key store.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All wallets, by name. Files with other names are left out.
    ///
    /// # Errors
    /// When the folder cannot be read; a folder that does not exist is an empty key store.
    pub fn list(&self) -> Result<Vec<StoredWallet>, WalletError> {
        let fault = |source| WalletError::Io { path: self.folder.clone(), source };
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(fault(error)),
        };
        let mut wallets = Vec::new();
        for entry in entries {
            wallets.extend(stored_wallet(entry.map_err(fault)?.path()));
        }
        wallets.sort_by(|left, right| (&left.name, &left.path).cmp(&(&right.name, &right.path)));
        Ok(wallets)
    }

    /// The wallet of this name.
    ///
    /// # Errors
    /// When there is none, when several files have the name, or when the folder cannot be read.
    pub fn find(&self, name: &str) -> Result<StoredWallet, WalletError> {
        let mut named = self.list()?.into_iter().filter(|stored| stored.name == name);
        let name = name.to_owned();
        let Some(first) = named.next() else {
            return Err(WalletError::NotFound { name, folder: self.folder.clone() });
        };
        match named.next() {
            None => Ok(first),
            Some(other) => {
                Err(WalletError::Ambiguous { name, first: first.path, other: other.path })
            }
        }
    }

    /// Adds a wallet under a new name and makes the folder (0700) if it is missing.
    ///
    /// # Errors
    /// When the name is not allowed or taken, the password is empty, or writing fails.
    pub fn add(
        &self,
        name: &str,
        wallet: &Wallet,
        password: &str,
    ) -> Result<StoredWallet, WalletError> {
        check_name(name)?;
        if let Some(taken) = self.list()?.into_iter().find(|stored| stored.name == name) {
            return Err(WalletError::Exists(taken.path));
        }
        self.make_folder()?;
        let address = wallet.address();
        let path = self.folder.join(format!("{name}.{address}.json"));
        write_wallet_file(&path, wallet, password)?;
        Ok(StoredWallet { name: name.to_owned(), address, path })
    }

    /// Opens the wallet of this name.
    ///
    /// # Errors
    /// When there is none, the password does not open it, or its key is not of the address in its name.
    pub fn open(&self, name: &str, password: &str) -> Result<Wallet, WalletError> {
        let stored = self.find(name)?;
        let wallet = read_wallet_file(&stored.path, password)?;
        if wallet.address() != stored.address {
            return Err(WalletError::Inconsistent("file name"));
        }
        Ok(wallet)
    }

    fn make_folder(&self) -> Result<(), WalletError> {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(|source| WalletError::Io { path: self.folder.clone(), source })
    }
}

/// Reads `NAME.ADDRESS.json`.
fn stored_wallet(path: PathBuf) -> Option<StoredWallet> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".json")?;
    let (name, address) = stem.split_once('.')?;
    check_name(name).ok()?;
    let (name, address) = (name.to_owned(), address.parse().ok()?);
    Some(StoredWallet { name, address, path })
}

fn check_name(name: &str) -> Result<(), WalletError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let right = (1..=NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(allowed);
    if right { Ok(()) } else { Err(WalletError::BadName) }
}

#[cfg(test)]
mod tests;
