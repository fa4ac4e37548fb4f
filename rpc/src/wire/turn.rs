//! Turns of conversations.

use schemars::JsonSchema;
use serde::Serialize;
use types::tx::{Attachment, ChatTurn};
use types::{Address, Hash, Run};

use super::{AddressText, HashText};
use crate::ports::IncludedTx;

/// Who the sender of a turn is for the run that the turn names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Relation {
    /// Who asked for the run.
    Submitter,
    /// Who claimed it.
    Miner,
    /// Somebody else.
    Other,
}

impl Relation {
    /// What `sender` is for `run`.
    #[must_use]
    pub fn of(sender: Address, run: &Run) -> Self {
        if sender == run.submitter {
            Self::Submitter
        } else if Some(sender) == run.miner {
            Self::Miner
        } else {
            Self::Other
        }
    }
}

/// A blob shown with a turn.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentView {
    /// `image`, `audio` or `file`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The blob.
    pub blob_id: String,
}

/// A turn.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnView {
    /// The CHAT_TURN.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The conversation.
    #[schemars(with = "HashText")]
    pub conversation_id: Hash,
    /// Who sent it.
    #[schemars(with = "AddressText")]
    pub from: Address,
    /// Who speaks, as the sender says.
    pub role: String,
    /// What is said.
    pub content: String,
    /// A blob with the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_blob_id: Option<String>,
    /// The turn that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub parent_turn_hash: Option<Hash>,
    /// The run that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub agent_run_id: Option<Hash>,
    /// Blobs shown with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<AttachmentView>>,
    /// Who the sender is for the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relation: Option<Relation>,
    /// Block time.
    pub timestamp: u64,
    /// The block.
    pub block_index: u64,
}

impl TurnView {
    /// The view of an included turn; `run` is the one that it names, if any.
    #[must_use]
    pub fn new(included: &IncludedTx, turn: &ChatTurn, run: Option<&Run>) -> Self {
        let attachment = |Attachment { kind, blob_id }: &Attachment| AttachmentView {
            kind: kind.clone(),
            blob_id: blob_id.clone(),
        };
        let attachments = turn.attachments.as_ref();
        Self {
            hash: included.tx.hash(),
            conversation_id: turn.conversation_id,
            from: included.tx.from(),
            role: turn.role.clone(),
            content: turn.content.clone(),
            content_blob_id: turn.content_blob_id.clone(),
            parent_turn_hash: turn.parent_turn_hash,
            agent_run_id: turn.agent_run_id,
            attachments: attachments.map(|all| all.iter().map(attachment).collect()),
            relation: run.map(|run| Relation::of(included.tx.from(), run)),
            timestamp: included.timestamp,
            block_index: included.location.height,
        }
    }
}
