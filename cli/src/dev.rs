//! `ombra dev`: a development chain with one validator.

mod agents;
mod background;
mod chain;
mod gateway;
mod miner;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::Args;
use genesis::Genesis;
use node::NodeSpec;
use node::clock::now_ms;
use node::config::{self, CommandDefault, FlagValue, Home};
use node::{keyfile, logging};
use tempfile::TempDir;
use toml::Value;
use types::{Address, Amount, Hash, Keypair};
use wallet::accounts::{DEVELOPMENT_MNEMONIC, first_accounts};
use wallet::{Phrase, Zeroizing};

use super::client::{CliError, Out, Outcome, first_line};
use super::home;
use super::lock::HomeLock;
use super::new_file::write_new;
use chain::Accounts;
pub(super) use chain::DevChain;
use gateway::DevGateway;
use miner::Opening;
pub(super) use miner::{DevMiner, config as miner_config};

/// What every development account starts with: 1,000 OMBRA.
const ACCOUNT_BALANCE: Amount = Amount::new(1_000 * Amount::MICRO_PER_OMBRA);
/// Milliseconds between blocks.
const BLOCK_TIME_MS: u64 = 50;
const CHAIN_ID: &str = "ombra-dev";

const COMMAND: &str = "ombra dev";
const MARK: &str = "The chain in this folder was made by `ombra dev`; `--reset` throws it away.\n";

/// Run a single-validator development chain, with funded accounts
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Examples:\n  ombra dev\n  ombra dev --miner --gateway\n  ombra dev --data-dir ./chain --fund 94bf…da3=250.5\n\n\
                        The keys of the accounts are public knowledge. Use them for test chains only."
)]
#[expect(clippy::struct_excessive_bools, reason = "switches of a command line")]
pub(super) struct DevCommand {
    /// Print the addresses as one line of JSON once the node answers, and nothing else
    #[arg(long)]
    json: bool,
    /// Run a miner on account 1 too, with the model inside the process
    #[arg(long)]
    miner: bool,
    /// Run a gateway on account 2 too, for programs that use the OpenAI API, and print a key
    #[arg(long)]
    gateway: bool,
    /// Where the gateway listens; port 0 picks a free one [default: 127.0.0.1:8788]
    #[arg(long, value_name = "ADDR", requires = "gateway")]
    gateway_listen: Option<SocketAddr>,
    #[command(flatten)]
    dev: DevArgs,
}

/// What chain, and where.
#[derive(Clone, Debug, Args)]
pub(super) struct DevArgs {
    /// Keep the chain in this folder; without it, the chain is deleted at the end
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// JSON-RPC, WebSocket and health; port 0 picks a free one [default: 127.0.0.1:8777]
    #[arg(long, value_name = "ADDR")]
    rpc: Option<SocketAddr>,
    /// Let peers connect here, and transaction peers to the next port; without it, the node has no
    /// peers
    #[arg(long, value_name = "ADDR")]
    p2p: Option<SocketAddr>,
    /// Prometheus metrics; port 0 picks a free one [default: 127.0.0.1:9777]
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
    /// The shortest time between blocks, in milliseconds
    #[arg(long, value_name = "MS")]
    block_time: Option<u64>,
    /// How many accounts are funded [default: 10]
    #[arg(long, value_name = "N")]
    accounts: Option<u32>,
    /// The words that the accounts are derived from; other users of the machine can see them
    #[arg(long, value_name = "WORDS")]
    mnemonic: Option<String>,
    /// File with these words ('-': standard input)
    #[arg(long, value_name = "FILE", conflicts_with = "mnemonic")]
    mnemonic_file: Option<PathBuf>,
    /// Fund another account too
    #[arg(long, value_name = "ADDRESS=OMBRA", value_parser = parse_fund)]
    fund: Vec<(Address, Amount)>,
    /// Delete the chain that `ombra dev` made in --data-dir, and start a new one
    #[arg(long, requires = "data_dir")]
    reset: bool,
    /// Start from this genesis file; its validator must be the key in the data folder
    #[arg(long, value_name = "FILE", conflicts_with_all = ["accounts", "mnemonic", "mnemonic_file", "fund", "param", "v7", "v8", "block_time"])]
    genesis: Option<PathBuf>,
    /// Set a parameter of genesis
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// First block with the rules of v7: fees, bonds and votes on rules
    #[arg(long, value_name = "HEIGHT")]
    v7: Option<u64>,
    /// First block with the agent market (v8), and with v7 unless --v7 says otherwise
    #[arg(long, value_name = "HEIGHT")]
    v8: Option<u64>,
    /// What to log, as `level` or `target=level,…` [default: warn]
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
}

