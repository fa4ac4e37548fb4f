//! `ombra dev`: a whole chain for one person.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use genesis::Genesis;
use tempfile::TempDir;
use toml::Value;
use types::{Address, Amount, Keypair};
use wallet::Phrase;
use wallet::accounts::{DEVELOPMENT_MNEMONIC, first_accounts};

use super::client::{CliError, Out, Outcome};
use crate::clock::now_ms;
use crate::config::{self, FlagValue, Home};
use crate::node::{NodeSpec, Running};
use crate::{keyfile, logging};

/// What every development account starts with: 1,000 OMBRA.
const ACCOUNT_BALANCE: Amount = Amount::new(1_000 * Amount::MICRO_PER_OMBRA);
/// Milliseconds between blocks.
const BLOCK_TIME_MS: u64 = 50;
const CHAIN_ID: &str = "ombra-dev";

/// Run a whole chain for one person, with funded accounts
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Examples:\n  ombra dev\n  ombra dev --data-dir ./chain --fund 94bf…da3=250.5\n\n\
                        The keys of the accounts are public knowledge. Use them for test chains only."
)]
pub(super) struct DevArgs {
    /// Keep the chain in this folder; without it the chain is gone at the end
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// JSON-RPC, WebSocket and health; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8777")]
    rpc: SocketAddr,
    /// Let peers connect here, and for transactions to the port after it; without it the node
    /// talks to nobody
    #[arg(long, value_name = "ADDR")]
    p2p: Option<SocketAddr>,
    /// Prometheus metrics; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9777")]
    metrics: SocketAddr,
    /// The shortest time between blocks, in milliseconds
    #[arg(long, value_name = "MS")]
    block_time: Option<u64>,
    /// How many accounts are funded [default: 10]
    #[arg(long, value_name = "N")]
    accounts: Option<u32>,
    /// The words that the accounts are derived from
    #[arg(long, value_name = "WORDS")]
    mnemonic: Option<String>,
    /// Fund another account too
    #[arg(long, value_name = "ADDRESS=OMBRA", value_parser = parse_fund)]
    fund: Vec<(Address, Amount)>,
    /// Throw the chain in --data-dir away and begin anew
    #[arg(long, requires = "data_dir")]
    reset: bool,
    /// Begin with this genesis file; its validator must be the key in the data folder
    #[arg(long, value_name = "FILE", conflicts_with_all = ["accounts", "mnemonic", "fund", "param", "block_time"])]
    genesis: Option<PathBuf>,
    /// Set a parameter of genesis
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// What is logged, as `level` or `target=level,…`
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

fn parse_fund(text: &str) -> Result<(Address, Amount), String> {
    let (address, ombra) = text.split_once('=').ok_or("expected ADDRESS=OMBRA")?;
    let address = Address::parse(address).map_err(|e| e.to_string())?;
    Ok((address, parse_ombra(ombra)?))
}

/// OMBRA with at most six decimals: `250.5`.
fn parse_ombra(text: &str) -> Result<Amount, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let expected =
        || format!("{text:?}: expected OMBRA such as 250 or 250.5, with at most six decimals");
    if whole.is_empty() || !digits(whole) || !digits(fraction) || fraction.len() > 6 {
        return Err(expected());
    }
    format!("{whole}{fraction:0<6}").parse().map(Amount::new).map_err(|_overflow| expected())
}

/// A chain that runs, its accounts, and the folder that goes when it is dropped.
pub(super) struct DevChain {
    pub(super) running: Running,
    pub(super) accounts: Vec<Keypair>,
    directory: PathBuf,
    is_new: bool,
    _temporary: Option<TempDir>,
}

pub(super) async fn run(args: DevArgs, out: Out<'_>) -> Outcome {
    let chain = start(&args).await?;
    print_banner(&chain, out)?;
    finish(chain).await
}

/// Waits for the end of the chain and stops it in order.
pub(super) async fn finish(chain: DevChain) -> Outcome {
    let asked = crate::supervisor::asked_by_signal()
        .map_err(|source| CliError::File { what: "listening to signals".to_owned(), source })?;
    stop_when(chain, asked).await
}

/// Stops the chain in order once `asked` ends.
pub(super) async fn stop_when(
    chain: DevChain,
    asked: impl Future<Output = &'static str>,
) -> Outcome {
    let reason = chain.running.run_until(asked).await;
    super::ended(&reason)
}

