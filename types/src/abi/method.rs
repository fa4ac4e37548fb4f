//! Methods of agents, their signatures and selectors.

use std::fmt;

use sha3::{Digest, Keccak256};

use super::parameter::{Parameter, push_list};

/// Keccak-256, as Ethereum uses it.
#[must_use]
pub fn keccak256(bytes: &[u8]) -> [u8; 32] {
    Keccak256::digest(bytes).into()
}

/// A method of an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// Its inputs.
    pub inputs: Vec<Parameter>,
    /// Its outputs.
    pub outputs: Vec<Parameter>,
}

impl Method {
    /// The canonical signature: `inferChat(string[],string[],bool)`.
    #[must_use]
    pub fn signature(&self) -> String {
        let mut signature = self.name.clone();
        push_list(&self.inputs, &mut signature);
        signature
    }

    /// The types of the outputs: `(string,bytes[])`.
    #[must_use]
    pub fn answers(&self) -> String {
        let mut answers = String::new();
        push_list(&self.outputs, &mut answers);
        answers
    }

    /// The first four bytes of the signature's Keccak-256. The payload of a call begins with them.
    #[must_use]
    pub fn selector(&self) -> Selector {
        let [a, b, c, d, ..] = keccak256(self.signature().as_bytes());
        Selector([a, b, c, d])
    }
}

/// The four bytes that identify a method in the payload of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector(pub [u8; 4]);

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(const_hex::Buffer::<4, true>::new().format(&self.0))
    }
}

impl fmt::Debug for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
