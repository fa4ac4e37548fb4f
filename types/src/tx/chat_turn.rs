//! CHAT_TURN: one public turn of a conversation (docs/protocol.md section 5.1).

use super::declare::{Members, declare};
use super::spec::{INLINE_TEXT, ListLimit, TextLimit};
use super::{Kind, StaticView};
use crate::{Hash, Rejection};

/// Who speaks, as the sender says. No proof of authorship.
pub const ROLES: &[&str] = &["user", "assistant", "system", "tool"];
/// What an attachment may be.
pub const ATTACHMENT_TYPES: &[&str] = &["image", "audio", "file"];
/// The most attachments of one turn.
pub const ATTACHMENTS_MAX: usize = 16;

declare! {
    /// One public turn of a conversation.
    kind ChatTurn = "CHAT_TURN", section "5.1", fork V6 {
        required {
            /// The conversation, an opaque id.
            conversation_id "conversationId": Hash, Hash;
            /// Who speaks, as the sender says: `user`, `assistant`, `system` or `tool`.
            role "role": String, Text(TextLimit::OneOf(ROLES));
            /// The text, at most 16,384 bytes; not empty unless `contentBlobId` is given.
            content "content": String, Text(INLINE_TEXT);
        }
        optional {
            /// A finalised blob with the content.
            content_blob_id "contentBlobId": String, Text(TextLimit::BlobId);
            /// A turn of the same conversation.
            parent_turn_hash "parentTurnHash": Hash, Hash;
            /// An existing run.
            agent_run_id "agentRunId": Hash, Hash;
            /// Finalised blobs shown with the turn, at most 16.
            attachments "attachments": Vec<Attachment>, Objects(ATTACHMENTS);
        }
    }
}

const ATTACHMENTS: ListLimit = ListLimit { members: Attachment::FIELDS, max: ATTACHMENTS_MAX };

declare! {
    /// A blob shown with a turn.
    object Attachment {
        required {
            /// `image`, `audio` or `file`.
            kind "type": String, Text(TextLimit::OneOf(ATTACHMENT_TYPES));
            /// The blob.
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
