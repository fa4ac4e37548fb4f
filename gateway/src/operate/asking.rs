//! Somebody who asks, from the first byte to the last: counted once, when nobody has anything to tell
//! them any more.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{Counters, Event, Interface};
use crate::openai::ApiFault;
use crate::request_service::Ended;

/// What became of most.
const ANSWERED: &str = "answered";
/// The client was told that the run goes on.
const RUNNING: &str = "running";
/// The client went away.
const HUNG_UP: &str = "hung_up";

/// Somebody who asks. It is counted when its last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Asking(Arc<One>);

#[derive(Debug)]
struct One {
    counters: Arc<dyn Counters>,
    interface: Interface,
    outcome: Mutex<Option<&'static str>>,
}

impl Asking {
    /// Somebody asks over this interface.
    pub(crate) fn over(interface: Interface, counters: &Arc<dyn Counters>) -> Self {
        let (counters, outcome) = (Arc::clone(counters), Mutex::default());
        Self(Arc::new(One { counters, interface, outcome }))
    }

    /// They have all that there is to have. What was told them before stays what became of it.
    pub(crate) fn done(&self) {
        self.0.outcome.lock().get_or_insert(ANSWERED);
    }

    /// They are told that the run goes on.
    pub(crate) fn running(&self) {
        *self.0.outcome.lock() = Some(RUNNING);
    }

    /// They are told of a fault.
    pub(crate) fn failed(&self, fault: &ApiFault) {
        *self.0.outcome.lock() = Some(fault.code);
    }

    /// They are told how it ended.
    pub(crate) fn ended(&self, ended: &Ended) {
        match ended {
            Ok(_) => self.done(),
            Err(fault) => self.failed(fault),
        }
    }
}

impl Drop for One {
    fn drop(&mut self) {
        let outcome = self.outcome.get_mut().unwrap_or(HUNG_UP);
        self.counters.count(Event::Asked { interface: self.interface, outcome });
    }
}

#[cfg(test)]
mod tests {
    //! What is counted, and how often.

    use std::sync::Arc;

    use super::Asking;
    use crate::openai::ApiFault;
    use crate::operate::{Counters, Event, Interface};
    use crate::testing::Told;

    /// What is counted of somebody who asks.
    fn counted(tell: impl FnOnce(Asking)) -> Vec<&'static str> {
        let told = Arc::new(Told::default());
        let counters: Arc<dyn Counters> = Arc::<Told>::clone(&told);
        tell(Asking::over(Interface::Mcp, &counters));
        let outcome = |event| match event {
            Event::Asked { interface: Interface::Mcp, outcome } => outcome,
            Event::Asked { .. }
            | Event::Refused { .. }
            | Event::Claimed { .. }
            | Event::Ended { .. } => panic!("{event:?}"),
        };
        told.news().into_iter().map(outcome).collect()
    }

    #[test]
    fn who_asks_is_counted_once_by_what_was_told_last() {
        assert_eq!(["hung_up"], *counted(drop));
        let answered = counted(|asking| {
            let first = asking.clone();
            drop(asking);
            first.done();
        });
        assert_eq!(["answered"], *answered);
        assert_eq!(["running"], *counted(|asking| asking.running()));
        let no_miner = counted(|asking| {
            asking.failed(&ApiFault::no_miner());
            asking.done();
        });
        assert_eq!(["no_miner"], *no_miner);
        let late = counted(|asking| {
            asking.done();
            asking.failed(&ApiFault::stopping());
        });
        assert_eq!(["gateway_stopping"], *late);
    }
}
