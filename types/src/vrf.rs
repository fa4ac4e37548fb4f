//! A verifiable random function: ECVRF-EDWARDS25519-SHA512-TAI of RFC 9381, with key validation
//! (docs/protocol.md section 6.1).
//!
//! For each key and message, there is exactly one output. Only the owner of the secret key can
//! compute it; with its proof, everyone can check it.
//!
//! The secret scalar is the one that signs. Signatures and proofs derive nonces from the same
//! prefix of the key: a signature hashes the prefix and the signed message, and a proof hashes the
//! prefix and the 32 bytes of a point (RFC 9381 section 5.4.2.2). The nonces differ as long as the
//! key never signs a message of 32 bytes, and it never does.

use std::fmt;
use std::str::FromStr;

use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use curve25519_dalek::scalar::{Scalar, clamp_integer};
use curve25519_dalek::traits::{IsIdentity, VartimeMultiscalarMul};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

use crate::text::{self, FixedText, ParseTextError, decode_lower_hex};
use crate::{Keypair, PublicKey};

/// The length of a proof in bytes.
pub const PROOF_BYTES: usize = 80;

/// The length of an output in bytes.
pub const OUTPUT_BYTES: usize = 64;

/// The suite's number, which is hashed first.
const SUITE: u8 = 3;

/// What separates the three hashes from each other (RFC 9381 section 5.4.1.1 and following).
const ENCODE_TO_CURVE: u8 = 1;
const CHALLENGE: u8 = 2;
const PROOF_TO_HASH: u8 = 3;
const BACK: u8 = 0;

/// A point, and the numbers `c` and `s` in little-endian.
type Parts = ([u8; 32], [u8; 16], [u8; 32]);

/// A proof as written; it need not be valid. Its text form is 160 lowercase hex characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Proof([u8; PROOF_BYTES]);

impl Proof {
    /// Wraps bytes.
    #[must_use]
    pub const fn new(bytes: [u8; PROOF_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; PROOF_BYTES] {
        &self.0
    }

    fn join((gamma, challenge, response): Parts) -> Self {
        let mut bytes = [0; PROOF_BYTES];
        let parts = gamma.iter().chain(&challenge).chain(&response);
        bytes.iter_mut().zip(parts).for_each(|(byte, part)| *byte = *part);
        Self(bytes)
    }

    fn split(&self) -> Option<Parts> {
        let (gamma, rest) = self.0.split_first_chunk()?;
        let (challenge, response) = rest.split_first_chunk()?;
        Some((*gamma, *challenge, response.try_into().ok()?))
    }
}

/// Proves the output of `key` for `message` (RFC 9381 section 5.1).
///
/// # Panics
/// If none of 256 hashes is a point, which happens for one message in about 2^256.
#[must_use]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "scalars and points are elements of groups and do not overflow"
)]
pub fn prove(key: &Keypair, message: &[u8]) -> (Proof, [u8; OUTPUT_BYTES]) {
    let public = key.public_key();
    let expanded = Zeroizing::new(<[u8; 64]>::from(Sha512::digest(Zeroizing::new(key.seed()))));
    let (scalar, prefix) = expanded.split_first_chunk().expect("64 bytes have a first 32");
    let scalar = Zeroizing::new(Scalar::from_bytes_mod_order(clamp_integer(*scalar)));
    let point = encode_to_curve(&public, message).expect("one of 256 hashes is a point");
    let gamma = *scalar * point;
    let point_bytes = point.compress();
    let nonce: [u8; 64] =
        Sha512::new().chain_update(prefix).chain_update(point_bytes.as_bytes()).finalize().into();
    let nonce = Zeroizing::new(Scalar::from_bytes_mod_order_wide(&Zeroizing::new(nonce)));
    let (u, v) = (EdwardsPoint::mul_base(&nonce), *nonce * point);
    let challenge = challenge(&public, [&point, &gamma, &u, &v]);
    let response = *nonce + scalar_of(&challenge) * *scalar;
    let proof = Proof::join((gamma.compress().to_bytes(), challenge, response.to_bytes()));
    (proof, output_of(&gamma))
}

