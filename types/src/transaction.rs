//! A signed transaction: the bytes that the signer hashed, and their meaning (docs/protocol.md
//! section 3).

use std::fmt::Write as _;
use std::sync::Arc;

use crate::json::{self, Bounds, Json, ObjectWriter};
use crate::params::JSON_DEPTH_MAX;
use crate::sign_bytes::Domain;
use crate::tx::declare::{Declared, Members};
use crate::tx::fields::Fields;
use crate::tx::{BlobChunk, Body, SignedMessage, Verdict};
use crate::{Address, Bid, Hash, Late, Params, PublicKey, Rejection, Signature};

/// A parsed transaction. Its signature has not been checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    payload: Box<str>,
    hash: Hash,
    stated_hash: Hash,
    signature: Signature,
    public_key: PublicKey,
    from: Address,
    from_has_prefix: bool,
    nonce: u64,
    timestamp: u64,
    chain_id: Option<Box<str>>,
    bid: Late<Bid>,
    unknown_bytes: usize,
    body: Body,
    verdict: Verdict,
}

/// The size limits of transactions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeLimits {
    /// The most bytes of canonical signed JSON for any kind except a blob chunk.
    pub tx_bytes: usize,
    /// The most bytes of canonical signed JSON for a SOCIAL_BLOB_CHUNK.
    pub chunk_tx_bytes: usize,
}

/// `,"hash":"…","signature":"…"`: what signing adds to the payload.
const SEAL_BYTES: usize = 9 + 64 + 15 + 128 + 1;

/// Escapes and white space may make a text on the wire longer than its canonical form, by at most
/// this factor.
const WIRE_FACTOR: usize = 6;

impl SizeLimits {
    /// The length of the longest text that is parsed at all.
    #[must_use]
    pub const fn wire_bytes_max(&self) -> usize {
        self.largest().saturating_mul(WIRE_FACTOR)
    }

    const fn largest(&self) -> usize {
        if self.chunk_tx_bytes > self.tx_bytes { self.chunk_tx_bytes } else { self.tx_bytes }
    }

    /// The most JSON values in a text that may still be short enough in canonical form, where a
    /// value and its comma take two bytes.
    const fn values_max(&self) -> usize {
        self.largest() / 2
    }

    /// Refuses a payload that is too long, once signed, for its kind.
    fn check(&self, type_name: &str, payload: &str) -> Result<(), Rejection> {
        let max = if type_name == BlobChunk::TYPE { self.chunk_tx_bytes } else { self.tx_bytes };
        let bytes = payload.len().saturating_add(SEAL_BYTES);
        if bytes > max { Err(too_large(bytes, max)) } else { Ok(()) }
    }
}

impl From<&Params> for SizeLimits {
    fn from(params: &Params) -> Self {
        let size = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            tx_bytes: size(params.max_tx_bytes),
            chunk_tx_bytes: size(params.max_chunk_tx_bytes),
        }
    }
}

