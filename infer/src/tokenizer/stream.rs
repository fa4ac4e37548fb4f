//! Text that arrives in pieces which may end within a character.

/// Collects bytes and gives out the characters that are complete.
#[derive(Debug, Default)]
pub struct TextStream {
    /// The beginning of a character: at most 3 bytes.
    pending: Vec<u8>,
}

impl TextStream {
    /// Takes bytes, and answers what is complete. What cannot become UTF-8 is U+FFFD.
    #[must_use]
    pub fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let keep = incomplete(&self.pending);
        let rest = self.pending.split_off(self.pending.len() - keep);
        let complete = std::mem::replace(&mut self.pending, rest);
        String::from_utf8_lossy(&complete).into_owned()
    }

    /// The end: a character that was begun is U+FFFD.
    #[must_use]
    pub fn finish(self) -> String {
        String::from_utf8_lossy(&self.pending).into_owned()
    }
}

/// How many bytes at the end are the beginning of a character that may go on.
fn incomplete(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last();
    let tail = last.map_or(&[][..], |chunk| chunk.invalid());
    let may_go_on = std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none());
    if may_go_on { tail.len() } else { 0 }
}
