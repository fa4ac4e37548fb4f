//! A steady load for long, and the memory of each node.

use std::time::{Duration, Instant};

use anyhow::ensure;

use crate::Extent;
use testkit::harness::{Load, Town};
use testkit::suite::say;

const ALL: &[usize] = &[0, 1, 2, 3, 4];
/// Minutes in which caches fill.
const WARM_MINUTES: u64 = 5;
/// Growth after these minutes that is no growth, in a hundred of the memory then.
const GROWTH_PERCENT_MAX: u64 = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// Caches so small that the warm minutes fill them; what grows afterwards is no cache.
const SMALL: &[(&str, u64)] = &[
    // Filters and indexes of new files take about 180 KiB of it a minute.
    ("OMBRA__STORAGE__BLOCK_CACHE_BYTES", 512 << 10),
    ("OMBRA__STORAGE__WRITE_BUFFER_BYTES", 8 << 20),
    ("OMBRA__STORAGE__HOT_CACHE_BYTES", 2 << 20),
];

pub(crate) fn run(extent: Extent) -> anyhow::Result<()> {
    let mut town = Town::make(4, 1)?;
    for member in &mut town.net.members {
        let small = SMALL.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_string()));
        member.environment.extend(small);
    }
    town.start_all()?;
    let load = Load::start(&town.net, ALL, 10, Duration::from_millis(50))?;
    let started = Instant::now();
    let mut warm = None;
    say("   minute  height  confirmed  memory of each node, MiB: all of it, and what is its own;");
    say("   and KiB that the first one's database has in its cache, memtables and table readers");
    for minute in 1..=extent.soak_minutes {
        while started.elapsed() < MINUTE * u32::try_from(minute)? {
            // The figures are those of each minute.
            std::thread::sleep(Duration::from_millis(200));
        }
        let memory = memory(&town)?;
        let own: Vec<u64> = memory.iter().map(|(_, own)| own / 1024).collect();
        let all: Vec<u64> = memory.iter().map(|(all, _)| all / 1024).collect();
        let (height, confirmed) = (town.height(ALL)?, load.ledger().confirmed_count());
        let database = database(&town)?;
        say(&format!("   {minute:>6}  {height:>6}  {confirmed:>9}  {all:?} {own:?} {database:?}"));
        if minute == WARM_MINUTES {
            warm = Some(memory);
        }
    }
    if let Some(warm) = warm {
        for (at, ((_, then), (_, now))) in warm.iter().zip(memory(&town)?).enumerate() {
            let most = then + then * GROWTH_PERCENT_MAX / 100;
            ensure!(now <= most, "node {at} has grown from {then} to {now} KiB");
        }
    }
    town.check(&*load.stop()?)
}

/// What the database of the first node holds, in KiB.
fn database(town: &Town) -> anyhow::Result<Vec<u64>> {
    let node = town.node(0)?;
    let kib = |name: &&str| Ok(node.metric(&format!("ombra_database_{name}_bytes"))? / 1024);
    ["block_cache", "memtable", "table_reader"].iter().map(kib).collect()
}

/// Resident memory of each node in KiB, and the part of it that is not files.
fn memory(town: &Town) -> anyhow::Result<Vec<(u64, u64)>> {
    let read = |node: &testkit::net::Member| -> anyhow::Result<(u64, u64)> {
        Ok((node.memory_kb("VmRSS")?, node.memory_kb("RssAnon")?))
    };
    town.net.running().map(read).collect()
}
