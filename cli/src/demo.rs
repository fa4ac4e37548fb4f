//! `ombra demo`: a chain with a miner, and one agent run on it from request to settlement; then an agent that
//! three more miners execute, each for itself, and that is executed again to check them.
//!
//! Nothing in it is prepared. The request is a transaction like any other; the miner finds it as it
//! would find a stranger's; a language model inside this process chooses the tool, reads its result
//! and writes the answer.

mod market;

use clap::Args;

use super::client::demonstration::{self, Parties};
use super::client::{CliError, Out, Outcome};
use super::dev::{self, DevArgs, DevChain, DevMiner};
use super::home;
use market::{Members, Stage};

/// Run a chain with four miners, and show an agent run, which one miner answers with a language model; then
/// a call of an agent, which a committee of three miners answers
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
                        ombra demo\n  \
                        ombra demo --exit --json \"How high is the chain?\"\n\n\
                        The model is small and weak: docs/model.md says what it can do. If its \
                        file is missing, it is downloaded first (ombra model fetch).")]
pub(super) struct DemoArgs {
    /// The question [default: the balance of the requester's account]
    question: Option<String>,
    /// Stop the node at the end
    #[arg(long)]
    exit: bool,
    /// Print the settled run record as the last line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    dev: DevArgs,
}

pub(super) async fn run(mut args: DemoArgs, out: Out<'_>) -> Outcome {
    args.dev.begin_with_market();
    let mut asked = Box::pin(home::asked()?);
    let Some((chain, miner)) = dev::start_with_miner(&args.dev, &mut asked).await? else {
        return Ok(());
    };
    let settled = tokio::select! {
        biased;
        why = &mut asked => Err(why),
        settled = show(&chain, &miner, args.question.as_deref(), out) => Ok(settled),
    };
    let (settled, _members) = match settled {
        Ok(Ok(shown)) => shown,
        Ok(Err(error)) => {
            drop(dev::stop_when(chain, Some(miner), async { "the demonstration failed" }).await);
            return Err(error);
        }
        Err(why) => return dev::stop_when(chain, Some(miner), async move { why }).await,
    };
    if !args.exit {
        writeln!(out, "\nThe node and its miners keep running. ctrl-C stops them.")?;
    }
    if args.json {
        writeln!(out, "{settled}")?;
    }
    out.flush()?;
    if args.exit {
        return dev::stop_when(chain, Some(miner), async { "the demonstration is over" }).await;
    }
    dev::stop_when(chain, Some(miner), asked).await
}

/// Both acts; answers the record of the run, and the miners of the second act.
async fn show(
    chain: &DevChain,
    miner: &DevMiner,
    question: Option<&str>,
    out: Out<'_>,
) -> Result<(String, Option<Members>), CliError> {
    dev::print_banner(chain, out).await?;
    miner.print(out)?;
    let [requester, ..] = chain.accounts() else {
        return Err(CliError::Usage("the demonstration needs --accounts 2 or more".to_owned()));
    };
    let parties = Parties {
        client: chain.client()?,
        requester: requester.clone(),
        miner: miner.address(),
        journal: miner.journal(),
    };
    let asked = || format!("What is the balance of the account {}?", requester.address());
    let question = question.map_or_else(asked, str::to_owned);
    let record = demonstration::agent_run(&parties, &question, miner.tools(), out).await?;
    let members = match Stage::on(chain).await? {
        Ok(stage) => Some(stage.play(out).await?),
        Err(why) => {
            writeln!(out, "\nSkipping the second act: {why}.")?;
            None
        }
    };
    Ok((record, members))
}
