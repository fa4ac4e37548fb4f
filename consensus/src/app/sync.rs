//! Decided blocks: given to nodes that are behind, and taken when this node is.

use std::ops::RangeInclusive;

use bytes::Bytes;
use malachitebft_app::consensus::{VoteExtensionError, VoteExtensionVerdicts};
use malachitebft_app::engine::host::SyncedValueOutcome;
use malachitebft_app::types::ProposedValue;
use malachitebft_app::types::sync::RawDecidedValue;
use malachitebft_core_types::{Round, Validity};

use super::certificates::to_engine;
use super::chain::AppChain;
use super::messages::number;
use crate::engine::codec::extended;
use crate::engine::context::{Address, Ctx, Height, Value};
use crate::engine::settings;
use crate::{Candidate, Certificate, ConsensusFault, Encoded, LedgerFault, Origin, Verdict};

/// Blocks that nodes give each other when one is behind.
pub(super) struct BlockSync {
    pub(super) block_bytes_max: usize,
}

impl BlockSync {
    /// Reads blocks for a peer, up to the first that is not there or does not fit.
    pub(super) async fn on_get_decided(
        &self,
        range: RangeInclusive<Height>,
        chain: &AppChain,
    ) -> Result<Vec<RawDecidedValue<Ctx>>, ConsensusFault> {
        let (first, last) = (range.start().0, range.end().0.min(chain.tip().height));
        let read = chain.ledger(move |ledger| {
            let mut values = Vec::new();
            let mut bytes = 0_usize;
            for height in first..=last {
                let Some(block) = ledger.decided(height)? else { break };
                bytes = bytes.saturating_add(block.bytes.len());
                if bytes > settings::ANSWERED_BYTES_MAX && !values.is_empty() {
                    break;
                }
                let certificate =
                    Certificate::decode(&block.certificate).map_err(LedgerFault::new)?;
                let certificate = extended(to_engine(&certificate));
                values.push(RawDecidedValue::new(block.bytes, certificate));
            }
            Ok(values)
        });
        read.await
    }

    /// Executes a block that others decided; the engine has verified its certificate.
    pub(super) async fn on_synced(
        &self,
        height: Height,
        round: Round,
        (proposer, bytes): (Address, Bytes),
        chain: &AppChain,
    ) -> Result<SyncedValueOutcome<Ctx>, ConsensusFault> {
        if height.0 != chain.open_height() {
            tracing::debug!(%height, open = chain.open_height(), "a synced block is not the next");
            return Ok(SyncedValueOutcome::LocalTransientError);
        }
        if bytes.len() > self.block_bytes_max {
            return Ok(SyncedValueOutcome::PeerFault);
        }
        let candidate = Candidate {
            height: height.0,
            round: number(round),
            proposer: proposer.get(),
            seal: None,
            content: Encoded::Whole(bytes),
            origin: Origin::Synced,
        };
        // The engine would hold an invalid verdict against the hash for as long as it runs, but the
        // hash does not commit to all bytes: a bad peer can send others than those that were
        // decided. So bytes that do not execute are that peer's fault, and others are asked.
        let hash = match chain.ledger(move |ledger| ledger.validate(candidate)).await? {
            Verdict::Valid(hash) => hash,
            Verdict::Invalid { hash, reason } => {
                // If all peers send these bytes, this node's rules differ from the quorum's.
                tracing::error!(%height, %hash, reason, "a synced block breaks a rule here");
                return Ok(SyncedValueOutcome::PeerFault);
            }
            Verdict::Undecodable { reason } => {
                tracing::warn!(%height, reason, "a synced block cannot be read");
                return Ok(SyncedValueOutcome::PeerFault);
            }
            Verdict::Incomplete { .. } | Verdict::Untimely { .. } => {
                tracing::error!(%height, "the ledger took a decided block for a proposal");
                return Ok(SyncedValueOutcome::LocalTransientError);
            }
        };
        let validity = Validity::Valid;
        let value = Value::from(hash);
        let valid_round = Round::Nil;
        Ok(SyncedValueOutcome::Verdict(ProposedValue {
            height,
            round,
            valid_round,
            proposer,
            value,
            validity,
        }))
    }
}

/// No vote extension is acceptable on this chain.
pub(super) fn refuse_extensions(extensions: Vec<(Address, Vec<u8>)>) -> VoteExtensionVerdicts<Ctx> {
    extensions
        .into_iter()
        .map(|(address, _)| (address, Err(VoteExtensionError::InvalidVoteExtension)))
        .collect()
}
