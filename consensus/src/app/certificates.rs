//! Certificates as the engine has them.

use malachitebft_core_types::{CommitCertificate, Round};

use super::messages::number;
use crate::certificate::{Certificate, CommitSignature};
use crate::engine::context::{Ctx, Height, Value};

/// A certificate of the engine.
pub(super) fn from_engine(certificate: &CommitCertificate<Ctx>) -> Certificate {
    let mut signatures: Vec<CommitSignature> = certificate
        .commit_signatures
        .iter()
        .map(|entry| CommitSignature {
            address: entry.address.get(),
            signature: entry.signature.get(),
        })
        .collect();
    signatures.sort_by_key(|entry| entry.address);
    Certificate {
        height: certificate.height.0,
        round: number(certificate.round),
        block_hash: certificate.value_id.hash(),
        signatures,
    }
}

/// The same for the engine.
pub(super) fn to_engine(certificate: &Certificate) -> CommitCertificate<Ctx> {
    let Certificate { height, round, block_hash, signatures } = certificate;
    CommitCertificate {
        height: Height(*height),
        round: Round::new(*round),
        value_id: Value::from(*block_hash),
        commit_signatures: signatures
            .iter()
            .map(|entry| {
                malachitebft_core_types::CommitSignature::new(
                    entry.address.into(),
                    entry.signature.into(),
                )
            })
            .collect(),
    }
}
