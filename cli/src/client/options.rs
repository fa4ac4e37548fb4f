//! Options that several commands share: the node, the signing key, the password.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use node::keyfile;
use types::{Address, Keypair};
use wallet::accounts::development_account;
use wallet::client::DEFAULT_URL;
use wallet::{ChainMemory, Client, KeyStore, Wallet, Zeroizing, read_wallet_file};

use super::input::Payee;
use super::signer::Signer;
use super::{CliError, input};

/// Which node to ask, and how to print its answer.
#[derive(Args, Clone, Debug)]
pub struct NodeArgs {
    /// The node's JSON-RPC address
    #[arg(long, value_name = "URL", env = "OMBRA_RPC", default_value = DEFAULT_URL)]
    pub rpc: String,
    /// Print JSON on one line instead of text for people
    #[arg(long)]
    pub json: bool,
}

impl NodeArgs {
    /// The client of that node.
    pub(crate) fn client(&self) -> Result<Client, CliError> {
        Ok(Client::new(&self.rpc)?)
    }
}

/// Where a password comes from.
#[derive(Args, Clone, Debug)]
pub struct PasswordArgs {
    /// File whose first line is the wallet's password; without it, the command asks on the terminal
    #[arg(long, value_name = "FILE", env = "OMBRA_PASSWORD_FILE")]
    pub password_file: Option<PathBuf>,
}

impl PasswordArgs {
    /// The password of an existing wallet.
    pub(super) fn existing(&self, wallet: &str) -> Result<Zeroizing<String>, CliError> {
        self.ask(&format!("Password of {wallet}: "))
    }

    /// A password for a new file, typed twice when the terminal is asked.
    pub(super) fn new_password(&self) -> Result<Zeroizing<String>, CliError> {
        if self.password_file.is_some() {
            return self.ask(NEW_PASSWORD);
        }
        typed_twice(|prompt| self.ask(prompt))
    }

    fn ask(&self, prompt: &str) -> Result<Zeroizing<String>, CliError> {
        match &self.password_file {
            Some(path) => input::first_line(path),
            None => {
                ask_secret(prompt, "a password is needed: --password-file or OMBRA_PASSWORD_FILE")
            }
        }
    }
}

const NEW_PASSWORD: &str = "New password: ";

/// A new password, which whoever types it has to type twice.
fn typed_twice(
    mut ask: impl FnMut(&str) -> Result<Zeroizing<String>, CliError>,
) -> Result<Zeroizing<String>, CliError> {
    let first = ask(NEW_PASSWORD)?;
    if *ask("Repeat the new password: ")? != *first {
        return Err(CliError::Usage("the two passwords differ".into()));
    }
    Ok(first)
}

/// Asks the terminal for a secret; without a terminal it is wrong usage.
pub(super) fn ask_secret(prompt: &str, missing: &str) -> Result<Zeroizing<String>, CliError> {
    if !std::io::stdin().is_terminal() {
        return Err(CliError::Usage(missing.to_owned()));
    }
    rpassword::prompt_password(prompt)
        .map(Zeroizing::new)
        .map_err(|source| CliError::file("terminal", source))
}

/// Where wallets are kept.
#[derive(Args, Clone, Debug)]
pub struct StoreArgs {
    /// Folder of the key store [default: ~/.ombra/keys]
    #[arg(long, value_name = "DIR", env = "OMBRA_KEYS_DIR")]
    pub keys_dir: Option<PathBuf>,
}

impl StoreArgs {
    /// The key store.
    pub(super) fn store(&self) -> Result<KeyStore, CliError> {
        let folder = match (&self.keys_dir, std::env::var_os("HOME")) {
            (Some(folder), _) => folder.clone(),
            (None, Some(home)) => Path::new(&home).join(".ombra/keys"),
            (None, None) => {
                return Err(CliError::Usage("HOME is not set: give --keys-dir".into()));
            }
        };
        Ok(KeyStore::at(folder))
    }

