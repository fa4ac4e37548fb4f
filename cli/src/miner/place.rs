//! Which miner is meant, and where it is asked: the process, or the journal that it left.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use miner::chain::client::Node;
use miner::journal::{Journal, JournalError};
use miner::program::JOURNAL;
use types::Address;

use super::super::client::CliError;
use super::super::client::options::{NodeArgs, SignerArgs};
use super::control::{Control, Untold};
use super::start::is_starting;

/// How often a journal that is in use is tried, and the pause between: a miner that begins to work
/// has it for a moment before it answers, and so has another command.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// Whose miner, and where its journal is.
#[derive(Args, Clone, Debug)]
pub(super) struct PlaceArgs {
    /// Folder of the miners' journals, with one folder for each wallet [default: ~/.ombra/miner]
    #[arg(long, value_name = "DIR", env = "OMBRA_MINER_DIR")]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(super) node: NodeArgs,
    #[command(flatten)]
    pub(super) signer: SignerArgs,
}

/// Where a miner is asked.
enum Source {
    /// It runs.
    Running(Control),
    /// It does not; this is its journal.
    Stopped(Box<Journal>),
}

impl PlaceArgs {
    /// The folder of a wallet's miner.
    pub(super) fn folder(&self, miner: Address) -> Result<PathBuf, CliError> {
        Ok(self.all()?.join(miner.to_string()))
    }

    /// The miner that is meant: that of the key, or the only one that there is.
    pub(super) fn miner(&self) -> Result<Address, CliError> {
        if let Some(address) = self.signer.address_if_given()? {
            return Ok(address);
        }
        let all = self.all()?;
        match wallets(&all).as_slice() {
            [only] => Ok(*only),
            [] => Err(CliError::Usage(format!(
                "no miner has run in {}: give --data-dir, or --wallet",
                all.display()
            ))),
            several => Err(CliError::Usage(format!(
                "{} has miners of {} wallets: give --wallet",
                all.display(),
                several.len()
            ))),
        }
    }

    /// What a wallet's miner tells, or else its journal.
    ///
    /// # Errors
    /// When it never worked, or can neither be asked nor read.
    pub(super) async fn told<T>(
        &self,
        miner: Address,
        running: impl AsyncFn(Control) -> Result<T, Untold>,
        stopped: impl AsyncFn(Box<Journal>) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        let path = self.folder(miner)?.join(JOURNAL);
        self.told_if_any(miner, running, stopped).await?.ok_or_else(|| {
            let path = path.display();
            CliError::Failed(format!("there is no journal {path}: the miner has not worked yet"))
        })
    }

