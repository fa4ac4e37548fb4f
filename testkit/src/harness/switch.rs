//! A switch between the nodes' network namespaces, in this process: it can cut wires, lose packets
//! and hold them back.
//!
//! Each node has a network device whose packets come here, and so has this process, for the calls
//! of the tests. Rules hold between nodes only; the tests' own calls are never hindered.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_tun::Tun;

use crate::breakpoint::lock;
use crate::process::run;

/// The place of this process; nodes are numbered from 0.
const HOST: usize = 253;
/// Largest packet.
const MTU: usize = 1_500;
/// Packets that may be on their way to one node; what comes beyond is lost, as on any wire.
const UNDER_WAY_MAX: usize = 4_096;

/// What the wires do.
#[derive(Debug, Default)]
struct Rules {
    /// Pairs, the smaller number first, between which nothing passes.
    cut: BTreeSet<(usize, usize)>,
    /// Nodes and ports: nothing passes between such a node and others with the port on either end.
    cut_ports: BTreeSet<(usize, u16)>,
    /// Packets in a hundred that are lost.
    lost_percent: u64,
    /// How long each packet is under way.
    delay: Duration,
    /// What chance is made of.
    seed: u64,
    /// Packets between nodes that were lost, and all of them.
    lost: u64,
    seen: u64,
}

impl Rules {
    /// How long a packet takes; none if it does not arrive.
    fn fate(&mut self, from: usize, to: usize, ports: [u16; 2]) -> Option<Duration> {
        if from == HOST || to == HOST {
            return Some(Duration::ZERO);
        }
        let mut ends = [from, to].into_iter().flat_map(|node| ports.map(|port| (node, port)));
        let is_cut = self.cut.contains(&(from.min(to), from.max(to)))
            || ends.any(|end| self.cut_ports.contains(&end));
        let is_lost = is_cut || self.chance() < self.lost_percent;
        self.seen += 1;
        self.lost += u64::from(is_lost);
        (!is_lost).then_some(self.delay)
    }

    /// A number below 100: xorshift, the same row in each run.
    fn chance(&mut self) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed % 100
    }
}

/// A packet on its way.
type Packet = (Instant, Vec<u8>);

/// The ways to a node.
#[derive(Clone)]
struct Door {
    place: usize,
    at_once: mpsc::Sender<Packet>,
    later: mpsc::Sender<Packet>,
}

/// The switch. Its devices go with it.
#[derive(Debug)]
pub struct Switch {
    rules: Arc<Mutex<Rules>>,
    _runtime: Runtime,
}

/// The address of a node.
pub fn address(node: usize) -> Ipv4Addr {
    let last = u8::try_from(node + 1).unwrap_or(u8::MAX);
    Ipv4Addr::new(10, 77, 0, last)
}

impl Switch {
    /// Connects the network namespaces of these processes with each other and with this process.
    pub fn new(holders: &[u32]) -> anyhow::Result<Self> {
        let rules = Arc::new(Mutex::new(Rules { seed: 0x9e37_79b9_7f4a_7c15, ..Rules::default() }));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let guard = runtime.enter();
        let mut places: Vec<(usize, Option<u32>)> =
            holders.iter().enumerate().map(|(node, pid)| (node, Some(*pid))).collect();
        places.push((HOST, None));
        let mut ports = Vec::new();
        for (place, holder) in places {
            ports.push((place, Arc::new(device(place, holder)?)));
        }
        let mut doors = Vec::new();
        for (place, tun) in &ports {
            // Two ways in, so that what is not hindered does not wait behind what is.
            let [at_once, later] = [(), ()].map(|()| {
                let (sender, queue) = mpsc::channel(UNDER_WAY_MAX);
                tokio::spawn(deliver(Arc::clone(tun), queue));
                sender
            });
            doors.push(Door { place: *place, at_once, later });
        }
        for (place, tun) in ports {
            tokio::spawn(forward(place, tun, doors.clone(), Arc::clone(&rules)));
        }
        drop(guard);
        Ok(Self { rules, _runtime: runtime })
    }

