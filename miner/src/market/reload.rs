//! Reading the table `[market]` again when the file changes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::MarketConfig;
use super::house::without_offers;
use crate::settings::Settings;

/// Looks at the configuration file again and again, and hands on what its table `[market]` says when
/// that changed. A file with faults changes nothing; the policy's reload tells about it. A table that
/// is gone takes all offers back. Ends when `stop` is cancelled.
pub async fn follow_market(
    file: PathBuf,
    config: watch::Sender<Option<Arc<MarketConfig>>>,
    every: Duration,
    stop: CancellationToken,
) {
    let mut last = tokio::fs::read(&file).await.ok();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = sleep(every) => (),
        }
        let Ok(text) = tokio::fs::read(&file).await else { continue };
        if last.as_ref() == Some(&text) {
            continue;
        }
        last = Some(text);
        let Ok(settings) = Settings::read(&file) else { continue };
        let before = config.borrow().clone();
        let after = match (settings.market, &before) {
            (Some(market), _) => Some(Arc::new(market)),
            (None, Some(before)) => Some(without_offers(before)),
            (None, None) => None,
        };
        if after != before {
            tracing::info!("the market's settings changed");
            config.send_replace(after);
        }
    }
}