    /// The same; none if it never worked. A miner that is killed while it answers has left its
    /// journal, so the journal is read then.
    pub(super) async fn told_if_any<T>(
        &self,
        miner: Address,
        running: impl AsyncFn(Control) -> Result<T, Untold>,
        stopped: impl AsyncFn(Box<Journal>) -> Result<T, CliError>,
    ) -> Result<Option<T>, CliError> {
        let mut tries = TRIES;
        loop {
            match self.source_if_any(miner).await? {
                None => return Ok(None),
                Some(Source::Stopped(journal)) => return stopped(journal).await.map(Some),
                Some(Source::Running(control)) => match running(control).await {
                    Ok(told) => return Ok(Some(told)),
                    Err(Untold::Gone(why)) if tries > 1 => {
                        tracing::debug!(why, "the miner was gone before it answered");
                    }
                    Err(untold) => return Err(untold.into()),
                },
            }
            tries = tries.saturating_sub(1);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Where a wallet's miner is asked; none if it never worked.
    async fn source_if_any(&self, miner: Address) -> Result<Option<Source>, CliError> {
        let folder = self.folder(miner)?;
        let mut tries = TRIES;
        loop {
            if let Some(control) = Control::reach(&folder).await? {
                return Ok(Some(Source::Running(control)));
            }
            match journal(folder.join(JOURNAL), miner).await? {
                Ok(found) => return Ok(found.map(|it| Source::Stopped(Box::new(it)))),
                Err(JournalError::InUse { .. }) if tries > 1 => (),
                Err(error @ JournalError::InUse { .. }) => {
                    return Err(CliError::Failed(format!(
                        "{error}; it does not answer now: it is starting, stopping, or busy with \
                         another command"
                    )));
                }
                Err(error) => return Err(CliError::Failed(error.to_string())),
            }
            tries = tries.saturating_sub(1);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The node.
    pub(super) fn chain(&self) -> Result<Node, CliError> {
        chain(&self.node)
    }

    fn all(&self) -> Result<PathBuf, CliError> {
        match (&self.data_dir, std::env::var_os("HOME")) {
            (Some(folder), _) => Ok(folder.clone()),
            (None, Some(home)) => Ok(Path::new(&home).join(".ombra/miner")),
            (None, None) => Err(CliError::Usage("HOME is not set: give --data-dir".into())),
        }
    }
}

/// A wallet's journal, if there is one, opened on a thread that may wait for the disk.
async fn journal(
    path: PathBuf,
    miner: Address,
) -> Result<Result<Option<Journal>, JournalError>, CliError> {
    let opened = tokio::task::spawn_blocking(move || Journal::open_existing(&path, miner));
    opened.await.map_err(|error| CliError::Failed(error.to_string()))
}

/// A node as the miner asks it.
pub(super) fn chain(args: &NodeArgs) -> Result<Node, CliError> {
    Node::new(args.client()?).map_err(|error| CliError::Failed(error.to_string()))
}

/// The wallets whose miners have journals in a folder, or start there.
fn wallets(folder: &Path) -> Vec<Address> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let wallet = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let folder = entry.path();
        (folder.join(JOURNAL).exists() || is_starting(&folder)).then(|| name.parse().ok())?
    };
    entries.filter_map(wallet).collect()
}

#[cfg(test)]
mod tests {
    //! Which miner is meant when nobody says so.

    use miner::journal::Journal;
    use miner::program::JOURNAL;
    use types::Hash;
    use wallet::ChainIdentity;

    use super::{Control, PlaceArgs};
    use crate::testing::parsed;

    #[tokio::test]
    async fn a_miner_that_is_killed_while_it_answers_has_left_its_journal() {
        let data = tempfile::tempdir().unwrap();
        let arguments = ["--data-dir", data.path().to_str().unwrap(), "--dev", "1"];
        let place: PlaceArgs = parsed(&arguments);
        let miner = place.miner().unwrap();
        let folder = place.folder(miner).unwrap();
        std::fs::create_dir(&folder).unwrap();
        let chain = ChainIdentity { chain_id: "here".into(), genesis_hash: Hash::ZERO };
        drop(Journal::open(&folder.join(JOURNAL), miner, &chain).unwrap());
        let listening = tokio::net::UnixListener::bind(folder.join("control.sock")).unwrap();
        // Takes a question and is gone.
        let killed = async move { drop(listening.accept().await.unwrap()) };
        let running = async |control: Control| control.status().await.map(|_| "the process");
        let stopped = async |_journal| Ok("the journal");
        let (told, ()) = tokio::join!(place.told(miner, running, stopped), killed);
        assert_eq!("the journal", told.unwrap());
    }

    #[test]
    fn the_only_miner_of_a_folder_needs_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().to_str().unwrap();
        let place: PlaceArgs = parsed(&["--data-dir", data]);
        assert!(place.miner().unwrap_err().to_string().contains("no miner has run"));
        let (one, other) = ("1".repeat(40), "2".repeat(40));
        for name in ["not-a-wallet", &one] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join(JOURNAL), "").unwrap();
        }
        assert_eq!(one, place.miner().unwrap().to_string());
        std::fs::create_dir(folder.path().join(&other)).unwrap();
        assert_eq!(one, place.miner().unwrap().to_string(), "it has no journal");
        std::fs::write(folder.path().join(&other).join(JOURNAL), "").unwrap();
        assert!(place.miner().unwrap_err().to_string().contains("2 wallets"));
        let place: PlaceArgs = parsed(&["--data-dir", data, "--dev", "1"]);
        assert_eq!("69779141b27f1fb5062164ab88e27a4d00e34862", place.miner().unwrap().to_string());
    }
}