    fn rules(&self) -> MutexGuard<'_, Rules> {
        lock(&self.rules)
    }

    /// Cuts all wires between the two groups.
    pub fn part(&self, one: &[usize], other: &[usize]) {
        let pairs = one.iter().flat_map(|a| other.iter().map(move |b| (*a.min(b), *a.max(b))));
        self.rules().cut.extend(pairs);
    }

    /// Loses everything between a node and the others that has one of these ports on either end.
    pub fn part_ports(&self, node: usize, ports: &[u16]) {
        self.rules().cut_ports.extend(ports.iter().map(|port| (node, *port)));
    }

    /// Mends all wires.
    pub fn heal(&self) {
        let mut rules = self.rules();
        rules.cut.clear();
        rules.cut_ports.clear();
        rules.lost_percent = 0;
        rules.delay = Duration::ZERO;
    }

    /// Packets between nodes since the beginning: those that were lost, and all.
    pub fn lost_of(&self) -> (u64, u64) {
        let rules = self.rules();
        (rules.lost, rules.seen)
    }

    /// Loses so many packets in a hundred.
    pub fn lose(&self, percent: u64) {
        self.rules().lost_percent = percent;
    }

    /// Holds each packet back for so long.
    pub fn delay(&self, delay: Duration) {
        self.rules().delay = delay;
    }
}

/// Makes a network device, in the network namespace of a process if one is named.
fn device(place: usize, holder: Option<u32>) -> anyhow::Result<Tun> {
    let name = format!("ombra{place}");
    let tuns = Tun::builder().name(&name).build().context("making a network device")?;
    let tun = tuns.into_iter().next().context("no network device was made")?;
    let enter: Vec<String> = match holder {
        Some(pid) => {
            command(&["ip", "link", "set", &name, "netns", &pid.to_string()])?;
            ["nsenter", "--net", "-t", &pid.to_string(), "--"].map(str::to_owned).to_vec()
        }
        None => Vec::new(),
    };
    let inside = |arguments: &[&str]| {
        let all: Vec<&str> = enter.iter().map(String::as_str).chain(arguments.to_vec()).collect();
        command(&all)
    };
    let own = format!("{}/24", address(place));
    inside(&["ip", "address", "add", &own, "dev", &name])?;
    inside(&["ip", "link", "set", &name, "mtu", &MTU.to_string(), "up"])?;
    Ok(tun)
}

fn command(words: &[&str]) -> anyhow::Result<()> {
    let (program, arguments) = words.split_first().context("no command")?;
    run(Command::new(program).args(arguments)).map(drop).with_context(|| words.join(" "))
}

/// Takes a node's packets and sends them on their way.
async fn forward(from: usize, tun: Arc<Tun>, doors: Vec<Door>, rules: Arc<Mutex<Rules>>) {
    let mut buffer = vec![0; MTU];
    while let Ok(length) = tun.recv(&mut buffer).await {
        let Some(packet) = buffer.get(..length) else { continue };
        // The last byte of an IPv4 packet's destination; nothing else is sent on these wires.
        let Some(last) = packet.get(19).filter(|_| packet.first().is_some_and(|it| it >> 4 == 4))
        else {
            continue;
        };
        let to = usize::from(*last).wrapping_sub(1);
        let Some(door) = doors.iter().find(|door| door.place == to) else { continue };
        let ports = ports(packet);
        let fate = lock(&rules).fate(from, to, ports);
        if let Some(delay) = fate {
            let way = if delay.is_zero() { &door.at_once } else { &door.later };
            // A full wire loses what comes next.
            drop(way.try_send((Instant::now() + delay, packet.to_vec())));
        }
    }
}

/// The ports that an IPv4 packet comes from and goes to; zero for what has none.
fn ports(packet: &[u8]) -> [u16; 2] {
    let words = packet.first().map_or(0, |first| usize::from(first & 0x0f));
    let port = |at: usize| match packet.get(words * 4 + at..words * 4 + at + 2) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => 0,
    };
    [port(0), port(2)]
}

/// Hands packets to a node when their time has come.
async fn deliver(tun: Arc<Tun>, mut queue: mpsc::Receiver<Packet>) {
    while let Some((due, packet)) = queue.recv().await {
        // How long a packet is under way is what is tested.
        tokio::time::sleep_until(due).await;
        // A device that is gone takes nothing, and nobody misses it.
        drop(tun.send(&packet).await);
    }
}
