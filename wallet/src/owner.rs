//! One wallet: a key, and how it came about.

use std::fmt;

use types::{Address, Keypair, PublicKey};
use zeroize::Zeroizing;

use crate::{Phrase, WalletError};

/// A key with its mnemonic and index where it has them.
#[derive(Clone)]
pub struct Wallet {
    keypair: Keypair,
    origin: Option<(Phrase, u32)>,
}

impl Wallet {
    /// The wallet at an index of a mnemonic.
    ///
    /// # Errors
    /// When the index is 2^31 or more.
    pub fn from_phrase(phrase: Phrase, index: u32) -> Result<Self, WalletError> {
        let keypair = phrase.derive(index)?;
        Ok(Self { keypair, origin: Some((phrase, index)) })
    }

    /// A wallet around a bare key: its words, if there were any, cannot be found again.
    #[must_use]
    pub fn from_keypair(keypair: Keypair) -> Self {
        Self { keypair, origin: None }
    }

    /// Reads a private key of 64 hexadecimal characters, with or without `0x`.
    ///
    /// # Errors
    /// When it is anything else.
    pub fn from_private_key(hex: &str) -> Result<Self, WalletError> {
        Ok(Self::from_keypair(parse_private_key(hex)?))
    }

    /// The key that signs.
    #[must_use]
    pub fn keypair(&self) -> &Keypair {
        &self.keypair
    }

    /// The account's address.
    #[must_use]
    pub fn address(&self) -> Address {
        self.keypair.address()
    }

    /// The public key.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        self.keypair.public_key()
    }

    /// The index of derivation, for a wallet that has words.
    #[must_use]
    pub fn index(&self) -> Option<u32> {
        self.origin.as_ref().map(|(_, index)| *index)
    }

    /// The mnemonic. This is a secret.
    #[must_use]
    pub fn expose_phrase(&self) -> Option<&Phrase> {
        self.origin.as_ref().map(|(phrase, _)| phrase)
    }

    /// The private key as 64 lowercase hexadecimal characters. This is a secret.
    #[must_use]
    pub fn expose_private_key(&self) -> Zeroizing<String> {
        let seed = Zeroizing::new(self.keypair.seed());
        Zeroizing::new(const_hex::encode(seed.as_ref()))
    }
}

impl fmt::Debug for Wallet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Wallet")
            .field("address", &self.address())
            .field("index", &self.index())
            .finish_non_exhaustive()
    }
}

/// Reads 64 hexadecimal characters, with or without `0x`.
pub(crate) fn parse_private_key(hex: &str) -> Result<Keypair, WalletError> {
    let mut seed = Zeroizing::new([0_u8; 32]);
    let hex = hex.trim();
    let digits = hex.strip_prefix("0x").unwrap_or(hex);
    if digits.len() != 64 || const_hex::decode_to_slice(digits, seed.as_mut()).is_err() {
        return Err(WalletError::BadPrivateKey);
    }
    Ok(Keypair::from_seed(&seed))
}
