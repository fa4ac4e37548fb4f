//! Turns of conversations.

use schemars::JsonSchema;
use serde::Serialize;
use types::tx::{Attachment, ChatTurn};
use types::{Address, Hash, Run};

use super::{AddressText, HashText};
use crate::ports::IncludedTx;

/// The relation of a turn's sender to the run that the turn names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Relation {
    /// The sender requested the run.
    Submitter,
    /// The sender claimed the run.
    Miner,
    /// The sender did neither.
    Other,
}

impl Relation {
    /// The relation of `sender` to `run`.
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

/// A blob that is shown with a turn.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttachmentView {
    /// The type of the attachment: `image`, `audio` or `file`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The id of the blob.
    pub blob_id: String,
}

/// A turn of a conversation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnView {
    /// The hash of the CHAT_TURN.
    #[schemars(with = "HashText")]
    pub hash: Hash,
    /// The id of the conversation.
    #[schemars(with = "HashText")]
    pub conversation_id: Hash,
    /// The address of the sender.
    #[schemars(with = "AddressText")]
    pub from: Address,
    /// The speaker's role, as the sender claims it.
    pub role: String,
    /// The text of the turn.
    pub content: String,
    /// The id of a blob with the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_blob_id: Option<String>,
    /// The hash of the earlier turn that this turn answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub parent_turn_hash: Option<Hash>,
    /// The id of the run that the turn belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<HashText>")]
    pub agent_run_id: Option<Hash>,
    /// The blobs shown with the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attachments: Option<Vec<AttachmentView>>,
    /// The sender's relation to the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relation: Option<Relation>,
    /// The time of the block, in milliseconds since 1970.
    pub timestamp: u64,
    /// The index of the block that contains the turn.
    pub block_index: u64,
}

impl TurnView {
    /// The view of an included turn; `run` is the run that the turn names, if it names one.
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
