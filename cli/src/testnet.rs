//! `ombra testnet`: homes, keys, one genesis and a way to run them, for a chain of several nodes.

mod compose;
mod layout;
mod member;

use std::path::{Path, PathBuf};

use clap::Args;
use genesis::{Genesis, Spec, Validator, set_param};
use node::clock::now_ms;
use node::config::{Config, Home, file_text};
use node::keyfile;
use serde_json::json;
use types::{Amount, Keypair, Params, PublicKey};
use wallet::Phrase;
use wallet::accounts::{DEVELOPMENT_MNEMONIC, first_accounts};

use self::compose::Compose;
use self::layout::{Kind, Layout, NodeAddresses};
use self::member::Member;
use super::client::{CliError, Out, Outcome};
use super::new_file::write_new;

/// What every development account starts with: 1,000 OMBRA.
const ACCOUNT_BALANCE: Amount = Amount::new(1_000 * Amount::MICRO_PER_OMBRA);
/// The voting power of each validator.
const POWER: u64 = 1;
/// Processes of a testnet share an address, and each is connected with each.
const PER_ADDRESS_MAX: u32 = 256;

/// Of which heights a testnet's nodes offer snapshots: multiples of this.
const SNAPSHOT_INTERVAL: u64 = 1_000;

/// The script that runs the nodes as processes.
const SCRIPT: &str = include_str!("testnet/net.sh");

/// How far ahead a fork must be on a test network: nobody has to be asked to change the program.
const FORK_DELAY_BLOCKS: u64 = 100;

/// Write everything for a chain of several nodes
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                  ombra testnet --validators 4 --followers 1 --out net && \
                  docker compose -f net/compose.yaml up\n  \
                  ombra testnet --validators 4 --followers 1 --out net --local && net/net start\n\n\
                        The development accounts, dev:0 to dev:9, have 1,000 OMBRA each; their keys are public knowledge.")]
pub(super) struct TestnetArgs {
    /// Number of validators
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    validators: u16,
    /// Number of nodes that only follow
    #[arg(long, value_name = "M", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=64))]
    followers: u16,
    /// The folder to write to; it must not hold a testnet
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write no compose.yaml: give every node its own loopback ports, and write a script that runs
    /// them as processes
    #[arg(long)]
    local: bool,
    /// The clone of the repository to build the image from [default: the current folder, if it is
    /// one]
    #[arg(long, value_name = "DIR", conflicts_with = "local")]
    source: Option<PathBuf>,
    /// The first port to use on this machine; each container takes one, and monitoring two; a
    /// process takes four
    #[arg(long, value_name = "PORT", default_value_t = 31_000)]
    base_port: u16,
    /// The chain's name
    #[arg(long, value_name = "ID", default_value = "ombra-testnet")]
    chain_id: String,
    /// How many development accounts are funded: dev:0, dev:1 and so on
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    accounts: u32,
    /// Set a parameter of genesis
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// First block with the rules of v7: fees, bonds and votes on rules
    #[arg(long, value_name = "HEIGHT")]
    v7: Option<u64>,
    /// First block with the agent market (v8), and with v7 unless --v7 says otherwise
    #[arg(long, value_name = "HEIGHT")]
    v8: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &TestnetArgs, out: Out<'_>) -> Outcome {
    let count = args.validators.saturating_add(args.followers);
    let kind = if args.local { Kind::Processes } else { Kind::Containers };
    let layout = Layout::new(kind, args.base_port, count).map_err(CliError::Usage)?;
    let script = args.out.join("net");
    if script.exists() || args.out.join(compose::MARK).exists() {
        let message =
            format!("{} holds a testnet already; nothing was changed", args.out.display());
        return Err(CliError::Usage(message));
    }
    // What can be wrong with the arguments is found before anything is written.
    let params = params(&args.param)?;
    let source = source(args)?;
    let stand_ins = (0..args.validators).map(|number| {
        let seed = u8::try_from(number).map_or([0; 32], |number| [number; 32]);
        (format!("node{number}"), Keypair::from_seed(&seed).public_key())
    });
    make_genesis(args, stand_ins.collect(), params.clone())?;

