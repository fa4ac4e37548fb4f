//! What a run asks for, by the rules of docs/agent-methods.md.

use std::collections::BTreeSet;

use agent::backend::Manifest;
use agent::messages::{Constraint, End, Iteration, Message, Output, Role, ToolCall, ToolSpec};
use agent::methods::{self, Parsed, Request};
use agent::tools::ports::AgentBrief;
use agent::tools::{Grant, Toolbox};
use serde_json::Value;
use types::RunStatus;

use super::agents::PAYLOAD;
use crate::chain::RunView;
use crate::ports::{AgentSession, Ask, Courses, Ending, Move, ToolResult};

/// Begins conversations, with the tools of a toolbox.
#[derive(Clone, Debug)]
pub struct Understanding {
    toolbox: Toolbox,
    model: Manifest,
}

/// What a run is told that wants an answer which others can make again.
const NOT_REPRODUCIBLE: &str = "deterministic is true, and this miner's model does not promise \
                                equal answers to equal questions";

/// What a run is told that wants to talk with a program.
const NO_CHAT: &str = "the run's agent is a program: expected the payload of one of its methods, in hex \
                       with 0x, as the prompt";

impl Understanding {
    /// What a run asks for, where `toolbox` has the tools and `model` answers.
    #[must_use]
    pub const fn new(toolbox: Toolbox, model: Manifest) -> Self {
        Self { toolbox, model }
    }

    /// What the agent of a run gives to it; none for a run of no agent.
    fn brief(&self, run: &RunView) -> Result<Option<AgentBrief>, String> {
        let Some(agent) = &run.agent else { return Ok(None) };
        let brief = self.toolbox.brief(agent);
        Ok(Some(brief.ok_or_else(|| format!("{agent} cannot be executed here"))?))
    }

    /// The tools of a grant, by name; those that were offered before and are not known any more too,
    /// but for functions of the requester.
    fn specs(
        &self,
        grant: &Grant,
        before: &[ToolSpec],
        is_function: impl Fn(&str) -> bool,
    ) -> Vec<ToolSpec> {
        let mut specs = self.toolbox.specs(grant);
        let is_known = |name: &str| specs.iter().any(|spec| spec.name == name);
        let is_gone = |spec: &&ToolSpec| !is_known(&spec.name) && !is_function(&spec.name);
        let gone: Vec<_> = before.iter().filter(is_gone).cloned().collect();
        specs.extend(gone);
        specs.sort_by(|one, other| one.name.cmp(&other.name));
        specs
    }
}

impl Courses for Understanding {
    fn begin(
        &self,
        run: &RunView,
        blob: Option<&str>,
        before: &[ToolSpec],
    ) -> Result<Box<dyn AgentSession>, String> {
        let parsed = Request::parse(&run.prompt, blob).map_err(|refused| refused.to_string())?;
        let brief = self.brief(run)?;
        if let (Some(brief), Some(agent)) = (&brief, &run.agent) {
            if let Some(call) = AgentCall::of(agent, brief, blob.unwrap_or(&run.prompt)) {
                return Ok(Box::new(call));
            }
            if brief.base_prompt.is_none() {
                return Err(NO_CHAT.to_owned());
            }
        }
        let own = brief.iter().flat_map(|brief| &brief.tools);
        let tools: BTreeSet<String> = run.tools.iter().chain(own).cloned().collect();
        let begun = match parsed {
            Parsed::PlainText(text) => {
                let grant = Grant { tools, ..Grant::default() };
                let specs = self.specs(&grant, before, |_| false);
                let session = methods::AgentSession::of_text(&text, &specs);
                Begun { session, grant }
            }
            Parsed::Method(request) if request.is_deterministic() && !self.model.deterministic => {
                return Err(NOT_REPRODUCIBLE.to_owned());
            }
            Parsed::Method(request) => {
                let servers = request.mcp_server_urls().iter().cloned().collect();
                let grant = Grant { tools, servers, is_reproducible: request.is_deterministic() };
                let specs = self.specs(&grant, before, |name| request.has_function(name));
                let session = methods::AgentSession::of_request(&request, &specs);
                Begun { session: session.map_err(|refused| refused.to_string())?, grant }
            }
            Parsed::NeedsBlob { .. } => {
                return Err("the envelope is in promptBlobId, which holds no text".to_owned());
            }
        };
        Ok(Box::new(match brief {
            None => begun,
            Some(AgentBrief { base_prompt, .. }) => {
                let base_prompt = base_prompt.unwrap_or_default();
                Begun { session: begun.session.with_base_prompt(&base_prompt), ..begun }
            }
        }))
    }
}