    /// Opens a wallet by its file, or by its name in the key store.
    pub(super) fn open(&self, wallet: &str, password: &PasswordArgs) -> Result<Wallet, CliError> {
        let path = Path::new(wallet);
        if path.is_file() {
            return Ok(read_wallet_file(path, &password.existing(wallet)?)?);
        }
        let store = self.store()?;
        store.find(wallet)?;
        Ok(store.open(wallet, &password.existing(wallet)?)?)
    }

    /// Where the chain of such a wallet is remembered: beside its file.
    pub(super) fn memory(&self, wallet: &str) -> Result<ChainMemory, CliError> {
        let path = Path::new(wallet);
        if path.is_file() {
            return Ok(ChainMemory::beside(path));
        }
        Ok(ChainMemory::beside(&self.store()?.find(wallet)?.path))
    }
}

/// Which key signs.
#[derive(Args, Clone, Debug)]
pub struct SignerArgs {
    /// Sign with this wallet: a file, or a name in the key store; if you give no key, the wallet in
    /// `OMBRA_WALLET` signs
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "dev")]
    pub wallet: Option<String>,
    /// Sign with development account N; its key is public, so for test chains only
    #[arg(long, value_name = "N")]
    pub dev: Option<u32>,
    /// Sign with the seed in this file: that of a validator is keys/validator.key in its home
    #[arg(long, value_name = "FILE", conflicts_with_all = ["dev", "wallet"])]
    pub key_file: Option<PathBuf>,
    /// Sign only for the chain with this id; append @ and the hash of its genesis file to exclude
    /// other chains with the same id [default: the chain on which the key was first used, which is
    /// remembered beside its file; with --dev the node's]
    #[arg(long, value_name = "ID[@GENESIS]")]
    pub chain_id: Option<String>,
    #[command(flatten)]
    #[expect(missing_docs, reason = "its fields are documented")]
    pub store: StoreArgs,
    #[command(flatten)]
    #[expect(missing_docs, reason = "its fields are documented")]
    pub password: PasswordArgs,
}

impl SignerArgs {
    /// The key, if one was named.
    pub(super) fn signer_if_given(&self) -> Result<Option<Signer>, CliError> {
        self.signer_or(std::env::var_os("OMBRA_WALLET"))
    }

    /// The address of the key, if one was named. The password of a wallet in the key store is not
    /// needed for it.
    pub(crate) fn address_if_given(&self) -> Result<Option<Address>, CliError> {
        let environment = || std::env::var("OMBRA_WALLET").ok().filter(|name| !name.is_empty());
        let is_bare = self.key_file.is_some() || self.dev.is_some();
        let named = self.wallet.clone().or_else(environment).filter(|_| !is_bare);
        let stored = named.filter(|name| !Path::new(name).is_file());
        match stored {
            Some(name) => Ok(Some(self.store.store()?.find(&name)?.address)),
            None => Ok(self.signer_if_given()?.map(|signer| signer.address())),
        }
    }

    /// The key of the flags, or else of the wallet that the environment names.
    fn signer_or(&self, environment: Option<OsString>) -> Result<Option<Signer>, CliError> {
        let chain_id = || self.chain_id.clone();
        if let Some(path) = &self.key_file {
            let seed = keyfile::read(path).map_err(|error| CliError::Usage(error.to_string()))?;
            let (key, memory) = (Keypair::from_seed(&seed), ChainMemory::beside(path));
            return Ok(Some(Signer::of_file(key, memory, chain_id())));
        }
        if let Some(index) = self.dev {
            return Ok(Some(Signer::of_public_key(development_account(index)?, chain_id())));
        }
        let named = match (&self.wallet, environment.filter(|name| !name.is_empty())) {
            (Some(wallet), _) => wallet.clone(),
            (None, Some(name)) => name.into_string().map_err(|name| {
                CliError::Usage(format!("OMBRA_WALLET is not text: {}", name.display()))
            })?,
            (None, None) => return Ok(None),
        };
        let key = self.store.open(&named, &self.password)?.keypair().clone();
        Ok(Some(Signer::of_file(key, self.store.memory(&named)?, chain_id())))
    }

