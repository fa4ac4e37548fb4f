//! SHA-256 as the tree wants it.

use jmt::SimpleHasher;
use sha2::{Digest, Sha256};

/// The hash function of the tree. The crate `jmt` knows an older `digest`; this bridges it.
#[derive(Debug)]
pub(super) struct TreeHasher(Sha256);

impl SimpleHasher for TreeHasher {
    fn new() -> Self {
        Self(Sha256::new())
    }

    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}
