//! What can go wrong with keys and wallet files.

use std::path::PathBuf;

use crate::chain_identity::{ChainIdentity, OtherChain};

/// A fault of keys, words or wallet files. No message ever holds a secret.
#[derive(Debug, thiserror::Error)]
pub enum WalletError {
    /// The words are not a mnemonic of the English list with a right checksum.
    #[error("the words are not a valid mnemonic: {0}")]
    BadMnemonic(#[source] bip39::Error),
    /// The mnemonic has another number of words than 12 or 24.
    #[error("a mnemonic has 12 or 24 words, this one has {0}")]
    WordCount(usize),
    /// The derivation index is 2^31 or more.
    #[error("a derivation index is below 2147483648, this one is {0}")]
    IndexTooHigh(u32),
    /// BIP-32 gave no key for this index (about once in 2^127 indexes).
    #[error("no key exists at this index")]
    NoKeyAtIndex(#[source] bip32::Error),
    /// A private key is not 64 hexadecimal characters.
    #[error("a private key is 64 hexadecimal characters")]
    BadPrivateKey,
    /// The system gave no random bytes.
    #[error("the operating system gave no random bytes")]
    NoRandomness(#[source] getrandom::Error),
    /// The text is not a wallet file.
    #[error("not a wallet file: {0}")]
    NotAWalletFile(WalletFileFault),
    /// The file is of a version that this program does not know.
    #[error("wallet file version {0} is not supported, only version 1 is")]
    UnknownVersion(u64),
    /// The password is wrong, or the file was changed: authenticated encryption cannot tell which.
    #[error("wrong password, or the wallet file is damaged")]
    WrongPassword,
    /// An empty password was given for a new file.
    #[error("the password is empty")]
    EmptyPassword,
    /// The decrypted file contradicts itself.
    #[error("the wallet file contradicts itself: its {0} does not belong to its private key")]
    Inconsistent(&'static str),
    /// The wallet was made from a bare private key, so no words exist.
    #[error("this wallet was made from a private key: it has no mnemonic")]
    NoMnemonic,
    /// A name in the key store is not 1 to 64 characters of letters, digits, `-` and `_`.
    #[error("a wallet name is 1 to 64 letters, digits, '-' or '_'")]
    BadName,
    /// The key store already has a wallet of this name, or the file exists.
    #[error("{0} exists already and is not overwritten")]
    Exists(PathBuf),
    /// The key store has no wallet of this name.
    #[error("no wallet named {name} in {folder}")]
    NotFound {
        /// The name asked for.
        name: String,
        /// The key store's folder.
        folder: PathBuf,
    },
    /// Two files of the key store have the same name, but not the same address.
    #[error(
        "two wallets have the name {name}: {first} and {other}. Give the path of the file that you \
         mean, or move the other one out of the folder"
    )]
    Ambiguous {
        /// The name asked for.
        name: String,
        /// One file.
        first: PathBuf,
        /// The other.
        other: PathBuf,
    },
    /// The node is of another chain than the one that the key was used on.
    #[error(
        "nothing was signed: {other}. {path} remembers the expected chain, on which the key was \
         used before"
    )]
    OtherChain {
        /// The file that remembers.
        path: PathBuf,
        /// Both chains.
        other: Box<OtherChain>,
    },
    /// The node is of another chain than the one that the user named.
    #[error("nothing was signed: expected chain {named}; the node is on chain {got}")]
    NotTheNamed {
        /// The chain that the user gave.
        named: String,
        /// The chain that the node names.
        got: Box<ChainIdentity>,
    },
    /// The node names a chain id that no genesis file can have.
    #[error(
        "nothing was signed: the node names the chain id {got:?}, expected 1 to 64 of [A-Za-z0-9._-]"
    )]
    BadChainId {
        /// What it names, shortened.
        got: String,
    },
    /// The chain of a key's first use cannot be written down.
    #[error("the key's chain cannot be remembered in {path}, so nothing is signed: {source}")]
    ChainNotKept {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file that remembers a key's chain cannot be understood.
    #[error("nothing was signed: {path} does not say which chain the key is used on: {why}")]
    ChainDamaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Reading or writing failed.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder concerned.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Why a text is not a wallet file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalletFileFault {
    /// It is not a JSON object with the four fields.
    #[error("expected a JSON object with salt, iv, ciphertext and v")]
    Shape,
    /// The salt is not 16 bytes in hexadecimal.
    #[error("salt is not 32 hexadecimal characters")]
    Salt,
    /// The IV is not 12 bytes in hexadecimal.
    #[error("iv is not 24 hexadecimal characters")]
    Iv,
    /// The ciphertext is not hexadecimal or shorter than its tag.
    #[error("ciphertext is not hexadecimal or too short")]
    Ciphertext,
    /// The file is larger than any wallet file.
    #[error("it is larger than 64 KiB")]
    TooLarge,
    /// What was decrypted is not a wallet.
    #[error("what it encrypts is not a wallet")]
    Plaintext,
}
