//! How the process, its disk and its node are, read when Prometheus asks.

use std::fmt::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rpc::ports::Readiness;
use rustix::time::{ClockId, clock_gettime};

use crate::chain::NodeChain;
use crate::config::Home;
use crate::version::COMMIT;

/// What the figures are of.
pub(crate) struct Condition {
    pub(crate) chain: Arc<NodeChain>,
    pub(crate) readiness: Arc<dyn Readiness>,
    pub(crate) home: Home,
    /// When the node started, in milliseconds since 1970.
    pub(crate) started_ms: u64,
}

impl std::fmt::Debug for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Condition").field("home", &self.home).finish_non_exhaustive()
    }
}

impl Collector for Condition {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        self.encode_node(&mut encoder)?;
        encode_process(&mut encoder, self.started_ms)?;
        self.encode_database(&mut encoder)?;
        encode_disk(&mut encoder, &self.home)
    }
}

impl Condition {
    fn encode_node(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let version = [("version", env!("CARGO_PKG_VERSION")), ("commit", COMMIT)];
        let (help, one) =
            ("Always 1; the labels describe the running program", ConstGauge::new(1_i64));
        let mut build = encoder.encode_descriptor("build", help, None, MetricType::Gauge)?;
        one.encode(build.encode_family(&version)?)?;

        let tip = ConstGauge::new(seconds(self.chain.tip().timestamp));
        let help = "Time of the last block, in seconds since 1970";
        tip.encode(encoder.encode_descriptor(
            "chain_tip_seconds",
            help,
            None,
            MetricType::Gauge,
        )?)?;

        let count = self.chain.forks();
        let unknown = count.tally.unknown().map_or(0, |(_, fixed)| fixed.height);
        let help =
            "The first block of a fixed fork that the program does not know; 0 if there is none";
        gauge(encoder, "unknown_fork_height", help, Some(unknown))?;
        let height = self.chain.tip().height;
        let heights = count.tally.fixed().values().map(|fixed| fixed.height);
        let left =
            heights.filter_map(|fork| fork.checked_sub(height)).filter(|left| *left > 0).min();
        let help = "Blocks until the next fixed fork begins; absent while none is fixed";
        gauge(encoder, "fork_blocks_left", help, left)?;

        let open = u64::try_from(self.chain.store().open_calls()).unwrap_or(u64::MAX);
        let help = "Calls of agents that are not settled";
        gauge(encoder, "open_calls", help, Some(open))?;

        let help = "1 where a check of /readyz passes, 0 where it fails";
        let mut ready = encoder.encode_descriptor("ready_check", help, None, MetricType::Gauge)?;
        for check in self.readiness.checks() {
            let passes = ConstGauge::new(i64::from(check.is_ok));
            passes.encode(ready.encode_family(&[("check", check.name)])?)?;
        }
        Ok(())
    }

    fn encode_database(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let memory = self.chain.store().memory().ok();
        let help = "Memory of the database's cache of blocks, filters and indexes";
        let cached = memory.map(|it| it.block_cache);
        gauge(encoder, "database_block_cache_bytes", help, cached)?;
        let help = "Memory of the database's rows that are not in files, or still read there";
        gauge(encoder, "database_memtable_bytes", help, memory.map(|it| it.memtables))?;
        let help = "Memory of the database's open files outside the cache, as it estimates";
        gauge(encoder, "database_table_reader_bytes", help, memory.map(|it| it.table_readers))
    }
}

fn seconds(ms: u64) -> f64 {
    Duration::from_millis(ms).as_secs_f64()
}

/// A gauge without labels; a figure that is not known is left out.
///
/// # Errors
/// When it cannot be written.
pub fn gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: Option<u64>,
) -> Result<(), Error> {
    let Some(value) = value else { return Ok(()) };
    let value = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    value.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

/// What the system tells about this process, which started at a time since 1970.
///
/// # Errors
/// When it cannot be written.
pub fn encode_process(encoder: &mut DescriptorEncoder<'_>, started_ms: u64) -> Result<(), Error> {
    let help = "Time that the processors spent on this process";
    let cpu = Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default();
    let (name, cpu) = ("process_cpu_seconds", ConstCounter::new(cpu.as_secs_f64()));
    cpu.encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;

    let help = "When this node started, in seconds since 1970";
    let (name, started) = ("process_started_seconds", ConstGauge::new(seconds(started_ms)));
    started.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;

    gauge(encoder, "process_resident_bytes", "Memory of this process", resident_bytes())?;
    let open = std::fs::read_dir("/proc/self/fd").ok();
    let open = open.and_then(|files| u64::try_from(files.count()).ok());
    gauge(encoder, "process_open_files", "Open files and sockets of this process", open)
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

fn encode_disk(encoder: &mut DescriptorEncoder<'_>, home: &Home) -> Result<(), Error> {
    let disk = rustix::fs::statvfs(home.directory()).ok();
    let bytes = |blocks: u64, facts: &rustix::fs::StatVfs| blocks.checked_mul(facts.f_frsize);
    let free = disk.as_ref().and_then(|facts| bytes(facts.f_bavail, facts));
    let all = disk.as_ref().and_then(|facts| bytes(facts.f_blocks, facts));
    gauge(encoder, "disk_free_bytes", "Free space on the disk that holds the home", free)?;
    gauge(encoder, "disk_bytes", "Size of the disk that holds the home", all)?;
    gauge(encoder, "database_bytes", "Files of the database", folder_bytes(&home.database()))?;
    let consensus = folder_bytes(&home.consensus());
    gauge(encoder, "consensus_log_bytes", "Files of the consensus engine", consensus)
}

/// Bytes of the files in a folder without folders. A file that goes meanwhile does not count.
fn folder_bytes(folder: &Path) -> Option<u64> {
    let sizes = std::fs::read_dir(folder).ok()?.flatten().filter_map(|file| {
        let facts = file.metadata().ok()?;
        facts.is_file().then_some(facts.len())
    });
    Some(sizes.fold(0, u64::saturating_add))
}