/// The output of `key` for `message`, if `proof` proves it (RFC 9381 section 5.3). Takes about
/// three times as long as checking a signature, and no longer for proofs that are made to fail.
///
/// Each point and number has only one form, so nobody can turn the bytes of a proof into a second
/// proof.
#[must_use]
#[expect(
    clippy::arithmetic_side_effects,
    reason = "scalars and points are elements of groups and do not overflow"
)]
pub fn verify(key: &PublicKey, message: &[u8], proof: &Proof) -> Option<[u8; OUTPUT_BYTES]> {
    let public = decode(key.as_bytes()).filter(|point| !point.is_small_order())?;
    let (gamma, claimed, response) = proof.split()?;
    let gamma = decode(&gamma)?;
    let response: Scalar = Option::from(Scalar::from_canonical_bytes(response))?;
    let point = encode_to_curve(key, message)?;
    let minus = -scalar_of(&claimed);
    let u = EdwardsPoint::vartime_double_scalar_mul_basepoint(&minus, &public, &response);
    let v = EdwardsPoint::vartime_multiscalar_mul([response, minus], [point, gamma]);
    (challenge(key, [&point, &gamma, &u, &v]) == claimed).then(|| output_of(&gamma))
}

/// A point that nobody knows a discrete logarithm of: the first of 256 hashes that is one, without its
/// part of small order (RFC 9381 section 5.4.1.1). Each hash is one with a probability of about a half.
fn encode_to_curve(key: &PublicKey, message: &[u8]) -> Option<EdwardsPoint> {
    (0..=u8::MAX).find_map(|counter| {
        let hash: [u8; 64] = Sha512::new()
            .chain_update([SUITE, ENCODE_TO_CURVE])
            .chain_update(key.as_bytes())
            .chain_update(message)
            .chain_update([counter, BACK])
            .finalize()
            .into();
        let point = decode(hash.first_chunk()?)?.mul_by_cofactor();
        (!point.is_identity()).then_some(point)
    })
}

/// The point of its one canonical form (RFC 8032 section 5.1.3).
fn decode(bytes: &[u8; 32]) -> Option<EdwardsPoint> {
    let point = CompressedEdwardsY(*bytes).decompress()?;
    (point.compress().as_bytes() == bytes).then_some(point)
}

/// RFC 9381 section 5.4.3.
fn challenge(key: &PublicKey, points: [&EdwardsPoint; 4]) -> [u8; 16] {
    let mut hasher = Sha512::new().chain_update([SUITE, CHALLENGE]).chain_update(key.as_bytes());
    for point in points {
        hasher.update(point.compress().as_bytes());
    }
    let hash: [u8; 64] = hasher.chain_update([BACK]).finalize().into();
    *hash.first_chunk().expect("64 bytes have a first 16")
}

fn scalar_of(challenge: &[u8; 16]) -> Scalar {
    Scalar::from(u128::from_le_bytes(*challenge))
}

/// RFC 9381 section 5.2.
fn output_of(gamma: &EdwardsPoint) -> [u8; OUTPUT_BYTES] {
    Sha512::new()
        .chain_update([SUITE, PROOF_TO_HASH])
        .chain_update(gamma.mul_by_cofactor().compress().as_bytes())
        .chain_update([BACK])
        .finalize()
        .into()
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(const_hex::Buffer::<PROOF_BYTES>::new().format(&self.0))
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Proof {
    type Err = ParseTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        decode_lower_hex(text)
            .map(Self)
            .ok_or_else(|| ParseTextError::new("160 lowercase hex characters", text))
    }
}

impl FixedText<PROOF_BYTES> for Proof {
    fn bytes(&self) -> &[u8; PROOF_BYTES] {
        &self.0
    }

    fn from_bytes(bytes: [u8; PROOF_BYTES]) -> Self {
        Self(bytes)
    }
}

impl Serialize for Proof {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        text::serialize(self, serializer)
    }
}

#[cfg(test)]
mod tests;
