//! `ombra validator`: what the holder of a consensus key does with it beside running a node.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use node::clock::now_ms;
use node::config::Home;
use node::keyfile;
use serde_json::json;
use types::sign_bytes::acceptance;
use types::{Keypair, Signature};

use super::client::{Out, Outcome};
use super::genesis;
use super::home::key_fault;

/// A day in milliseconds.
const DAY_MS: u64 = 86_400_000;

/// What the holder of a consensus key does with it
#[derive(Debug, Subcommand)]
pub(super) enum ValidatorCommand {
    /// Sign the acceptance that votes for the key of a home need from fork v7 on
    #[command(after_help = "Example: ombra validator accept --home /var/lib/ombra\n\n\
                      Nothing is sent. Give what it prints to the validators, who all have to vote with \
                      this time:\n\
                      ombra tx validator-vote PUBLICKEY --power 10 --acceptance SIGNATURE --expires-at MS \
                      --key-file HOME/keys/validator.key")]
    Accept(AcceptArgs),
}

#[derive(Debug, Args)]
pub(super) struct AcceptArgs {
    /// The home with the key, and with the genesis file of the chain
    #[arg(long, value_name = "DIR", env = "OMBRA_HOME")]
    home: PathBuf,
    /// Days until votes with it no longer count, 1 to 30
    #[arg(long, value_name = "DAYS", default_value_t = 7,
        value_parser = clap::value_parser!(u64).range(1..=30))]
    days: u64,
    /// The same as a time, in milliseconds since 1970
    #[arg(long, value_name = "MS", conflicts_with = "days")]
    expires_at: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: ValidatorCommand, out: Out<'_>) -> Outcome {
    match command {
        ValidatorCommand::Accept(args) => accept(&args, out),
    }
}

fn accept(args: &AcceptArgs, out: Out<'_>) -> Outcome {
    let AcceptArgs { home, days, expires_at, json: is_json } = args;
    let home = Home::new(home.clone());
    let genesis = genesis::parse(&home.genesis())?;
    let key = Keypair::from_seed(&keyfile::read(&home.validator_key()).map_err(key_fault)?);
    let ends = || now_ms().saturating_add(days.saturating_mul(DAY_MS));
    let expires_at = expires_at.unwrap_or_else(ends);
    let signature: Signature = key.sign(&acceptance(&genesis.hash(), &key.address(), expires_at));
    let public_key = key.public_key();
    if *is_json {
        let answer = json!({
            "chainId": genesis.chain_id(),
            "genesisHash": genesis.hash(),
            "candidateKey": public_key,
            "address": key.address(),
            "expiresAt": expires_at,
            "acceptance": signature,
        });
        writeln!(out, "{answer}")?;
        return Ok(());
    }
    writeln!(out, "{} agrees to become a validator of {}", key.address(), genesis.chain_id())?;
    writeln!(out, "public key  {public_key}")?;
    writeln!(out, "acceptance  {signature}")?;
    writeln!(out, "expires at  {expires_at}")?;
    writeln!(
        out,
        "the validators vote: ombra tx validator-vote {public_key} --power N --acceptance \
         {signature} --expires-at {expires_at} --key-file HOME/keys/validator.key"
    )?;
    Ok(())
}
