//! What is offered: the hashes of the chunks of a height, and the way to trust them.

use serde::{Deserialize, Serialize};
use state::table::{Key, Table, decode_value};
use state::tables::Validators;
use state::validators;
use types::{Hash, Header, ValidatorSets, codec};

use super::error::{MakeError, OfferError};
use super::format::{CHUNK_BYTES_MAX, CUT_BYTES_MIN, FORMAT};
use super::link::{self, History, follow, set_at};
use crate::certificates::{Certificates, V7Height};
use crate::meta::Tip;
use crate::snapshot::Snapshot;
use crate::tables::Link;
use crate::tools::Replay;
use crate::tree::cover::{Cover, Cut};
use crate::tree::subtree::Subtree;

/// A range of key hashes, whose rows are one chunk: those after the part before it that have the same
/// first `bits` bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// How many bits the key hashes have in common, at most 256.
    pub bits: u16,
    /// The hash of the subtree.
    pub hash: Hash,
    /// Its rows.
    pub leaves: u64,
    /// The bytes of its chunk.
    pub bytes: u64,
}

/// Rows that no root covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Extra {
    /// SHA-256 of its bytes.
    pub hash: Hash,
    /// How many they are.
    pub bytes: u64,
}

/// The chunks of a state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: u32,
    /// The state is that after this block.
    pub height: u64,
    /// The ranges in order; they have every key hash once. One without leaves has no chunk.
    pub parts: Vec<Part>,
    /// What goes with them.
    pub extras: Vec<Extra>,
}

/// A manifest with everything that leads from genesis to it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Offer {
    /// The chunks.
    pub manifest: Manifest,
    /// [`Header::payload`] of the manifest's height.
    pub header: String,
    /// Its certificate.
    pub certificate: Vec<u8>,
    /// The header after it, which carries the root.
    pub next_header: String,
    /// The certificate of that one.
    pub next_certificate: Vec<u8>,
    /// From the validators of genesis to those of both headers.
    pub links: Vec<Link>,
}

/// An offer that was followed from genesis to its ranges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Verified {
    /// The end of the chain as the snapshot has it.
    pub tip: Tip,
    /// Its sets of validators by the first height that they decide.
    pub(super) history: History,
    /// The offer.
    pub offer: Offer,
    /// The ranges of its manifest, joined.
    pub(super) cover: Cover,
}

impl Part {
    /// The bits as an index.
    pub(super) fn bits(&self) -> usize {
        usize::from(self.bits)
    }
}

impl Manifest {
    /// What names it, for comparing those of several peers: nodes whose certificates differ make
    /// different offers with the same manifest.
    #[must_use]
    pub fn hash(&self) -> Hash {
        Hash::digest(&codec::encode(self))
    }

    /// The ranges, joined; none if they do not have every key hash once.
    pub(super) fn cover(&self) -> Option<Cover> {
        let cut = |part: &Part| Cut {
            bits: part.bits(),
            subtree: Subtree { hash: part.hash, leaves: part.leaves },
            weight: part.bytes,
        };
        Cover::new(&self.parts.iter().map(cut).collect::<Vec<_>>())
    }

    /// Bytes of all chunks and extras.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let parts = self.parts.iter().map(|part| part.bytes);
        parts.chain(self.extras.iter().map(|extra| extra.bytes)).fold(0, u64::saturating_add)
    }

    /// Checks that the numbers are possible and the ranges are those of a root.
    pub(super) fn check(&self, root: Hash) -> Result<Cover, OfferError> {
        let malformed = OfferError::Form { what: "the manifest of a snapshot" };
        if self.format != FORMAT {
            return Err(OfferError::Form { what: "the format of a snapshot" });
        }
        let is_possible = |part: &Part| {
            if part.hash == Subtree::EMPTY.hash {
                return part.leaves == 0 && part.bytes == 0;
            }
            // A row has a tag and two lengths at least.
            let least = part.leaves.saturating_mul(9);
            part.leaves > 0 && (least..=CHUNK_BYTES_MAX).contains(&part.bytes)
        };
        let extras = |extra: &Extra| (1..=CHUNK_BYTES_MAX).contains(&extra.bytes);
        if !self.parts.iter().all(is_possible) || !self.extras.iter().all(extras) {
            return Err(malformed);
        }
        let cover = self.cover().ok_or_else(|| malformed.clone())?;
        if cover.least.is_some_and(|bytes| bytes < CUT_BYTES_MIN) {
            return Err(malformed);
        }
        let found = cover.root.hash;
        if found == root { Ok(cover) } else { Err(OfferError::Root { found, expected: root }) }
    }
}

