//! What a miner tells about the calls of agents that it serves: offers, bond, assignments.

use clap::Args;
use miner::chain::{Calls as _, Ledger as _};
use miner::journal::Journal;
use miner::market::MarketConfig;
use miner::operate::market::{self, AssignmentLine, MarketFact, OfferFact, OfferState, WhyCall};
use miner::operate::tell::Wanted;
use node::clock::now_ms;
use serde::Serialize;
use types::agent::ExecutorId;
use types::{Address, Amount, Hash, Offer};

use super::super::client::output;
use super::super::client::{CliError, Out, Outcome};
use super::control::{Control, Untold};
use super::error::not_answered;
use super::place::PlaceArgs;
use super::report::{PlainArgs, RunsArgs, ago, print_json, unread};

/// Offers of a wallet's miner.
#[derive(Args, Debug)]
pub(super) struct OffersArgs {
    /// Offer an executor again that was paused after a dissent
    #[arg(long, value_name = "EXECUTOR")]
    resume: Option<ExecutorId>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// The offers of a wallet, as the chain and its miner have them.
#[derive(Serialize)]
struct OffersRecord {
    wallet: Address,
    /// On the chain.
    made: Vec<MadeOffer>,
    /// In the configuration of the running miner.
    configured: Vec<OfferFact>,
    /// Paused after a dissent.
    paused: std::collections::BTreeMap<String, miner::journal::call::Paused>,
}

#[derive(Serialize)]
struct MadeOffer {
    executor: ExecutorId,
    #[serde(flatten)]
    offer: Offer,
}

/// The bond of a wallet, and what it is kept at.
#[derive(Serialize)]
struct BondRecord {
    wallet: Address,
    bonded_micro: u64,
    locked_micro: u64,
    unbonding_micro: u64,
    /// The least with which offers count; none while the chain has no market.
    least_micro: Option<u64>,
    /// What the running miner keeps it at; none where none runs, or its settings do not say so.
    keep_micro: Option<u64>,
}

/// The market as a wallet's miner has it; the default where it never worked.
pub(super) async fn told(place: &PlaceArgs, miner: Address) -> Result<MarketFact, CliError> {
    let running = async |control: Control| control.market().await;
    let stopped = async |journal: Box<Journal>| market::market(&journal, None).map_err(unread);
    Ok(place.told_if_any(miner, running, stopped).await?.unwrap_or_default())
}

pub(super) async fn offers(args: &OffersArgs, out: Out<'_>) -> Outcome {
    let OffersArgs { resume, place } = args;
    let wallet = place.miner()?;
    if let Some(executor) = resume {
        return resume_offers(place, wallet, executor, out).await;
    }
    let fact = told(place, wallet).await?;
    let made = place.chain()?.offers(&wallet).await.map_err(not_answered)?;
    let made = made.into_iter().map(|(executor, offer)| MadeOffer { executor, offer });
    let record =
        OffersRecord { wallet, made: made.collect(), configured: fact.offers, paused: fact.paused };
    if place.node.json {
        return print_json(&record, out);
    }
    show_offers(&record, out)
}

fn show_offers(record: &OffersRecord, out: Out<'_>) -> Outcome {
    let OffersRecord { wallet: _, made, configured, paused } = record;
    let mut rows =
        output::table(["EXECUTOR", "CAPACITY", "PER CALL", "PROMPT/M", "COMPLETION/M", "FUEL/G"]);
    for MadeOffer { executor, offer } in made {
        let prices = offer.prices;
        let mut row = vec![executor.to_string(), offer.capacity.to_string()];
        let prices =
            [prices.per_call, prices.prompt_per_m, prices.completion_per_m, prices.fuel_per_g];
        row.extend(prices.iter().map(Amount::to_string));
        rows.add_row(row);
    }
    if made.is_empty() {
        writeln!(out, "no offers on the chain")?;
    } else {
        writeln!(out, "{rows}")?;
    }
    for fact in configured {
        match &fact.state {
            OfferState::Offered if made.iter().any(|it| it.executor == fact.executor) => (),
            OfferState::Offered => writeln!(out, "{}: will be offered", fact.executor)?,
            OfferState::NotHere => {
                writeln!(out, "{}: not offered, this program cannot execute it", fact.executor)?;
            }
            OfferState::Unsound(fault) => writeln!(
                out,
                "{executor}: not offered, because it computes other results here than on other \
                 machines: {fault}; to test it again, --resume {executor}",
                executor = fact.executor
            )?,
            // Told below.
            OfferState::Paused(_) => (),
        }
    }
    for (executor, paused) in paused {
        let (call, ago) = (paused.call, ago(paused.since_ms, now_ms()));
        writeln!(
            out,
            "{executor}: paused for {ago}: its answer to the call {call} differed from the others' \
             answers; after you have found the cause, --resume {executor}"
        )?;
    }
    Ok(())
}

async fn resume_offers(
    place: &PlaceArgs,
    wallet: Address,
    executor: &ExecutorId,
    out: Out<'_>,
) -> Outcome {
    let running = async |control: Control| control.resume(executor).await;
    let stopped =
        async |journal: Box<Journal>| journal.resume_offers(executor).await.map_err(unread);
    if !place.told(wallet, running, stopped).await? {
        return Err(CliError::Failed(format!("{executor} is not paused")));
    }
    writeln!(out, "{executor} may be offered again")?;
    Ok(())
}

pub(super) async fn bond(args: &PlainArgs, out: Out<'_>) -> Outcome {
    let place = &args.place;
    let wallet = place.miner()?;
    let chain = place.chain()?;
    let stake = chain.stake(&wallet).await.map_err(not_answered)?.unwrap_or_default();
    let least_micro = chain.bond_micro_min().await.map_err(not_answered)?;
    let bond = told(place, wallet).await?.bond;
    let default_micro = least_micro.map(|least| MarketConfig::default().bond_micro(least));
    let record = BondRecord {
        wallet,
        bonded_micro: stake.bonded_micro,
        locked_micro: stake.locked_micro,
        unbonding_micro: stake.unbonding_micro,
        least_micro,
        keep_micro: bond.and_then(|it| it.keep_micro.or(default_micro)),
    };
    if place.node.json {
        return print_json(&record, out);
    }
    let ombra = |micro: u64| output::ombra(Amount::new(micro));
    let mut facts = vec![
        ("bond", ombra(record.bonded_micro)),
        ("locked", ombra(record.locked_micro)),
        ("taken out", ombra(record.unbonding_micro)),
    ];
    facts.extend(record.least_micro.map(|micro| ("least for offers", ombra(micro))));
    facts.extend(record.keep_micro.map(|micro| ("kept at", ombra(micro))));
    writeln!(out, "{}", output::facts(facts))?;
    Ok(())
}

pub(super) async fn assignments(args: &RunsArgs, out: Out<'_>) -> Outcome {
    let (wanted, place) = args.parts();
    let running = async |control: Control| control.assignments(wanted).await;
    let stopped =
        async |journal: Box<Journal>| market::assignments(&journal, wanted).map_err(unread);
    let lines = place.told(place.miner()?, running, stopped).await?;
    if place.node.json {
        return print_json(&lines, out);
    }
    if lines.is_empty() {
        writeln!(out, "none")?;
        return Ok(());
    }
    let mut rows = output::table(["CALL", "ROUND", "SAYS", "PAID", "LOST", "AGE", "STATE"]);
    let ombra = |micro: Option<u64>| {
        micro.map_or_else(|| "-".to_owned(), |micro| Amount::new(micro).ombra())
    };
    for line in &lines {
        rows.add_row([
            line.call.to_string(),
            line.round.to_string(),
            line.outcome.clone().unwrap_or_else(|| "-".to_owned()),
            ombra(line.paid_micro),
            ombra(line.penalty_micro),
            ago(line.assigned_ms, now_ms()),
            // A reason may quote the agent.
            output::printable(&line.state),
        ]);
    }
    writeln!(out, "{rows}")?;
    Ok(())
}

/// What is known of a call; empty if the journal does not know it.
pub(super) async fn why(place: &PlaceArgs, call: &Hash) -> Result<Vec<WhyCall>, CliError> {
    let running = async |control: Control| control.why_call(call).await;
    let stopped = async |journal: Box<Journal>| market::why_call(&journal, call).map_err(unread);
    place.told(place.miner()?, running, stopped).await
}

/// What is known of a call, for people.
pub(super) fn show_why(rounds: &[WhyCall], out: Out<'_>) -> Outcome {
    for why in rounds {
        let WhyCall { line, requester, budget_micro, executor, reason, standing } = why;
        let AssignmentLine { round, agent, version, state, outcome, assigned_ms, .. } = line;
        let mut facts = vec![
            ("round", round.to_string()),
            ("drawn", format!("{} ago", ago(*assigned_ms, now_ms()))),
            ("agent", format!("{agent} {}", output::printable(version))),
            ("requester", requester.to_string()),
            ("budget", output::ombra(Amount::new(*budget_micro))),
        ];
        facts.extend(executor.map(|it| ("executor", it.to_string())));
        facts.extend(outcome.clone().map(|it| ("answer", it)));
        facts.extend(reason.as_deref().map(|it| ("reason", output::printable(it))));
        facts.extend(standing.clone().map(|it| ("standing", format!("the miner {it}"))));
        facts.push(("now", output::printable(state)));
        writeln!(out, "{}", output::facts(facts))?;
    }
    Ok(())
}

/// The receipts of a call, from the miner's folder: it is of files, whether the miner runs or not.
pub(super) async fn receipts(
    place: &PlaceArgs,
    call: &Hash,
) -> Result<Vec<serde_json::Value>, CliError> {
    let folder = place.folder(place.miner()?)?;
    let call = *call;
    let what = format!("receipts of the call {call}");
    let read =
        tokio::task::spawn_blocking(move || miner::market::Receipts::of(&folder).of_call(&call));
    let read = read.await.map_err(|error| CliError::Failed(error.to_string()))?;
    read.map_err(|source| CliError::File { what, source })
}

impl Control {
    /// The market as the miner has it.
    async fn market(self) -> Result<MarketFact, Untold> {
        self.told("/market").await
    }

    /// The calls of its journal, newest first.
    async fn assignments(self, wanted: Wanted) -> Result<Vec<AssignmentLine>, Untold> {
        let Wanted { only_open, limit } = wanted;
        self.told(&format!("/assignments?open={only_open}&limit={limit}")).await
    }

    /// What is known of a call.
    async fn why_call(self, call: &Hash) -> Result<Vec<WhyCall>, Untold> {
        self.told(&format!("/calls/{call}")).await
    }

    /// Offers an executor again; whether it was paused.
    async fn resume(self, executor: &ExecutorId) -> Result<bool, Untold> {
        self.post(&format!("/resume/{executor}")).await
    }
}