/// A conversation that was begun.
#[derive(Debug)]
struct Begun {
    session: methods::AgentSession,
    grant: Grant,
}

impl AgentSession for Begun {
    fn grant(&self) -> Grant {
        self.grant.clone()
    }

    fn ask(&self) -> Ask<'_> {
        let Iteration { messages, tools, constraint, thinks, so_far, stops, output_tokens_max: _ } =
            self.session.iteration(1);
        let output_tokens_left = self.session.output_tokens_left();
        Ask {
            messages,
            tools,
            constraint,
            thinks,
            so_far,
            stops,
            output_tokens_left,
            unasked: None,
        }
    }

    fn take(&mut self, output: &Output) -> Move {
        follows(self.session.take(output))
    }

    fn results(&mut self, results: &[ToolResult]) -> Move {
        let texts: Vec<_> = results.iter().map(|result| result.text.clone()).collect();
        follows(self.session.results(&texts))
    }

    fn reason(&self, why: &str) -> String {
        self.session.failure(why).answer
    }
}

/// A run whose prompt is the payload of one of its agent's methods: the agent is executed once, and its
/// result is the answer. No model of the run's own is asked.
#[derive(Debug)]
struct AgentCall {
    /// The agent as a tool.
    agent: String,
    /// The call of it, as if a model had made it.
    call: Output,
    /// What the agent's model reads before the arguments.
    before: Vec<Message>,
    /// The most tokens of one answer of the agent's model.
    output_tokens_max: Option<u32>,
}

impl AgentCall {
    /// None unless the prompt is such a payload.
    fn of(agent: &str, brief: &AgentBrief, prompt: &str) -> Option<Self> {
        let payload = prompt.trim();
        let bytes = const_hex::decode(payload.strip_prefix("0x")?).ok()?;
        let selector = bytes.first_chunk::<4>()?;
        let method = brief.methods.iter().find(|method| method.selector == *selector)?;
        let texts = brief.base_prompt.iter().flat_map(|base| [base, &method.description]);
        let before = texts.filter(|text| !text.is_empty()).map(|text| Message {
            role: Role::System,
            text: text.clone(),
            tool_calls: Vec::new(),
            tool_call_id: None,
        });
        let before = before.collect();
        let arguments = [(PAYLOAD.to_owned(), Value::from(payload))].into_iter().collect();
        let call = ToolCall { id: "call_0".to_owned(), name: agent.to_owned(), arguments };
        let call = Output {
            text: String::new(),
            thoughts: None,
            tool_calls: vec![call],
            // A step without a token earns nothing, and a claim bond would be burned for it.
            output_tokens: 1,
            prompt_tokens: 0,
            end: End::ToolCalls,
        };
        let output_tokens_max = brief.output_tokens_max;
        Some(Self { agent: agent.to_owned(), call, before, output_tokens_max })
    }
}

impl AgentSession for AgentCall {
    fn grant(&self) -> Grant {
        Grant { tools: [self.agent.clone()].into(), ..Grant::default() }
    }

    fn ask(&self) -> Ask<'_> {
        let constraint = &Constraint::Free;
        Ask {
            messages: &self.before,
            tools: &[],
            constraint,
            thinks: false,
            so_far: "",
            stops: &[],
            output_tokens_left: self.output_tokens_max,
            unasked: Some(&self.call),
        }
    }

    fn take(&mut self, output: &Output) -> Move {
        Move::Tools(output.tool_calls.clone())
    }

    fn results(&mut self, results: &[ToolResult]) -> Move {
        Move::Finish(match results.first() {
            Some(ToolResult { ok: true, text, .. }) => {
                Ending { status: RunStatus::Completed, answer: Some(text.clone()) }
            }
            Some(ToolResult { text, .. }) => Ending::without_answer(RunStatus::Failed, text),
            None => Ending::without_answer(RunStatus::Failed, "the agent gave no result"),
        })
    }

    fn reason(&self, why: &str) -> String {
        why.to_owned()
    }
}

