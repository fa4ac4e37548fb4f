//! Work on schemas and arguments of strangers, apart from the threads on which everything else runs.
//!
//! It cannot be interrupted, and some of it takes seconds. So each server has one thread for it and no
//! more: whoever waits gives up in time, and others do not wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

/// One thread at a time. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Apart(Arc<Semaphore>);

impl Apart {
    /// A thread for one server.
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }

    /// What the work gives; none if it was not begun and done in time, or panicked. Work that was
    /// begun goes on, and nothing else is begun before it ends.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let done = async {
            let place = Arc::clone(&self.0).acquire_owned().await.ok()?;
            let work = move || {
                let _place = place;
                work()
            };
            tokio::task::spawn_blocking(work).await.ok()
        };
        tokio::time::timeout(patience, done).await.ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    //! Long work keeps nobody else waiting.

    use std::collections::BTreeMap;
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use async_trait::async_trait;
    use serde_json::{Map, Value, json};

    use super::Apart;
    use crate::messages::ToolSpec;
    use crate::tools::offered::Offered;
    use crate::tools::tests::support::call;
    use crate::tools::toolbox::Toolbox;
    use crate::tools::{Class, Failure, Limits, Schema, Terms, Tool};

    /// A tool that does nothing.
    #[derive(Debug)]
    struct Idle(ToolSpec);

    #[async_trait]
    impl Tool for Idle {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn terms(&self) -> Terms {
            Terms { class: Class::Volatile, is_idempotent: false, limits: Limits::DEFAULT }
        }

        async fn call(&self, _: &Map<String, Value>) -> Result<String, Failure> {
            Ok("done".to_owned())
        }
    }

    /// Patterns of which none matches, and each of which has many places at a time where it could.
    fn toolbox(apart: Option<Apart>) -> Toolbox {
        let pattern =
            |number: usize| json!({ "pattern": format!("[ab]*a[ab]{{{}}}c", 900 + number) });
        let patterns: Vec<Value> = (0..32).map(pattern).collect();
        let parameters = json!({ "type": "object", "properties": { "s": { "anyOf": patterns } } });
        let schema = Arc::new(Schema::compile(&parameters).unwrap());
        let (name, description) = ("idle".to_owned(), String::new());
        let tool = Arc::new(Idle(ToolSpec { name: name.clone(), description, parameters }));
        let offered = Offered { tool, schema, limits: Limits::DEFAULT, apart, is_of_agent: false };
        Toolbox::of(BTreeMap::from([(name, offered)]))
    }

    #[tokio::test]
    async fn a_check_that_takes_long_holds_up_nothing_else() {
        let toolbox = toolbox(Some(Apart::new()));
        let arguments = json!({ "s": "ab".repeat(8_000) }).to_string();
        let call = call(&toolbox, "idle", &arguments);
        tokio::pin!(call);
        // On one thread: if the check were made on it, the call would have ended.
        tokio::select! {
            biased;
            outcome = &mut call => panic!("nothing else went on: {outcome:?}"),
            () = tokio::task::yield_now() => (),
        }
        // It ends, one way or the other: patterns that match nothing, or no time left.
        assert!(!call.await.ok);
    }

    #[tokio::test]
    async fn long_work_is_given_up_and_nothing_is_begun_beside_it() {
        let (apart, other) = (Apart::new(), Apart::new());
        let (end, ended) = mpsc::channel::<()>();
        let soon = Duration::from_millis(50);
        let long = apart.run(soon, move || ended.recv());
        assert!(long.await.is_none());
        assert_eq!(None, apart.run(soon, || 1).await, "it still goes on");
        assert_eq!(Some(2), other.run(Duration::from_secs(10), || 2).await);
        end.send(()).unwrap();
        assert_eq!(Some(3), apart.run(Duration::from_secs(10), || 3).await);
    }

    #[tokio::test]
    async fn a_panic_is_no_answer_and_leaves_the_thread_to_others() {
        let apart = Apart::new();
        let late = Duration::from_secs(10);
        assert_eq!(None::<()>, apart.run(late, || panic!("a fault")).await);
        assert_eq!(Some(1), apart.run(late, || 1).await);
    }
}
