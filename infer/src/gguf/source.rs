//! Bytes of a model file, read in order, counted and hashed.

use std::io::Read;

use sha2::{Digest as _, Sha256};

use crate::error::FileError;

/// The most bytes of a name of a setting or a tensor.
const NAME_BYTES_MAX: u64 = 256;
/// The most bytes of one text in the header: chat templates are the longest, with some thousands.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// How much is skipped or copied at a time.
const STRIDE: usize = 64 * 1024;

/// A file that is read from front to back.
pub(crate) struct Source<R> {
    inner: R,
    position: u64,
    len: u64,
    hasher: Sha256,
}

impl<R: Read> Source<R> {
    /// `len` is the number of bytes that `inner` will give.
    pub(crate) fn new(inner: R, len: u64) -> Self {
        Self { inner, position: 0, len, hasher: Sha256::new() }
    }

    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    pub(crate) const fn len(&self) -> u64 {
        self.len
    }

    const fn left(&self) -> u64 {
        self.len.saturating_sub(self.position)
    }

    /// Fills `bytes`, which are the file's `what`.
    pub(crate) fn fill(&mut self, bytes: &mut [u8], what: &'static str) -> Result<(), FileError> {
        let wanted = bytes.len() as u64;
        if wanted > self.left() {
            return Err(self.too_short(what, wanted));
        }
        let offset = self.position;
        let read = self.inner.read_exact(bytes);
        read.map_err(|source| FileError::Read { offset, source })?;
        self.hasher.update(&*bytes);
        self.position += wanted;
        Ok(())
    }

    pub(crate) fn array<const N: usize>(
        &mut self,
        what: &'static str,
    ) -> Result<[u8; N], FileError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes, what)?;
        Ok(bytes)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, FileError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, FileError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A number of `what`, at most `max`.
    pub(crate) fn count(&mut self, what: &'static str, max: u64) -> Result<u64, FileError> {
        let offset = self.position;
        let found = self.u64(what)?;
        if found > max {
            return Err(FileError::TooMany { offset, what, found, max });
        }
        Ok(found)
    }

    /// `count` bytes of memory for elements of `size` bytes each, if the file can hold them.
    pub(crate) fn bounded(
        &self,
        what: &'static str,
        count: u64,
        size: u64,
    ) -> Result<usize, FileError> {
        let bytes = count.checked_mul(size).filter(|bytes| *bytes <= self.left());
        let fits = bytes.and_then(|_| usize::try_from(count).ok());
        fits.ok_or_else(|| self.too_short(what, count.saturating_mul(size)))
    }

    pub(crate) fn name(&mut self, what: &'static str) -> Result<String, FileError> {
        self.text_of(what, NAME_BYTES_MAX)
    }

    pub(crate) fn text(&mut self, what: &'static str) -> Result<String, FileError> {
        self.text_of(what, TEXT_BYTES_MAX)
    }

    fn text_of(&mut self, what: &'static str, bytes_max: u64) -> Result<String, FileError> {
        let offset = self.position;
        let count = self.count(what, bytes_max)?;
        let mut bytes = vec![0; self.bounded(what, count, 1)?];
        self.fill(&mut bytes, what)?;
        String::from_utf8(bytes).map_err(|source| FileError::NotUtf8 { offset, what, source })
    }

    /// Hashes and drops the bytes up to `position`.
    pub(crate) fn skip_to(&mut self, position: u64) -> Result<(), FileError> {
        let mut buffer = [0; STRIDE];
        while self.position < position {
            let wanted = (position - self.position).min(STRIDE as u64) as usize;
            let bytes = &mut buffer[..wanted];
            self.fill(bytes, "the space between tensors")?;
        }
        Ok(())
    }

    /// Reads what is left and answers the sha256 of the whole file.
    pub(crate) fn finish(mut self) -> Result<[u8; 32], FileError> {
        self.skip_to(self.len)?;
        Ok(self.hasher.finalize().into())
    }

    fn too_short(&self, what: &'static str, wanted: u64) -> FileError {
        FileError::TooShort { offset: self.position, what, wanted, left: self.left() }
    }
}
