//! What an executor may do on behalf of an agent, each counted and traced.

use std::fmt::Debug;
use std::sync::Arc;

use serde_json::{Map, Value};
use types::agent::{NESTING_MAX, Tool};
use types::call::Outcome;
use types::{Address, Hash, Usage};

use super::halt::{Halt, Stop};
use super::inference::{Form, Inference, Model, ModelAsk, ModelFault};
use super::trace::{End, Trace, Whose, Work};
use super::{Agent, Library, Limit, Meter, Verdict};
use crate::messages::Message;
use crate::tools::{Code, Failure, call_pure, canonical_json};

/// Whose call it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The call.
    pub call_id: Hash,
    /// Who asked and pays.
    pub requester: Address,
}

/// What a nested agent answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nested {
    /// Who.
    pub agent: Arc<Agent>,
    /// What.
    pub verdict: Verdict,
}

/// What is here to execute agents and to answer their questions.
pub(super) trait Dispatch: Debug {
    /// The model with this manifest; none if it is not here.
    fn model(&self, manifest: &Hash) -> Option<Arc<dyn Model>>;

    /// Executes an agent in a scope, by the executor that its metadata name.
    ///
    /// # Errors
    /// [`Halt`], also where that executor is not here.
    fn execute(
        &self,
        agent: &Agent,
        payload: &[u8],
        scope: &mut Scope<'_>,
    ) -> Result<Verdict, Halt>;
}

/// What an agent may use while it is executed. Agents that are nested have scopes of their own, which
/// count on the same meter.
#[derive(Debug)]
pub struct Scope<'a> {
    executors: &'a dyn Dispatch,
    library: &'a Library,
    meter: &'a mut Meter,
    context: &'a Context,
    stop: &'a Stop,
    trace: Trace,
    /// How many agents are above it.
    depth: u8,
}

impl<'a> Scope<'a> {
    /// The scope of the agent that is called.
    pub(super) fn new(
        executors: &'a dyn Dispatch,
        library: &'a Library,
        meter: &'a mut Meter,
        context: &'a Context,
        stop: &'a Stop,
    ) -> Self {
        Self { executors, library, meter, context, stop, trace: Trace::default(), depth: 0 }
    }

    /// Whose call it is.
    #[must_use]
    pub const fn context(&self) -> &Context {
        self.context
    }

    /// When to give up.
    #[must_use]
    pub const fn stop(&self) -> &Stop {
        self.stop
    }

    /// What is left of the limits.
    #[must_use]
    pub const fn left(&self) -> Usage {
        self.meter.left()
    }

    /// A program that the library has.
    ///
    /// # Errors
    /// [`Halt::Unable`] if it has not.
    pub fn program(&self, blob_id: &str) -> Result<Arc<[u8]>, Halt> {
        let missing = || Halt::Unable(format!("the program {blob_id} is not here"));
        self.library.program(blob_id).ok_or_else(missing)
    }

    /// An agent that the library has.
    ///
    /// # Errors
    /// [`Halt::Unable`] if it has not.
    pub fn described(&self, id: &Hash, version: &str) -> Result<Arc<Agent>, Halt> {
        let missing = || Halt::Unable(format!("the agent {id} {version} is not here"));
        self.library.agent(id, version).ok_or_else(missing)
    }

    /// Counts fuel.
    ///
    /// # Errors
    /// [`Halt::Exhausted`].
    pub fn burn(&mut self, fuel: u64) -> Result<(), Halt> {
        self.count(Usage { fuel, ..Usage::default() })
    }

    /// Counts what was used outside of this program.
    ///
    /// # Errors
    /// [`Halt::Exhausted`].
    pub fn count(&mut self, usage: Usage) -> Result<(), Halt> {
        self.meter.add(usage).map_err(Halt::Exhausted)
    }

    /// Writes a line into the receipt.
    ///
    /// # Errors
    /// [`Halt::Exhausted`] if the receipt is full.
    pub fn log(&mut self, line: &str) -> Result<(), Halt> {
        self.meter.record(line.len())?;
        self.trace.log(line);
        Ok(())
    }

    /// Writes something else into the receipt.
    pub fn note(&mut self, name: &str, value: Value) {
        self.trace.other(name, value);
    }

    /// Asks the model with this manifest, within what is left.
    ///
    /// The answer is text and whether it was cut off at `output_tokens_max`; or, for everybody, why the
    /// model cannot answer.
    ///
    /// # Errors
    /// [`Halt`].
    pub fn infer(
        &mut self,
        manifest: Hash,
        messages: &[Message],
        form: &Form,
        output_tokens_max: u32,
    ) -> Result<Result<(String, bool), String>, Halt> {
        let answer = self.ask(manifest, messages, form, output_tokens_max)?;
        Ok(answer.map(|inference| (inference.text, inference.is_cut)))
    }

