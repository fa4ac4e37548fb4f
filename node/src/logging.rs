//! Log lines on standard error, with a filter that can be changed while the node runs.

use std::io::IsTerminal as _;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

use crate::config::{Log, LogFormat};

/// The filter could not be set.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The text is not a filter.
    #[error("log filter {filter:?} is not understood: {source}")]
    Filter {
        /// The text.
        filter: String,
        /// Why.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Something else writes the logs already.
    #[error("logging is already set up")]
    Taken(#[from] tracing_subscriber::util::TryInitError),
    /// The subscriber is gone.
    #[error("logging has ended: {0}")]
    Gone(#[from] reload::Error),
}

/// Changes the filter of a running node.
#[derive(Clone, Debug)]
pub struct LogControl(reload::Handle<EnvFilter, Registry>);

/// The engine reports the lack of peers as an error nine times a block on a chain of one validator;
/// what matters of it is in our own lines.
/// Of its supervisor only failures are news: it warns at every ordinary stop. Its connector says at
/// every ordinary stop that our loop has ended; when the loop fails, we say why. Its ticker finds at
/// many an ordinary stop that whom it ticks for has stopped before.
const QUIET: &str = "arc_malachitebft_network=off,arc_malachitebft_discovery=off,\
                     arc_malachitebft_engine::node=error,\
                     arc_malachitebft_engine::util::ticker=off,\
                     arc_malachitebft_app_channel::connector=off";

fn parse(filter: &str, with_engine: bool) -> Result<EnvFilter, LogError> {
    let text = if with_engine || filter.contains("arc_malachitebft_network") {
        filter.to_owned()
    } else {
        format!("{filter},arc_malachitebft=warn,{QUIET}")
    };
    EnvFilter::try_new(&text)
        .map_err(|source| LogError::Filter { filter: filter.to_owned(), source })
}

/// Checks that a filter is understood.
///
/// # Errors
/// [`LogError::Filter`].
pub fn check(filter: &str) -> Result<(), LogError> {
    parse(filter, false).map(drop)
}

/// Starts logging.
///
/// # Errors
/// [`LogError`] if the filter is not understood or logging was started before.
pub fn start(log: &Log) -> Result<LogControl, LogError> {
    let (filter, handle) = reload::Layer::new(parse(&log.filter, false)?);
    let registry = tracing_subscriber::registry().with(filter);
    match log.format {
        LogFormat::Text => {
            // In a file or the log of a container, colours are only noise.
            let text = fmt::layer().with_ansi(std::io::stderr().is_terminal());
            registry.with(text.with_writer(std::io::stderr)).try_init()?;
        }
        LogFormat::Json => {
            registry.with(fmt::layer().json().with_writer(std::io::stderr)).try_init()?;
        }
    }
    Ok(LogControl(handle))
}

impl LogControl {
    /// Sets another filter, exactly as given.
    ///
    /// # Errors
    /// [`LogError`] if it is not understood.
    pub fn set(&self, filter: &str) -> Result<(), LogError> {
        self.0.reload(parse(filter, true)?)?;
        Ok(())
    }
}
