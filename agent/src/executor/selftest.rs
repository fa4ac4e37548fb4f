//! Whether this machine computes what others compute: questions whose answers and receipts are known.
//!
//! A member that computes something else differs from the others in every call, and pays for that. So a
//! miner asks itself first (docs/miner.md section Serving agents).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use types::agent::{Executor, ExecutorId};
use types::call::{CallLimits, Outcome};
use types::{Address, Hash, Usage};

use super::{Agent, Context, Executors, Library, Stop, Task};

/// The questions, with the hashes of the receipts of who answers them right.
const QUESTIONS: &str = include_str!("../../fixtures/selftest.json");
/// The program of the questions for `wasm-1`.
const PROGRAM: &[u8] = include_bytes!("../../../examples/agents/built/keywords.wasm");

const LIMITS: CallLimits = CallLimits {
    usage: Usage { input_tokens: 10_000, output_tokens: 1_000, fuel: 10_000_000 },
    result_bytes: 16_384,
};

/// One executor, and whether it computes what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// Which.
    pub executor: ExecutorId,
    /// How many questions it was asked.
    pub questions: usize,
    /// What is wrong; nothing if every receipt is the one that it should be.
    pub faults: Vec<SelftestFault>,
}

/// What is wrong with an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelftestFault {
    /// A sentence.
    pub why: String,
    /// Whether it gave no answer at all, as where memory is short: that says nothing about its answers.
    pub is_unable: bool,
}

/// An agent, and what is asked of it.
#[derive(Deserialize)]
struct Group {
    metadata: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    payload: String,
    receipt: String,
}

/// Asks every executor that is here and about which answers are known; takes a few seconds for a model.
#[must_use]
pub fn selftest(executors: &Executors) -> Vec<Tested> {
    groups().iter().filter_map(|group| tested(executors, group)).collect()
}

/// What is wrong with an executor; nothing where no answers are known. Programs that ask a model are
/// tested as programs and as that model.
#[must_use]
pub fn faults_of(executors: &Executors, executor: &ExecutorId) -> Vec<SelftestFault> {
    let parts = match *executor {
        ExecutorId::WasmWithModel { manifest } => {
            vec![ExecutorId::Wasm, ExecutorId::Model { manifest }]
        }
        other @ (ExecutorId::Wasm | ExecutorId::Model { .. } | ExecutorId::Container { .. }) => {
            vec![other]
        }
    };
    let all = groups();
    let of_parts =
        all.iter().filter(|group| group.executor().is_some_and(|it| parts.contains(&it)));
    of_parts.filter_map(|group| tested(executors, group)).flat_map(|it| it.faults).collect()
}

/// The questions. They are part of the program, and read by a test.
fn groups() -> Vec<Group> {
    serde_json::from_str(QUESTIONS).unwrap_or_default()
}

impl Group {
    fn agent(&self) -> Option<Agent> {
        Agent::read(Hash::ZERO, self.metadata.to_string().as_bytes()).ok()
    }

    fn executor(&self) -> Option<ExecutorId> {
        Some(self.agent()?.metadata.executor.id())
    }
}

fn tested(executors: &Executors, group: &Group) -> Option<Tested> {
    let agent = group.agent()?;
    let executor = agent.metadata.executor.id();
    executors.executor(&executor)?;
    let mut library = Library::default();
    if let Executor::Wasm { blob_id, .. } = &agent.metadata.executor {
        library.add_program(blob_id.clone(), Arc::from(PROGRAM));
    }
    let faults = group.cases.iter().filter_map(|case| fault(executors, (&agent, &library), case));
    let faults = faults.collect();
    Some(Tested { executor, questions: group.cases.len(), faults })
}

fn fault(
    executors: &Executors,
    (agent, library): (&Agent, &Library),
    case: &Case,
) -> Option<SelftestFault> {
    let payload = const_hex::decode(&case.payload).unwrap_or_default();
    let executed = executors.run(&Task {
        context: Context { call_id: Hash::ZERO, requester: Address::new([0; 20]) },
        agent,
        payload: &payload,
        limits: LIMITS,
        library,
        stop: Stop::new(CancellationToken::new(), None),
    });
    let receipt = executed.answer.receipt_hash.to_string();
    if receipt == case.receipt {
        return None;
    }
    let (outcome, expected) = (executed.answer.outcome.as_str(), &case.receipt);
    let reason = executed.reason.map(|why| format!(" ({why})")).unwrap_or_default();
    let is_unable = executed.answer.outcome == Outcome::Unable;
    let why = if is_unable {
        format!("{outcome}{reason}, expected an answer")
    } else {
        format!("{outcome}{reason} with the receipt {receipt}, expected {expected}")
    };
    Some(SelftestFault { why, is_unable })
}

#[cfg(test)]
mod tests {
    //! The questions are in order, and a machine that computes otherwise is found out.

    use super::*;
    use crate::executor::{Execute, Halt, Scope, Verdict};

    #[test]
    fn programs_compute_here_what_they_should() {
        let groups: Vec<Group> = serde_json::from_str(QUESTIONS).expect("the questions");
        assert!(groups.iter().all(|group| !group.cases.is_empty()));
        let tested = selftest(&Executors::of(None));
        let [programs] = tested.as_slice() else { panic!("{tested:?}") };
        assert_eq!(programs.executor, ExecutorId::Wasm);
        assert_eq!(programs.faults, []);
    }

    /// Answers the same to everything.
    #[derive(Debug)]
    struct Broken;

    impl Execute for Broken {
        fn execute(&self, _: &Agent, _: &[u8], _: &mut Scope<'_>) -> Result<Verdict, Halt> {
            Ok(Verdict::Success(Vec::new()))
        }
    }

    #[test]
    fn an_executor_that_computes_otherwise_is_found_out_alone_and_with_a_model() {
        let mut executors = Executors::of(None);
        let with_model = ExecutorId::WasmWithModel { manifest: Hash::ZERO };
        for executor in [ExecutorId::Wasm, with_model] {
            assert_eq!(faults_of(&executors, &executor), []);
        }
        executors.add(ExecutorId::Wasm, Arc::new(Broken));
        for executor in [ExecutorId::Wasm, with_model] {
            let faults = faults_of(&executors, &executor);
            let fault = faults.first().expect("a fault");
            assert!(fault.why.starts_with("success with the receipt "), "{fault:?}");
            assert!(!fault.is_unable);
        }
        let other = ExecutorId::Model { manifest: Hash::ZERO };
        assert_eq!(faults_of(&executors, &other), [], "nothing is known of it");
    }
}