/// Why stored bytes are not a transaction.
#[derive(Debug, thiserror::Error)]
pub enum DecodeTxError {
    /// The bytes end too early or have an impossible length.
    #[error("a stored transaction of {bytes} bytes is cut off")]
    Truncated {
        /// The number of bytes.
        bytes: usize,
    },
    /// The payload is rejected.
    #[error("a stored transaction is refused: {0}")]
    Rejected(#[source] Rejection),
    /// The payload is not in canonical form.
    #[error("a stored transaction is not in canonical form")]
    NotCanonical,
    /// The payload is not text.
    #[error("a stored transaction is not text: {0}")]
    NotText(#[source] std::str::Utf8Error),
}

impl Transaction {
    /// Parses a signed transaction as a client sends it: a flat JSON object with `hash` and
    /// `signature`, in any order of keys, and with any escapes and white space.
    ///
    /// # Errors
    /// MALFORMED or UNSUPPORTED_TYPE.
    pub fn parse(text: &[u8], limits: &SizeLimits) -> Result<Self, Rejection> {
        Self::read(text, limits, Need::Signed)
    }

    /// Parses a transaction that may lack `hash`, `signature` or both, for simulation.
    ///
    /// # Errors
    /// As [`Transaction::parse`].
    pub fn parse_unsigned(text: &[u8], limits: &SizeLimits) -> Result<Self, Rejection> {
        Self::read(text, limits, Need::Unsigned)
    }

    fn read(text: &[u8], limits: &SizeLimits, need: Need) -> Result<Self, Rejection> {
        let (value, payload) = read_json(text, limits)?;
        let fields = Fields::of(&value)?;
        let wanted = |key| need == Need::Signed || fields.has(key);
        let seal = Seal {
            hash: wanted("hash").then(|| fields.hash("hash")).transpose()?,
            signature: wanted("signature").then(|| fields.parsed("signature")).transpose()?,
        };
        Self::from_payload(payload, &fields, seal, limits)
    }

    fn from_payload(
        payload: String,
        fields: &Fields<'_, '_>,
        seal: Seal,
        limits: &SizeLimits,
    ) -> Result<Self, Rejection> {
        let type_name = fields.text("type")?;
        let from_text = fields.text("from")?;
        let from = fields.parsed("from")?;
        let nonce = fields.integer("nonce")?;
        let timestamp = fields.integer("timestamp")?;
        let public_key = fields.parsed("publicKey")?;
        let chain_id = fields.optional_string("chainId")?.map(String::into_boxed_str);
        limits.check(type_name, &payload)?;
        let body = Body::read(type_name, fields)?;
        let bid = Late::new(Bid::read(fields));
        let unknown_bytes = fields.unknown_bytes(SEAL_KEYS);
        let hash = Hash::digest(payload.as_bytes());
        Ok(Self {
            payload: payload.into_boxed_str(),
            hash,
            stated_hash: seal.hash.unwrap_or(hash),
            signature: seal.signature.unwrap_or(Signature::new([0; 64])),
            public_key,
            from,
            from_has_prefix: from_text.starts_with(Address::PREFIX),
            nonce,
            timestamp,
            chain_id,
            bid,
            unknown_bytes,
            body,
            verdict: Verdict::default(),
        })
    }

    /// Parses the form of [`Transaction::encode`] at the front of `bytes`; returns the transaction
    /// and the rest.
    ///
    /// # Errors
    /// [`DecodeTxError`] if the bytes are truncated, if the payload is rejected, or if it is not in
    /// canonical form, which would give one transaction two byte strings.
    pub fn decode<'a>(
        bytes: &'a [u8],
        limits: &SizeLimits,
    ) -> Result<(Self, &'a [u8]), DecodeTxError> {
        let (payload, signature, rest) = split(bytes)?;
        let (value, canonical) = read_json(payload, limits).map_err(DecodeTxError::Rejected)?;
        if canonical.as_bytes() != payload {
            return Err(DecodeTxError::NotCanonical);
        }
        let seal = Seal { hash: None, signature: Some(signature) };
        let tx = Fields::of(&value)
            .and_then(|fields| Self::from_payload(canonical, &fields, seal, limits))
            .map_err(DecodeTxError::Rejected)?;
        Ok((tx, rest))
    }

    /// Appends the binary form that blocks and the database hold: the payload's length as `u32`
    /// little-endian, the payload, the 64 bytes of the signature.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let length = u32::try_from(self.payload.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(self.payload.as_bytes());
        out.extend_from_slice(self.signature.as_bytes());
    }

    /// The length of [`Transaction::encode`] in bytes.
    #[must_use]
    pub const fn encoded_bytes(&self) -> usize {
        self.payload.len().saturating_add(4 + 64)
    }

    /// The length of [`Transaction::to_json`] in bytes.
    #[must_use]
    pub const fn signed_bytes(&self) -> usize {
        self.payload.len().saturating_add(SEAL_BYTES)
    }

    /// The signed transaction as flat JSON: the payload's members in the signer's order, then
    /// `hash` and `signature`.
    #[must_use]
    pub fn to_json(&self) -> String {
        seal(&self.payload, &self.hash, &self.signature)
    }

