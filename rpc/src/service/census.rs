//! Who holds how much. It takes a look at every account, so an answer is kept for a while: for
//! longer, the longer it took. Who asks meanwhile gets the last one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::error::RpcError;
use crate::ports::{Census as Counted, Ports};
use crate::wire::PAGE_ITEMS_MAX;

/// How many times as long as it took to make, a census is good for. So making them takes no more
/// than a part of this of one processor.
const GOOD_FOR: u32 = 30;
/// One that took less is made anew for whoever asks after its time.
const WAITED_FOR: Duration = Duration::from_millis(10);
/// How long the first census is waited for by those who do not make it: they have places among the
/// readers meanwhile.
const OTHERS_WAIT_MAX: Duration = Duration::from_millis(50);
/// When others may ask again.
const RETRY_AFTER_MS: u64 = 1_000;

/// The last census.
#[derive(Default)]
pub(super) struct Census {
    state: Mutex<State>,
    /// Held by who makes one and is waited for.
    making: Mutex<()>,
}

#[derive(Default)]
struct State {
    last: Option<Kept>,
    is_being_made: bool,
}

#[derive(Clone)]
struct Kept {
    counted: Arc<Counted>,
    made: Instant,
    took: Duration,
}

impl Census {
    /// A census that is as good as new. Only the first of a node that has many accounts is waited
    /// for.
    pub(super) fn get(self: &Arc<Self>, ports: &Ports) -> Result<Arc<Counted>, RpcError> {
        let tip = ports.chain.tip().height;
        {
            let mut state = self.state.lock();
            if let Some(kept) = state.last.clone() {
                let is_good = kept.counted.height == tip
                    || kept.made.elapsed() < kept.took.saturating_mul(GOOD_FOR);
                if is_good || state.is_being_made {
                    return Ok(kept.counted);
                }
                if kept.took > WAITED_FOR {
                    state.is_being_made = true;
                    let (census, ports) = (Arc::clone(self), ports.clone());
                    tokio::task::spawn_blocking(move || {
                        if let Err(error) = census.make(&ports) {
                            tracing::warn!(%error, "the accounts were not counted");
                        }
                    });
                    return Ok(kept.counted);
                }
            }
        }
        self.make(ports)
    }

    fn make(&self, ports: &Ports) -> Result<Arc<Counted>, RpcError> {
        let Some(_one_at_a_time) = self.making.try_lock_for(OTHERS_WAIT_MAX) else {
            let message = "the accounts are being counted";
            return Err(RpcError::busy("BUSY", message, RETRY_AFTER_MS));
        };
        let tip = ports.chain.tip().height;
        let meanwhile = self.state.lock().last.clone().filter(|kept| kept.counted.height == tip);
        if let Some(kept) = meanwhile {
            return Ok(kept.counted);
        }
        let started = Instant::now();
        let counted = ports.accounts.census(PAGE_ITEMS_MAX);
        let mut state = self.state.lock();
        state.is_being_made = false;
        let counted = Arc::new(counted?);
        let (made, took) = (Instant::now(), started.elapsed());
        state.last = Some(Kept { counted: Arc::clone(&counted), made, took });
        Ok(counted)
    }
}
