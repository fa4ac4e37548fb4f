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
        self.name_of(what, 1)
    }

    fn name_of(&self, what: &str, version: u32) -> String {
        let genesis = self.genesis.to_string();
        let short = genesis.get(..8).unwrap_or_default();
        format!("/ombra/{}/{short}/{what}/{version}", self.chain_id)
    }

    pub(crate) fn topic(&self) -> IdentTopic {
        IdentTopic::new(self.name("txs"))
    }

    pub(crate) fn pool_protocol(&self) -> StreamProtocol {
        protocol(self.name("pool"))
    }

    /// The newest first: two nodes speak the first that both know. The second version has a question
    /// more.
    pub(crate) fn sync_protocols(&self) -> [StreamProtocol; 2] {
        [2, 1].map(|version| protocol(self.name_of("sync", version)))
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
        let [newest, oldest] = network.sync_protocols();
        assert_eq!("/ombra/town/abababab/sync/2", newest.as_ref());
        assert_eq!("/ombra/town/abababab/sync/1", oldest.as_ref());
        assert_eq!("/ombra/town/abababab/peers/1", network.peers_protocol().as_ref());
        assert_eq!(format!("/ombra/town/{}", "ab".repeat(32)), network.version());
    }
}
