//! The link that a block makes: the proof of a change of validators that is to come, which is made while
//! the tree of the block before is still there.

use state::error::StorageError;
use state::table::{Key, Table, decode_value};
use state::tables::Validators;
use types::Header;

use crate::rocks::Rocks;
use crate::tables::Link;
use crate::tree::{self, NodeSource, Proof};

/// A link whose block is not decided yet.
#[derive(Debug)]
pub(super) struct LinkRow {
    header: String,
    sets: Vec<u8>,
    proof: Proof,
}

impl LinkRow {
    /// The link, with what decided its block.
    pub(super) fn certified(self, certificate: &[u8]) -> Link {
        let Self { header, sets, proof } = self;
        Link { header, certificate: certificate.to_vec(), sets, proof }
    }
}

/// The link that the block with this header makes: none unless the state before it has a change that
/// is to come.
pub(super) fn make_link(
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
