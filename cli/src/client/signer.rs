//! A key that signs, and the chain that it signs for: the one of its first use, whatever a node says.

use std::io::Write as _;

use types::{Address, Keypair};
use wallet::{Bond, ChainIdentity, ChainMemory, Client, Envelope, WalletError, chain};

use super::CliError;
use super::output::printable;

/// A key, and where the chain of its first use is remembered.
#[derive(Clone, Debug)]
pub(crate) struct Signer {
    keypair: Keypair,
    /// None for keys that everybody has: what they sign, others could sign on any chain.
    memory: Option<ChainMemory>,
    /// The chain that the user gave: `ID` or `ID@GENESIS`.
    named: Option<String>,
}

impl Signer {
    /// A key in a file, beside which its chain is remembered.
    pub(super) fn of_file(keypair: Keypair, memory: ChainMemory, named: Option<String>) -> Self {
        Self { keypair, memory: Some(memory), named }
    }

    /// A key that is no secret: it signs for the chain that the node names, or the user.
    pub(crate) const fn of_public_key(keypair: Keypair, named: Option<String>) -> Self {
        Self { keypair, memory: None, named }
    }

    /// The key, where its chain is remembered, and the chain that the user gave.
    pub(crate) fn into_parts(self) -> (Keypair, Option<ChainMemory>, Option<String>) {
        (self.keypair, self.memory, self.named)
    }

    /// The address of the key.
    pub(crate) fn address(&self) -> Address {
        self.keypair.address()
    }

    /// Checks that the key signs for the chain that a node names; says what is new about that.
    ///
    /// # Errors
    /// When it does not: both chains, and what can be done.
    fn bind(&self, got: &ChainIdentity) -> Result<(), CliError> {
        let Some(memory) = &self.memory else {
            chain::check_id(got)?;
            return Ok(self
                .named
                .as_ref()
                .map_or(Ok(()), |named| chain::check_named(got, named))?);
        };
        let bond = memory.bind(got, self.named.as_deref()).map_err(advised)?;
        let file = memory.path().display();
        match bond {
            Bond::Known => {}
            Bond::New => note(&format!("the key signs for chain {got} from now on ({file})")),
            Bond::Once => note(&format!("the key signs for chain {got} this time only ({file})")),
        }
        Ok(())
    }

    /// The chain id of a signature that is made without a node.
    ///
    /// # Errors
    /// When nobody has said it: without one the transaction would be valid on every chain.
    pub(super) fn chain_id_offline(&self) -> Result<String, CliError> {
        if let Some(named) = &self.named {
            return Ok(chain::named_id(named).to_owned());
        }
        let known =
            self.memory.as_ref().map(ChainMemory::recall).transpose().map_err(advised)?.flatten();
        known.map(|chain| chain.chain_id).ok_or_else(|| {
            CliError::Usage(
                "no node was asked, so the chain is unknown: give --chain-id ID. Without it the \
                 transaction would be valid on every chain"
                    .into(),
            )
        })
    }
}

/// One key that sends transactions to one node.
pub(crate) struct Sender {
    /// The node.
    pub(crate) client: Client,
    signer: Signer,
    /// The chain, once the key is known to sign for it.
    chain: tokio::sync::OnceCell<ChainIdentity>,
}

impl Sender {
    /// Nothing is asked of the node yet.
    pub(crate) fn new(client: Client, signer: Signer) -> Self {
        Self { client, signer, chain: tokio::sync::OnceCell::new() }
    }

    /// The key and where its chain is remembered.
    pub(crate) const fn signer(&self) -> &Signer {
        &self.signer
    }

    /// The key.
    pub(crate) const fn keypair(&self) -> &Keypair {
        &self.signer.keypair
    }

    /// The chain that is signed for: the one that the node named first, if the key signs for it.
    ///
    /// # Errors
    /// When the node is away, or of another chain.
    pub(crate) async fn chain(&self) -> Result<&ChainIdentity, CliError> {
        let bind = || async {
            let got = self.client.chain_info().await?.chain();
            self.signer.bind(&got)?;
            Ok(got)
        };
        self.chain.get_or_try_init(bind).await
    }

    /// The next envelope: the nonce after all pending transactions, the time, and the chain.
    ///
    /// # Errors
    /// As for [`Sender::chain`].
    pub(crate) async fn envelope(&self, timestamp_ms: u64) -> Result<Envelope, CliError> {
        let chain = self.chain().await?;
        Ok(self.client.envelope(&self.signer.keypair, chain, timestamp_ms).await?)
    }
}

/// The failure of a key to sign for a chain, with what can be done about it.
pub(crate) fn advised(why: WalletError) -> CliError {
    let advice = if let WalletError::OtherChain { path, other } = &why {
        format!(
            "ask a node of the first chain (--rpc URL); to sign for the second anyway, give \
             --chain-id {}; if the first is gone for good, delete {}",
            other.got.chain_id,
            path.display()
        )
    } else if let WalletError::ChainNotKept { .. } = &why {
        "give --chain-id ID each time, or keep the key where this program may write".to_owned()
    } else if let WalletError::ChainDamaged { path, .. } = &why {
        format!("delete {}, and the next use of the key counts as its first", path.display())
    } else {
        return why.into();
    };
    CliError::from(why).noted(advice)
}

/// Tells the user something that is no answer.
pub(super) fn note(text: &str) {
    let mut stderr = std::io::stderr().lock();
    // Who cannot be told is not kept from working.
    drop(writeln!(stderr, "ombra: {}", printable(text)));
}
