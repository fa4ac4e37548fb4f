//! Waiting for what does not tell when it comes.

use std::time::Duration;

/// Waits until something holds; whether it does within a minute.
pub(crate) async fn comes(holds: impl Fn() -> bool) -> bool {
    let wait = async {
        while !holds() {
            // Nobody tells when the journal is written, or when a tool is asked for.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.is_ok()
}