    /// The canonical payload, which is what is hashed.
    #[must_use]
    pub const fn payload(&self) -> &str {
        &self.payload
    }

    /// The SHA-256 of the payload, which identifies the transaction.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// The hash that the client stated. Equal to [`Transaction::hash`] once checked.
    #[must_use]
    pub const fn stated_hash(&self) -> Hash {
        self.stated_hash
    }

    /// The signature over the 64 characters of the hash.
    #[must_use]
    pub const fn signature(&self) -> Signature {
        self.signature
    }

    /// The signer's key.
    #[must_use]
    pub const fn public_key(&self) -> PublicKey {
        self.public_key
    }

    /// The address of the sender.
    #[must_use]
    pub const fn from(&self) -> Address {
        self.from
    }

    /// The sender's address as the wallet wrote it, which run ids depend on.
    #[must_use]
    pub fn from_text(&self) -> String {
        let prefix = if self.from_has_prefix { Address::PREFIX } else { "" };
        format!("{prefix}{}", self.from)
    }

    /// The sender's nonce.
    #[must_use]
    pub const fn nonce(&self) -> u64 {
        self.nonce
    }

    /// The time at which the wallet says that it signed, in milliseconds since 1970.
    #[must_use]
    pub const fn timestamp(&self) -> u64 {
        self.timestamp
    }

    /// The id of the chain for which the wallet signed, if it named one.
    #[must_use]
    pub fn chain_id(&self) -> Option<&str> {
        self.chain_id.as_deref()
    }

    /// What the transaction offers for its place in a block.
    #[must_use]
    pub const fn bid(&self) -> &Late<Bid> {
        &self.bid
    }

    /// The bytes of members in the payload that neither the kind nor the envelope defines,
    /// including keys, colons and commas.
    #[must_use]
    pub const fn unknown_bytes(&self) -> usize {
        self.unknown_bytes
    }

    /// The bytes that count toward `maxBlockBytes`: the payload and the signature.
    #[must_use]
    pub const fn content_bytes(&self) -> usize {
        self.payload.len().saturating_add(64)
    }

    /// The first message of an EVIDENCE that the validator did not sign; `None` if it signed both, and
    /// for the other kinds. The answer is kept, so that whoever asks again in the same domain does not
    /// wait for the signatures.
    #[must_use]
    pub fn forged_message(&self, domain: &Domain) -> Option<SignedMessage> {
        let Body::Evidence(evidence) = &self.body else { return None };
        self.verdict.forged(evidence, domain)
    }

    /// Whether [`Transaction::forged_message`] was asked before.
    #[must_use]
    pub fn is_judged(&self) -> bool {
        self.verdict.is_known()
    }

    /// What the transaction does.
    #[must_use]
    pub const fn body(&self) -> &Body {
        &self.body
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Signed,
    Unsigned,
}

/// What signing added to the payload.
struct Seal {
    hash: Option<Hash>,
    signature: Option<Signature>,
}

/// The members of `hash` and `signature` are no part of the payload.
const SEAL_KEYS: &[&str] = &["hash", "signature"];

/// The transaction as JSON, and its payload: its canonical form without the seal.
fn read_json<'a>(text: &'a [u8], limits: &SizeLimits) -> Result<(Json<'a>, String), Rejection> {
    if text.len() > limits.wire_bytes_max() {
        return Err(too_large(text.len(), limits.wire_bytes_max()));
    }
    let bounds = Bounds { depth_max: JSON_DEPTH_MAX, values_max: limits.values_max() };
    json::parse_canonical(text, bounds, SEAL_KEYS)
        .map_err(|e| Rejection::malformed("transaction", e, "one flat JSON object"))
}

fn too_large(bytes: usize, max: usize) -> Rejection {
    Rejection::malformed(
        "transaction",
        format_args!("{bytes} bytes"),
        format_args!("at most {max} bytes"),
    )
}

