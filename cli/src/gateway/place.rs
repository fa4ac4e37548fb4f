//! Which gateway is meant, and where it is asked: the process, or the store that it left.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use gateway::program::STORE;
use gateway::store::{OpenError, Store};
use types::Address;

use super::control::Control;
use crate::client::CliError;
use crate::client::options::{NodeArgs, SignerArgs};
use crate::clock::Clock;

/// How often a store that is in use is tried, and the pause between: a gateway that starts has it for a
/// moment before it answers, and so has another command.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// Where the gateways' stores are.
#[derive(Args, Clone, Debug)]
pub(crate) struct FolderArgs {
    /// Folder of the gateways' stores, with one folder for each wallet [default: ~/.ombra/gateway]
    #[arg(long, value_name = "DIR", env = "OMBRA_GATEWAY_DIR")]
    data_dir: Option<PathBuf>,
}

/// Whose gateway, and where its store is.
#[derive(Args, Clone, Debug)]
pub(crate) struct PlaceArgs {
    #[command(flatten)]
    pub(crate) folder: FolderArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    #[command(flatten)]
    pub(crate) signer: SignerArgs,
}

/// Where a gateway is asked.
pub(super) enum Source {
    /// It runs.
    Running(Control),
    /// It does not; this is its store.
    Stopped(Box<Store>),
}

impl FolderArgs {
    /// The folder of a wallet's gateway.
    pub(crate) fn of(&self, wallet: Address) -> Result<PathBuf, CliError> {
        Ok(self.all()?.join(wallet.to_string()))
    }

    fn all(&self) -> Result<PathBuf, CliError> {
        match (&self.data_dir, std::env::var_os("HOME")) {
            (Some(folder), _) => Ok(folder.clone()),
            (None, Some(home)) => Ok(Path::new(&home).join(".ombra/gateway")),
            (None, None) => Err(CliError::Usage("HOME is not set: give --data-dir".into())),
        }
    }

    /// The wallet of the only gateway that there is.
    pub(super) fn only(&self) -> Result<Address, CliError> {
        let all = self.all()?;
        match wallets(&all).as_slice() {
            [only] => Ok(*only),
            [] => Err(CliError::Usage(format!(
                "no gateway has run in {}: give --data-dir, or its wallet",
                all.display()
            ))),
            several => Err(CliError::Usage(format!(
                "{} has gateways of {} wallets: say which wallet",
                all.display(),
                several.len()
            ))),
        }
    }
}

impl PlaceArgs {
    /// The wallet of the gateway that is meant: that of the key, or the only one that there is.
    pub(super) fn wallet(&self) -> Result<Address, CliError> {
        match self.signer.address_if_given()? {
            Some(address) => Ok(address),
            None => self.folder.only(),
        }
    }

    /// Where a wallet's gateway is asked. Its store is made if it never worked.
    pub(super) async fn source(&self, wallet: Address) -> Result<Source, CliError> {
        let folder = self.folder.of(wallet)?;
        let mut tries = TRIES;
        loop {
            if let Some(control) = Control::reach(&folder).await? {
                return Ok(Source::Running(control));
            }
            match open(&folder, wallet).await? {
                Ok(store) => return Ok(Source::Stopped(Box::new(store))),
                Err(OpenError::InUse { .. }) if tries > 1 => (),
                Err(error) => return Err(CliError::Failed(error.to_string())),
            }
            tries = tries.saturating_sub(1);
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// A wallet's store, opened on a thread that may wait for the disk.
async fn open(folder: &Path, wallet: Address) -> Result<Result<Store, OpenError>, CliError> {
    miner::program::make_folder(folder).map_err(|error| CliError::Failed(error.to_string()))?;
    let path = folder.join(STORE);
    let opened =
        tokio::task::spawn_blocking(move || Store::open(&path, wallet, None, Arc::new(Clock)));
    opened.await.map_err(|error| CliError::Failed(error.to_string()))
}

/// The wallets whose gateways have stores in a folder.
fn wallets(folder: &Path) -> Vec<Address> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let wallet = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        entry.path().join(STORE).exists().then(|| name.parse().ok())?
    };
    entries.filter_map(wallet).collect()
}

#[cfg(test)]
mod tests {
    //! Which gateway is meant when nobody says so.

    use gateway::program::STORE;

    use super::PlaceArgs;
    use crate::testing::parsed;

    #[test]
    fn the_only_gateway_of_a_folder_needs_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().to_str().unwrap();
        let place: PlaceArgs = parsed(&["--data-dir", data]);
        assert!(place.wallet().unwrap_err().to_string().contains("no gateway has run"));
        let (one, other) = ("1".repeat(40), "2".repeat(40));
        for name in [&one, &other] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join(&one).join(STORE), "").unwrap();
        assert_eq!(one, place.wallet().unwrap().to_string());
        std::fs::write(folder.path().join(&other).join(STORE), "").unwrap();
        assert!(place.wallet().unwrap_err().to_string().contains("2 wallets"));
        let place: PlaceArgs = parsed(&["--data-dir", data, "--dev", "1"]);
        assert_eq!("69779141b27f1fb5062164ab88e27a4d00e34862", place.wallet().unwrap().to_string());
    }
}
