//! Many subscriptions replay the whole chain and match nothing, over many connections, again and again.
//! In the first release each block of each of them took a thread of the pool that consensus used.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use testkit::harness::{Load, Town, User};
use testkit::parallel::Worker;
use testkit::suite::say;
use testkit::websocket::WebSocket;
use testkit::workload::key;
use types::Address;

/// How long the user works under attack.
const TIME: Duration = Duration::from_secs(15);
/// The attacker's addresses, from `127.0.0.11` on.
const ADDRESSES: u8 = 4;
/// WebSockets that an address has open at a time.
const SOCKETS: usize = 12;
/// Subscriptions on each.
const SUBSCRIPTIONS: usize = 64;
/// Blocks that there are to replay.
const BLOCKS: u64 = 1_000;
/// So many of them are waited for at a time.
const STEP: usize = 250;
/// One validator makes blocks as fast as it can.
const FAST: &[&str] = &["minBlockIntervalMs=1", "heartbeatMs=1000"];

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::make_with(1, 0, FAST)?.started()?;
    let load = Load::start(&town.net, &[0], 4, Duration::ZERO)?;
    for height in (0..=BLOCKS).step_by(STEP) {
        town.node(0)?.reaches(height)?;
    }
    load.stop()?;

    let node = town.node(0)?.rpc;
    let addresses = (0..ADDRESSES).flat_map(|it| std::iter::repeat_n(11 + it, SOCKETS));
    let attack = addresses.map(|last| Worker::start(move |over| replay_all(node, last, over)));
    let attackers: Vec<Worker<usize>> = attack.collect();
    let seen = User::start(node, key(4)?).work_for(TIME);
    let begun: usize = Worker::stop_all(attackers)?.into_iter().sum();
    let seen = seen?;
    let height = town.height(&[0])?;
    say(&format!("   {begun} replays of {height} blocks were begun from {ADDRESSES} addresses"));
    seen.tell("under attack");
    seen.is_served()
}

/// Begins replays from an address until it is over; answers how many.
fn replay_all(node: SocketAddr, last: u8, over: &AtomicBool) -> anyhow::Result<usize> {
    let (from, mut begun) = (IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0);
    while !over.load(Ordering::Relaxed) {
        // Whoever is turned away comes again.
        if replay(node, from, over, &mut begun).is_err() {
            // The pause of a loop that is bounded by the attack's time.
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    Ok(begun)
}

/// Opens a WebSocket, begins replays for an account that nobody has, and waits a little.
fn replay(
    node: SocketAddr,
    from: IpAddr,
    over: &AtomicBool,
    begun: &mut usize,
) -> anyhow::Result<()> {
    let mut socket = WebSocket::open_from(from, node)?;
    let filter = json!({ "fromBlock": 1, "address": Address::new([7; 20]) });
    for _ in 0..SUBSCRIPTIONS {
        if over.load(Ordering::Relaxed) {
            return Ok(());
        }
        socket.subscribe("transactions", &filter)?;
        *begun += 1;
    }
    for _ in 0..20 {
        if over.load(Ordering::Relaxed) {
            break;
        }
        // The time in which they replay.
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}
