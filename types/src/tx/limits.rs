//! Field limits shared by several kinds (docs/protocol.md section 5).

use crate::Rejection;
use crate::params::INLINE_TEXT_BYTES_MAX;

/// Bytes in `modelInfo`, `modelHint`, `name`, `contentType`.
pub(crate) const LABEL_BYTES_MAX: usize = 256;
/// Entries of `toolsWhitelist` and `capabilities`, and the bytes of one.
pub(crate) const LIST_ENTRIES_MAX: usize = 64;

/// At most `max` bytes of UTF-8.
pub(crate) fn bytes_at_most(field: &'static str, text: &str, max: usize) -> Result<(), Rejection> {
    if text.len() <= max {
        return Ok(());
    }
    Err(Rejection::invalid(
        field,
        format_args!("{} bytes", text.len()),
        format_args!("at most {max} bytes"),
    ))
}

/// At most 16,384 bytes of UTF-8.
pub(crate) fn inline_text(field: &'static str, text: &str) -> Result<(), Rejection> {
    bytes_at_most(field, text, INLINE_TEXT_BYTES_MAX)
}

/// At most 256 bytes of UTF-8.
pub(crate) fn label(field: &'static str, text: &str) -> Result<(), Rejection> {
    bytes_at_most(field, text, LABEL_BYTES_MAX)
}

/// At most `max` items.
pub(crate) fn items_at_most<T>(
    field: &'static str,
    items: &[T],
    max: usize,
) -> Result<(), Rejection> {
    if items.len() <= max {
        return Ok(());
    }
    Err(Rejection::invalid(
        field,
        format_args!("{} entries", items.len()),
        format_args!("at most {max} entries"),
    ))
}

/// At most 64 entries of at most 64 bytes, each once.
pub(crate) fn name_list(field: &'static str, names: &[String]) -> Result<(), Rejection> {
    items_at_most(field, names, LIST_ENTRIES_MAX)?;
    for (index, name) in names.iter().enumerate() {
        bytes_at_most(field, name, LIST_ENTRIES_MAX)?;
        if names.iter().take(index).any(|earlier| earlier == name) {
            return Err(Rejection::invalid(
                field,
                format_args!("{name:?} twice"),
                "each entry once",
            ));
        }
    }
    Ok(())
}

/// 1 to 128 characters of `[A-Za-z0-9_-]`.
pub(crate) fn blob_id(field: &'static str, id: &str) -> Result<(), Rejection> {
    let fits = (1..=128).contains(&id.len());
    let plain = id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if fits && plain {
        return Ok(());
    }
    Err(Rejection::invalid(field, format_args!("{id:?}"), "1 to 128 characters of [A-Za-z0-9_-]"))
}

/// [`blob_id`] for a reference that may be absent.
pub(crate) fn optional_blob_id(field: &'static str, id: Option<&String>) -> Result<(), Rejection> {
    id.map_or(Ok(()), |id| blob_id(field, id))
}

/// One of a fixed list of words.
pub(crate) fn one_of(
    field: &'static str,
    word: &str,
    words: &'static [&'static str],
) -> Result<(), Rejection> {
    if words.contains(&word) {
        return Ok(());
    }
    Err(Rejection::invalid(
        field,
        format_args!("{word:?}"),
        format_args!("one of {}", words.join(", ")),
    ))
}