impl DevArgs {
    /// A new chain has the agent market from the start, unless something is said of forks.
    pub(super) fn begin_with_market(&mut self) {
        let goes_on = |folder: &PathBuf| Home::new(folder.clone()).genesis().exists();
        let is_new = self.reset || !self.data_dir.as_ref().is_some_and(goes_on);
        if is_new && self.genesis.is_none() && self.v7.is_none() && self.v8.is_none() {
            self.v8 = Some(0);
        }
    }
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

pub(super) async fn run(command: DevCommand, out: Out<'_>) -> Outcome {
    let mut asked = Box::pin(home::asked()?);
    let (chain, miner) = if command.miner {
        let Some((chain, miner)) = start_with_miner(&command.dev, &mut asked).await? else {
            return Ok(());
        };
        (chain, Some(miner))
    } else {
        (start(&command.dev).await?, None)
    };
    let gateway = if command.gateway {
        match DevGateway::start(&chain, command.gateway_listen).await {
            Ok(gateway) => Some(gateway),
            Err(error) => {
                drop(stop_when(chain, miner, async { "the gateway did not start" }).await);
                return Err(error);
            }
        }
    } else {
        None
    };
    if command.json {
        let gateway = gateway.as_ref().map(|it| ("gateway", it.json()));
        home::print_endpoints(&chain.home, gateway, out)?;
    } else {
        print_banner(&chain, out).await?;
        if let Some(miner) = &miner {
            miner.print(out)?;
        }
        if let Some(gateway) = &gateway {
            gateway.print(out)?;
        }
        writeln!(out, "\nctrl-C stops the node.")?;
        out.flush()?;
    }
    let Some(mut gateway) = gateway else { return stop_when(chain, miner, asked).await };
    let mut served = Ok(());
    // The node and the miner serve the gateway until it has stopped.
    let stopped = async {
        let (why, outcome) = gateway.background.run_until(asked).await;
        served = outcome;
        why
    };
    stop_when(chain, miner, stopped).await.and(served)
}

/// Stops the miner and then the chain in order once `asked` ends, or the miner does.
pub(super) async fn stop_when(
    chain: DevChain,
    mut miner: Option<DevMiner>,
    asked: impl Future<Output = &'static str>,
) -> Outcome {
    let mut mined = Ok(());
    // The node serves the miner until it has stopped.
    let stopped = async {
        let Some(miner) = &mut miner else { return asked.await };
        let (why, outcome) = miner.background.run_until(asked).await;
        mined = outcome;
        why
    };
    let reason = chain.running.run_until(stopped).await;
    super::outcome::ended(&reason).and(mined)
}

/// Starts a chain and a miner on it; none if `asked` ends first, and then everything has stopped in
/// order.
pub(super) async fn start_with_miner(
    args: &DevArgs,
    asked: &mut (impl Future<Output = &'static str> + Unpin),
) -> Result<Option<(DevChain, DevMiner)>, CliError> {
    if args.accounts.is_some_and(|accounts| accounts < 2) {
        return Err(CliError::Usage(
            "the miner is account 1, so --accounts must be at least 2".to_owned(),
        ));
    }
    let (directory, temporary) = folder(args)?;
    let opening = Opening::begin(&Home::new(directory.clone()), args.v8.is_some(), asked).await?;
    let chain = start_in(args, directory, temporary).await?;
    let miner = tokio::select! {
        biased;
        why = &mut *asked => Err(why),
        miner = DevMiner::start(&chain, opening) => Ok(miner),
    };
    match miner {
        Ok(Ok(miner)) => Ok(Some((chain, miner))),
        Ok(Err(error)) => {
            drop(stop_when(chain, None, async { "the miner did not start" }).await);
            Err(error)
        }
        Err(why) => stop_when(chain, None, async move { why }).await.map(|()| None),
    }
}

/// Makes or opens the chain and starts it.
pub(super) async fn start(args: &DevArgs) -> Result<DevChain, CliError> {
    let (directory, temporary) = folder(args)?;
    start_in(args, directory, temporary).await
}

async fn start_in(
    args: &DevArgs,
    directory: PathBuf,
    temporary: Option<TempDir>,
) -> Result<DevChain, CliError> {
    let home = Home::new(directory);
    let lock = HomeLock::take(&home)?;
    home::forget_endpoints(&home)?;
    let settings = settings(args, &home, std::env::vars_os())?;
    let accounts = accounts(args)?;
    let is_new = args.reset || !home.genesis().exists();
    check_flags(args, &home, is_new)?;
    let read_key = |path: &Path| keyfile::read_or_create(path).map_err(home::key_fault);
    let validator = Keypair::from_seed(&read_key(&home.validator_key())?);
    let node_key = read_key(&home.node_key())?;
    let genesis = if is_new {
        new_genesis(args, &validator, &accounts.keys)?
    } else {
        super::genesis::parse(&home.genesis())?
    };
    check_validators(args, &genesis, &validator)?;
    let log = logging::start(&settings.log).map_err(|error| CliError::Usage(error.to_string()))?;
    // Everything was read and understood; only now something may be deleted.
    if args.reset {
        reset(&home)?;
    }
    if is_new {
        if !home.dev_mark().exists() {
            write_new(&home.dev_mark(), MARK)?;
        }
        write_new(&home.genesis(), &genesis.to_file())?;
    }
    let spec = NodeSpec {
        genesis,
        home: home.clone(),
        config: settings,
        validator: Some(validator),
        node_key,
        alone: args.p2p.is_none(),
    };
    let running =
        node::start(spec, log).await.map_err(|error| super::outcome::not_started(&error))?;
    Ok(DevChain { running, accounts, home, is_new, _lock: lock, _temporary: temporary })
}

/// The folder of the chain, made if it is missing, and whether it goes at the end.
fn folder(args: &DevArgs) -> Result<(PathBuf, Option<TempDir>), CliError> {
    if let Some(directory) = &args.data_dir {
        std::fs::create_dir_all(directory)
            .map_err(|source| CliError::File { what: directory.display().to_string(), source })?;
        return Ok((directory.clone(), None));
    }
    let made = tempfile::Builder::new().prefix("ombra-dev-").tempdir();
    let temporary = made.map_err(|source| CliError::File {
        what: "making a temporary folder".to_owned(),
        source,
    })?;
    Ok((temporary.path().to_owned(), Some(temporary)))
}

/// The first accounts of the words that were given, or else of those that everybody knows.
fn accounts(args: &DevArgs) -> Result<Accounts, CliError> {
    let given = match (&args.mnemonic, &args.mnemonic_file) {
        (Some(words), _) => Some(Zeroizing::new(words.clone())),
        (None, Some(path)) => Some(first_line(path)?),
        (None, None) => None,
    };
    let words = given.as_ref().map_or(DEVELOPMENT_MNEMONIC, |words| words.as_str());
    let keys = first_accounts(&Phrase::parse(words)?, args.accounts.unwrap_or(10))?;
    Ok(Accounts { keys, are_public: words == DEVELOPMENT_MNEMONIC })
}

/// Refuses what does not fit the folder.
fn check_flags(args: &DevArgs, home: &Home, is_new: bool) -> Result<(), CliError> {
    let directory = home.directory().display();
    if !is_new && has_genesis_flags(args) {
        return Err(CliError::Usage(format!(
            "{directory} holds a chain already: --accounts, --mnemonic, --mnemonic-file, --fund, \
             --param, --v7, --v8, --block-time and --genesis are for a new one (or add --reset)"
        )));
    }
    let holds_chain = home.genesis().exists() || home.consensus().exists();
    if args.reset && holds_chain && !home.dev_mark().exists() {
        return Err(CliError::Usage(format!(
            "the chain in {directory} was not made by `ombra dev`; nothing was deleted"
        )));
    }
    Ok(())
}

/// Refuses a genesis whose blocks this node could not make.
fn check_validators(args: &DevArgs, genesis: &Genesis, key: &Keypair) -> Result<(), CliError> {
    if !home::is_listed(genesis, key) {
        return Err(CliError::Usage(format!(
            "genesis does not name the key of this folder among its validators; its public key is {}",
            key.public_key()
        )));
    }
    let others = genesis.validators().len().saturating_sub(1);
    if others > 0 && args.p2p.is_none() {
        return Err(CliError::Usage(format!(
            "genesis names {others} validators besides this node: --p2p lets them connect"
        )));
    }
    Ok(())
}

const fn has_genesis_flags(args: &DevArgs) -> bool {
    args.accounts.is_some()
        || args.mnemonic.is_some()
        || args.mnemonic_file.is_some()
        || !args.fund.is_empty()
        || !args.param.is_empty()
        || args.v7.is_some()
        || args.v8.is_some()
        || args.block_time.is_some()
        || args.genesis.is_some()
}

/// Removes what belongs to the chain, and nothing else, from the home.
fn reset(home: &Home) -> Result<(), CliError> {
    let failed = |path: &Path, source| CliError::File { what: path.display().to_string(), source };
    let (journals, stores) = (miner::journals(home), gateway::stores(home));
    for folder in [home.directory().join("data"), journals, stores] {
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|source| failed(&folder, source))?;
        }
    }
    let genesis = home.genesis();
    if genesis.exists() {
        std::fs::remove_file(&genesis).map_err(|source| failed(&genesis, source))?;
    }
    Ok(())
}