    /// The same, with the tools that the model calls.
    ///
    /// # Errors
    /// [`Halt`].
    pub fn ask(
        &mut self,
        manifest: Hash,
        messages: &[Message],
        form: &Form,
        output_tokens_max: u32,
    ) -> Result<Result<Inference, String>, Halt> {
        self.stop.check()?;
        let model = self.executors.model(&manifest);
        let missing = || Halt::Unable(format!("the model {manifest} is not here"));
        let model = model.ok_or_else(missing)?;
        let left = self.meter.left();
        let most = u32::try_from(left.output_tokens).unwrap_or(u32::MAX).min(output_tokens_max);
        if most == 0 {
            return Err(Halt::Exhausted(Limit::OutputTokens));
        }
        let ask = ModelAsk {
            messages,
            form,
            input_tokens_max: left.input_tokens,
            output_tokens_max: most,
        };
        let inference = match model.infer(&ask, self.stop) {
            Ok(inference) => inference,
            Err(ModelFault::Question(why)) => return Ok(Err(why)),
            Err(ModelFault::InputTokens) => return Err(Halt::Exhausted(Limit::InputTokens)),
            Err(ModelFault::Unable(why)) => return Err(Halt::Unable(why)),
        };
        if inference.served.is_some() {
            self.meter.record(inference.text.len())?;
            self.trace.served(manifest, messages, &inference);
        } else {
            self.trace.model(manifest, &inference.readings);
        }
        self.meter.add(inference.usage())?;
        if inference.is_cut && most < output_tokens_max {
            return Err(Halt::Exhausted(Limit::OutputTokens));
        }
        Ok(Ok(inference))
    }

    /// Calls a built-in tool of the agent; the answer is whether it did what it was asked, and what it said.
    ///
    /// # Errors
    /// [`Halt::Exhausted`] if the receipt is full.
    pub fn tool(
        &mut self,
        agent: &Agent,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<(bool, String), Halt> {
        let asked = canonical_json(&Value::Object(arguments.clone())).len();
        self.meter.record(asked.saturating_add(name.len()))?;
        let is_granted = |tool: &Tool| matches!(tool, Tool::BuiltIn(own) if *own == name);
        let answer = if agent.metadata.tools.iter().any(is_granted) {
            call_pure(name, arguments)
        } else {
            Err(Failure::new(Code::NotGranted, "the agent has no such tool"))
        };
        let (ok, content) = match answer {
            Ok(content) => (true, content),
            Err(failure) => (false, failure.to_string()),
        };
        self.meter.record(content.len())?;
        self.trace.tool(name, arguments, ok, &content);
        Ok((ok, content))
    }

    /// Executes an agent that is among the tools of `agent`, within what is left. The inner error says, for
    /// everybody, why there is no such agent.
    ///
    /// # Errors
    /// [`Halt`].
    pub fn agent(
        &mut self,
        agent: &Agent,
        id: &Hash,
        version: &str,
        payload: &[u8],
    ) -> Result<Result<Nested, String>, Halt> {
        self.stop.check()?;
        let is_granted = |tool: &Tool| matches!(tool, Tool::Agent { id: own, version: of } if own == id && of.as_str() == version);
        if !agent.metadata.tools.iter().any(is_granted) {
            return Ok(Err(format!("agent:{id}@{version} is not among the agent's tools")));
        }
        // The chain has checked that; what was not published yet may nest deeper.
        if self.depth.saturating_add(1) >= NESTING_MAX {
            return Ok(Err(format!("agents nest at most {NESTING_MAX} deep")));
        }
        let nested = self.described(id, version)?;
        // Both are written in hex.
        self.meter.record(payload.len().saturating_mul(2))?;
        let scope = Scope {
            executors: self.executors,
            library: self.library,
            meter: &mut *self.meter,
            context: self.context,
            stop: self.stop,
            trace: Trace::default(),
            depth: self.depth.saturating_add(1),
        };
        let Ended { verdict, work } = scope.execute(&nested, payload)?;
        let answer = match &verdict {
            Ok(Verdict::Success(result)) => result.len().saturating_mul(2),
            Ok(Verdict::Failure(reason)) => reason.len(),
            Err(_) => 0,
        };
        self.meter.record(answer)?;
        self.trace.agent(work);
        Ok(Ok(Nested { agent: nested, verdict: verdict? }))
    }

    /// Executes an agent in this scope. The inner error is a limit of the call that is reached: every
    /// member reaches it at the same point, so the work up to there is part of what they agree about.
    ///
    /// # Errors
    /// [`Halt::Unable`].
    pub(super) fn execute(mut self, agent: &Agent, payload: &[u8]) -> Result<Ended, Halt> {
        self.stop.check()?;
        let before = self.meter.used();
        let verdict = match self.executors.execute(agent, payload, &mut self) {
            Ok(verdict) => Ok(verdict),
            Err(Halt::Exhausted(limit)) => Err(limit),
            Err(unable @ Halt::Unable(_)) => return Err(unable),
        };
        let limit = verdict.as_ref().err().map(ToString::to_string).unwrap_or_default();
        let (outcome, result, reason) = match &verdict {
            Ok(Verdict::Success(result)) => (Outcome::Success, result.as_slice(), ""),
            Ok(Verdict::Failure(reason)) => (Outcome::Failure, [].as_slice(), reason.as_str()),
            Err(_) => (Outcome::Failure, [].as_slice(), limit.as_str()),
        };
        let usage = difference(self.meter.used(), before);
        let version = agent.metadata.version.as_str();
        let whose = Whose { id: agent.id, version, payload };
        let work = self.trace.finish(&whose, &End { outcome, result, reason, usage });
        Ok(Ended { verdict, work })
    }
}

/// What came of an execution.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) verdict: Result<Verdict, Limit>,
    pub(super) work: Work,
}

const fn difference(after: Usage, before: Usage) -> Usage {
    Usage {
        input_tokens: after.input_tokens.saturating_sub(before.input_tokens),
        output_tokens: after.output_tokens.saturating_sub(before.output_tokens),
        fuel: after.fuel.saturating_sub(before.fuel),
    }
}
