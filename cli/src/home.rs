//! `ombra init` and `ombra start`: a node's home, and the node that lives there.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::pin::pin;

use clap::Args;
use node::NodeSpec;
use node::config::{self, Home};
use node::systemd::Systemd;
use node::{keyfile, logging, supervisor, systemd};
use serde_json::json;
use types::Keypair;

use super::client::{CliError, Out, Outcome};
use super::genesis;
use super::lock::HomeLock;
use super::new_file::write_new;

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
    /// Make no validator key: the node only follows
    #[arg(long)]
    follower: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Run a node from its home
#[derive(Debug, Args)]
#[command(after_help = "Example: ombra start --home /var/lib/ombra")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(super) struct StartArgs {
    /// The node's home
    #[arg(long, value_name = "DIR", env = "OMBRA_HOME")]
    home: PathBuf,
    /// After a safety stop (exit code 5), keep the process running without a node until it is told
    /// to stop: for service managers that restart it whatever the exit code, such as Docker
    #[arg(long)]
    hold_unsafe: bool,
    /// If there is no database, fetch a snapshot of the state from peers and continue from there,
    /// instead of executing every block
    #[arg(long)]
    snapshot_sync: bool,
    /// Print the addresses as one line of JSON once the node answers
    #[arg(long)]
    json: bool,
}

pub(super) fn init(args: &InitArgs, out: Out<'_>) -> Outcome {
    let home = Home::new(args.home.clone());
    let genesis = args.genesis.as_deref().map(genesis::parse).transpose()?;
    if home.genesis().exists() {
        let message = format!("{} is a home already; nothing was changed", args.home.display());
        return Err(CliError::Usage(message));
    }
    std::fs::create_dir_all(home.database())
        .map_err(|source| CliError::File { what: args.home.display().to_string(), source })?;
    keyfile::read_or_create(&home.node_key()).map_err(key_fault)?;
    let validator = if args.follower {
        None
    } else {
        let seed = keyfile::read_or_create(&home.validator_key()).map_err(key_fault)?;
        Some(Keypair::from_seed(&seed))
    };
    let Some(genesis) = genesis else { return print_keys(args, validator.as_ref(), out) };
    if !home.config().exists() {
        let title = "Settings of an Ombra node.";
        write_new(&home.config(), &config::file_text(title, &config::Config::default(), &[]))?;
    }
    // Genesis is the sign of a complete home and comes last: what was interrupted can be repeated.
    write_new(&home.genesis(), &genesis.to_file())?;
    print_home(args, &home, &genesis, validator.as_ref(), out)
}

fn print_keys(args: &InitArgs, validator: Option<&Keypair>, out: Out<'_>) -> Outcome {
    let key = validator.map(Keypair::public_key);
    if args.json {
        writeln!(out, "{}", json!({ "home": args.home, "validatorPublicKey": key }))?;
        return Ok(());
    }
    writeln!(out, "{} now has its keys", args.home.display())?;
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
            writeln!(
                out,
                "This key is not a genesis validator; the node does not vote until the validators \
                 vote it in."
            )?;
        }
    }
    Ok(())
}

pub(super) async fn start(args: &StartArgs, out: Out<'_>) -> Outcome {
    let outcome = Box::pin(run_node(args, out)).await;
    let stopped = match &outcome {
        Err(error @ (CliError::Unsafe(_) | CliError::UnknownFork(_))) => Some(error),
        Ok(()) | Err(_) => None,
    };
    if let Some(error) = stopped.filter(|_| args.hold_unsafe) {
        tracing::error!(
            %error,
            "the node has stopped for safety; this process waits to be told to stop"
        );
        let _signal = asked()?.await;
    }
    outcome
}

async fn run_node(args: &StartArgs, out: Out<'_>) -> Outcome {
    let mut asked = pin!(asked()?);
    let home = Home::new(args.home.clone());
    let _lock = HomeLock::take(&home)?;
    forget_endpoints(&home)?;
    let fetch = config::FlagValue {
        key: "snapshots.fetch",
        flag: "--snapshot-sync",
        value: toml::Value::Boolean(true),
    };
    let flags = if args.snapshot_sync { vec![fetch] } else { Vec::new() };
    let settings = config::load(&[], Some(&home.config()), std::env::vars_os(), &flags)
        .map_err(|error| CliError::Usage(error.to_string()))?
        .config;
    let genesis = genesis::parse(&home.genesis())?;
    let Keys { node_key, is_new, validator } = Keys::of(&home)?;
    let log = logging::start(&settings.log).map_err(|error| CliError::Usage(error.to_string()))?;
    if is_new {
        tell_new_key(&home, &node_key)?;
    }
    let validator = voter(&home, &genesis, validator);
    let spec = NodeSpec {
        home: home.clone(),
        genesis,
        config: settings,
        validator,
        node_key,
        alone: false,
    };
    if let Some(reason) = spec.begin(asked.as_mut()).await {
        tracing::info!(%reason, "stopping");
        return super::outcome::ended(&reason);
    }
    let mut running =
        node::start(spec, log).await.map_err(|error| super::outcome::not_started(&error))?;
    if let Some(systemd) = Systemd::find(std::env::var_os(systemd::VARIABLE)) {
        running.tell(systemd);
    }
    if args.json {
        print_endpoints(&home, None, out)?;
    } else {
        writeln!(out, "JSON-RPC  http://{}", running.endpoints().rpc)?;
    }
    out.flush()?;
    let reason = running.run_until(asked).await;
    super::outcome::ended(&reason)
}