/// Payload, signature and the rest of bytes that begin with [`Transaction::encode`]'s form.
fn split(bytes: &[u8]) -> Result<(&[u8], Signature, &[u8]), DecodeTxError> {
    let truncated = || DecodeTxError::Truncated { bytes: bytes.len() };
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(truncated)?;
    let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
    let (payload, rest) = rest.split_at_checked(length).ok_or_else(truncated)?;
    let (signature, rest) = rest.split_first_chunk::<64>().ok_or_else(truncated)?;
    Ok((payload, Signature::new(*signature), rest))
}

/// The payload with `hash` and `signature` added at the end, which is the form that clients send.
pub fn seal(payload: &str, hash: &Hash, signature: &Signature) -> String {
    let open = payload.strip_suffix('}').unwrap_or(payload);
    let mut text = String::with_capacity(payload.len().saturating_add(SEAL_BYTES));
    write!(text, "{open},\"hash\":\"{hash}\",\"signature\":\"{signature}\"}}")
        .expect("a string takes every write");
    text
}

/// A transaction of a block as text that has not been parsed. Reading one costs a fraction of
/// [`Transaction::decode`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealedTx {
    payload: Box<str>,
    hash: Hash,
    signature: Signature,
}

impl SealedTx {
    /// Reads the form of [`Transaction::encode`] at the front of bytes that this node wrote to its
    /// own database; returns the transaction and the rest.
    ///
    /// # Errors
    /// [`DecodeTxError::Truncated`] if the bytes are truncated, [`DecodeTxError::NotText`] if the
    /// payload is not UTF-8. Does not check whether the text is a payload.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), DecodeTxError> {
        let (payload, signature, rest) = split(bytes)?;
        let text = std::str::from_utf8(payload).map_err(DecodeTxError::NotText)?;
        Ok((Self { payload: text.into(), hash: Hash::digest(payload), signature }, rest))
    }

    /// The hash, which identifies the transaction.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// As [`Transaction::to_json`].
    #[must_use]
    pub fn to_json(&self) -> String {
        seal(&self.payload, &self.hash, &self.signature)
    }

    /// The length of [`SealedTx::to_json`] in bytes.
    #[must_use]
    pub const fn signed_bytes(&self) -> usize {
        self.payload.len().saturating_add(SEAL_BYTES)
    }
}

impl From<&Transaction> for SealedTx {
    fn from(tx: &Transaction) -> Self {
        Self { payload: tx.payload.clone(), hash: tx.hash, signature: tx.signature }
    }
}

/// A transaction that passed every check that needs no state: [`crate::check::verify`].
///
/// Its existence proves the checks, so the pool and execution never check a signature again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedTx(Arc<Transaction>);

impl CheckedTx {
    pub(crate) fn new(tx: Transaction) -> Self {
        Self(Arc::new(tx))
    }

    /// Treats a transaction as checked without checking it. Only for bytes that this node checked
    /// before it wrote them to its own database, and for simulations that change nothing.
    #[must_use]
    pub fn trust(tx: Transaction) -> Self {
        Self(Arc::new(tx))
    }
}

impl std::ops::Deref for CheckedTx {
    type Target = Transaction;

    fn deref(&self) -> &Transaction {
        &self.0
    }
}

/// The canonical payload of an unsigned transaction in the order of the protocol's table.
pub(crate) fn build_payload(
    body: &Body,
    from: &str,
    public_key: &PublicKey,
    (nonce, timestamp): (u64, u64),
    bid: &Bid,
    chain_id: Option<&str>,
) -> String {
    let mut payload = String::with_capacity(512);
    let mut object = ObjectWriter::new(&mut payload);
    object.string("type", body.type_name());
    object.string("from", from);
    body.write_required(&mut object);
    object.integer("nonce", nonce);
    object.integer("timestamp", timestamp);
    body.write_optional(&mut object);
    bid.write_optional(&mut object);
    if let Some(chain_id) = chain_id {
        object.string("chainId", chain_id);
    }
    object.display("publicKey", public_key);
    object.end();
    payload
}

#[cfg(test)]
mod tests;
