//! Calls to an agent, each from its request to its settlement: one AGENT_CALL, and a CALL_COMMIT and a
//! CALL_REVEAL of each of three members, whom the chain draws.
//!
//! Requests are signed before the clock starts. Who the members are shows in the block that draws them, so
//! what they send is signed by the connections while the chain works. A call counts when the block is
//! there in which its last member reveals: at the end of that block it is decided and settled.

mod member_connection;
mod progress;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::{self, SyncSender};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};
use testkit::actor::Actor;
use testkit::breakpoint::lock;
use testkit::http::Connection;
use testkit::market::{Cast, Head, Market, ROYALTY, Scene};
use testkit::parallel::joined;
use testkit::websocket::WebSocket;
use testkit::workload::keys;
use types::build::{Envelope, Unsigned};
use types::{Address, Amount, Body, Hash};

use crate::Options;
use crate::chain::Chain;
use crate::probe::Probe;
use crate::report::{CallFigures, Lane, Report};
use member_connection::{Job, MemberConnection};
use progress::{Progress, Step};

/// Members of a call.
pub(crate) const MEMBERS: usize = 3;
/// Transactions of a call.
const CALL_TXS: usize = 1 + 2 * MEMBERS;
/// What a miner has at stake: half of it is enough for all calls that it may work at.
const BOND: u64 = 20_000_000;
/// The most calls at which a miner may work for one executor.
const CAPACITY: u64 = 64;
/// The model that the agent needs.
const MANIFEST: Hash = Hash::new([0xca; 32]);
/// Jobs that may wait for a connection.
const JOBS_MAX: usize = 65_536;

/// How many calls, of which sort.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) calls: usize,
    pub(crate) miners: usize,
    pub(crate) in_flight: usize,
}

/// What waits to be seen in a block: which call it is of, and which of its steps it is.
pub(crate) type Awaited = Mutex<BTreeMap<Hash, (usize, Step)>>;

/// A request that is signed and not sent yet.
struct Request {
    call_id: Hash,
    hash: Hash,
    text: String,
    /// The place of the sender among the requesters.
    sender: usize,
}

/// Who takes part, and what they are going to ask.
struct Stage {
    market: Market,
    owner: Address,
    miners: Vec<Actor>,
    requests: Vec<Request>,
    validators: usize,
}

/// Makes the calls and waits until all are settled.
pub(crate) fn drive(plan: Plan, options: &Options, chain: &Chain) -> anyhow::Result<Report> {
    let stage = prepare(plan, options, chain)?;
    let owned = balance(chain, stage.owner)?;
    let probe = Probe::start(chain.rpc()?, options.accounts)?;
    let mut report = Report::begin("calls", plan.calls * CALL_TXS, options, chain)?;
    let owner = stage.owner;
    run(plan, options, chain, stage, &mut report)?;
    report.included = Some(report.started.elapsed());
    report.inclusion = probe.stop()?;
    chain.agree()?;
    report.read(chain)?;
    let supply = chain.call("ombra_getSupply", &json!([]))?;
    ensure!(supply["escrowed"] == "0", "calls still hold money: {supply}");
    let royalties = balance(chain, owner)? - owned;
    let succeeded = royalties / i128::from(ROYALTY);
    ensure!(usize::try_from(succeeded)? == plan.calls, "{succeeded} calls succeeded");
    Ok(report)
}

fn balance(chain: &Chain, address: Address) -> anyhow::Result<i128> {
    let account = chain.call("ombra_getAccount", &json!([address]))?;
    Ok(account["balance"].as_str().context("an account without a balance")?.parse()?)
}

/// Calls under way for each miner at which it is hardly ever full: a full one leaves a seat empty, which is
/// not what is measured here.
const CALLS_PER_MINER_MAX: usize = 13;

