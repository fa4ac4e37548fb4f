//! Executors are tested before they are offered, and after a dissent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use agent::executor::{Agent, Execute, Executors, Halt, Scope, Verdict, Wasm};
use types::agent::ExecutorId;

use super::bench::{Bench, Echo, me, offer};
use crate::market::{Fitness, OfferConfig};

/// Programs are executed by something that does not do what programs say.
fn broken() -> (Arc<Echo>, Executors) {
    let echo = Arc::<Echo>::default();
    let mut executors = Executors::of(None);
    executors.add(ExecutorId::Wasm, Arc::<Echo>::clone(&echo));
    (echo, executors)
}

#[tokio::test]
async fn an_executor_that_fails_its_test_is_not_offered() {
    for (executors, offers) in [(Executors::of(None), 1), (broken().1, 0)] {
        let mut bench = Bench::new();
        let wasm = OfferConfig { executor: ExecutorId::Wasm, ..offer(1) };
        bench.configure(|config| config.offers = vec![wasm]);
        bench.execute_with(executors);
        bench.during(bench.tidied()).await;
        assert_eq!(bench.chain.state.lock().offers_of(&me()), offers);
        let bonds = bench.sent().iter().filter(|kind| **kind == "MINER_BOND").count();
        assert_eq!(bonds, offers, "who offers nothing needs no bond");
    }
}

#[tokio::test]
async fn a_test_is_made_once_and_again_after_a_dissent_but_not_for_every_one() {
    let (echo, executors) = broken();
    let fitness = Fitness::new(Arc::new(executors));
    assert!(fitness.fault(&ExecutorId::Wasm).await.is_some());
    let asked = echo.runs.load(Ordering::SeqCst);
    assert!(asked > 0);
    assert_eq!(fitness.unsound().len(), 1);
    fitness.fault(&ExecutorId::Wasm).await;
    assert_eq!(echo.runs.load(Ordering::SeqCst), asked, "it is known");
    fitness.forget(&ExecutorId::Wasm);
    assert!(fitness.unsound().is_empty());
    fitness.fault(&ExecutorId::Wasm).await;
    assert_eq!(echo.runs.load(Ordering::SeqCst), 2 * asked);

    let fitness = Fitness::new(Arc::new(Executors::of(None)));
    assert_eq!(fitness.fault(&ExecutorId::Wasm).await, None);
    let before = fitness.last_test(&ExecutorId::Wasm);
    assert_eq!(fitness.fault_after_dissent(&ExecutorId::Wasm).await, None);
    assert_eq!(fitness.last_test(&ExecutorId::Wasm), before);
    let fitness = fitness.with_pause(Duration::ZERO);
    assert_eq!(fitness.fault_after_dissent(&ExecutorId::Wasm).await, None);
    assert!(fitness.last_test(&ExecutorId::Wasm) > before);
}

/// Cannot answer at first.
#[derive(Debug)]
struct Recovering {
    left: AtomicU64,
    programs: Wasm,
}

impl Execute for Recovering {
    fn execute(
        &self,
        agent: &Agent,
        payload: &[u8],
        scope: &mut Scope<'_>,
    ) -> Result<Verdict, Halt> {
        let down =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |it| it.checked_sub(1));
        match down {
            Ok(_) => Err(Halt::Unable("memory is short".into())),
            Err(_) => self.programs.execute(agent, payload, scope),
        }
    }
}

#[tokio::test]
async fn an_executor_that_could_not_answer_in_its_test_is_tested_again_by_itself() {
    let mut executors = Executors::of(None);
    let recovering = Recovering { left: AtomicU64::new(1), programs: Wasm::default() };
    executors.add(ExecutorId::Wasm, Arc::new(recovering));
    let fitness = Fitness::new(Arc::new(executors));
    let fault = fitness.fault(&ExecutorId::Wasm).await.unwrap();
    assert_eq!(fault, "unable (memory is short), expected an answer");
    assert!(fitness.fault(&ExecutorId::Wasm).await.is_some(), "not at once");
    let fitness = fitness.with_pause(Duration::ZERO);
    assert_eq!(fitness.fault(&ExecutorId::Wasm).await, None);
    assert!(fitness.unsound().is_empty());
}
