//! Which network this is: names that hold the chain and its genesis.

use libp2p::StreamProtocol;
use libp2p::gossipsub::IdentTopic;
use types::Hash;

/// The chain that a network serves. Nodes of different networks refuse each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetworkId {
    chain_id: String,
    genesis: Hash,
}

impl NetworkId {
    /// The network of the chain with this name and this genesis hash.
    #[must_use]
    pub const fn new(chain_id: String, genesis: Hash) -> Self {
        Self { chain_id, genesis }
    }

    /// What nodes tell each other first, with the whole hash: `/ombra/<chain>/<genesis hash>`.
    #[must_use]
    pub fn version(&self) -> String {
        format!("/ombra/{}/{}", self.chain_id, self.genesis)
    }

    /// `/ombra/<chain>/<first 8 characters of the genesis hash>/<what>/1`.
    fn name(&self, what: &str) -> String {
        let genesis = self.genesis.to_string();
        let short = genesis.get(..8).unwrap_or_default();
        format!("/ombra/{}/{short}/{what}/1", self.chain_id)
    }

    pub(crate) fn topic(&self) -> IdentTopic {
        IdentTopic::new(self.name("txs"))
    }

    pub(crate) fn pool_protocol(&self) -> StreamProtocol {
        protocol(self.name("pool"))
    }

    pub(crate) fn sync_protocol(&self) -> StreamProtocol {
        protocol(self.name("sync"))
    }

    pub(crate) fn peers_protocol(&self) -> StreamProtocol {
        protocol(self.name("peers"))
    }
}

fn protocol(name: String) -> StreamProtocol {
    StreamProtocol::try_from_owned(name).expect("the name begins with a slash")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_hold_the_chain_and_its_genesis() {
        let network = NetworkId::new("town".to_owned(), Hash::new([0xab; 32]));
        assert_eq!("/ombra/town/abababab/txs/1", network.topic().hash().as_str());
        assert_eq!("/ombra/town/abababab/pool/1", network.pool_protocol().as_ref());
        assert_eq!("/ombra/town/abababab/sync/1", network.sync_protocol().as_ref());
        assert_eq!("/ombra/town/abababab/peers/1", network.peers_protocol().as_ref());
        assert_eq!(format!("/ombra/town/{}", "ab".repeat(32)), network.version());
    }
}
