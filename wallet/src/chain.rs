//! Which chain a key signs for. A signature is bound to a chain id, and only a node says which chain it
//! is of; so the id is remembered beside the key at its first use, and no node can change it later.
//!
//! ```text
//! alice.json        the key
//! alice.json.chain  {"v":1,"chainId":"…","genesisHash":"…"}, mode 0600
//! ```

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use crate::chain_identity::{ChainIdentity, OtherChain};
use crate::error::WalletError;
use crate::file::write_new_file;

/// What the name of the file beside the key ends with.
const SUFFIX: &str = ".chain";
const VERSION: u64 = 1;
/// The longest id that a genesis file may give a chain.
const ID_BYTES_MAX: usize = 64;
/// A larger file is none of ours and is not read into memory.
const FILE_BYTES_MAX: u64 = 4096;

/// The file as it is written.
#[derive(Serialize, Deserialize)]
struct Remembered {
    v: u64,
    #[serde(flatten)]
    chain: ChainIdentity,
}

/// How a key came to sign for a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bond {
    /// It has done so before.
    Known,
    /// It does so from now on: nothing was remembered before.
    New,
    /// Only this time, because the chain was named; another one stays remembered.
    Once,
}

/// Where the chain of one key is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainMemory {
    path: PathBuf,
}

impl ChainMemory {
    /// The memory beside a key's file; of a symbolic link, beside what it leads to.
    #[must_use]
    pub fn beside(key_file: &Path) -> Self {
        let file = fs::canonicalize(key_file).unwrap_or_else(|_| key_file.to_owned());
        let mut path = file.into_os_string();
        path.push(SUFFIX);
        Self { path: path.into() }
    }

    /// The file, whether it exists or not.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The chain that is remembered; none before the first use.
    ///
    /// # Errors
    /// When there is a file that cannot be read. It is never taken for a first use then.
    pub fn recall(&self) -> Result<Option<ChainIdentity>, WalletError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(WalletError::Io { path: self.path.clone(), source }),
        };
        let mut text = Vec::new();
        file.take(FILE_BYTES_MAX)
            .read_to_end(&mut text)
            .map_err(|source| WalletError::Io { path: self.path.clone(), source })?;
        let damaged = |why: String| WalletError::ChainDamaged { path: self.path.clone(), why };
        let read: Remembered =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if read.v != VERSION {
            return Err(damaged(format!("version {}, expected {VERSION}", read.v)));
        }
        if !is_id(&read.chain.chain_id) {
            return Err(damaged(expected_id(&read.chain.chain_id)));
        }
        Ok(Some(read.chain))
    }

    /// Decides whether the key signs for the chain that a node names; none if nothing is remembered
    /// yet. `named` is the chain that the user has given, as [`check_named`] takes it: it stands above
    /// what is remembered, and leaves that as it is.
    ///
    /// # Errors
    /// [`WalletError::OtherChain`] if the key is used on another chain, [`WalletError::NotTheNamed`]
    /// if the node is of another chain than the user named.
    pub fn check(
        &self,
        got: &ChainIdentity,
        named: Option<&str>,
    ) -> Result<Option<Bond>, WalletError> {
        check_id(got)?;
        if let Some(named) = named {
            check_named(got, named)?;
        }
        let Some(known) = self.recall()? else { return Ok(None) };
        match (known == *got, named) {
            (true, _) => Ok(Some(Bond::Known)),
            (false, Some(_)) => Ok(Some(Bond::Once)),
            (false, None) => {
                let other = OtherChain { expected: known, got: got.clone() };
                Err(WalletError::OtherChain { path: self.path.clone(), other: Box::new(other) })
            }
        }
    }

    /// The same, and remembers the chain at the key's first use. Of two processes that use a key for
    /// the first time at the same time the first to write decides for both.
    ///
    /// # Errors
    /// As for [`ChainMemory::check`], and when the chain cannot be remembered although the user has
    /// not named it.
    pub fn bind(&self, got: &ChainIdentity, named: Option<&str>) -> Result<Bond, WalletError> {
        if let Some(bond) = self.check(got, named)? {
            return Ok(bond);
        }
        match self.keep(got) {
            Ok(()) => Ok(Bond::New),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.check(got, named)?.ok_or_else(|| self.unkept(error))
            }
            // The user's word is there each time; the node's is not to be trusted twice.
            Err(_) if named.is_some() => Ok(Bond::Once),
            Err(error) => Err(self.unkept(error)),
        }
    }

    /// Takes over what another copy of the same key remembers, if this one remembers nothing yet.
    ///
    /// # Errors
    /// When either file cannot be read or written.
    pub fn inherit(&self, from: &Self) -> Result<(), WalletError> {
        let Some(chain) = from.recall()? else { return Ok(()) };
        match self.keep(&chain) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(source) => Err(WalletError::Io { path: self.path.clone(), source }),
        }
    }

    fn keep(&self, chain: &ChainIdentity) -> io::Result<()> {
        let mut text = serde_json::to_vec(&Remembered { v: VERSION, chain: chain.clone() })?;
        text.push(b'\n');
        write_new_file(&self.path, &text, 0o600)
    }

    fn unkept(&self, source: io::Error) -> WalletError {
        WalletError::ChainNotKept { path: self.path.clone(), source }
    }
}

/// Between a chain's id, which cannot have it, and the hash of its genesis file.
const SEPARATOR: char = '@';

/// The chain id of a chain that the user named, as `ID` or as `ID@GENESIS`.
#[must_use]
pub fn named_id(named: &str) -> &str {
    named.split_once(SEPARATOR).map_or(named, |(id, _)| id)
}

/// Checks that a node is of the chain that the user named: by its id, and by the hash of its genesis
/// file where that was named, too.
///
/// # Errors
/// [`WalletError::NotTheNamed`].
pub fn check_named(got: &ChainIdentity, named: &str) -> Result<(), WalletError> {
    let genesis = named.split_once(SEPARATOR).map(|(_, genesis)| genesis);
    let is_genesis = genesis.is_none_or(|it| it.parse() == Ok(got.genesis_hash));
    if got.chain_id == named_id(named) && is_genesis {
        return Ok(());
    }
    Err(WalletError::NotTheNamed { named: named.to_owned(), got: Box::new(got.clone()) })
}

/// Checks that a node names a chain id as genesis files have it.
///
/// # Errors
/// [`WalletError::BadChainId`].
pub fn check_id(got: &ChainIdentity) -> Result<(), WalletError> {
    if is_id(&got.chain_id) {
        return Ok(());
    }
    Err(WalletError::BadChainId { got: types::text::shorten(&got.chain_id) })
}

fn is_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_plain)
}

fn expected_id(id: &str) -> String {
    let id = types::text::shorten(id);
    format!("chainId {id:?}, expected 1 to {ID_BYTES_MAX} letters, digits, '.', '_' or '-'")
}

#[cfg(test)]
mod tests;
