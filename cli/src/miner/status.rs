//! `ombra miner status`: how a miner is, on one page.

use miner::chain::Held;
use miner::journal::Journal;
use miner::journal::call::Served;
use miner::journal::entry::{Day, Swept, SweptLast};
use miner::operate::tell;
use miner::operate::{
    BackendFact, MarketFact, NodeAnswers, NodeFact, NodeState, OfferFact, OfferState, PolicyFact,
    Process, StakeFact, Starting, Status, SweepFact, ToolFact, WaitFact,
};
use node::clock::now_ms;
use types::{Address, Amount};

use super::super::client::output;
use super::super::client::{CliError, Out, Outcome};
use super::control::Control;
use super::place::PlaceArgs;
use super::report::{PlainArgs, ago, print_json, table, unread};
use super::start::starting;

pub(super) async fn run(args: &PlainArgs, out: Out<'_>) -> Outcome {
    let place = &args.place;
    let miner = place.miner()?;
    // It is asked first: what was starting may be running then, and not the other way round.
    let running = async |control: Control| control.status().await;
    let stopped = async |journal: Box<Journal>| {
        let node = asked(place, &miner).await?;
        tell::status(&journal, miner, now_ms(), None, node).map_err(unread)
    };
    let status = match starting(&place.folder(miner)?).await? {
        None => place.told(miner, running, stopped).await?,
        Some(starting) => {
            let status = match place.told_if_any(miner, running, stopped).await? {
                Some(status) => status,
                None => fresh(miner, asked(place, &miner).await?),
            };
            // Beside a miner that works, another one that starts will be refused.
            let starting = status.process.is_none().then_some(starting);
            Status { starting, ..status }
        }
    };
    if place.node.json {
        return print_json(&status, out);
    }
    writeln!(out, "{}", output::facts(facts(&status)))?;
    if !status.open.is_empty() {
        writeln!(out, "\n{}", table(&status.open, status.now_ms))?;
    }
    Ok(())
}

/// A miner that has not worked yet.
fn fresh(wallet: Address, node: NodeFact) -> Status {
    let (today, swept) = (Day::default(), Swept::default());
    let (process, starting, open) = (None, None, Vec::new());
    let market = MarketFact::default();
    let (now_ms, outbox) = (now_ms(), 0);
    Status { wallet, now_ms, process, starting, node, open, outbox, today, swept, market }
}

/// What the node says to who asks in place of the miner.
async fn asked(place: &PlaceArgs, miner: &Address) -> Result<NodeFact, CliError> {
    let node = place.chain()?;
    Ok(NodeFact::default().after(NodeAnswers::ask(&node, miner).await))
}

fn facts(status: &Status) -> Vec<(&'static str, String)> {
    let Status { wallet, now_ms, process, starting, node, open, outbox, today, swept, market } =
        status;
    let mut facts = vec![("miner", wallet.to_string())];
    let since = |how: &str, then_ms: u64, pid: u32| {
        let since = output::time(then_ms);
        format!("{how} since {since}, {}, pid {pid}", ago(then_ms, *now_ms))
    };
    facts.push((
        "process",
        match (process, starting) {
            (Some(it), _) => since("running", it.started_ms, it.pid),
            (None, Some(it)) => since("starting", it.started_ms, it.pid),
            (None, None) => "not running; the journal says:".to_owned(),
        },
    ));
    facts.extend(starting.iter().flat_map(|it| of_start(it, *now_ms)));
    facts.push(("node", node_text(node, *now_ms)));
    let balance = node.balance_micro.map(|micro| output::ombra(Amount::new(micro)));
    facts.push(("balance", balance.unwrap_or_else(|| "not known".to_owned())));
    if let Some(stake) = node.stake {
        facts.push(("bond", bond_text(&stake)));
        let Held { runs, micro } = stake.held;
        facts.push((
            "held rewards",
            format!("{} of {runs} runs", output::ombra(Amount::new(micro))),
        ));
    }
    if let Some(process) = process {
        facts.extend(of_process(process, *now_ms, open.len()));
    }
    let Day { claims, lost, spent_micro } = *today;
    let burned = output::ombra(Amount::new(spent_micro));
    facts.push(("today", format!("{claims} claims, {lost} lost, {burned} burned")));
    facts.push(("open runs", open.len().to_string()));
    if *outbox > 0 {
        facts.push(("under way", format!("{outbox} signed transactions")));
    }
    let sweep = process.as_ref().and_then(|it| it.sweep.as_ref());
    if sweep.is_some() || swept.signed_ms > 0 {
        facts.push(("sweep", sweep_text(sweep, swept, *now_ms)));
    }
    facts.extend(of_market(market));
    facts
}

/// The market, where there is anything to tell of it.
fn of_market(market: &MarketFact) -> Vec<(&'static str, String)> {
    let MarketFact { offers, bond: _, paused, served, open } = market;
    let mut facts = Vec::new();
    let offer = |it: &OfferFact| {
        let OfferFact { executor, capacity, state, .. } = it;
        match state {
            OfferState::Offered => format!("{executor} × {capacity}"),
            OfferState::NotHere => format!("{executor} (not here)"),
            OfferState::Unsound(_) => format!("{executor} (fails its test)"),
            OfferState::Paused(_) => format!("{executor} (paused)"),
        }
    };
    if !offers.is_empty() {
        facts.push(("offers", offers.iter().map(offer).collect::<Vec<_>>().join(", ")));
    }
    if offers.is_empty() && !paused.is_empty() {
        facts.push(("paused", paused.keys().cloned().collect::<Vec<_>>().join(", ")));
    }
    if served.elected > 0 {
        let Served { elected, agreed, dissented, undecided, unable, withheld, absent, .. } =
            *served;
        let (earned, lost) = (Amount::new(served.earned_micro), Amount::new(served.lost_micro));
        facts.push((
            "calls",
            format!(
                "drawn for {elected}, {open} open; {agreed} agreed, {dissented} dissented, \
                 {undecided} undecided, {unable} unable, {withheld} withheld, {absent} absent"
            ),
        ));
        let (earned, lost) = (output::ombra(earned), output::ombra(lost));
        facts.push(("from calls", format!("{earned} earned, {lost} lost of the bond")));
    }
    facts
}

