//! Keys and a client: what a person needs to own an account of the chain and to talk to a node.
//!
//! ```text
//! words --BIP-39--> seed --BIP-32 m/44'/7777'/0'/0/i--> Ed25519 seed --> Keypair
//!                                                                        |
//! wallet file <--AES-256-GCM, PBKDF2--> Wallet --------------------------+--> Signed
//!                                                                              |
//!                                               Client --JSON-RPC------------> node
//! ```
//!
//! Invariants: a secret never leaves a [`Wallet`] except by a method whose name says so; no `Debug`
//! output holds one; secrets are wiped from memory when they are dropped; wallet files are private
//! to their owner (0600) and appear whole or not at all. The first time a key signs, the wallet
//! accepts the chain that the node names, and remembers it. After that, the key does not sign for a
//! chain that only a node names.
//!
//! Entry points: [`Phrase`] (words and derivation), [`Wallet`], [`encrypted`] (the file format),
//! [`KeyStore`] (a folder of wallet files), [`ChainMemory`] (which chain a key signs for),
//! [`accounts`] (development accounts), [`sign`] (building and signing), [`calls`] (what calls of
//! agents cost), [`Client`] (JSON-RPC).
//!
//! Not here: prompts, printing, configuration (the command line has them); ledger rules (`types`, `state`).

pub mod accounts;
pub mod calls;
pub mod chain;
mod chain_identity;
pub mod client;
pub mod encrypted;
mod error;
mod file;
mod mnemonic;
mod owner;
pub mod sign;
mod store;

pub use chain::{Bond, ChainIdentity, ChainMemory, OtherChain};
pub use client::{Answer, Client, ClientError, Events, Kind, Page};
pub use error::{WalletError, WalletFileFault};
pub use file::write_new_file;
pub use mnemonic::{DerivedKeys, Phrase, WordCount};
pub use owner::Wallet;
pub use sign::{Envelope, Signed};
pub use store::{KeyStore, StoredWallet, read_wallet_file, write_wallet_file};

/// Wiped from memory when it is dropped.
pub use zeroize::Zeroizing;
