//! Waiting for what does not tell when it comes.

use std::time::Duration;

/// Waits for at most a minute until something holds; answers whether it does.
pub(crate) async fn comes(holds: impl Fn() -> bool) -> bool {
    let wait = async {
        while !holds() {
            // What is waited for does not tell when it comes.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.is_ok()
}