/// Makes or opens the chain and starts it.
pub(super) async fn start(args: &DevArgs) -> Result<DevChain, CliError> {
    let temporary = match &args.data_dir {
        Some(_) => None,
        None => {
            Some(tempfile::Builder::new().prefix("ombra-dev-").tempdir().map_err(|source| {
                CliError::File { what: "making a temporary folder".to_owned(), source }
            })?)
        }
    };
    let directory = match (&args.data_dir, &temporary) {
        (Some(directory), _) => directory.clone(),
        (None, Some(folder)) => folder.path().to_owned(),
        (None, None) => return Err(CliError::Failed("no data folder".to_owned())),
    };
    let home = Home::new(directory.clone());
    if args.reset {
        reset(&home)?;
    }
    let words = args.mnemonic.as_deref().unwrap_or(DEVELOPMENT_MNEMONIC);
    let accounts = first_accounts(&Phrase::parse(words)?, args.accounts.unwrap_or(10))?;
    let failed = |error: keyfile::KeyFileError| CliError::Failed(error.to_string());
    let validator =
        Keypair::from_seed(&keyfile::read_or_create(&home.validator_key()).map_err(failed)?);
    let node_key = keyfile::read_or_create(&home.node_key()).map_err(failed)?;
    let is_new = !home.genesis().exists();
    if is_new {
        make_genesis(args, &home, &validator, &accounts)?;
    } else if has_genesis_flags(args) {
        return Err(CliError::Usage(format!(
            "{} holds a chain already: --accounts, --mnemonic, --fund, --param, --block-time and \
             --genesis are for a new one (or add --reset)",
            directory.display()
        )));
    }
    let settings = settings(args, &home)?;
    let log = logging::start(&settings.log).map_err(|error| CliError::Usage(error.to_string()))?;
    let spec = NodeSpec {
        genesis: super::genesis::parse(&home.genesis())?,
        home,
        config: settings,
        validator: Some(validator),
        node_key,
        alone: args.p2p.is_none(),
    };
    let running = Box::pin(crate::node::start(spec, log))
        .await
        .map_err(|error| super::not_started(&error))?;
    Ok(DevChain { running, accounts, directory, is_new, _temporary: temporary })
}

const fn has_genesis_flags(args: &DevArgs) -> bool {
    args.accounts.is_some()
        || args.mnemonic.is_some()
        || !args.fund.is_empty()
        || !args.param.is_empty()
        || args.block_time.is_some()
        || args.genesis.is_some()
}

/// Removes what belongs to the chain, and nothing else, from the home.
fn reset(home: &Home) -> Result<(), CliError> {
    let failed = |path: &Path, source| CliError::File { what: path.display().to_string(), source };
    let data = home.directory().join("data");
    if data.exists() {
        std::fs::remove_dir_all(&data).map_err(|source| failed(&data, source))?;
    }
    let genesis = home.genesis();
    if genesis.exists() {
        std::fs::remove_file(&genesis).map_err(|source| failed(&genesis, source))?;
    }
    Ok(())
}

fn make_genesis(
    args: &DevArgs,
    home: &Home,
    validator: &Keypair,
    accounts: &[Keypair],
) -> Result<(), CliError> {
    let text = match &args.genesis {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|source| CliError::File { what: path.display().to_string(), source })?,
        None => {
            let mut balances: Vec<(Address, Amount)> =
                accounts.iter().map(|key| (key.address(), ACCOUNT_BALANCE)).collect();
            balances.extend(&args.fund);
            let block_time = args.block_time.unwrap_or(BLOCK_TIME_MS);
            let mut params = vec![format!("minBlockIntervalMs={block_time}")];
            params.extend(args.param.iter().cloned());
            Genesis::dev(CHAIN_ID, now_ms(), validator.public_key(), balances, &params)
                .map_err(|error| CliError::Usage(error.to_string()))?
                .to_file()
        }
    };
    super::home::write_new(&home.genesis(), &text)
}

fn settings(args: &DevArgs, home: &Home) -> Result<config::Config, CliError> {
    let file = home.config();
    let text = |key, flag, value: String| FlagValue { key, flag, value: Value::String(value) };
    let mut flags = vec![
        text("rpc.listen", "--rpc", args.rpc.to_string()),
        text("rpc.metrics_listen", "--metrics", args.metrics.to_string()),
    ];
    if let Some(address) = args.p2p {
        let kind = if address.is_ipv4() { "ip4" } else { "ip6" };
        let listen = |port: u16| format!("/{kind}/{}/tcp/{port}", address.ip());
        // Transactions have the port after it, or any free one as well.
        let gossip = if address.port() == 0 { 0 } else { address.port().saturating_add(1) };
        flags.push(text("p2p.listen", "--p2p", listen(address.port())));
        flags.push(text("p2p.gossip.listen", "--p2p", listen(gossip)));
    }
    if let Some(filter) = &args.log {
        flags.push(text("log.filter", "--log", filter.clone()));
    } else {
        flags.push(text("log.filter", "ombra dev", "warn".to_owned()));
    }
    config::load(file.exists().then_some(file.as_path()), std::env::vars(), &flags)
        .map(|effective| effective.config)
        .map_err(|error| CliError::Usage(error.to_string()))
}

/// Accounts and addresses, for people.
pub(super) fn print_banner(chain: &DevChain, out: Out<'_>) -> Outcome {
    let endpoints = chain.running.endpoints();
    writeln!(out, "ombra dev: a chain for one person\n")?;
    writeln!(out, "Accounts (1,000 OMBRA each on a new chain; the keys are public knowledge):")?;
    for (index, key) in chain.accounts.iter().enumerate() {
        let seed = types::Hash::new(key.seed());
        writeln!(out, "  ({index}) {}  key {seed}", key.address())?;
    }
    let origin = if chain.is_new { "new chain" } else { "chain goes on" };
    writeln!(out, "\n{origin} in {}", chain.directory.display())?;
    writeln!(out, "JSON-RPC  http://{}", endpoints.rpc)?;
    if let Some(metrics) = endpoints.metrics {
        writeln!(out, "metrics   http://{metrics}/metrics")?;
    }
    writeln!(out, "\nctrl-C stops the node.")?;
    out.flush()?;
    Ok(())
}
