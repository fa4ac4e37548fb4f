//! `ombra genesis`: write, check and print genesis files.

use std::io::{ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use genesis::{Genesis, Spec, Validator, set_param};
use node::clock::now_ms;
use serde_json::json;
use types::{Address, Amount, Params, PublicKey};

use super::client::{CliError, Out, Outcome};
use super::new_file::write_new;

/// Write, check and print genesis files
#[derive(Debug, Subcommand)]
pub(super) enum GenesisCommand {
    /// Write a genesis file
    #[command(
        after_help = "Example: ombra genesis new --chain-id ombra-test --validator PUBLICKEY=10 \
                            --account ADDRESS=1000000 --out genesis.json"
    )]
    New(NewArgs),
    /// Check a genesis file and report everything that is wrong with it
    #[command(after_help = "Example: ombra genesis validate genesis.json")]
    Validate(FileArgs),
    /// Print the canonical text of a genesis file, of which the hash is the SHA-256
    #[command(after_help = "Example: ombra genesis show genesis.json | sha256sum")]
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(super) struct NewArgs {
    /// The chain's name
    #[arg(long)]
    chain_id: String,
    /// The time of height 0, in milliseconds since 1970 [default: now]
    #[arg(long, value_name = "MS")]
    time: Option<u64>,
    /// A validator's public key and voting power
    #[arg(long, value_name = "PUBLICKEY=POWER", value_parser = parse_validator, required = true)]
    validator: Vec<Validator>,
    /// An account and its balance in micro-OMBRA
    #[arg(long, value_name = "ADDRESS=MICRO", value_parser = parse_account)]
    account: Vec<(Address, Amount)>,
    /// First block in which CHAT_TURN and the AGENT kinds are valid
    #[arg(long, value_name = "HEIGHT", default_value_t = 0)]
    v6: u64,
    /// First block in which validators can change their set by VALIDATOR_VOTE
    #[arg(long, value_name = "HEIGHT", default_value_t = 0)]
    validator_vote: u64,
    /// First block with the rules of v7: fees, bonds and votes on rules. Without it, validators may
    /// agree on the height later
    #[arg(long, value_name = "HEIGHT")]
    v7: Option<u64>,
    /// First block with the agent market (v8), and with v7 unless --v7 says otherwise
    #[arg(long, value_name = "HEIGHT")]
    v8: Option<u64>,
    /// Set a parameter
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    /// Where to write the file; it must not exist
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct FileArgs {
    /// The genesis file
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The genesis file
    file: PathBuf,
    /// Indent it for people
    #[arg(long, conflicts_with = "json")]
    pretty: bool,
    /// Print a JSON object with the hash and the genesis
    #[arg(long)]
    json: bool,
}

/// The forks of a new chain: v8 needs v7, which begins with it unless it has a height of its own.
pub(super) fn forks(v7: Option<u64>, v8: Option<u64>) -> state::Forks {
    state::Forks { validator_vote: Some(0), v7: v7.or(v8), v8, ..state::Forks::default() }
}

fn parse_validator(text: &str) -> Result<Validator, String> {
    let (key, power) = text.split_once('=').ok_or("expected PUBLICKEY=POWER")?;
    let public_key: PublicKey =
        key.parse().map_err(|e: types::text::ParseTextError| e.to_string())?;
    let power = power.parse().map_err(|_number| format!("{power:?} is not a voting power"))?;
    Ok(Validator { public_key, power, name: None })
}

fn parse_account(text: &str) -> Result<(Address, Amount), String> {
    let (address, balance) = text.split_once('=').ok_or("expected ADDRESS=MICRO")?;
    let address = Address::parse(address).map_err(|e| e.to_string())?;
    Ok((address, Amount::parse(balance).map_err(|e| e.to_string())?))
}

pub(super) fn run(command: GenesisCommand, out: Out<'_>) -> Outcome {
    match command {
        GenesisCommand::New(args) => new(args, out),
        GenesisCommand::Validate(args) => validate(&args, out),
        GenesisCommand::Show(args) => show(&args, out),
    }
}

fn new(args: NewArgs, out: Out<'_>) -> Outcome {
    let mut params = Params::default();
    for text in &args.param {
        set_param(&mut params, text).map_err(|error| CliError::Usage(error.to_string()))?;
    }
    let spec = Spec {
        chain_id: args.chain_id,
        genesis_time: args.time.unwrap_or_else(now_ms),
        validators: args.validator,
        accounts: args.account,
        agents: Vec::new(),
        forks: state::Forks {
            v6: args.v6,
            validator_vote: Some(args.validator_vote),
            ..forks(args.v7, args.v8)
        },
        params,
    };
    let genesis = Genesis::new(spec).map_err(|faults| CliError::Usage(faults.to_string()))?;
    write_new(&args.out, &genesis.to_file())?;
    if args.json {
        writeln!(out, "{}", json!({ "file": args.out, "hash": genesis.hash() }))?;
    } else {
        writeln!(out, "{} written, hash {}", args.out.display(), genesis.hash())?;
    }
    Ok(())
}

fn validate(args: &FileArgs, out: Out<'_>) -> Outcome {
    match Genesis::parse(&read(&args.file)?) {
        Ok(genesis) if args.json => {
            writeln!(out, "{}", json!({ "ok": true, "hash": genesis.hash() }))?;
            Ok(())
        }
        Ok(genesis) => {
            let (accounts, validators) = (genesis.accounts().len(), genesis.validators().len());
            writeln!(out, "{} is in order", args.file.display())?;
            writeln!(out, "chain {}, hash {}", genesis.chain_id(), genesis.hash())?;
            writeln!(
                out,
                "{validators} validators, {accounts} accounts, {} micro",
                genesis.supply()
            )?;
            Ok(())
        }
        Err(faults) => {
            if args.json {
                let faults: Vec<_> = faults
                    .as_slice()
                    .iter()
                    .map(|it| json!({ "path": it.path, "got": it.got, "expected": it.expected }))
                    .collect();
                writeln!(out, "{}", json!({ "ok": false, "faults": faults }))?;
            }
            Err(CliError::Usage(format!("{}:\n{faults}", args.file.display())))
        }
    }
}

fn show(args: &ShowArgs, out: Out<'_>) -> Outcome {
    let genesis = parse(&args.file)?;
    let canonical = genesis.canonical();
    if args.json {
        writeln!(out, "{{\"hash\":\"{}\",\"genesis\":{canonical}}}", genesis.hash())?;
    } else if args.pretty {
        write!(out, "{}", genesis.to_file())?;
    } else if std::io::stdout().is_terminal() {
        writeln!(out, "{canonical}")?;
    } else {
        // To the byte, so that a program that hashes it gets the chain's identity.
        write!(out, "{canonical}")?;
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, CliError> {
    std::fs::read(path).map_err(|source| {
        let what = path.display().to_string();
        if source.kind() == ErrorKind::NotFound {
            CliError::Usage(format!("{what}: {source}"))
        } else {
            CliError::File { what, source }
        }
    })
}

/// The genesis in a file, or everything that is wrong with it.
pub(super) fn parse(path: &Path) -> Result<Genesis, CliError> {
    Genesis::parse(&read(path)?)
        .map_err(|faults| CliError::Usage(format!("{}:\n{faults}", path.display())))
}
