//! From the validators of genesis to those of a later height, by certified headers alone
//! (docs/protocol.md section 14.4).
//!
//! A block `f` that decides a change leaves it in the row `validators`, as the set of `f + 2`. The
//! header of `f + 1`, which the set before certifies, carries the root of that state. So a link is
//! made at the commit of `f + 1`, while the tree of `f` is still there, and kept for ever.

use std::collections::BTreeMap;

use state::error::StorageError;
use state::table::{Key, Table, decode_value};
use state::tables::{ValidatorHistory, Validators};
use state::view::{self, Range};
use types::{Header, SetMember, ValidatorSets};

use super::error::OfferError;
use crate::certificates::{Certificates, V7Height};
use crate::snapshot::Snapshot;
use crate::tables::{Link, ValidatorLinks};

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
    snapshot: &Snapshot<'_>,
    last: u64,
) -> Result<Option<Vec<Link>>, StorageError> {
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
