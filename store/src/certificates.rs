//! Who decides whether a block was final: the caller, to whom this crate gives what it knows.

use types::{Address, Hash, SetMember};

/// What is known of the height of fork v7 where a certificate is checked. It decides what the validators
/// have signed (docs/consensus.md section 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum V7Height {
    /// It begins with this block; with none if no height is fixed.
    Known(Option<u64>),
    /// Neither genesis nor the state says whether votes have fixed a height. The signatures of each
    /// certificate may be of either version.
    Unknown,
}

/// Who decides whether a block was final. Asked from several threads.
pub trait Certificates: Sync {
    /// Verifies the certificate of a block, and answers the validators that were to propose in the
    /// rounds of its height that decided nothing. `set` is the set of that height as the state
    /// before the block has it; none on a chain that keeps the validators of its genesis for ever.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    fn verify(
        &self,
        v7: V7Height,
        set: Option<&[SetMember]>,
        height: u64,
        hash: &Hash,
        certificate: &[u8],
    ) -> Result<Vec<Address>, String>;
}
