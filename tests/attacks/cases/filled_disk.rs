//! 2,300 accounts without money wrote 299 MB into the chain of the first release in 15 seconds, for
//! nothing. From fork v7 on such accounts write nothing, and an account that has money pays for each
//! byte, the more the longer it goes on.
//!
//! What is said at the end is what was written, what it cost, and how the price of a MB has risen.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use testkit::actor::{Actor, register_miner, transfer, turn};
use testkit::harness::{Town, User};
use testkit::parallel;
use testkit::process::folder_bytes;
use testkit::suite::say;
use testkit::workload::keys;
use types::build::Unsigned;
use types::{Body, Hash, Keypair};

use super::blobs::{announce, chunk};
use super::sending::{Senders, ombra, own_run, padded_step, payload_bytes, tipping};

/// Accounts without money, each of which tries everything that was free once.
const POOR: u64 = 100;
/// What the largest of it carries in a member that no kind knows.
const UNKNOWN_BYTES: usize = 130_000;
/// Accounts with money that write blobs, each one chunk after the other.
const RICH: usize = 6;
/// The bytes of a chunk, and the chunks of a blob.
const CHUNKS: u64 = 42;
/// How long they write, and how many chunks each at most.
const TIME: Duration = Duration::from_secs(14);
const CHUNKS_MAX: u64 = 60;
/// Four chunks fill a block, so that the price rises.
const BLOCK_BYTES: u64 = 2_200_000;
/// What nobody can write a KiB for less than, in micro: `baseFeeFloor`.
const FLOOR: u64 = 10;
const MB: u64 = 1_000_000;

/// What was written, and for how much.
#[derive(Default)]
struct Written {
    bytes: u64,
    burned: i128,
}

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::one_from_v7(&[&format!("maxBlockBytes={BLOCK_BYTES}")])?;
    let rpc = town.node(0)?.rpc;
    let mut keys = keys(RICH + 2)?;
    let user = User::start(rpc, keys.pop().context("a key")?);
    let mut senders = Senders::open(rpc)?;
    let tried = write_for_nothing(&mut senders)?;
    say(&format!("   {POOR} accounts without money offered {tried} bytes: none was taken"));

    let data = town.node(0)?.home().join("data");
    let stepper = keys.pop().context("a key")?;
    let (before, first) = (folder_bytes(&data)?, senders.base_fee()?);
    let started = Instant::now();
    let written = write_for_money(rpc, &keys)?;
    let (took, last) = (started.elapsed(), senders.base_fee()?);
    let disk = folder_bytes(&data)?.saturating_sub(before);
    say(&format!(
        "   {RICH} accounts with money wrote {} MB in {took:.0?} ({} MB on the disk) for {} OMBRA; a MB cost {} OMBRA at first and {} at last",
        written.bytes / MB,
        disk / MB,
        ombra(written.burned),
        ombra(price_of_mb(first).into()),
        ombra(price_of_mb(last).into()),
    ));
    let least = i128::from(written.bytes * FLOOR / 1_024);
    ensure!(written.burned >= least, "{} bytes for {} micro", written.bytes, written.burned);
    ensure!(last > first, "full blocks do not raise the price");

    let steps = write_as_steps(&mut senders, Actor::new(stepper))?;
    let of_mb = steps.burned * i128::from(MB) / i128::from(steps.bytes);
    say(&format!(
        "   as steps of its own runs a MB costs {} OMBRA, whatever the base fee is",
        ombra(of_mb)
    ));
    ensure!(of_mb >= i128::from(price_of_mb(FLOOR)), "steps are a cheaper way to write");

    let seen = user.tell("while others fill the disk")?;
    town.goes_on(&[0], 3)?;
    seen.is_served()
}

const fn price_of_mb(base_fee: u64) -> u64 {
    MB * base_fee / 1_024
}

