//! From the validators of genesis to those of a later height, by certified headers alone
//! (docs/protocol.md section 14.4).
//!
//! A block `f` that decides a change leaves it in the row `validators`, as the set of `f + 2`. The
//! header of `f + 1`, which the set before certifies, carries the root of that state. So a link is
//! made at the commit of `f + 1`, while the tree of `f` is still there, and kept for ever.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use state::error::StorageError;
use state::table::{Key, Table, decode_value};
use state::tables::Validators;
use types::{Header, SetMember, ValidatorSets};

use super::OfferError;
use crate::rocks::Rocks;
use crate::tables::ValidatorLinks;
use crate::tools::{Certificates, V7Height};
use crate::tree::{self, NodeSource, Proof};

/// What the header of a height proves about the validators of the next.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Link {
    /// [`Header::payload`] of the block after the one that decided the change.
    pub header: String,
    /// Its certificate.
    pub certificate: Vec<u8>,
    /// The stored bytes of the row `validators` in the state whose root the header carries.
    pub sets: Vec<u8>,
    /// Its proof.
    pub proof: Proof,
}

/// A link whose block is not decided yet.
#[derive(Debug)]
pub(crate) struct LinkRow {
    header: String,
    sets: Vec<u8>,
    proof: Proof,
}

impl LinkRow {
    /// The link, with what decided its block.
    pub(crate) fn certified(self, certificate: &[u8]) -> Link {
        let Self { header, sets, proof } = self;
        Link { header, certificate: certificate.to_vec(), sets, proof }
    }
}

/// The link that the block with this header makes: none unless the state before it has a change that
/// is to come.
pub(crate) fn make_link(
    rocks: &Rocks,
    nodes: &dyn NodeSource,
    header: &Header,
    payload: &str,
) -> Result<Option<LinkRow>, StorageError> {
    let Some(sets) = rocks.live().get(Validators::ID, &().to_bytes())? else { return Ok(None) };
    if decode_value::<Validators>(&sets)?.next.is_none() {
        return Ok(None);
    }
    let Some((before, key)) =
        header.index.checked_sub(1).zip(tree::key_hash(Validators::ID, &().to_bytes()))
    else {
        return Ok(None);
    };
    const GONE: StorageError =
        StorageError::Inconsistent { what: "the state tree of the tip is missing" };
    let (_, proof) = tree::prove(nodes, before, key)?.ok_or(GONE)?;
    Ok(Some(LinkRow { header: payload.to_owned(), sets, proof }))
}

/// The sets of a chain by the first height that they decide.
pub(super) type History = BTreeMap<u64, Vec<SetMember>>;

/// The set of a height.
pub(super) fn set_at(history: &History, height: u64) -> Option<&[SetMember]> {
    history.range(..=height).next_back().map(|(_, set)| set.as_slice())
}

/// Follows the links from the validators of genesis. Every set up to that of `last` is in the answer;
/// it is empty on a chain that keeps the validators of its genesis.
pub(super) fn follow(
    genesis: Option<&ValidatorSets>,
    links: &[Link],
    last: u64,
    (chain_id, v7): (&str, V7Height),
    certificates: &dyn Certificates,
) -> Result<History, OfferError> {
    let mut history = History::new();
    let Some(genesis) = genesis else {
        return if links.is_empty() {
            Ok(history)
        } else {
            Err(OfferError::Link { height: 0, what: "this chain keeps its validators" })
        };
    };
    history.insert(1, genesis.current.clone());
    let mut above = 0;
    for link in links {
        let header = Header::parse(link.header.as_bytes())
            .map_err(|_refused| OfferError::Form { what: "the header of a link" })?;
        let height = header.index;
        let wrong = |what| OfferError::Link { height, what };
        if height <= above || height >= last {
            return Err(wrong("the heights of the links do not ascend to the snapshot's"));
        }
        above = height;
        if header.chain_id != chain_id {
            return Err(OfferError::Header { height, what: "it is of another chain" });
        }
        let set = set_at(&history, height).ok_or_else(|| wrong("no set decides it"))?;
        certificates
            .verify(v7, Some(set), height, &header.hash(), &link.certificate)
            .map_err(|reason| OfferError::Certificate { height, reason })?;
        link.proof
            .verify(header.state_root, Validators::ID, &().to_bytes(), Some(&link.sets))
            .map_err(|_proof| wrong("the row of the validators is not proved"))?;
        let sets = decode_value::<Validators>(&link.sets)
            .map_err(|_fault| wrong("the row of the validators is malformed"))?;
        if sets.current != set {
            return Err(wrong("another set decides it"));
        }
        let next = sets.next.ok_or_else(|| wrong("no change is to come"))?;
        history.insert(height.saturating_add(1), next);
    }
    Ok(history)
}

/// The links that lead to the set of height `last`, in order; none if one of them is missing, as in a
/// database that was made before there were links.
pub(super) fn links_to(
    snapshot: &crate::Snapshot<'_>,
    last: u64,
) -> Result<Option<Vec<Link>>, StorageError> {
    use state::tables::ValidatorHistory;
    use state::view::{self, Range};

    let range = Range { from: &[], to: None, limit: usize::MAX };
    let mut links = Vec::new();
    for (since, _) in view::scan::<ValidatorHistory>(snapshot, range)? {
        let Some(height) = since.checked_sub(1).filter(|height| (1..last).contains(height)) else {
            continue;
        };
        match snapshot.get::<ValidatorLinks>(&height)? {
            Some(link) => links.push(link),
            None => return Ok(None),
        }
    }
    Ok(Some(links))
}
