//! `ombra gateway fund` and `drain`: money to the gateway's wallet, and back.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use gateway::operate::Uncounted;
use gateway::program::{Setting, open_service};
use gateway::request_service::DrainFault;
use gateway::settings::Settings;
use tokio_util::sync::CancellationToken;
use types::tx::Transfer;
use types::{Amount, Body};

use super::control::{Drain, Drained};
use super::error::failed;
use super::place::{FolderArgs, PlaceArgs, Source};
use crate::client::input::{Payee, amount, payee};
use crate::client::options::{NodeArgs, SignerArgs};
use crate::client::output::ombra;
use crate::client::tx::{Sender, block_of};
use crate::client::{CliError, Out, Outcome};
use crate::clock::Clock;

/// The transfer is included within this time or the command fails.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Move money of another wallet to that of the gateway
#[derive(Args, Debug)]
pub(super) struct FundArgs {
    /// How much, in micro-OMBRA or with unit (1.5ombra)
    #[arg(value_parser = amount)]
    amount: Amount,
    /// The gateway's wallet [default: that of the only gateway in the folder]
    #[arg(long, value_name = "ADDRESS", value_parser = payee)]
    to: Option<Payee>,
    /// The most that the gateway's wallet may hold afterwards
    #[arg(long, value_name = "AMOUNT", value_parser = amount, default_value = "10ombra")]
    balance_max: Amount,
    #[command(flatten)]
    folder: FolderArgs,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    signer: SignerArgs,
}

/// Move money of the gateway's wallet that no request needs to another
#[derive(Args, Debug)]
pub(super) struct DrainArgs {
    /// How much, in micro-OMBRA or with unit [default: all that no request needs]
    #[arg(value_parser = amount)]
    amount: Option<Amount>,
    /// The recipient
    #[arg(long, value_name = "ADDRESS", value_parser = payee)]
    to: Payee,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) async fn fund(args: FundArgs, out: Out<'_>) -> Outcome {
    let to = args.to.map_or_else(|| args.folder.only(), |to| args.signer.pays(to))?;
    let sender = Sender::new(args.node.client()?, args.signer.signer()?);
    let has = sender.client.account(&to).await?.balance;
    let after = has.checked_add(args.amount).unwrap_or(Amount::new(u64::MAX));
    if after > args.balance_max {
        return Err(CliError::Usage(format!(
            "the gateway's wallet would hold {}, but --balance-max is {}: a thief of its machine \
             could get everything that the wallet holds",
            ombra(after),
            ombra(args.balance_max)
        )));
    }
    let body = Body::Transfer(Transfer::new(to, args.amount, Amount::ZERO));
    let included = sender.include(&body, TIMEOUT).await?;
    let (moved, block) = (ombra(args.amount), block_of(&included));
    writeln!(out, "moved {moved} to {to}, tx {}, block {block}", included.hash)?;
    Ok(())
}

pub(super) async fn drain(args: DrainArgs, out: Out<'_>) -> Outcome {
    let to = args.place.signer.pays(args.to)?;
    let wanted = Drain { to, micro: args.amount.map(Amount::get) };
    let wallet = args.place.wallet()?;
    let drained = match args.place.source(wallet).await? {
        Source::Running(control) => control.drain(&wanted).await?,
        Source::Stopped(store) => {
            drop(store);
            drain_stopped(&args.place, &wanted).await?
        }
    };
    let Drained { tx, micro } = drained;
    writeln!(out, "moved {} to {to}, tx {tx}", ombra(Amount::new(micro)))?;
    Ok(())
}

/// The same where the gateway does not run: what was begun is brought to its end first.
async fn drain_stopped(place: &PlaceArgs, wanted: &Drain) -> Result<Drained, CliError> {
    let (key, memory, chain_id) = place.signer.signer()?.into_parts();
    let folder = place.folder.of(key.address())?;
    // Nothing is asked through it, and money is moved away.
    let settings =
        Settings { public_prompts: true, balance_micro_max: u64::MAX, ..Settings::default() };
    let stop = CancellationToken::new();
    let setting = Setting {
        settings,
        folder,
        key,
        memory,
        chain_id,
        node: place.node.client()?,
        clock: Arc::new(Clock),
        counters: Arc::new(Uncounted),
        stop: stop.clone(),
    };
    let (service, _) = open_service(setting).await.map_err(failed)?;
    let moving = async {
        let moved = tokio::time::timeout(TIMEOUT, service.drain(wanted.to, wanted.micro)).await;
        stop.cancel();
        moved
    };
    let (moved, ended) = tokio::join!(moving, service.run());
    drop(ended);
    let late = |_late| CliError::Failed("the transfer was not included in time".to_owned());
    let (tx, micro) =
        moved.map_err(late)?.map_err(|fault: DrainFault| CliError::Failed(fault.to_string()))?;
    Ok(Drained { tx, micro })
}