    let members = make_members(args, &layout)?;
    let keys = members.iter().filter_map(|member| {
        Some((member.place.name.clone(), member.validator.as_ref()?.public_key()))
    });
    let genesis = make_genesis(args, keys.collect(), params)?;
    for member in &members {
        write_new(&member.home.genesis(), &genesis.to_file())?;
        write_new(&member.home.config(), &settings_text(kind, member, &members))?;
    }
    match kind {
        Kind::Processes => write_script(&script, &members)?,
        Kind::Containers => {
            let (layout, members, genesis) = (&layout, members.as_slice(), &genesis);
            Compose { layout, members, genesis, source }.write(&args.out)?;
        }
    }
    print(args, &genesis, &members, out)
}

/// The clone of the repository that the image can be built from, if there is one.
fn source(args: &TestnetArgs) -> Result<Option<PathBuf>, CliError> {
    let is_clone = |folder: &Path| {
        folder.join("Dockerfile").is_file() && folder.join("cli/src/testnet.rs").is_file()
    };
    let chosen = args.source.clone().unwrap_or_else(|| PathBuf::from("."));
    if !is_clone(&chosen) {
        let message = format!("{} is not a clone of the repository", chosen.display());
        return if args.source.is_some() { Err(CliError::Usage(message)) } else { Ok(None) };
    }
    let what = chosen.display().to_string();
    let absolute = chosen.canonicalize().map_err(|source| CliError::File { what, source })?;
    Ok(Some(absolute))
}

fn params(texts: &[String]) -> Result<Params, CliError> {
    let mut params = Params { fork_delay_blocks: FORK_DELAY_BLOCKS, ..Params::default() };
    for text in texts {
        set_param(&mut params, text).map_err(|error| CliError::Usage(error.to_string()))?;
    }
    Ok(params)
}

/// Makes homes with their keys.
fn make_members(args: &TestnetArgs, layout: &Layout) -> Result<Vec<Member>, CliError> {
    let names = (0..args.validators)
        .map(|number| (format!("node{number}"), true))
        .chain((0..args.followers).map(|number| (format!("follower{number}"), false)));
    let failed = |error: keyfile::KeyFileError| CliError::Failed(error.to_string());
    names
        .zip(0_u16..)
        .map(|((name, votes), at)| {
            let home = Home::new(args.out.join(&name));
            // Containers have their data elsewhere.
            let folder = if args.local { home.database() } else { home.directory().clone() };
            std::fs::create_dir_all(&folder)
                .map_err(|source| CliError::File { what: folder.display().to_string(), source })?;
            let node_key = keyfile::read_or_create(&home.node_key()).map_err(failed)?;
            let peer_id = consensus::peer_id(&node_key)
                .map_err(|error| CliError::Failed(error.to_string()))?;
            let validator = if votes {
                let seed = keyfile::read_or_create(&home.validator_key()).map_err(failed)?;
                Some(Keypair::from_seed(&seed))
            } else {
                None
            };
            Ok(Member { place: layout.place(at, name), home, peer_id, validator })
        })
        .collect()
}

fn make_genesis(
    args: &TestnetArgs,
    validators: Vec<(String, PublicKey)>,
    params: Params,
) -> Result<Genesis, CliError> {
    let validators = validators.into_iter().map(|(name, public_key)| Validator {
        public_key,
        power: POWER,
        name: Some(name),
    });
    let accounts = first_accounts(&Phrase::parse(DEVELOPMENT_MNEMONIC)?, args.accounts)?;
    let spec = Spec {
        chain_id: args.chain_id.clone(),
        genesis_time: now_ms(),
        validators: validators.collect(),
        accounts: accounts.iter().map(|key| (key.address(), ACCOUNT_BALANCE)).collect(),
        agents: Vec::new(),
        // Operators can replace a validator whose key or disk is lost.
        forks: super::genesis::forks(args.v7, args.v8),
        params,
    };
    Genesis::new(spec).map_err(|faults| CliError::Usage(faults.to_string()))
}

