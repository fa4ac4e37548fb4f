//! Ed25519 keys and the signature rule (docs/protocol.md sections 2 and 3).
//!
//! `ed25519-dalek` holds keys and signs messages. `ed25519-zebra` checks signatures, because its
//! rule (ZIP-215) gives the same answer for a single signature and for a batch.

use std::fmt;
use std::str::FromStr;

use chacha20::ChaCha8Rng;
use chacha20::rand_core::SeedableRng;
use ed25519_dalek::Signer;
use ed25519_zebra::batch;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::address::Address;
use crate::hash::Hash;
use crate::text::{FixedText, ParseTextError, decode_lower_hex};

/// A 32-byte Ed25519 public key as written. It need not be a valid point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

/// A 64-byte Ed25519 signature as written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature([u8; 64]);

impl Address {
    /// The address of a key.
    #[must_use]
    pub fn from_public_key(key: &PublicKey) -> Self {
        let digest = Hash::digest(key.as_bytes());
        let mut bytes = [0_u8; 20];
        for (to, from) in bytes.iter_mut().zip(digest.as_bytes()) {
            *to = *from;
        }
        Self::new(bytes)
    }
}

/// The encodings of the points of small order with the sign bit cleared, canonical or not.
/// A test compares the list with the curve library.
const SMALL_ORDER: [[u8; 32]; 7] = [
    little_endian(0, 0, 0),
    little_endian(1, 0, 0),
    hex32(*b"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    hex32(*b"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
    little_endian(0xec, 0xff, 0x7f),
    little_endian(0xed, 0xff, 0x7f),
    little_endian(0xee, 0xff, 0x7f),
];

const fn little_endian(first: u8, middle: u8, last: u8) -> [u8; 32] {
    let mut bytes = [middle; 32];
    bytes[0] = first;
    bytes[31] = last;
    bytes
}

const fn hex32(text: [u8; 64]) -> [u8; 32] {
    match const_hex::const_decode_to_array(&text) {
        Ok(bytes) => bytes,
        Err(_) => [0; 32],
    }
}

impl PublicKey {
    /// Wraps bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The address of this key.
    #[must_use]
    pub fn address(&self) -> Address {
        Address::from_public_key(self)
    }

    /// Whether `signature` is a signature of this key over `message`: by ZIP-215, and the key must
    /// not be of small order.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &Signature) -> bool {
        let claim = Claim { key: *self, signature: *signature, message };
        !self.is_small_order() && claim.item().verify_single().is_ok()
    }

    /// Whether this key can have valid signatures: it is a point, and not of small order.
    #[must_use]
    pub fn can_sign(&self) -> bool {
        !self.is_small_order() && ed25519_zebra::VerificationKey::try_from(self.0).is_ok()
    }

    fn is_small_order(&self) -> bool {
        let mut unsigned = self.0;
        unsigned[31] &= 0x7f;
        SMALL_ORDER.contains(&unsigned)
    }
}

/// The claim that `signature` is a signature of `key` over `message`.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The signer's key.
    pub key: PublicKey,
    /// The signature.
    pub signature: Signature,
    /// The signed bytes.
    pub message: &'a [u8],
}

/// A bad batch is halved down to this many signatures, which are then checked one by one.
const SINGLY_MAX: usize = 8;

/// Checks many signatures by the rule of [`PublicKey::verify`]. The answers are in the order of the
/// claims and equal the answers of single checks.
///
/// The batch equation needs random factors that a signer cannot predict. They come from a generator
/// that is seeded with the hash of everything in the batch, so this crate stays free of randomness.
///
/// One bad signature costs at most two more batches of the same size. If both halves of a bad part
/// are bad, its signatures are checked one by one, so the worst that a sender of bad signatures can
/// do is to multiply the cost of a batch by about four.
#[must_use]
pub fn verify_batch(claims: &[Claim<'_>]) -> Vec<bool> {
    let mut answers: Vec<bool> = claims.iter().map(|claim| !claim.key.is_small_order()).collect();
    let numbered = claims.iter().zip(&mut answers).filter(|(_, answer)| **answer);
    let mut items: Vec<(batch::Item, &mut bool)> =
        numbered.map(|(claim, answer)| (claim.item(), answer)).collect();
    let mut factors = factors(claims);
    if !batch_holds(&items, &mut factors) {
        for (item, answer) in spoilt_part(&mut items, &mut factors) {
            **answer = item.clone().verify_single().is_ok();
        }
    }
    answers
}

/// The part of a bad batch that contains all bad signatures.
fn spoilt_part<'a, 'b>(
    mut items: &'a mut [(batch::Item, &'b mut bool)],
    factors: &mut ChaCha8Rng,
) -> &'a mut [(batch::Item, &'b mut bool)] {
    while items.len() > SINGLY_MAX {
        let middle = items.len() / 2;
        let (left, right) = items.split_at(middle);
        let is_left_spoilt = !batch_holds(left, factors);
        if is_left_spoilt && !batch_holds(right, factors) {
            break;
        }
        let (left, right) = items.split_at_mut(middle);
        items = if is_left_spoilt { left } else { right };
    }
    items
}

fn batch_holds(items: &[(batch::Item, &mut bool)], factors: &mut ChaCha8Rng) -> bool {
    let mut batch = batch::Verifier::new();
    for (item, _) in items {
        batch.queue(item.clone());
    }
    batch.verify(factors).is_ok()
}

/// The generator of a batch's random factors.
fn factors(claims: &[Claim<'_>]) -> ChaCha8Rng {
    let mut seed = Sha256::new();
    for Claim { key, signature, message } in claims {
        seed.update(key.0);
        seed.update(signature.0);
        seed.update(message.len().to_le_bytes());
        seed.update(message);
    }
    ChaCha8Rng::from_seed(seed.finalize().into())
}

impl Claim<'_> {
    fn item(&self) -> batch::Item {
        let key = ed25519_zebra::VerificationKeyBytes::from(self.key.0);
        let signature = ed25519_zebra::Signature::from_bytes(&self.signature.0);
        batch::Item::from((key, signature, self.message))
    }
}

/// A signing key with its public key. The seed is wiped when it is dropped.
#[derive(Clone)]
pub struct Keypair(ed25519_dalek::SigningKey);

impl Keypair {
    /// The key of a 32-byte Ed25519 seed.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(seed))
    }

    /// The secret seed. Keep it secret.
    #[must_use]
    pub fn seed(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// The public key.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    /// The address of the public key.
    #[must_use]
    pub fn address(&self) -> Address {
        self.public_key().address()
    }

    /// Signs bytes.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.sign(message).to_bytes())
    }
}

impl fmt::Debug for Keypair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keypair({})", self.address())
    }
}

impl Signature {
    /// Wraps bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 64] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(const_hex::Buffer::<32>::new().format(&self.0))
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(const_hex::Buffer::<64>::new().format(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = ParseTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        decode_lower_hex(text)
            .map(Self)
            .ok_or_else(|| ParseTextError::new("64 lowercase hex characters", text))
    }
}

impl FromStr for Signature {
    type Err = ParseTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        decode_lower_hex(text)
            .map(Self)
            .ok_or_else(|| ParseTextError::new("128 lowercase hex characters", text))
    }
}

impl FixedText<32> for PublicKey {
    fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl FixedText<64> for Signature {
    fn bytes(&self) -> &[u8; 64] {
        &self.0
    }

    fn from_bytes(bytes: [u8; 64]) -> Self {
        Self(bytes)
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        crate::text::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::text::deserialize(deserializer)
    }
}

impl Serialize for Signature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        crate::text::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Signature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::text::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests;
