//! `ombra demo`: a chain, and one complete agent run on it through the public interface.

use clap::Args;
use wallet::Client;

use super::client::{CliError, Out, Outcome, scenario};
use super::dev::{self, DevArgs};

const QUESTION: &str = "What is my balance, and how high is the chain?";

/// Run a chain and show one complete agent run on it
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ombra demo\n  ombra demo --exit --json \"How much is 6 * 7?\"\n\n\
                        This program plays both roles, with two wallets, through JSON-RPC."
)]
pub(super) struct DemoArgs {
    /// What is asked
    #[arg(default_value = QUESTION)]
    question: String,
    /// Stop the node when the run is settled
    #[arg(long)]
    exit: bool,
    /// Print the settled run record as the last line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dev: DevArgs,
}

pub(super) async fn run(args: DemoArgs, out: Out<'_>) -> Outcome {
    let chain = dev::start(&args.dev).await?;
    dev::print_banner(&chain, out)?;
    let [requester, miner, ..] = chain.accounts.as_slice() else {
        return Err(CliError::Usage("the demonstration needs --accounts 2 or more".to_owned()));
    };
    let (requester, miner) = (requester.clone(), miner.clone());
    let client = Client::new(&format!("http://{}", chain.running.endpoints().rpc))?;
    let settled = scenario::agent_run(&client, &requester, &miner, &args.question, out).await;
    let settled = match settled {
        Ok(record) => record,
        Err(error) => {
            drop(dev::stop_when(chain, async { "the demonstration failed" }).await);
            return Err(error);
        }
    };
    if args.json {
        writeln!(out, "{}", settled.text())?;
    }
    out.flush()?;
    if args.exit {
        return dev::stop_when(chain, async { "the demonstration is over" }).await;
    }
    writeln!(out, "\nThe node goes on. ctrl-C stops it.")?;
    dev::finish(chain).await
}
