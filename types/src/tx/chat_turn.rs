//! CHAT_TURN: one public turn of a conversation (docs/protocol.md section 5.1).

use super::declare::{Members, declare};
use super::kind::Kind;
use super::spec::{INLINE_TEXT, ListLimit, TextLimit};
use super::static_view::StaticView;
use crate::{Hash, Rejection};

/// The roles that a sender can claim. A role proves nothing about who wrote the turn.
pub const ROLES: &[&str] = &["user", "assistant", "system", "tool"];
/// The types of attachments.
pub const ATTACHMENT_TYPES: &[&str] = &["image", "audio", "file"];
/// The most attachments of one turn.
pub const ATTACHMENTS_MAX: usize = 16;

declare! {
    /// Adds a public turn to a conversation.
    kind ChatTurn = "CHAT_TURN", section "5.1", fork V6 {
        required {
            /// The id of the conversation, opaque to the chain.
            conversation_id "conversationId": Hash, Hash;
            /// The speaker's role as the sender claims it: `user`, `assistant`, `system` or `tool`.
            role "role": String, Text(TextLimit::OneOf(ROLES));
            /// The text, at most 16,384 bytes. Must not be empty unless `contentBlobId` is given.
            content "content": String, Text(INLINE_TEXT);
        }
        optional {
            /// The id of a finalized blob with the content.
            content_blob_id "contentBlobId": String, Text(TextLimit::BlobId);
            /// The hash of an earlier turn in the same conversation.
            parent_turn_hash "parentTurnHash": Hash, Hash;
            /// The id of an existing run.
            agent_run_id "agentRunId": Hash, Hash;
            /// The finalized blobs shown with the turn, at most 16.
            attachments "attachments": Vec<Attachment>, Objects(ATTACHMENTS);
        }
    }
}

const ATTACHMENTS: ListLimit = ListLimit { members: Attachment::FIELDS, max: ATTACHMENTS_MAX };

declare! {
    /// A blob shown with a turn.
    object Attachment {
        required {
            /// The type of the attachment: `image`, `audio` or `file`.
            kind "type": String, Text(TextLimit::OneOf(ATTACHMENT_TYPES));
            /// The id of the blob.
            blob_id "blobId": String, Text(TextLimit::BlobId);
        }
        optional {}
    }
}

impl Kind for ChatTurn {
    fn check_together(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        if self.content.is_empty() && self.content_blob_id.is_none() {
            return Err(Rejection::invalid("content", "empty", "some text, or a contentBlobId"));
        }
        Ok(())
    }
}
