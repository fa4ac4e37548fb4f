//! What came out, as a line for machines.

use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Options;
use crate::chain::Chain;

/// What came out of calls to agents.
pub(crate) struct CallFigures {
    pub(crate) calls: usize,
    /// Blocks from the last member's answer to the decision, ascending, one of each call.
    pub(crate) to_decision: Vec<u64>,
}

impl CallFigures {
    /// Blocks that so many percent of the calls do not exceed.
    fn blocks(&self, percent: usize) -> Option<u64> {
        at(&self.to_decision, percent)
    }
}

/// What a connection saw.
#[derive(Default)]
pub(crate) struct Lane {
    pub(crate) latencies: Vec<Duration>,
    pub(crate) refused: usize,
}

pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) txs: usize,
    pub(crate) runs: usize,
    /// Of a load of calls.
    pub(crate) calls: Option<CallFigures>,
    pub(crate) refused: usize,
    pub(crate) conns: usize,
    pub(crate) batch: usize,
    pub(crate) started: Instant,
    pub(crate) accepted: Duration,
    /// None if nothing was to be included.
    pub(crate) included: Option<Duration>,
    /// Ascending, one per request.
    pub(crate) latencies: Vec<Duration>,
    /// Ascending: from the submission of one transaction to its inclusion, under the load.
    pub(crate) inclusion: Vec<Duration>,
    pub(crate) cpu_seconds_before: f64,
    pub(crate) node_cpu_seconds: f64,
    pub(crate) rss_kb: u64,
    pub(crate) peak_rss_kb: u64,
    pub(crate) blocks: u64,
}

impl Report {
    /// The clock starts.
    pub(crate) fn begin(
        name: &str,
        txs: usize,
        options: &Options,
        chain: &Chain,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            txs,
            runs: 0,
            calls: None,
            refused: 0,
            conns: options.conns,
            batch: options.batch,
            cpu_seconds_before: chain.cpu_seconds()?,
            started: Instant::now(),
            accepted: Duration::ZERO,
            included: None,
            latencies: Vec::new(),
            inclusion: Vec::new(),
            node_cpu_seconds: 0.0,
            rss_kb: 0,
            peak_rss_kb: 0,
            blocks: 0,
        })
    }

    /// Notes what connections saw.
    pub(crate) fn add(&mut self, lanes: impl IntoIterator<Item = Lane>) {
        for Lane { latencies, refused } in lanes {
            self.latencies.extend(latencies);
            self.refused += refused;
        }
    }

    /// Notes that the last connection has ended.
    pub(crate) fn ends(&mut self) {
        self.accepted = self.started.elapsed();
        self.latencies.sort_unstable();
    }

    /// Takes what the node has used so far.
    pub(crate) fn read(&mut self, chain: &Chain) -> anyhow::Result<()> {
        self.node_cpu_seconds = chain.cpu_seconds()? - self.cpu_seconds_before;
        self.rss_kb = chain.rss_kb()?;
        self.peak_rss_kb = chain.peak_rss_kb()?;
        self.blocks = chain.height()?;
        Ok(())
    }

    pub(crate) fn print(&self, chain: &Chain) -> anyhow::Result<()> {
        let txs = f64::from(u32::try_from(self.txs)?);
        let runs = f64::from(u32::try_from(self.runs)?);
        let per_second =
            |count: f64| self.included.map(|took| (count / took.as_secs_f64()).round());
        let disk = chain.disk_bytes()?;
        let mut line = json!({
            "workload": self.name,
            "txs": self.txs,
            "runs": self.runs,
            "refused": self.refused,
            "conns": self.conns,
            "batch": self.batch,
            "blocks": self.blocks,
            "acceptedTxPerS": (txs / self.accepted.as_secs_f64()).round(),
            "includedTxPerS": per_second(txs),
            "runsPerS": per_second(runs),
            "submitP50Ms": percentile(&self.latencies, 50),
            "submitP99Ms": percentile(&self.latencies, 99),
            "inclusionP50Ms": percentile(&self.inclusion, 50),
            "inclusionP99Ms": percentile(&self.inclusion, 99),
            "nodeCpuUsPerTx": (self.node_cpu_seconds * 1e6 / txs).round(),
            "nodeCores": self.included.map(|took| self.node_cpu_seconds / took.as_secs_f64()),
            "rssMb": self.rss_kb / 1024,
            "peakRssMb": self.peak_rss_kb / 1024,
            "diskBytes": disk,
            "diskBytesPerTx": disk / u64::try_from(self.txs.max(1))?,
        });
        if let Some(figures) = &self.calls {
            let calls = f64::from(u32::try_from(figures.calls)?);
            line["calls"] = json!(figures.calls);
            line["callsPerS"] = json!(per_second(calls));
            line["decisionBlocksP50"] = json!(figures.blocks(50));
            line["decisionBlocksP99"] = json!(figures.blocks(99));
            line["decisionBlocksMost"] = json!(figures.blocks(100));
            let count = u64::try_from(figures.calls.max(1))?;
            line["diskBytesPerCall"] = json!(disk / count);
            chain.compact()?;
            line["compactedBytesPerCall"] = json!(chain.disk_bytes()? / count);
        }
        self::line(&line)
    }
}

/// A line for machines.
pub(crate) fn line(line: &Value) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}")?;
    Ok(())
}

/// Milliseconds; none of an empty list.
pub(crate) fn percentile(ascending: &[Duration], percent: usize) -> Option<f64> {
    at(ascending, percent).map(|time| time.as_secs_f64() * 1e3)
}

/// What so many percent do not exceed.
pub(crate) fn at<T: Copy>(ascending: &[T], percent: usize) -> Option<T> {
    let last = ascending.len().checked_sub(1)?;
    ascending.get((ascending.len() * percent / 100).min(last)).copied()
}