/// Has accounts without money offer what was free on the first release. Answers how many bytes.
fn write_for_nothing(senders: &mut Senders) -> anyhow::Result<usize> {
    let mut tried = 0;
    for number in 0..POOR {
        let seed = Hash::digest(format!("poor {number}").as_bytes());
        let poor = Actor::new(Keypair::from_seed(seed.as_bytes()));
        let texts = [
            padded(&poor)?,
            poor.draft(&transfer(poor.address(), 0)),
            poor.draft(&register_miner("nobody")),
            poor.draft(&turn(&"x".repeat(16_000)).into()),
            poor.draft(&announce(&format!("poor-{number}"), CHUNKS)?),
        ];
        tried += texts.iter().map(String::len).sum::<usize>();
        let answers = senders.send(&texts)?;
        let taken = answers.iter().find(|it| it.get("hash").is_some());
        ensure!(taken.is_none(), "an account without money has written");
    }
    Ok(tried)
}

/// A transfer of nothing to oneself with a member that no kind knows.
fn padded(actor: &Actor) -> anyhow::Result<String> {
    let body = transfer(actor.address(), 0);
    let envelope = testkit::workload::envelope(actor.nonce);
    let plain =
        Unsigned::build(&body, &actor.address().to_string(), &actor.key.public_key(), &envelope);
    let open = plain.payload().strip_suffix('}').context("an object")?;
    let payload = format!("{open},\"padding\":\"{}\"}}", "x".repeat(UNKNOWN_BYTES));
    Ok(actor.seal(&payload))
}

/// Has accounts with money write chunks of blobs, each the next when the last is in a block.
fn write_for_money(rpc: SocketAddr, keys: &[Keypair]) -> anyhow::Result<Written> {
    let end = Instant::now() + TIME;
    let write = |number, key: &Keypair| write_blobs(rpc, Actor::new(key.clone()), number, end);
    let written = parallel::at_once(keys, write)?;
    let bytes = written.iter().map(|own| own.bytes).sum();
    Ok(Written { bytes, burned: written.iter().map(|own| own.burned).sum() })
}

fn write_blobs(
    rpc: SocketAddr,
    mut actor: Actor,
    number: usize,
    end: Instant,
) -> anyhow::Result<Written> {
    let mut senders = Senders::open(rpc)?;
    let before = senders.wealth(&actor)?;
    let mut written = Written::default();
    for at in 0..CHUNKS_MAX {
        if Instant::now() > end {
            break;
        }
        let (id, index) = (format!("filler-{number}-{}", at / (CHUNKS - 1)), at % (CHUNKS - 1));
        let mut texts = Vec::new();
        if index == 0 {
            texts.push(tipping(&mut actor, &announce(&id, CHUNKS)?, 0));
        }
        texts.push(tipping(&mut actor, &chunk(&id, index, CHUNKS), 0));
        senders.include(&texts)?;
        written.bytes += size(&texts)?;
    }
    written.burned = before - senders.wealth(&actor)?;
    Ok(written)
}

/// The size of all texts.
fn size(texts: &[String]) -> anyhow::Result<u64> {
    Ok(u64::try_from(texts.iter().map(|it| payload_bytes(it)).sum::<usize>())?)
}

/// The steps of the run that is written for its bytes.
const STEPS: u64 = 200;
/// So many bytes a step may have without an inclusion fee.
const STEP_BYTES: usize = 2_048;

/// Writes a run whose miner is its submitter, with steps as large as they may be for nothing but the
/// network fee.
fn write_as_steps(senders: &mut Senders, mut actor: Actor) -> anyhow::Result<Written> {
    let before = senders.wealth(&actor)?;
    let run = own_run(senders, &mut actor, STEPS)?;
    let steps: Vec<_> =
        (0..STEPS).map(|index| padded_step(&mut actor, (run, index), 0, STEP_BYTES)).collect();
    let bytes = size(&steps)?;
    for together in steps.chunks(50) {
        senders.include(together)?;
    }
    let end = testkit::actor::finish(run, 0, [0, 0, STEPS * 100]);
    let end = actor.sign(&Body::AgentFinish(end));
    senders.include(&[end])?;
    Ok(Written { bytes, burned: before - senders.wealth(&actor)? })
}
