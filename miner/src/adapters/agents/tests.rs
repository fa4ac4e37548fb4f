//! Agents are executed for runs that name them, and nothing else is.

use agent::executor::{Execute, Halt, Scope};
use agent::tools::{Grant, Toolbox};
use types::RunStatus;
use types::agent::ExecutorId;
use types::tx::RunOfAgent;

use super::*;
use crate::adapters::{ToolRunner, Understanding};
use crate::chain::RunView;
use crate::chain::fake::FakeChain;
use crate::chain::fake::market::{EXECUTOR, payload};
use crate::engine::tests::support::{Bench, folder};
use crate::policy::{Decision, Reason};
use crate::ports::{Courses as _, Ending, Move, Tools as _};
use crate::testing::{manifest, toolbox};

/// Answers with its arguments; what it is asked to fail it fails.
#[derive(Debug)]
struct Repeat;

impl Execute for Repeat {
    fn execute(&self, _: &Agent, payload: &[u8], scope: &mut Scope<'_>) -> Result<Verdict, Halt> {
        let says = |word: &[u8]| payload.windows(word.len()).any(|it| it == word);
        if says(b"fail") {
            return Ok(Verdict::Failure("as it was told".into()));
        }
        while says(b"burn") {
            scope.burn(1_000)?;
        }
        Ok(Verdict::Success(payload.get(4..).unwrap_or_default().to_vec()))
    }
}

/// A chain with two agents whose tools would have one name, and the names by which runs know them.
fn chain() -> (Arc<FakeChain>, [String; 2]) {
    let chain = FakeChain::new().with_v8();
    let ids = ["a-b", "a_b"].map(|name| chain.add_agent(name, &[]));
    let mut names = ids.map(|id| format!("agent:{id}@1.0.0"));
    names.sort();
    (Arc::new(chain), names)
}

fn run_agents(chain: &Arc<FakeChain>, executor: ExecutorId) -> Arc<RunAgents> {
    let mut executors = Executors::default();
    executors.add(executor, Arc::new(Repeat));
    let executors = Arc::new(executors);
    Arc::new(RunAgents {
        agents: Arc::new(AgentCache::new(Arc::<FakeChain>::clone(chain))),
        fitness: Fitness::new(Arc::clone(&executors)),
        executors,
        fetched: Mutex::default(),
    })
}

fn toolbox_with(agents: &Arc<RunAgents>) -> Toolbox {
    toolbox("").with_agents(Some(Arc::<RunAgents>::clone(agents)))
}

fn grant(names: &[String]) -> Grant {
    let tools = names.iter().cloned().chain(["math_eval".to_owned()]).collect();
    Grant { tools, is_reproducible: true, ..Grant::default() }
}

fn names(toolbox: &Toolbox, grant: &Grant) -> Vec<String> {
    toolbox.specs(grant).into_iter().map(|spec| spec.name).collect()
}

async fn call(toolbox: &Toolbox, grant: &Grant, name: &str, text: &str) -> (bool, String) {
    let arguments = json!({ "text": text });
    let arguments = arguments.as_object().unwrap();
    let outcome = toolbox.call(name, arguments, grant, &CancellationToken::new()).await;
    (outcome.ok, outcome.result)
}

