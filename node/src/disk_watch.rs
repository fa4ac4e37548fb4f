//! The room on the disk.

use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::adapters::operator::free_disk_bytes;
use crate::fault::NodeFault;

/// How often is looked.
const INTERVAL: Duration = Duration::from_secs(5);

/// Stops the node in order before the disk is full.
pub(crate) struct DiskWatch {
    /// A folder on the disk.
    pub(crate) path: PathBuf,
    /// Bytes that have to be free.
    pub(crate) free_min: u64,
}

impl DiskWatch {
    /// Looks again and again until asked to stop.
    ///
    /// # Errors
    /// [`NodeFault::DiskFull`] when there is too little room, [`NodeFault`] when the system does not say.
    pub(crate) async fn run(self, stop: CancellationToken) -> Result<(), NodeFault> {
        loop {
            let free = free_disk_bytes(&self.path)
                .map_err(|source| NodeFault::io("checking the free space on the disk", source))?;
            if free < self.free_min {
                return Err(NodeFault::DiskFull { free, min: self.free_min });
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }
}
