//! Clients ask for the largest answers and take nothing of them, more than the memory for answers
//! holds. In the first release nine of them had everybody else told BUSY, and every event stream wait.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};
use testkit::harness::{Load, Town, User};
use testkit::http::{Connection, call_body, connect_from};
use testkit::parallel::{Worker, at_once};
use testkit::suite::say;
use testkit::workload::key;

/// How long the user works under attack.
const TIME: Duration = Duration::from_secs(15);
const ASKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 98);
const LISTENER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 97);
/// The attacker, and how many connections it has.
const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 11);
const SLOW: usize = 12;
/// A quarter of the default memory for answers, in the default proportion to the largest answer, so
/// that the attack need not wait for a gigabyte to be made.
const SETTINGS: [(&str, &str); 2] = [
    ("OMBRA__RPC__LIMITS__RESPONSE_MEMORY_BYTES_MAX", "67108864"),
    ("OMBRA__RPC__LIMITS__RESPONSE_BYTES_MAX", "8388608"),
];
/// Calls in an array whose answers are nearly the largest that there is.
const CALLS: usize = 95;
/// The longest time between two blocks that a listener may see.
const GAP_MAX: Duration = Duration::from_secs(3);

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let mut town = Town::make(1, 0)?;
    let settings = SETTINGS.map(|(name, value)| (name, value.to_owned()));
    town.node_mut(0)?.start_with(&settings)?;
    let node = town.node(0)?.rpc;
    // Blocks with several transfers each, whose events are no small answers.
    let load = Load::full(&town.net, &[0], 8)?;
    let listener = Worker::start(move |over| listen(node, over));
    let slow = at_once(&[(); SLOW], |_, ()| slow_reader(node))?;
    let asker = Worker::start(move |over| ask(node, over));
    let seen = User::start(node, key(8)?).work_for(TIME);
    let (answered, busy) = asker.stop()?;
    let (events, gap) = listener.stop()?;
    drop(slow);
    load.stop()?;
    let seen = seen?;
    say(&format!(
        "   {SLOW} slow readers: {answered} answers for others and {busy} times BUSY; {events} events, at most {gap:.1?} apart"
    ));
    seen.tell("under attack");
    ensure!(answered > 0 && busy == 0, "others were told BUSY {busy} times");
    ensure!(events > 0 && gap < GAP_MAX, "a listener waited {gap:.1?} for an event");
    seen.is_served()
}

/// Asks for much, and takes how it begins.
fn slow_reader(node: SocketAddr) -> anyhow::Result<TcpStream> {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "rpc.discover" });
    let body = Value::Array(vec![call; CALLS]).to_string();
    let mut stream = connect_from(IpAddr::V4(ATTACKER), node)?;
    write!(
        stream,
        "POST / HTTP/1.1\r\nhost: {node}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    // The answer is made when its first byte is there.
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.peek(&mut [0])?;
    Ok(stream)
}

/// Asks for an answer that is not small, again and again: how often it came, and how often BUSY.
fn ask(node: SocketAddr, over: &AtomicBool) -> anyhow::Result<(u64, u64)> {
    let mut connection = Connection::open_from(IpAddr::V4(ASKER), node)?;
    let call = call_body("rpc.discover", &json!([]));
    let (mut answered, mut busy) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        let answer: Value = serde_json::from_str(&connection.post(&call)?)?;
        if answer.get("result").is_some() {
            answered += 1;
        } else {
            busy += 1;
        }
        // Ten times a second.
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok((answered, busy))
}

/// Listens to blocks: how many came, and the longest time between two, or without one.
fn listen(node: SocketAddr, over: &AtomicBool) -> anyhow::Result<(u64, Duration)> {
    let mut stream = connect_from(IpAddr::V4(LISTENER), node)?;
    write!(stream, "GET /api/chain/events HTTP/1.1\r\nhost: {node}\r\n\r\n")?;
    // The node pings, unless it hangs.
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let (mut events, mut gap, mut last) = (0, Duration::ZERO, Instant::now());
    for line in BufReader::new(stream).lines() {
        if over.load(Ordering::Relaxed) {
            break;
        }
        if line?.starts_with("event: block") {
            (events, gap, last) = (events + 1, gap.max(last.elapsed()), Instant::now());
        }
    }
    Ok((events, gap.max(last.elapsed())))
}