fn follows(next: methods::Move) -> Move {
    match next {
        methods::Move::Tools(calls) => Move::Tools(calls),
        methods::Move::Again => Move::Again,
        methods::Move::Finish(methods::Ending { status, answer }) => {
            Move::Finish(Ending { status, answer: Some(answer) })
        }
    }
}

#[cfg(test)]
mod tests {
    //! What is taken, and what is not.

    use super::*;
    use crate::chain::fake::FakeChain;
    use crate::testing::{manifest, toolbox};

    /// The course of a run with this prompt, whose whitelist has `now` and `math_eval`.
    fn begin(prompt: &str, deterministic: bool) -> Result<Box<dyn AgentSession>, String> {
        begin_again(prompt, deterministic, &[])
    }

    /// The same, where these tools were offered before.
    fn begin_again(
        prompt: &str,
        deterministic: bool,
        before: &[ToolSpec],
    ) -> Result<Box<dyn AgentSession>, String> {
        let chain = FakeChain::new();
        let run = chain.run_of(&chain.add_run(prompt, 10_000, 10));
        let run = RunView { tools: vec!["now".into(), "math_eval".into()], ..run };
        let model = Manifest { deterministic, ..manifest() };
        Understanding::new(toolbox(""), model).begin(&run, None, before)
    }

    fn tools(session: &dyn AgentSession) -> Vec<String> {
        session.ask().tools.iter().map(|tool| tool.name.clone()).collect()
    }

    fn tools_chat(deterministic: bool) -> String {
        format!(
            r#"{{"ombraAgent":1,"method":"inferToolsChat","deterministic":{deterministic},"args":{{"roles":["user"],"messages":["x"],"mcpServerUrls":[],"onchainTools":[],"maxIterations":3,"chainOfThought":false}}}}"#
        )
    }

    #[tokio::test]
    async fn an_answer_that_others_can_make_again_is_promised_only_by_a_model_that_can() {
        let refused = begin(&tools_chat(true), false).unwrap_err();
        assert!(refused.contains("deterministic"), "{refused}");
        assert!(begin(&tools_chat(false), false).is_ok());
        // The clock is no tool for it.
        assert_eq!(vec!["math_eval"], tools(&*begin(&tools_chat(true), true).unwrap()));
    }

    #[tokio::test]
    async fn plain_text_has_the_tools_of_the_whitelist() {
        let session = begin("What time is it?", false).unwrap();
        assert_eq!(vec!["math_eval", "now"], tools(&*session));
        assert_eq!("What time is it?", session.ask().messages[0].text);
    }

    #[tokio::test]
    async fn what_was_offered_stays_on_offer_though_nothing_is_known_of_it_any_more() {
        let spec = |name: &str| ToolSpec {
            name: name.into(),
            description: "as before".into(),
            parameters: serde_json::json!({ "type": "object" }),
        };
        let before = ["away__look", "math_eval", "swap"].map(spec);
        let session = begin_again("What time is it?", false, &before[..2]).unwrap();
        assert_eq!(vec!["away__look", "math_eval", "now"], tools(&*session));
        assert_eq!(before[0], session.ask().tools[0]);
        assert_ne!(before[1], session.ask().tools[1], "what is known is offered as it is");
        let functions = r#""onchainTools":[{"signature":"swap(uint256 amount)","description":""}]"#;
        let prompt = tools_chat(false).replace(r#""onchainTools":[]"#, functions);
        let session = begin_again(&prompt, false, &before).unwrap();
        assert_eq!(vec!["away__look", "math_eval", "now", "swap"], tools(&*session));
    }

    #[tokio::test]
    async fn a_request_that_breaks_a_rule_is_refused_with_its_field() {
        let refused = begin(r#"{"ombraAgent":1,"method":"inferMagic"}"#, true).unwrap_err();
        assert!(refused.contains("method"), "{refused}");
    }
}
