//! `ombra demo`: a chain, and one complete agent run on it through the public interface.

use clap::Args;

use super::client::{CliError, Out, Outcome, scenario};
use super::dev::{self, DevArgs};
use super::home;

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
    let mut asked = Box::pin(home::asked()?);
    let chain = dev::start(&args.dev).await?;
    dev::print_banner(&chain, out).await?;
    let [requester, miner, ..] = chain.accounts() else {
        return Err(CliError::Usage("the demonstration needs --accounts 2 or more".to_owned()));
    };
    let client = chain.client()?;
    let settled = tokio::select! {
        biased;
        why = &mut asked => Err(why),
        settled = scenario::agent_run(&client, requester, miner, &args.question, out) => Ok(settled),
    };
    let settled = match settled {
        Ok(Ok(record)) => record,
        Ok(Err(error)) => {
            drop(dev::stop_when(chain, async { "the demonstration failed" }).await);
            return Err(error);
        }
        Err(why) => return dev::stop_when(chain, async move { why }).await,
    };
    if !args.exit {
        writeln!(out, "\nThe node goes on. ctrl-C stops it.")?;
    }
    if args.json {
        writeln!(out, "{}", settled.text())?;
    }
    out.flush()?;
    if args.exit {
        return dev::stop_when(chain, async { "the demonstration is over" }).await;
    }
    dev::stop_when(chain, asked).await
}