    /// The address that is paid. Everybody has the keys of development accounts, so a payment to
    /// `dev:N` on a chain whose money counts would be lost: only another development account makes one.
    ///
    /// # Errors
    /// When another key is to pay `dev:N`.
    pub(crate) fn pays(&self, payee: Payee) -> Result<Address, CliError> {
        let Payee { address, development } = payee;
        match development.filter(|_| self.dev.is_none()) {
            None => Ok(address),
            Some(index) => Err(CliError::Usage(format!(
                "dev:{index} is a development account, and everybody has its key: whatever another \
                 key pays it can be taken by anyone. Sign with --dev N on a test chain; if you mean \
                 this account all the same, give its address, {address}"
            ))),
        }
    }

    /// The key that signs.
    pub(crate) fn signer(&self) -> Result<Signer, CliError> {
        self.signer_if_given()?.ok_or_else(|| {
            CliError::Usage(
                "no signing key: give --wallet FILE (or a name from `ombra keys list`), --key-file \
                 FILE for a validator's key, or --dev N on a test chain"
                    .into(),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    //! Which key signs, and what is asked of the terminal.

    use wallet::accounts::development_account;
    use wallet::{KeyStore, Wallet, Zeroizing};

    use super::super::input::payee;
    use super::{SignerArgs, typed_twice};
    use crate::testing::parsed;

    #[test]
    fn a_new_password_is_asked_for_and_then_asked_for_again() {
        let mut prompts = Vec::new();
        let password = typed_twice(|prompt| {
            prompts.push(prompt.to_owned());
            Ok(Zeroizing::new("secret".to_owned()))
        });
        assert_eq!("secret", *password.unwrap());
        assert_eq!(["New password: ", "Repeat the new password: "], *prompts);
        let mut typed = ["secret", "secert"].into_iter();
        let refused = typed_twice(|_| Ok(Zeroizing::new(typed.next().unwrap().to_owned())));
        assert!(refused.unwrap_err().to_string().contains("differ"));
    }

    #[test]
    fn a_development_account_is_paid_by_its_number_only_by_another() {
        let named = payee("dev:3").unwrap();
        let written = payee(&named.address.to_string()).unwrap();
        let development: SignerArgs = parsed(&["--dev", "0"]);
        let wallet: SignerArgs = parsed(&["--wallet", "alice"]);
        assert_eq!(named.address, development.pays(named).unwrap());
        assert_eq!(named.address, wallet.pays(written).unwrap());
        for signer in [wallet, parsed(&[]), parsed(&["--key-file", "validator.key"])] {
            let refused = signer.pays(named).unwrap_err();
            let said = refused.to_string();
            assert_eq!(2, refused.exit_code());
            assert!(said.contains("dev:3") && said.contains(&named.address.to_string()), "{said}");
        }
    }

    #[test]
    fn a_flag_beats_the_wallet_of_the_environment() {
        let signer: SignerArgs = parsed(&["--dev", "3"]);
        let key = signer.signer_or(Some("alice".into())).unwrap().unwrap();
        assert_eq!(development_account(3).unwrap().address(), key.address());
        let signer: SignerArgs = parsed(&["--keys-dir", "/nowhere"]);
        let missing = signer.signer_or(Some("alice".into())).unwrap_err();
        assert_eq!((2, true), (missing.exit_code(), missing.to_string().contains("alice")));
        assert!(signer.signer_or(None).unwrap().is_none());
    }

    #[test]
    fn the_address_of_a_stored_wallet_needs_no_password() {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().to_str().unwrap();
        let wallet = Wallet::from_keypair(development_account(3).unwrap());
        KeyStore::at(folder.path().to_owned()).add("worker", &wallet, "secret").unwrap();
        let signer: SignerArgs = parsed(&["--wallet", "worker", "--keys-dir", keys]);
        assert_eq!(Some(wallet.address()), signer.address_if_given().unwrap());
        let signer: SignerArgs = parsed(&["--dev", "3"]);
        assert_eq!(Some(wallet.address()), signer.address_if_given().unwrap());
    }
}
