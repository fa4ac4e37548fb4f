//! What the tools need from outside: the time, and addresses of names.

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;

use async_trait::async_trait;

pub use crate::ports::Clock;

/// Finds the addresses of a host's name.
#[async_trait]
pub trait Names: Send + Sync + Debug {
    /// Every address of `host`, in the order in which they are to be tried.
    ///
    /// # Errors
    /// When the name has none or nobody answers.
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// Finds addresses as every other program of this machine does.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNames;

#[async_trait]
impl Names for SystemNames {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let found = tokio::net::lookup_host((host, 0)).await?;
        Ok(found.map(|address| address.ip()).collect())
    }
}
