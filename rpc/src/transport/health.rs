//! `/healthz` and `/readyz`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;

use crate::ports::{Check, Readiness, Trust};

/// How the node is.
pub(super) fn routes(readiness: Arc<dyn Readiness>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(Arc::new(Looked { readiness, last: Arc::default() }))
}

/// How long a look at the node's health is good for. Anybody may ask, as often as he likes.
const HEALTH_GOOD_FOR: Duration = Duration::from_millis(100);

/// When the last look was, and what was seen.
type LastLook = Arc<tokio::sync::Mutex<Option<(Instant, Arc<Seen>)>>>;

/// The last look at the node's health. One who asks looks; others wait for that, on no thread.
struct Looked {
    readiness: Arc<dyn Readiness>,
    last: LastLook,
}

/// What was seen then.
struct Seen {
    checks: Vec<Check>,
    trust: Option<Trust>,
    clock: Option<Check>,
}

impl Looked {
    /// None if the look failed.
    async fn look(&self) -> Option<Arc<Seen>> {
        let mut last = Arc::clone(&self.last).lock_owned().await;
        if let Some((at, seen)) = &*last
            && at.elapsed() < HEALTH_GOOD_FOR
        {
            return Some(Arc::clone(seen));
        }
        let readiness = Arc::clone(&self.readiness);
        // The thread has the lock: who asks and goes away does not have another one look.
        let looked = tokio::task::spawn_blocking(move || {
            let seen = Seen {
                checks: readiness.checks(),
                trust: readiness.trust(),
                clock: readiness.clock(),
            };
            let seen = Arc::new(seen);
            *last = Some((Instant::now(), Arc::clone(&seen)));
            seen
        });
        looked.await.ok()
    }
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn readyz(State(looked): State<Arc<Looked>>) -> Response {
    let Some(seen) = looked.look().await else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let Seen { checks, trust, clock } = &*seen;
    let is_ready = checks.iter().all(|check| check.is_ok);
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let check = |Check { name, is_ok, detail }: &Check| json!({ "name": name, "ok": is_ok, "detail": detail });
    let checks: Vec<_> = checks.iter().map(check).collect();
    let mut answer = json!({ "ready": is_ready, "checks": checks });
    if let Some(Trust { anchor, height, age_ms, period_ms }) = *trust {
        answer["trust"] = json!({
            "anchor": anchor,
            "height": height,
            "ageMs": age_ms,
            "periodMs": period_ms,
        });
    }
    if let Some(Check { name, is_ok, detail }) = clock {
        answer[*name] = json!({ "ok": is_ok, "detail": detail });
    }
    (status, Json(answer)).into_response()
}
