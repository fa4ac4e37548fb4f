//! CHAT_TURN: one public turn of a conversation (docs/protocol.md section 5.1).

use super::fields::Fields;
use super::{Kind, StaticView, limits};
use crate::forks::Fork;
use crate::json::ObjectWriter;
use crate::{Hash, Rejection};

/// Who speaks, as the sender says. No proof of authorship.
pub const ROLES: &[&str] = &["user", "assistant", "system", "tool"];
/// What an attachment may be.
pub const ATTACHMENT_TYPES: &[&str] = &["image", "audio", "file"];
/// The most attachments of one turn.
pub const ATTACHMENTS_MAX: usize = 16;

/// The fields of CHAT_TURN.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChatTurn {
    /// The conversation, an opaque id.
    pub conversation_id: Hash,
    /// One of [`ROLES`].
    pub role: String,
    /// At most 16,384 bytes; not empty unless `content_blob_id` is given.
    pub content: String,
    /// A finalised blob with the content.
    pub content_blob_id: Option<String>,
    /// A turn of the same conversation.
    pub parent_turn_hash: Option<Hash>,
    /// An existing run.
    pub agent_run_id: Option<Hash>,
    /// Finalised blobs shown with the turn.
    pub attachments: Option<Vec<Attachment>>,
}

/// A blob shown with a turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attachment {
    /// One of [`ATTACHMENT_TYPES`].
    pub kind: String,
    /// The blob.
    pub blob_id: String,
}

impl Kind for ChatTurn {
    const TYPE: &'static str = "CHAT_TURN";
    const FORK: Option<Fork> = Some(Fork::V6);

    fn read(fields: &Fields<'_, '_>) -> Result<Self, Rejection> {
        let attachment = |item: &Fields<'_, '_>| {
            Ok(Attachment { kind: item.string("type")?, blob_id: item.string("blobId")? })
        };
        Ok(Self {
            conversation_id: fields.hash("conversationId")?,
            role: fields.string("role")?,
            content: fields.string("content")?,
            content_blob_id: fields.optional_string("contentBlobId")?,
            parent_turn_hash: fields.optional_hash("parentTurnHash")?,
            agent_run_id: fields.optional_hash("agentRunId")?,
            attachments: fields.optional_objects("attachments", attachment)?,
        })
    }

    fn write_required(&self, out: &mut ObjectWriter<'_>) {
        out.display("conversationId", &self.conversation_id);
        out.string("role", &self.role);
        out.string("content", &self.content);
    }

    fn write_optional(&self, out: &mut ObjectWriter<'_>) {
        if let Some(id) = &self.content_blob_id {
            out.string("contentBlobId", id);
        }
        if let Some(hash) = &self.parent_turn_hash {
            out.display("parentTurnHash", hash);
        }
        if let Some(id) = &self.agent_run_id {
            out.display("agentRunId", id);
        }
        if let Some(attachments) = &self.attachments {
            out.objects("attachments", attachments, |Attachment { kind, blob_id }, object| {
                object.string("type", kind);
                object.string("blobId", blob_id);
            });
        }
    }

    fn check_static(&self, _: &StaticView<'_>) -> Result<(), Rejection> {
        limits::one_of("role", &self.role, ROLES)?;
        limits::inline_text("content", &self.content)?;
        if self.content.is_empty() && self.content_blob_id.is_none() {
            return Err(Rejection::invalid("content", "empty", "some text, or a contentBlobId"));
        }
        limits::optional_blob_id("contentBlobId", self.content_blob_id.as_ref())?;
        let attachments = self.attachments.as_deref().unwrap_or_default();
        limits::items_at_most("attachments", attachments, ATTACHMENTS_MAX)?;
        for (index, Attachment { kind, blob_id }) in attachments.iter().enumerate() {
            limits::one_of("type", kind, ATTACHMENT_TYPES)
                .and_then(|()| limits::blob_id("blobId", blob_id))
                .map_err(|refusal| refusal.within(format_args!("attachments[{index}]")))?;
        }
        Ok(())
    }
}
