//! What came out, as a line for people and a line for machines.

use std::io::Write;
use std::time::Duration;

use serde_json::json;

use tests::node::Node;

pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) txs: usize,
    pub(crate) runs: usize,
    pub(crate) refused: usize,
    pub(crate) conns: usize,
    pub(crate) batch: usize,
    pub(crate) accepted: Duration,
    pub(crate) included: Duration,
    /// Ascending, one per request.
    pub(crate) latencies: Vec<Duration>,
    pub(crate) node_cpu_seconds: f64,
    pub(crate) peak_rss_kb: u64,
    pub(crate) blocks: u64,
}

impl Report {
    pub(crate) fn print(&self, node: &Node) -> anyhow::Result<()> {
        let txs = f64::from(u32::try_from(self.txs)?);
        let runs = f64::from(u32::try_from(self.runs)?);
        let included = self.included.as_secs_f64();
        let disk = node.disk_bytes()?;
        let line = json!({
            "workload": self.name,
            "txs": self.txs,
            "runs": self.runs,
            "refused": self.refused,
            "conns": self.conns,
            "batch": self.batch,
            "blocks": self.blocks,
            "acceptedTxPerS": (txs / self.accepted.as_secs_f64()).round(),
            "includedTxPerS": (txs / included).round(),
            "runsPerS": (runs / included).round(),
            "submitP50Ms": self.percentile(50),
            "submitP99Ms": self.percentile(99),
            "nodeCpuUsPerTx": (self.node_cpu_seconds * 1e6 / txs).round(),
            "nodeCores": self.node_cpu_seconds / included,
            "peakRssMb": self.peak_rss_kb / 1024,
            "diskBytes": disk,
            "diskBytesPerTx": disk / u64::try_from(self.txs.max(1))?,
        });
        writeln!(std::io::stdout(), "{line}")?;
        Ok(())
    }

    fn percentile(&self, percent: usize) -> f64 {
        let index =
            (self.latencies.len() * percent / 100).min(self.latencies.len().saturating_sub(1));
        self.latencies.get(index).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    }
}