fn of_start(starting: &Starting, now_ms: u64) -> Vec<(&'static str, String)> {
    if starting.waits.is_empty() {
        return vec![("waits for", "nothing; it opens its journal, model and tools".to_owned())];
    }
    let wait = |it: &WaitFact| {
        let text = output::printable(&it.text());
        ("waits for", format!("{text}; for {}", ago(it.since_ms, now_ms)))
    };
    starting.waits.iter().map(wait).collect()
}

fn of_process(process: &Process, now_ms: u64, open: usize) -> Vec<(&'static str, String)> {
    let Process { model, backend, tools, slots_max, policy, alarms, decisions, .. } = process;
    let tool = |it: &ToolFact| {
        if it.there { it.name.clone() } else { format!("{} (away)", it.name) }
    };
    let tools: Vec<_> = tools.iter().map(tool).collect();
    let decided: Vec<_> = decisions.iter().map(|it| format!("{} {}", it.times, it.code)).collect();
    let seen = process.run_seen_ms.map_or_else(
        || "no run was looked at yet".to_owned(),
        |then| format!("last looked at a run {} ago", ago(then, now_ms)),
    );
    let mut facts = vec![
        ("model", output::printable(model)),
        ("back end", backend_text(backend)),
        ("tools", tools.join(", ")),
        ("policy", policy_text(policy, now_ms)),
        ("slots", format!("{open} of {slots_max} taken")),
        ("decisions", [decided.join(", "), seen].join("; ").trim_start_matches("; ").to_owned()),
    ];
    if alarms.is_empty() {
        facts.push(("alarms", "none".to_owned()));
    }
    for alarm in alarms {
        let (name, since) = (&alarm.name, ago(alarm.since_ms, now_ms));
        let text = output::printable(&alarm.text);
        facts.push(("ALARM", format!("{name}, for {since}: {text}")));
    }
    facts
}

fn node_text(node: &NodeFact, now_ms: u64) -> String {
    let why = output::printable(node.why.as_deref().unwrap_or_default());
    let state = match node.state {
        NodeState::Unknown => "not asked yet".to_owned(),
        NodeState::Ready => "answers".to_owned(),
        NodeState::Syncing => "behind the chain, catching up".to_owned(),
        NodeState::Away => format!("away: {why}"),
    };
    let (Some(chain), Some(height), Some(block_ms)) = (&node.chain_id, node.height, node.block_ms)
    else {
        return state;
    };
    let chain = output::printable(chain);
    format!("{state}; {chain} at height {height}, a block of {} ago", ago(block_ms, now_ms))
}

fn bond_text(stake: &StakeFact) -> String {
    let StakeFact { bonded_micro, locked_micro, unbonding_micro, held: _ } = *stake;
    let ombra = |micro| output::ombra(Amount::new(micro));
    let free_micro = bonded_micro.saturating_sub(locked_micro);
    let (bonded, locked, free) = (ombra(bonded_micro), ombra(locked_micro), ombra(free_micro));
    let mut text = format!("{bonded}, of which {locked} are locked and {free} free");
    if unbonding_micro > 0 {
        text += &format!("; {} taken out and not paid yet", ombra(unbonding_micro));
    }
    text
}

fn backend_text(backend: &BackendFact) -> String {
    match backend {
        BackendFact::Unknown => "not asked yet".to_owned(),
        BackendFact::Ready => "ready".to_owned(),
        BackendFact::Degraded { why } => format!("fails: {}", output::printable(why)),
        BackendFact::Down { why } => format!("down: {}", output::printable(why)),
    }
}

fn policy_text(policy: &PolicyFact, now_ms: u64) -> String {
    let PolicyFact { file, read_ms, refused, claiming } = policy;
    let claiming = if *claiming { "claiming" } else { "claiming = false" };
    let read = ago(*read_ms, now_ms);
    let kept = format!("{file}, read {read} ago, {claiming}");
    match refused {
        None => kept,
        Some(why) => format!("{kept}; ITS NEWEST VERSION IS NOT IN FORCE: {why}"),
    }
}

fn sweep_text(sweep: Option<&SweepFact>, swept: &Swept, now_ms: u64) -> String {
    let Swept { times, total_micro, signed_ms, last } = swept;
    let total = output::ombra(Amount::new(*total_micro));
    let mut text = format!("{times} times, {total} in all");
    if *signed_ms > 0 {
        let when = ago(*signed_ms, now_ms);
        text += &match last {
            None => format!("; one signed {when} ago is under way"),
            Some(SweptLast::Included { tx, micro }) => {
                let amount = output::ombra(Amount::new(*micro));
                format!("; the last {when} ago: {amount}, transaction {tx}")
            }
            Some(SweptLast::Refused { code }) => format!("; one {when} ago was rejected: {code}"),
        };
    }
    match sweep {
        None => text,
        Some(SweepFact { address, keep_micro }) => {
            let keep = output::ombra(Amount::new(*keep_micro));
            format!("to {address} above {keep}; {text}")
        }
    }
}