impl Offer {
    /// The bytes that are sent; their SHA-256 names the offer.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// Reads [`Offer::encode`]. Nothing is verified.
    ///
    /// # Errors
    /// [`OfferError::Form`] for any other bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, OfferError> {
        codec::decode(bytes).map_err(|_fault| OfferError::Form { what: "the offer of a snapshot" })
    }

    /// The offer of a manifest, once the block after its height is committed: before, none.
    ///
    /// # Errors
    /// [`MakeError::NoLinks`] if the database cannot prove how the validators changed, because it was made
    /// before nodes kept the proofs.
    pub(super) fn of(
        manifest: Manifest,
        snapshot: &Snapshot<'_>,
    ) -> Result<Option<Self>, MakeError> {
        let height = manifest.height;
        let next = height.saturating_add(1);
        let (Some(header), Some(certificate), Some(next_header), Some(next_certificate)) = (
            snapshot.header_payload(height)?,
            snapshot.certificate(height)?,
            snapshot.header_payload(next)?,
            snapshot.certificate(next)?,
        ) else {
            return Ok(None);
        };
        let links = link::links_to(snapshot, next)?.ok_or(MakeError::NoLinks)?;
        Ok(Some(Self { manifest, header, certificate, next_header, next_certificate, links }))
    }

    /// Follows the offer from the genesis of `chain` to the hashes of the ranges.
    ///
    /// # Errors
    /// [`OfferError`] says what does not hold.
    pub fn verify(self, chain: &Replay<'_>) -> Result<Verified, OfferError> {
        let first = chain
            .genesis_changes
            .get(&Validators::ID)
            .and_then(|rows| rows.get(&().to_bytes()))
            .and_then(Option::as_deref)
            .and_then(|row| decode_value::<Validators>(row).ok());
        // Without the fork `validatorVote` the row is written by v7 only, and changes only from then on.
        let first = first.or_else(|| {
            let mut current = chain.chain.validators.clone();
            current.sort_by_key(validators::address);
            let can_change = !self.links.is_empty() && !current.is_empty();
            can_change.then_some(ValidatorSets { since: 1, current, next: None })
        });
        // Where genesis does not name v7, its height stands in a row that is not here yet.
        let v7 = match chain.chain.forks.v7 {
            Some(height) => V7Height::Known(Some(height)),
            None => V7Height::Unknown,
        };
        self.verify_with(first.as_ref(), (&chain.chain.chain_id, v7), chain.certificates)
    }

    fn verify_with(
        self,
        genesis: Option<&ValidatorSets>,
        (chain_id, v7): (&str, V7Height),
        certificates: &dyn Certificates,
    ) -> Result<Verified, OfferError> {
        let height = self.manifest.height;
        let next_height = height
            .checked_add(1)
            .filter(|_| height > 0)
            .ok_or(OfferError::Form { what: "the height of a snapshot" })?;
        let header = read_header(&self.header, height, chain_id)?;
        let next = read_header(&self.next_header, next_height, chain_id)?;
        let hash = header.hash();
        if next.previous_hash != hash {
            let what = "it does not stand on the block of the snapshot";
            return Err(OfferError::Header { height: next_height, what });
        }
        let history = follow(genesis, &self.links, next_height, (chain_id, v7), certificates)?;
        let certified =
            [(height, hash, &self.certificate), (next_height, next.hash(), &self.next_certificate)];
        for (height, hash, certificate) in certified {
            certificates
                .verify(v7, set_at(&history, height), height, &hash, certificate)
                .map_err(|reason| OfferError::Certificate { height, reason })?;
        }
        let cover = self.manifest.check(next.state_root)?;
        let timestamp = header.timestamp;
        let tip = Tip { height, hash, timestamp, state_root: next.state_root };
        Ok(Verified { tip, history, offer: self, cover })
    }
}

impl Verified {
    /// Checks all certificates once more, when the rows are there: they prove the height of v7, and so
    /// which version each signature must have. One of before v7 says nothing of the genesis file, and
    /// validators of another chain with the same name may have made it.
    ///
    /// # Errors
    /// [`OfferError`] says which certificate is of the wrong version.
    pub(super) fn check_versions(
        &self,
        v7_from: Option<u64>,
        chain: &Replay<'_>,
    ) -> Result<(), OfferError> {
        let Self { offer, history, tip, cover: _ } = self;
        let Offer { manifest: _, header: _, certificate, next_header, next_certificate, links } =
            offer;
        let next = parse_header(next_header)?;
        let verify = |v7, height: u64, hash: &Hash, certificate: &[u8]| {
            let (v7, set) = (V7Height::Known(v7), set_at(history, height));
            let verified = chain.certificates.verify(v7, set, height, hash, certificate);
            verified.map_err(|reason| OfferError::Certificate { height, reason })
        };
        // The row is written in the first block of v7. If that is the block after the snapshot, only its
        // certificate tells.
        let begins_next =
            v7_from.is_none() && verify(None, next.index, &next.hash(), next_certificate).is_err();
        let v7_from = if begins_next { Some(next.index) } else { v7_from };
        for link in links {
            let header = parse_header(&link.header)?;
            verify(v7_from, header.index, &header.hash(), &link.certificate)?;
        }
        verify(v7_from, tip.height, &tip.hash, certificate)?;
        verify(v7_from, next.index, &next.hash(), next_certificate).map(drop)
    }
}

fn parse_header(payload: &str) -> Result<Header, OfferError> {
    Header::parse(payload.as_bytes())
        .map_err(|_refused| OfferError::Form { what: "a header of a snapshot" })
}

fn read_header(payload: &str, height: u64, chain_id: &str) -> Result<Header, OfferError> {
    let header = parse_header(payload)?;
    if header.index != height {
        return Err(OfferError::Header { height, what: "it is of another height" });
    }
    if header.chain_id != chain_id {
        return Err(OfferError::Header { height, what: "it is of another chain" });
    }
    Ok(header)
}