/// The keys of a node that is about to start.
struct Keys {
    node_key: [u8; 32],
    /// Whether the home had no such key.
    is_new: bool,
    /// None for a follower.
    validator: Option<Keypair>,
}

impl Keys {
    /// A lost node key is made anew: other nodes know this one by another id from then on, and nothing
    /// else is lost. A validator key is not, because its record of signatures belongs to it.
    fn of(home: &Home) -> Result<Self, CliError> {
        let (node, validator) = (home.node_key(), home.validator_key());
        let is_new = !keyfile::is_there(&node).map_err(key_fault)?;
        let validator = if keyfile::is_there(&validator).map_err(key_fault)? {
            Some(Keypair::from_seed(&keyfile::read(&validator).map_err(key_fault)?))
        } else {
            None
        };
        let node_key = keyfile::read_or_create(&node).map_err(key_fault)?;
        Ok(Self { node_key, is_new, validator })
    }
}

fn tell_new_key(home: &Home, node_key: &[u8; 32]) -> Outcome {
    let peer_id =
        consensus::peer_id(node_key).map_err(|error| CliError::Failed(error.to_string()))?;
    tracing::warn!(
        key = %home.node_key().display(),
        %peer_id,
        "there was no node key, so the node has made a new one. Nodes that name this node with its old \
         /p2p/ID do not know it any more: put the new id into their settings"
    );
    Ok(())
}

/// The key that votes, or may come to vote; why there is none is logged. Whether it votes is logged by
/// the node, which knows the validators of the moment.
fn voter(home: &Home, genesis: &::genesis::Genesis, key: Option<Keypair>) -> Option<Keypair> {
    let path = home.validator_key();
    let Some(key) = key else {
        // A record that cannot be read stops the node later, if it matters.
        if consensus::last_signed(&home.consensus()).ok().flatten().is_some() {
            tracing::warn!(
                key = %path.display(),
                "this home has no validator key, although a validator has signed here: the node \
                 follows and does not vote"
            );
        } else {
            tracing::info!(
                key = %path.display(),
                "this home has no validator key: the node follows and does not vote"
            );
        }
        return None;
    };
    // Where validators can change, a key that is not one of the first may become one.
    if genesis.chain().forks.validator_vote.is_some() || is_listed(genesis, &key) {
        return Some(key);
    }
    tracing::warn!(
        public_key = %key.public_key(),
        "the validator key of this home is not a genesis validator, and the validators of this chain \
         cannot change: the node follows and does not vote"
    );
    None
}

/// Ends at the first SIGTERM or ctrl-C from now on. A signal that comes while a node fetches a snapshot
/// ends that; one that comes while a node starts stops it in order once it has started.
pub(super) fn asked() -> Result<impl Future<Output = &'static str> + use<>, CliError> {
    supervisor::asked_by_signal()
        .map_err(|source| CliError::File { what: "listening for signals".to_owned(), source })
}

/// Whether genesis has the key among its validators.
pub(super) fn is_listed(genesis: &::genesis::Genesis, key: &Keypair) -> bool {
    genesis.validators().iter().any(|listed| listed.public_key == key.public_key())
}

/// A key file that is not there or not right is a fault of the home, not of the machine.
pub(super) fn key_fault(error: keyfile::KeyFileError) -> CliError {
    use keyfile::KeyFileError::{Exposed, Io, Malformed, Random};
    match &error {
        Exposed { .. } | Malformed { .. } => CliError::Usage(error.to_string()),
        Io { source, .. } if source.kind() == ErrorKind::NotFound => {
            CliError::Usage(error.to_string())
        }
        Io { .. } | Random(_) => CliError::Failed(error.to_string()),
    }
}

/// Removes the file that says that the node answers: a killed process leaves it behind.
pub(super) fn forget_endpoints(home: &Home) -> Result<(), CliError> {
    let path = home.endpoints();
    match std::fs::remove_file(&path) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(CliError::File { what: path.display().to_string(), source })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// The addresses of a node that answers, as the line of JSON in its home.
/// More is told beside it, if there is more.
pub(super) fn print_endpoints(
    home: &Home,
    more: Option<(&str, serde_json::Value)>,
    out: Out<'_>,
) -> Outcome {
    let path = home.endpoints();
    let text = std::fs::read_to_string(&path)
        .map_err(|source| CliError::File { what: path.display().to_string(), source })?;
    match (more, serde_json::from_str::<serde_json::Value>(&text)) {
        (Some((name, value)), Ok(mut told)) => {
            told[name] = value;
            writeln!(out, "{told}")?;
        }
        (Some(_) | None, _) => writeln!(out, "{}", text.trim_end())?,
    }
    out.flush()?;
    Ok(())
}