/// Publishes the agent, has the miners offer, and signs all requests.
fn prepare(plan: Plan, options: &Options, chain: &Chain) -> anyhow::Result<Stage> {
    let most = plan.miners * CALLS_PER_MINER_MAX;
    ensure!(plan.in_flight <= most, "--in-flight must be at most {most}, or miners are full");
    let mut people = keys(options.accounts)?;
    ensure!(people.len() > plan.miners + 1, "--accounts must exceed --miners by two");
    let requesters = people.split_off(plan.miners + 1);
    let owner = people.pop().context("an owner")?;
    let requester = requesters.first().context("a requester")?.clone();
    let address = owner.address();
    let cast = Cast { owner, requester, miners: people, bond: BOND, capacity: CAPACITY };
    let Scene { market, miners, .. } = Scene::open(chain.rpc()?, MANIFEST, cast)?;
    let mut requesters: Vec<Actor> = requesters.into_iter().map(Actor::new).collect();
    let (count, mut requests) = (requesters.len(), Vec::with_capacity(plan.calls));
    for number in 0..plan.calls {
        let sender = number % count;
        let requester = requesters.get_mut(sender).context("a requester")?;
        requests.push(request(&market, requester, sender));
    }
    let info = chain.call("ombra_chainInfo", &json!([]))?;
    let validators = usize::try_from(info["validators"].as_u64().context("no validators")?)?;
    Ok(Stage { market, owner: address, miners, requests, validators })
}

fn request(market: &Market, requester: &mut Actor, sender: usize) -> Request {
    let call = market.asked(requester, u64::try_from(MEMBERS).unwrap_or(u64::MAX));
    let call_id = call.call_id;
    let (hash, text) = sign(requester, &market.chain_id, &Body::AgentCall(call));
    Request { call_id, hash, text, sender }
}

/// Signs with the actor's next nonce; answers the hash beside the text.
pub(crate) fn sign(actor: &mut Actor, chain_id: &str, body: &Body) -> (Hash, String) {
    let chain_id = Some(chain_id.to_owned());
    let envelope = Envelope { chain_id, ..testkit::workload::envelope(actor.nonce) };
    actor.nonce += 1;
    let from = actor.address().to_string();
    let unsigned = Unsigned::build(body, &from, &actor.key.public_key(), &envelope);
    (unsigned.hash(), unsigned.sign(&actor.key))
}

/// Sends everything in its time.
fn run(
    plan: Plan,
    options: &Options,
    chain: &Chain,
    stage: Stage,
    report: &mut Report,
) -> anyhow::Result<()> {
    let Stage { market, miners, requests, validators, owner: _ } = stage;
    let addresses: Vec<Address> = miners.iter().map(Actor::address).collect();
    let mut progress = Progress::new(&addresses, Amount::new(BOND), validators, &requests);
    let awaited = Awaited::default();
    for (number, request) in requests.iter().enumerate() {
        lock(&awaited).insert(request.hash, (number, Step::Ask));
    }
    let mut blocks = WebSocket::open(chain.rpc()?)?;
    let next = chain.height()? + 1;
    blocks.subscribe("blocks", &json!({ "fromBlock": next }))?;
    let previous = chain.call("ombra_getBlock", &json!([next - 1, false]))?;
    progress.begin(Head::read(&previous).context("a chain without randomness")?);
    let nodes = chain.addresses();
    let nodes = if options.spread { nodes } else { vec![chain.rpc()?] };
    std::thread::scope(|scope| {
        let mut dealt: Vec<Vec<(usize, Actor)>> = vec![Vec::new(); options.conns];
        for (place, miner) in miners.into_iter().enumerate() {
            if let Some(lane) = dealt.get_mut(place % options.conns) {
                lane.push((place, miner));
            }
        }
        let mut lanes = Lanes { ways: Vec::new(), workers: Vec::new() };
        for (miners, node) in dealt.into_iter().zip(nodes.iter().cycle()) {
            let lane = MemberConnection {
                miners: miners.into_iter().collect(),
                market: &market,
                awaited: &awaited,
            };
            lanes.open(scope, lane, options.batch, *node);
        }
        let mut feed = Feed { plan, rate: options.rate, asked: 0, requests };
        let followed = follow(&mut progress, &mut feed, &lanes, (&mut blocks, chain), &awaited, {
            (report.started, Duration::from_secs(options.timeout_s))
        });
        let ended = lanes.close(report);
        // Why a connection ended says more than that it did.
        ended.and(followed)
    })?;
    report.accepted = report.started.elapsed();
    report.calls = Some(CallFigures { calls: plan.calls, to_decision: progress.to_decision() });
    Ok(())
}