fn new_genesis(
    args: &DevArgs,
    validator: &Keypair,
    accounts: &[Keypair],
) -> Result<Genesis, CliError> {
    if let Some(path) = &args.genesis {
        return super::genesis::parse(path);
    }
    let mut balances: Vec<(Address, Amount)> =
        accounts.iter().map(|key| (key.address(), ACCOUNT_BALANCE)).collect();
    balances.extend(&args.fund);
    let block_time = args.block_time.unwrap_or(BLOCK_TIME_MS);
    let mut params = vec![format!("minBlockIntervalMs={block_time}")];
    params.extend(args.param.iter().cloned());
    let forks = super::genesis::forks(args.v7, args.v8);
    let genesis =
        Genesis::dev(CHAIN_ID, now_ms(), validator.public_key(), balances, &params, forks)
            .map_err(|error| CliError::Usage(error.to_string()))?;
    match accounts.first().filter(|_| forks.v8.is_some()) {
        Some(owner) => {
            let agents = vec![agents::llm_inference(owner.address())];
            genesis.with_agents(agents).map_err(|faults| CliError::Usage(faults.to_string()))
        }
        None => Ok(genesis),
    }
}

/// The settings: flags that were given, the environment, the file, and below them what fits a chain
/// for one person.
fn settings(
    args: &DevArgs,
    home: &Home,
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Result<config::Config, CliError> {
    let default = |key, value| CommandDefault { key, command: COMMAND, value };
    let mut defaults = vec![default("log.filter", Value::String("warn".to_owned()))];
    let text = |key, flag, value: String| FlagValue { key, flag, value: Value::String(value) };
    let mut flags = Vec::new();
    let address = |it: SocketAddr| it.to_string();
    flags.extend(args.rpc.map(|it| text("rpc.listen", "--rpc", address(it))));
    flags.extend(args.metrics.map(|it| text("rpc.metrics_listen", "--metrics", address(it))));
    if let Some(address) = args.p2p {
        let kind = if address.is_ipv4() { "ip4" } else { "ip6" };
        let listen = |port: u16| format!("/{kind}/{}/tcp/{port}", address.ip());
        // Transactions have the port after it, or any free one as well.
        let gossip = if address.port() == 0 { 0 } else { address.port().saturating_add(1) };
        flags.push(text("p2p.listen", "--p2p", listen(address.port())));
        flags.push(text("p2p.gossip.listen", "--p2p", listen(gossip)));
        defaults.push(default("p2p.open", Value::Boolean(true)));
    }
    flags.extend(args.log.clone().map(|filter| text("log.filter", "--log", filter)));
    let file = home.config();
    config::load(&defaults, file.exists().then_some(file.as_path()), environment, &flags)
        .map(|effective| effective.config)
        .map_err(|error| CliError::Usage(error.to_string()))
}

/// Accounts and addresses, for people.
pub(super) async fn print_banner(chain: &DevChain, out: Out<'_>) -> Outcome {
    let endpoints = chain.running.endpoints();
    writeln!(out, "ombra dev: a development chain with one validator\n")?;
    print_accounts(chain, out).await?;
    let origin = if chain.is_new { "new chain" } else { "existing chain" };
    writeln!(out, "\n{origin} in {}", chain.home.directory().display())?;
    writeln!(out, "JSON-RPC  http://{}", endpoints.rpc)?;
    if let Some(metrics) = endpoints.metrics {
        writeln!(out, "metrics   http://{metrics}/metrics")?;
    }
    Ok(())
}

/// The accounts that exist, with what they have: a chain that goes on may have been made with others.
async fn print_accounts(chain: &DevChain, out: Out<'_>) -> Outcome {
    let client = chain.client()?;
    let Accounts { keys, are_public } = &chain.accounts;
    let note = if *are_public {
        "the keys are public knowledge"
    } else {
        "whoever has a key owns its account"
    };
    writeln!(out, "Accounts ({note}):")?;
    let mut absent = 0_usize;
    for (index, key) in keys.iter().enumerate() {
        let (address, seed) = (key.address(), Hash::new(key.seed()));
        let balance = match client.account(&address).await {
            Ok(account) if account.balance == Amount::ZERO && account.nonce == 0 => {
                absent = absent.saturating_add(1);
                continue;
            }
            Ok(account) => format!("{} OMBRA", account.balance.ombra()),
            // A node that is not serving yet is no reason to stop it.
            Err(_) => "balance not known yet".to_owned(),
        };
        writeln!(out, "  ({index}) {address}  {balance}  key {seed}")?;
    }
    if absent > 0 {
        writeln!(out, "  {absent} of the {} accounts do not exist on this chain", keys.len())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
