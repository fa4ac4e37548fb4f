//! A hundred and more retries, disconnects and kills in an order that follows from a seed. Every client
//! that persists gets its answer, and no request is paid twice.
//!
//! ```text
//! order.rs      what clients ask
//! customer.rs   a client that persists until it is answered
//! trouble.rs    what happens to the gateway and to its node meanwhile
//! proof.rs      what must be so at the end
//! ```

mod customer;
mod order;
mod proof;
mod trouble;

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use testkit::breakpoint::lock;
use testkit::chat::Client;
use testkit::dice::Dice;
use testkit::node::PATIENCE;
use testkit::parallel::joined;

use crate::scene::{SETTINGS, SHORT_CLAIMS, Scene, Way};
use crate::worker::Worker;
use customer::Customer;
use testkit::suite::say;
use trouble::Trouble;

/// How long there is trouble, unless something else is said.
const SECONDS: u64 = 25;
/// At least so much happens, however slow the machine is.
const HAPPENINGS_MIN: u64 = 100;
/// What a client sees while no gateway runs.
const NOBODY: &str = "again: nobody there";
/// Clients at once. Two and two share some of their requests.
const CUSTOMERS: u64 = 6;

/// How much there is of it.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// How long the case `torture` makes trouble
    #[arg(long, env = "OMBRA_TORTURE_SECONDS", default_value_t = SECONDS)]
    seconds: u64,
    /// The seed of the trouble, as an earlier run told it
    #[arg(long)]
    seed: Option<u64>,
}

static EXTENT: OnceLock<Extent> = OnceLock::new();

/// Sets how much there will be of it.
pub(crate) fn extend(extent: Extent) {
    EXTENT.get_or_init(|| extent);
}

/// What all clients know.
struct Town {
    gateway: SocketAddr,
    /// Their keys: some of them share one.
    keys: [String; 2],
    /// Whether there is no more trouble, and nothing new is asked.
    is_calm: AtomicBool,
    ledger: Mutex<Ledger>,
}

/// What was asked and what happened.
#[derive(Debug, Default)]
struct Ledger {
    /// By the title of each request.
    asked: BTreeMap<String, Asked>,
    /// How often what happened.
    happened: BTreeMap<String, u64>,
}

/// A body and the first attempts at it.
#[derive(Clone, Debug, Default)]
struct Asked {
    is_named: bool,
    firsts: u64,
    /// What came of each attempt, for whoever looks for a fault.
    attempts: Vec<String>,
}

impl Town {
    fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::SeqCst)
    }

    fn with<T>(&self, change: impl FnOnce(&mut Ledger) -> T) -> T {
        change(&mut lock(&self.ledger))
    }

    /// Counts what happened.
    fn happens(&self, what: &str) {
        self.with(|ledger| *ledger.happened.entry(what.to_owned()).or_default() += 1);
    }

    /// Notes what came of an attempt.
    fn tells(&self, title: &str, what: String) {
        self.with(|ledger| {
            ledger.asked.entry(title.to_owned()).or_default().attempts.push(what);
        });
    }

    /// A client of this town, with one of its keys.
    fn client(&self, number: u64) -> anyhow::Result<Client> {
        let number = usize::try_from(number / 2)? % self.keys.len();
        let key = self.keys.get(number).context("a key")?.clone();
        Ok(Client { address: self.gateway, key })
    }

    /// How often clients came back, hung up, and processes died.
    fn happenings(&self) -> u64 {
        // Those for which nobody is there cost nothing.
        let counts = |what: &str| !what.starts_with("answer") && what != NOBODY;
        self.with(|ledger| {
            ledger.happened.iter().filter(|(what, _)| counts(what)).map(|(_, count)| count).sum()
        })
    }
}

pub(crate) fn run() -> anyhow::Result<String> {
    let extent = EXTENT.get().copied().unwrap_or(Extent { seconds: SECONDS, seed: None });
    // The generator has less than 2^31 states.
    let seed = extent.seed.unwrap_or_else(|| RandomState::new().hash_one(0) % 1_000_000_000);
    say(&format!("   seed {seed}, {} seconds", extent.seconds));
    let scene = Scene::joined(SETTINGS, &[], (&SHORT_CLAIMS, Way::Straight))?;
    let second = scene.home.new_key("second", &["--parallel", "100"])?;
    scene.play(|scene| {
        let town = Town {
            gateway: scene.client.address,
            keys: [scene.client.key.clone(), second],
            is_calm: AtomicBool::new(false),
            ledger: Mutex::default(),
        };
        play(scene, &town, seed, extent.seconds)?;
        let proven = proof::hold(scene, &town)?;
        let happened = town.with(|ledger| format!("{:?}", ledger.happened));
        say(&format!("   {}", happened.trim_matches(['{', '}'])));
        Ok(format!("{} happenings, {proven}", town.happenings()))
    })
}

/// Lets the clients ask and the trouble happen, and waits until each client has its answer.
fn play(scene: &mut Scene, town: &Town, seed: u64, seconds: u64) -> anyhow::Result<()> {
    let Scene { home, worker, gateway, node, .. } = scene;
    let worker: &Worker = worker;
    let mut dice = Dice::new(seed);
    std::thread::scope(|scope| {
        let customers: Vec<_> = (0..CUSTOMERS)
            .map(|number| {
                let dice = Dice::new(seed.wrapping_add(number + 1).wrapping_mul(7_919));
                scope.spawn(move || Customer::new(number, town, worker, dice).shop())
            })
            .collect();
        let begun = Instant::now();
        let (over, late) = (Duration::from_secs(seconds), Duration::from_secs(seconds) + PATIENCE);
        let mut trouble = Trouble { home, gateway, node, town };
        let mut made = Ok(());
        while made.is_ok() && (begun.elapsed() < over || town.happenings() < HAPPENINGS_MIN) {
            made = trouble.make(&mut dice);
            if begun.elapsed() > late || customers.iter().any(|it| it.is_finished()) {
                break;
            }
        }
        let calmed = made.and_then(|()| trouble.end());
        town.is_calm.store(true, Ordering::SeqCst);
        let shopped = customers.into_iter().map(|it| joined(it.join(), "a client"));
        let shopped: anyhow::Result<()> = shopped.collect();
        calmed.and(shopped)
    })?;
    let happenings = town.happenings();
    ensure!(happenings >= HAPPENINGS_MIN, "only {happenings} things happened");
    Ok(())
}