/// What a node's `config.toml` begins with.
const TITLE: &str = "Settings of a node of a testnet, written by `ombra testnet`.";
/// The settings of a node that hold whatever the defaults are.
const CHOSEN: &[&str] = &[
    "rpc.listen",
    "rpc.metrics_listen",
    "p2p.listen",
    "p2p.peers",
    "p2p.gossip.listen",
    "p2p.gossip.peers",
    "snapshots.interval_blocks",
];

fn settings_text(kind: Kind, member: &Member, members: &[Member]) -> String {
    let others = || members.iter().filter(|other| other.peer_id != member.peer_id);
    let mut config = Config::default();
    config.rpc.listen = member.place.rpc_listen;
    config.rpc.metrics_listen = member.place.metrics_listen;
    config.rpc.hosts = member.place.hosts.clone();
    config.p2p.listen = member.place.consensus_listen.clone();
    config.p2p.peers =
        others().map(|it| format!("{}/p2p/{}", it.place.consensus_address, it.peer_id)).collect();
    config.p2p.gossip.listen = member.place.gossip_listen.clone();
    config.p2p.gossip.peers =
        others().map(|it| format!("{}/p2p/{}", it.place.gossip_address, it.peer_id)).collect();
    if kind == Kind::Processes {
        config.p2p.gossip.limits.per_address_max = PER_ADDRESS_MAX;
        config.p2p.gossip.limits.per_group_max = PER_ADDRESS_MAX;
    }
    config.snapshots.interval_blocks = SNAPSHOT_INTERVAL;
    file_text(TITLE, &config, CHOSEN)
}

/// Writes the script, executable.
fn write_script(path: &Path, members: &[Member]) -> Result<(), CliError> {
    use std::os::unix::fs::PermissionsExt as _;
    let failed = |source| CliError::File { what: path.display().to_string(), source };
    let program = std::env::current_exe().map_err(failed)?;
    let nodes: Vec<String> = members
        .iter()
        .map(|member| format!("{}={}", member.place.name, member.place.rpc))
        .collect();
    let text = SCRIPT
        .replace("@OMBRA@", &program.display().to_string())
        .replace("@NODES@", &nodes.join(" "));
    write_new(path, &text)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).map_err(failed)
}

fn print(args: &TestnetArgs, genesis: &Genesis, members: &[Member], out: Out<'_>) -> Outcome {
    if args.json {
        let nodes: Vec<_> = members
            .iter()
            .map(|member| {
                json!({
                    "name": member.place.name,
                    "home": member.home.directory(),
                    "rpc": member.place.rpc,
                    "peerId": member.peer_id,
                    "isValidator": member.validator.is_some(),
                })
            })
            .collect();
        let answer = json!({
            "chainId": genesis.chain_id(), "genesisHash": genesis.hash(), "nodes": nodes,
        });
        writeln!(out, "{answer}")?;
        return Ok(());
    }
    writeln!(out, "chain {}, genesis {}", genesis.chain_id(), genesis.hash())?;
    for member in members {
        let role = if member.validator.is_some() { "votes" } else { "follows" };
        let NodeAddresses { name, rpc, .. } = &member.place;
        writeln!(out, "{name:<12} {role:<8} JSON-RPC http://{rpc}")?;
    }
    let folder = args.out.display();
    if args.local {
        writeln!(out, "\n{folder}/net start    # also: stop, status, log NAME")?;
    } else {
        writeln!(out, "\ndocker compose -f {folder}/compose.yaml up    # see {folder}/README.md")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
