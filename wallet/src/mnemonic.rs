//! Words to keys: BIP-39 English, then BIP-32 over secp256k1 (docs/protocol.md section 2).

use std::fmt;

use bip32::{DerivationPath, XPrv};
use bip39::{Language, Mnemonic};
use types::Keypair;
use zeroize::{Zeroize, Zeroizing};

use crate::WalletError;

/// The highest derivation index: above it BIP-32 means hardened keys.
const INDEX_MAX: u32 = 0x7fff_ffff;

/// How many words a new mnemonic has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordCount {
    /// 128 bits of entropy.
    Twelve,
    /// 256 bits of entropy.
    TwentyFour,
}

/// A checked English mnemonic of 12 or 24 words, in lower case with single spaces; wiped when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Phrase(Zeroizing<String>);

impl Phrase {
    /// A new mnemonic from the operating system's random numbers.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn generate(words: WordCount) -> Result<Self, WalletError> {
        let mut entropy = Zeroizing::new([0_u8; 32]);
        getrandom::fill(entropy.as_mut()).map_err(WalletError::NoRandomness)?;
        let bytes = match words {
            WordCount::Twelve => &entropy[..16],
            WordCount::TwentyFour => &entropy[..],
        };
        let mnemonic = Mnemonic::from_entropy_in(Language::English, bytes)
            .map_err(WalletError::BadMnemonic)?;
        Ok(Self(Zeroizing::new(mnemonic.to_string())))
    }

    /// Reads a mnemonic; any white space separates words.
    ///
    /// # Errors
    /// When a word is not in the English list, the checksum is wrong, or there are not 12 or 24 words.
    pub fn parse(text: &str) -> Result<Self, WalletError> {
        let mnemonic =
            Mnemonic::parse_in(Language::English, text.trim()).map_err(WalletError::BadMnemonic)?;
        match mnemonic.word_count() {
            12 | 24 => Ok(Self(Zeroizing::new(mnemonic.to_string()))),
            words => Err(WalletError::WordCount(words)),
        }
    }

    /// The words themselves. This is the secret.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The key at `m/44'/7777'/0'/0/index`: the BIP-32 child's private key is the Ed25519 seed.
    ///
    /// # Errors
    /// When the index is 2^31 or more.
    pub fn derive(&self, index: u32) -> Result<Keypair, WalletError> {
        self.keys()?.at(index)
    }

    /// The derivation for many indexes: the slow stretching of the words is done once.
    ///
    /// # Errors
    /// Never for a phrase that was parsed; kept for the checks inside BIP-39.
    pub fn keys(&self) -> Result<DerivedKeys, WalletError> {
        let mnemonic = Mnemonic::parse_in_normalized(Language::English, &self.0)
            .map_err(WalletError::BadMnemonic)?;
        Ok(DerivedKeys(Zeroizing::new(mnemonic.to_seed_normalized(""))))
    }
}

impl fmt::Debug for Phrase {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Phrase(hidden)")
    }
}

/// The keys of one mnemonic, by index.
pub struct DerivedKeys(Zeroizing<[u8; 64]>);

impl DerivedKeys {
    /// The key at `m/44'/7777'/0'/0/index`.
    ///
    /// # Errors
    /// When the index is 2^31 or more.
    pub fn at(&self, index: u32) -> Result<Keypair, WalletError> {
        let path = derivation_path(index)?;
        let child =
            XPrv::derive_from_path(self.0.as_ref(), &path).map_err(WalletError::NoKeyAtIndex)?;
        let mut seed = child.to_bytes();
        let keypair = Keypair::from_seed(&seed);
        seed.zeroize();
        Ok(keypair)
    }
}

impl fmt::Debug for DerivedKeys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DerivedKeys(hidden)")
    }
}

/// `m/44'/7777'/0'/0/index`.
fn derivation_path(index: u32) -> Result<DerivationPath, WalletError> {
    if index > INDEX_MAX {
        return Err(WalletError::IndexTooHigh(index));
    }
    format!("m/44'/7777'/0'/0/{index}").parse().map_err(WalletError::NoKeyAtIndex)
}

#[cfg(test)]
mod tests;
