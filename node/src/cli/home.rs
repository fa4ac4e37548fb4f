//! `ombra init` and `ombra start`: a node's home, and the node that lives there.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use types::Keypair;

use super::client::{CliError, Out, Outcome};
use super::genesis;
use crate::config::{self, Home};
use crate::node::NodeSpec;
use crate::{keyfile, logging, supervisor};

/// Make a home: settings, keys, data folder
#[derive(Debug, Args)]
#[command(after_help = "Example: ombra init --home /var/lib/ombra --genesis genesis.json\n\n\
                        Without --genesis only the keys are made and the validator's public key is \
                        printed, for `ombra genesis new --validator`.")]
pub(super) struct InitArgs {
    /// The folder of the home; made if it is missing
    #[arg(long, value_name = "DIR", env = "OMBRA_HOME")]
    home: PathBuf,
    /// The chain's genesis file; it is copied
    #[arg(long, value_name = "FILE")]
    genesis: Option<PathBuf>,
    /// Make no validator key: the node follows
    #[arg(long)]
    follower: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Run a node from its home
#[derive(Debug, Args)]
#[command(after_help = "Example: ombra start --home /var/lib/ombra")]
pub(super) struct StartArgs {
    /// The node's home
    #[arg(long, value_name = "DIR", env = "OMBRA_HOME")]
    home: PathBuf,
}

/// What a new `config.toml` begins with.
const CONFIG_HEAD: &str = "\
# Settings of an Ombra node. Every value here is the default of the version that wrote the file.
# A flag beats the environment (OMBRA__SECTION__KEY), which beats this file.
# `ombra config show --home DIR` prints what is in force and where it came from.

";

pub(super) fn init(args: &InitArgs, out: Out<'_>) -> Outcome {
    let home = Home::new(args.home.clone());
    let genesis = args.genesis.as_deref().map(genesis::parse).transpose()?;
    if home.genesis().exists() || home.config().exists() {
        let message = format!("{} is a home already; nothing was changed", args.home.display());
        return Err(CliError::Usage(message));
    }
    let failed = |error: keyfile::KeyFileError| CliError::Failed(error.to_string());
    std::fs::create_dir_all(home.database())
        .map_err(|source| CliError::File { what: args.home.display().to_string(), source })?;
    keyfile::read_or_create(&home.node_key()).map_err(failed)?;
    let validator = if args.follower {
        None
    } else {
        let seed = keyfile::read_or_create(&home.validator_key()).map_err(failed)?;
        Some(Keypair::from_seed(&seed))
    };
    let Some(genesis) = genesis else { return print_keys(args, validator.as_ref(), out) };
    let settings = toml::to_string(&config::Config::default())
        .map_err(|error| CliError::Failed(format!("writing the settings: {error}")))?;
    write_new(&home.config(), &format!("{CONFIG_HEAD}{settings}"))?;
    write_new(&home.genesis(), &genesis.to_file())?;
    print_home(args, &home, &genesis, validator.as_ref(), out)
}

fn print_keys(args: &InitArgs, validator: Option<&Keypair>, out: Out<'_>) -> Outcome {
    let key = validator.map(Keypair::public_key);
    if args.json {
        writeln!(out, "{}", json!({ "home": args.home, "validatorPublicKey": key }))?;
        return Ok(());
    }
    writeln!(out, "{} has its keys", args.home.display())?;
    if let Some(key) = key {
        writeln!(out, "validator public key {key}")?;
    }
    writeln!(out, "run this again with --genesis to complete the home")?;
    Ok(())
}

fn print_home(
    args: &InitArgs,
    home: &Home,
    genesis: &::genesis::Genesis,
    validator: Option<&Keypair>,
    out: Out<'_>,
) -> Outcome {
    let key = validator.map(Keypair::public_key);
    let is_listed = genesis.validators().iter().any(|listed| Some(listed.public_key) == key);
    if args.json {
        let answer = json!({
            "home": home.directory(),
            "genesisHash": genesis.hash(),
            "validatorPublicKey": key,
            "isValidator": is_listed,
        });
        writeln!(out, "{answer}")?;
        return Ok(());
    }
    writeln!(out, "{} is ready", home.directory().display())?;
    writeln!(out, "chain {}, genesis {}", genesis.chain_id(), genesis.hash())?;
    if let (Some(key), Some(validator)) = (key, validator) {
        writeln!(out, "validator {} with public key {key}", validator.address())?;
        if !is_listed {
            writeln!(out, "this key is not among the validators of the genesis: the node follows")?;
        }
    }
    Ok(())
}

pub(super) async fn start(args: &StartArgs, out: Out<'_>) -> Outcome {
    let home = Home::new(args.home.clone());
    let settings = config::load(Some(&home.config()), std::env::vars(), &[])
        .map_err(|error| CliError::Usage(error.to_string()))?
        .config;
    let genesis = genesis::parse(&home.genesis())?;
    let failed = |error: keyfile::KeyFileError| CliError::Failed(error.to_string());
    let node_key = keyfile::read(&home.node_key()).map_err(failed)?;
    let validator = if home.validator_key().exists() {
        Some(Keypair::from_seed(&keyfile::read(&home.validator_key()).map_err(failed)?))
    } else {
        None
    };
    // Where validators can change, a key that is not one of the first may become one.
    let may_vote = |key: &Keypair| {
        genesis.chain().forks.validator_vote.is_some()
            || genesis.validators().iter().any(|listed| listed.public_key == key.public_key())
    };
    let validator = validator.filter(may_vote);
    let log = logging::start(&settings.log).map_err(|error| CliError::Usage(error.to_string()))?;
    let asked = supervisor::asked_by_signal()
        .map_err(|source| CliError::File { what: "listening to signals".to_owned(), source })?;
    let spec = NodeSpec { home, genesis, config: settings, validator, node_key, alone: false };
    let running = Box::pin(crate::node::start(spec, log))
        .await
        .map_err(|error| super::not_started(&error))?;
    writeln!(out, "JSON-RPC  http://{}", running.endpoints().rpc)?;
    out.flush()?;
    let reason = running.run_until(asked).await;
    super::ended(&reason)
}

/// Writes a file that must not exist yet; its folder is made.
pub(super) fn write_new(path: &Path, text: &str) -> Result<(), CliError> {
    let failed = |source| CliError::File { what: path.display().to_string(), source };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)
}