/// The requests that are not sent yet.
struct Feed {
    plan: Plan,
    rate: u64,
    asked: usize,
    requests: Vec<Request>,
}

impl Feed {
    /// Sends as many requests as may be under way.
    fn ask(&mut self, settled: usize, elapsed: Duration, lanes: &Lanes<'_>) -> anyhow::Result<()> {
        let mut most = self.plan.calls.min(settled + self.plan.in_flight);
        if self.rate > 0 {
            let millis = u128::from(self.rate) * elapsed.as_millis();
            let due = millis / 1_000 / u128::try_from(CALL_TXS)?;
            most = most.min(usize::try_from(due)?.saturating_add(1));
        }
        while self.asked < most {
            let request = self.requests.get_mut(self.asked).context("a request")?;
            let text = std::mem::take(&mut request.text);
            lanes.send(request.sender, Job::Send(text))?;
            self.asked += 1;
        }
        Ok(())
    }
}

/// Follows the chain block by block, and has sent what is due after each, until every call is settled.
fn follow(
    progress: &mut Progress,
    feed: &mut Feed,
    lanes: &Lanes<'_>,
    (blocks, chain): (&mut WebSocket, &Chain),
    awaited: &Awaited,
    (started, longest): (std::time::Instant, Duration),
) -> anyhow::Result<()> {
    let mut connection = Connection::open(chain.rpc()?)?;
    feed.ask(0, started.elapsed(), lanes)?;
    while progress.settled() < feed.plan.calls {
        if lanes.workers.iter().any(ScopedJoinHandle::is_finished) {
            bail!("a connection has ended");
        }
        if started.elapsed() > longest {
            bail!("{} of {} calls are settled: {progress:?}", progress.settled(), feed.plan.calls);
        }
        let told = blocks.next()?.context("the subscription was closed")?;
        let height = told.pointer("/params/result/blockIndex").and_then(Value::as_u64);
        let height = height.with_context(|| format!("an odd event: {told}"))?;
        let block = connection.call("ombra_getBlock", &json!([height, false]))?;
        let head = Head::read(&block).context("a block without randomness")?;
        let hashes = block["transactions"].as_array().context("a block without transactions")?;
        let seen: Vec<(usize, Step)> = {
            let mut awaited = lock(awaited);
            let known = |hash: &Value| awaited.remove(&Hash::parse(hash.as_str()?).ok()?);
            hashes.iter().filter_map(known).collect()
        };
        for (miner, job) in progress.pass(head, &seen)? {
            lanes.send(miner, job)?;
        }
        feed.ask(progress.settled(), started.elapsed(), lanes)?;
    }
    Ok(())
}

/// The connections. What a sender sends always takes the same one.
struct Lanes<'scope> {
    ways: Vec<SyncSender<Job>>,
    workers: Vec<ScopedJoinHandle<'scope, anyhow::Result<Lane>>>,
}

impl<'scope> Lanes<'scope> {
    fn open<'env: 'scope>(
        &mut self,
        scope: &'scope Scope<'scope, 'env>,
        mut lane: MemberConnection<'env>,
        batch: usize,
        node: std::net::SocketAddr,
    ) {
        let (way, jobs) = mpsc::sync_channel(JOBS_MAX);
        self.ways.push(way);
        self.workers.push(scope.spawn(move || lane.work(&jobs, batch, node)));
    }

    fn send(&self, sender: usize, job: Job) -> anyhow::Result<()> {
        let way = self.ways.get(sender % self.ways.len().max(1)).context("no connection")?;
        way.send(job).context("a connection has ended")
    }

    /// Ends the connections, and notes what they saw.
    fn close(self, report: &mut Report) -> anyhow::Result<()> {
        drop(self.ways);
        for worker in self.workers {
            report.add([joined(worker.join(), "a generator")?]);
        }
        Ok(())
    }
}
