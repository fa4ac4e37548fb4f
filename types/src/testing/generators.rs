//! Generators of bodies. The declaration of a kind has that of its fields.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::tx::{HexBytes, WrittenAddress};
use crate::{Address, Amount, Hash, PublicKey, Signature};

/// The most entries of a generated list, not included.
const ENTRIES: usize = 9;

/// What can be generated: a body, or what its fields can have.
pub(crate) trait Generated: Debug + Sized + 'static {
    /// Any value of the type, whether within a kind's limits or not.
    fn any() -> BoxedStrategy<Self>;
}

/// Generates values of a type: of what, and how they are made of that.
macro_rules! generated {
    ($($value:ty: $from:expr, $make:expr;)*) => {
        $(impl Generated for $value {
            fn any() -> BoxedStrategy<Self> {
                $from.prop_map($make).boxed()
            }
        })*
    };
}

generated! {
    bool: any::<bool>(), |value| value;
    u8: any::<u8>(), |value| value;
    u64: 0..=crate::params::INTEGER_MAX, |value| value;
    String: any::<String>(), |value| value;
    Amount: any::<u64>(), Amount::new;
    Hash: any::<[u8; 32]>(), Hash::new;
    PublicKey: any::<[u8; 32]>(), PublicKey::new;
    Signature: any::<[u8; 64]>(), Signature::new;
    HexBytes: Vec::<u8>::any(), HexBytes;
    WrittenAddress: (any::<[u8; 20]>(), any::<bool>()), |(bytes, has_prefix)| {
        let address = Address::new(bytes);
        let text = format!("{}{address}", if has_prefix { "ox" } else { "" });
        Self { address, text }
    };
}

impl<T: Generated> Generated for Vec<T> {
    fn any() -> BoxedStrategy<Self> {
        vec(T::any(), 0..ENTRIES).boxed()
    }
}
