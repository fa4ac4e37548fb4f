//! The table `[market]` of a configuration file that changed while the miner runs.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use super::MarketConfig;
use super::offers::without_offers;
use crate::settings::{Settings, SettingsError};

/// What is in force of the table `[market]`, for whoever may change it.
#[derive(Debug)]
pub struct MarketSettings {
    file: PathBuf,
    config: watch::Sender<Option<Arc<MarketConfig>>>,
}

impl MarketSettings {
    /// Those of a file.
    #[must_use]
    pub const fn of(file: PathBuf, config: watch::Sender<Option<Arc<MarketConfig>>>) -> Self {
        Self { file, config }
    }

    /// Puts the table of a new text of the file in force. A table that is gone takes all offers back.
    ///
    /// # Errors
    /// When the text is no configuration, wherever the fault is: then nothing changes.
    pub fn take(&self, text: &str) -> Result<(), SettingsError> {
        let settings = Settings::parse(&self.file, text)?;
        let before = self.config.borrow().clone();
        let after = match (settings.market, &before) {
            (Some(market), _) => Some(Arc::new(market)),
            (None, Some(before)) => Some(without_offers(before)),
            (None, None) => None,
        };
        if after != before {
            tracing::info!("the market's settings changed");
            self.config.send_replace(after);
        }
        Ok(())
    }
}
