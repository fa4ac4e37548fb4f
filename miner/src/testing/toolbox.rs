//! The real tools, with nothing around them, and the manifest of a model.

use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;
use wallet::Client;

use agent::backend::Manifest;
use agent::clock::Clock;
use agent::tools::ports::Names;
use agent::tools::{Surroundings, Toolbox};

/// A clock that stands.
#[derive(Debug)]
struct Stopped(u64);

impl Clock for Stopped {
    fn now_ms(&self) -> u64 {
        self.0
    }
}

/// Hosts without names.
#[derive(Debug)]
struct Nameless;

#[async_trait]
impl Names for Nameless {
    async fn addresses(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// No node, and a folder.
pub(crate) fn surroundings(folder: &Path) -> Surroundings {
    Surroundings {
        node: Client::new("http://127.0.0.1:1").unwrap(),
        clock: Arc::new(Stopped(1_795_368_900_123)),
        names: Arc::new(Nameless),
        folder: folder.to_owned(),
        wrapper: None,
        stop: CancellationToken::new(),
    }
}

/// A toolbox with these settings, as TOML.
pub(crate) fn toolbox(settings: &str) -> Toolbox {
    let folder = tempfile::tempdir().unwrap();
    let around = surroundings(folder.path());
    Toolbox::open(&toml::from_str(settings).unwrap(), &around).unwrap()
}

/// A model that gives the same answer every time.
pub(crate) fn manifest() -> Manifest {
    Manifest {
        name: "m".into(),
        model: "m".into(),
        deterministic: true,
        context_tokens_max: 256,
        constrains: true,
    }
}