#[tokio::test]
async fn the_methods_of_agents_that_a_run_names_are_tools_of_its_model() {
    let (chain, agents) = chain();
    let here = run_agents(&chain, EXECUTOR);
    let toolbox = toolbox_with(&here);
    let grant = grant(&agents);
    assert_eq!(toolbox.missing(&grant), agents);
    here.fetch(&grant.tools).await.unwrap();
    assert!(toolbox.missing(&grant).is_empty());
    assert_eq!(names(&toolbox, &grant), ["a_b_f", "a_b_f_2", "math_eval"]);
    let answer = call(&toolbox, &grant, "a_b_f", "hello").await;
    assert_eq!(answer, (true, r#"{"said":"hello"}"#.to_owned()));
    assert!(toolbox.is_idempotent("a_b_f", &grant));
    let (ok, why) = call(&toolbox, &grant, "a_b_f", "fail").await;
    assert!(!ok && why.contains("as it was told"), "{why}");
    let (ok, why) = call(&toolbox, &grant, "a_b_f", "burn").await;
    assert!(!ok && why.contains("fuel"), "{why}");
    // Another run does not have them.
    let other = Grant { tools: ["math_eval".to_owned()].into(), ..Grant::default() };
    assert_eq!(names(&toolbox, &other), ["math_eval"]);
    let (ok, why) = call(&toolbox, &other, "a_b_f", "hello").await;
    assert!(!ok && why.contains("unknown_tool"), "{why}");
}

#[tokio::test]
async fn agents_that_cannot_be_had_or_are_not_allowed_are_missing() {
    let (chain, agents) = chain();
    let here = run_agents(&chain, EXECUTOR);
    let absent = format!("agent:{}@1.0.0", Hash::ZERO);
    let wasm = run_agents(&chain, ExecutorId::Wasm);
    for (run_agents, toolbox, name) in [
        (&here, toolbox_with(&here), &absent),
        (&wasm, toolbox_with(&wasm), &agents[0]),
        (&here, toolbox(""), &agents[0]),
    ] {
        let grant = grant(std::slice::from_ref(name));
        run_agents.fetch(&grant.tools).await.unwrap();
        assert_eq!(toolbox.missing(&grant), std::slice::from_ref(name));
        assert_eq!(names(&toolbox, &grant), ["math_eval"]);
    }
}

#[tokio::test]
async fn a_run_of_an_agent_begins_with_its_prompt_and_has_its_tools() {
    let (chain, agents) = chain();
    let asks = chain.add_agent("asks", &[agents[0].clone(), "math_eval".into()]);
    let here = run_agents(&chain, EXECUTOR);
    let toolbox = toolbox_with(&here);
    let run = chain.run_of(&chain.add_run("How are you?", 10_000, 10));
    let run = RunView { agent: Some(format!("agent:{asks}@1.0.0")), tools: vec![], ..run };
    let courses = Understanding::new(toolbox.clone(), manifest());
    let unknown = courses.begin(&run, None, &[]).unwrap_err();
    assert!(unknown.contains("cannot be executed here"), "{unknown}");
    ToolRunner::new(toolbox, Some(here)).fetch(&run).await.unwrap();
    let session = courses.begin(&run, None, &[]).unwrap();
    let texts: Vec<_> = session.ask().messages.iter().map(|it| it.text.clone()).collect();
    assert_eq!(texts, ["Be brief.", "How are you?"]);
    let tools: Vec<_> = session.ask().tools.iter().map(|it| it.name.clone()).collect();
    assert_eq!(tools, ["a_b_f", "math_eval"]);
}

#[tokio::test]
async fn a_run_of_a_method_pays_for_what_the_model_of_its_agent_reads() {
    let folder = folder();
    let mut bench = Bench::at(folder.path(), FakeChain::new().with_v8(), None);
    let agent_id = bench.chain.add_agent("asks", &[]);
    let here = run_agents(&bench.chain, EXECUTOR);
    let toolbox = toolbox_with(&here);
    bench.courses = Arc::new(Understanding::new(toolbox.clone(), manifest()));
    bench.tool_runner = Arc::new(ToolRunner::new(toolbox, Some(here)));
    bench.change_policy(|policy| policy.prompt_micro_per_1000_tokens = 1_000);
    let bytes = payload("hello");
    let prompt = const_hex::encode_prefixed(&bytes);
    let run = bench.chain.add_run_with(&prompt, 10_000, 10, |request| {
        let agent_version = Some("1.0.0".to_owned());
        request.agent = RunOfAgent { agent_id: Some(agent_id), agent_version }.into();
    });
    bench.until_decided("PROMPT_UNPAID").await;
    let read = u64::try_from(bytes.len() + "Be brief.".len()).unwrap();
    let tokens = agent::backend::tokens_about(read);
    assert!(tokens > agent::backend::tokens_about(read - 9));
    // No answer of the agent has more than eight tokens.
    let reason = Reason::PromptUnpaid { tokens, cost_micro: tokens, income_micro: 8 };
    assert_eq!(Decision::Skip(reason), bench.decision(&run));
}

/// Executes the run of an agent with this prompt, up to its end.
async fn answered(toolbox: &Toolbox, agents: &Arc<RunAgents>, run: &RunView) -> Ending {
    let tool_runner = ToolRunner::new(toolbox.clone(), Some(Arc::clone(agents)));
    tool_runner.fetch(run).await.unwrap();
    let courses = Understanding::new(toolbox.clone(), manifest());
    let mut session = courses.begin(run, None, &[]).unwrap();
    assert!(tool_runner.missing(&session.grant()).is_empty());
    let opening = session.ask().unasked.expect("no model is asked").clone();
    assert_eq!((opening.output_tokens, opening.text.as_str()), (1, ""));
    let Move::Tools(calls) = session.take(&opening) else { panic!("{session:?}") };
    let result = tool_runner.call(&session.grant(), &calls[0], &CancellationToken::new()).await;
    let Move::Finish(ending) = session.results(&[result]) else { panic!("{session:?}") };
    ending
}

#[tokio::test]
async fn a_run_of_an_agent_whose_prompt_is_a_payload_is_answered_by_that_method() {
    let (chain, agents) = chain();
    let here = run_agents(&chain, EXECUTOR);
    let toolbox = toolbox_with(&here);
    let run = chain.run_of(&chain.add_run("x", 10_000, 10));
    let of = |text: &str| RunView {
        agent: Some(agents[0].clone()),
        prompt: const_hex::encode_prefixed(payload(text)),
        tools: vec![],
        ..run.clone()
    };
    let ending = answered(&toolbox, &here, &of("hello")).await;
    let encoded = const_hex::encode_prefixed(&payload("hello")[4..]);
    assert_eq!(ending, Ending { status: RunStatus::Completed, answer: Some(encoded) });
    let ending = answered(&toolbox, &here, &of("fail")).await;
    assert_eq!(ending.status, RunStatus::Failed);
    assert!(ending.answer.unwrap().contains("as it was told"));
    // What is no payload of the agent is a text.
    for prompt in ["0x01020304", "0xzz", "hello", "0x"] {
        let run = RunView { prompt: prompt.into(), ..of("") };
        let session =
            Understanding::new(toolbox.clone(), manifest()).begin(&run, None, &[]).unwrap();
        assert_eq!(session.ask().unasked, None);
        assert_eq!(session.ask().messages.last().unwrap().text, prompt);
    }
}
