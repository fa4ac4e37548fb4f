//! The methods of docs/agent-methods.md that have a signature, as methods of an agent.

use serde_json::{Map, Value, json};
use types::abi;

use super::super::{Form, Inference};
use super::model_access::{ModelAccess, Stopped, instructions, message};
use super::tools::OwnTools;
use crate::messages::{Constraint, End, Iteration, Message, NOW_ANSWER, Output, Role};
use crate::methods::{AgentSession, Ask, Method, Move, Parsed, Refused, Request};

/// The canonical signature of a method, and the types of its answer; none where signatures of Solidity
/// cannot carry what is asked.
const fn published(method: Method) -> Option<(&'static str, &'static [&'static str])> {
    Some(match method {
        Method::InferString => ("inferString(string,string,bool,string[])", &["string"]),
        Method::InferNumber => ("inferNumber(string,string,int256,int256,bool)", &["int256"]),
        Method::InferChat => ("inferChat(string[],string[],bool)", &["string"]),
        Method::InferToolsChat => (
            "inferToolsChat(string[],string[],string[],(string,string)[],uint256,bool)",
            &["string", "string", "string[]", "string[]", "string[]", "bytes[]"],
        ),
        Method::InferMessages => return None,
    })
}

/// Which of the four a method is, by its canonical signature.
pub(super) fn find(method: &abi::Method) -> Option<Method> {
    let signature = method.signature();
    Method::ALL.into_iter().find(|of| published(*of).is_some_and(|it| it.0 == signature))
}

/// The same method without names, so that tuples are read by place whatever the metadata call their parts.
pub(super) fn unnamed(method: &abi::Method) -> abi::Method {
    abi::Method { inputs: without_names(&method.inputs), ..method.clone() }
}

fn without_names(parameters: &[abi::Parameter]) -> Vec<abi::Parameter> {
    let unnamed = |parameter: &abi::Parameter| {
        let of_type = &parameter.of_type;
        let same = abi::Type::new(*of_type.name(), without_names(of_type.components()));
        let of_type = same.unwrap_or_else(|_| of_type.clone());
        abi::Parameter { name: String::new(), of_type }
    };
    parameters.iter().map(unnamed).collect()
}

/// Answers a call: the outputs as published, whatever the metadata say of them.
pub(super) fn answer(
    method: Method,
    arguments: &[Value],
    access: &mut ModelAccess<'_, '_>,
) -> Result<Vec<u8>, Stopped> {
    let request = request(method, arguments, access.settings.max_iterations)?;
    let tools = match method {
        Method::InferToolsChat => Some(access.tools()?),
        Method::InferString | Method::InferNumber | Method::InferChat | Method::InferMessages => {
            None
        }
    };
    let specs = tools.as_ref().map(OwnTools::specs).unwrap_or_default();
    let mut session = AgentSession::of_request(&request, specs).map_err(refused)?;
    let ending = loop {
        let output = ask(&session, access)?;
        let mut next = session.take(&output);
        if let (Move::Tools(calls), Some(tools)) = (&next, &tools) {
            let results = access.call(tools, calls)?;
            next = session.results(&results);
        }
        if let Move::Finish(ending) = next {
            break ending;
        }
    };
    encode(method, &ending.answer)
}

fn refused(refused: Refused) -> Stopped {
    Stopped::Failure(refused.to_string())
}

/// The request that a run with these arguments would be.
fn request(method: Method, arguments: &[Value], iterations_max: u32) -> Result<Request, Stopped> {
    let pairs = method.arguments().iter().zip(arguments);
    let given: Map<String, Value> =
        pairs.map(|(name, value)| ((*name).to_owned(), as_in_runs(name, value))).collect();
    let envelope = json!({ "ombraAgent": 1, "method": method.name(), "args": given });
    let Parsed::Method(request) = Request::parse(&envelope.to_string(), None).map_err(refused)?
    else {
        return Err(Stopped::failure("the arguments are none of the method"));
    };
    if !request.mcp_server_urls().is_empty() {
        return Err(Stopped::failure("args.mcpServerUrls: expected no servers, agents reach none"));
    }
    let mut ask = request.ask().clone();
    if let Ask::InferToolsChat { max_iterations, .. } = &mut ask {
        *max_iterations = iterations_max.min(*max_iterations);
    }
    Request::new(ask).map_err(refused)
}

/// An argument in the form that an envelope has: a small number plain, a declaration by name.
fn as_in_runs(name: &str, value: &Value) -> Value {
    match (name, value) {
        ("maxIterations", Value::String(digits)) => {
            digits.parse::<u64>().map_or_else(|_| value.clone(), Value::from)
        }
        ("onchainTools", Value::Array(declarations)) => {
            declarations.iter().map(declaration).collect()
        }
        _ => value.clone(),
    }
}

fn declaration(tuple: &Value) -> Value {
    json!({ "signature": tuple.get(0), "description": tuple.get(1) })
}

/// What the model says to the course's question.
fn ask(session: &AgentSession, access: &mut ModelAccess<'_, '_>) -> Result<Output, Stopped> {
    let max = access.settings.max_output_tokens;
    // A text that is cut off is an answer here, so there is never one to go on with.
    let Iteration {
        messages,
        tools,
        constraint,
        thinks,
        so_far: _,
        stops: _,
        output_tokens_max: _,
    } = session.iteration(max);
    let mut messages = with_base(&access.settings.base_prompt, messages);
    if !tools.is_empty() {
        let (inference, used) = access.ask(&messages, &Form::Tools(tools.to_vec()), max)?;
        return Ok(output(inference, used, &Constraint::Free));
    }
    let mut thought = 0;
    if thinks && max > 1 {
        let free = Form::Plain(Constraint::Free);
        let (inference, used) = access.ask(&messages, &free, max.div_euclid(2))?;
        messages.push(message(Role::Assistant, inference.text));
        messages.push(message(Role::User, NOW_ANSWER.to_owned()));
        thought = used;
    }
    let left = max.saturating_sub(thought);
    let (inference, used) = access.ask(&messages, &Form::Plain(constraint.clone()), left)?;
    Ok(output(inference, used.saturating_add(thought), constraint))
}

/// The conversation with what the agent says before it.
fn with_base(base_prompt: &str, messages: &[Message]) -> Vec<Message> {
    let (first, rest) = match messages.split_first() {
        Some((first, rest)) if first.role == Role::System => (first.text.as_str(), rest),
        Some(_) | None => ("", messages),
    };
    instructions(&[base_prompt, first]).into_iter().chain(rest.iter().cloned()).collect()
}

fn output(inference: Inference, output_tokens: u32, constraint: &Constraint) -> Output {
    let Inference { text, tool_calls, is_cut, .. } = inference;
    let end = if !tool_calls.is_empty() {
        End::ToolCalls
    } else if !is_cut {
        End::Stop
    } else if text.trim_start().starts_with(infer::CALL_START) {
        End::CallCut
    } else if *constraint == Constraint::Free {
        End::Stop
    } else {
        End::Length
    };
    Output { text, thoughts: None, tool_calls, output_tokens, prompt_tokens: 0, end }
}

/// The final answer of a run as the outputs of a method.
fn encode(method: Method, answer: &str) -> Result<Vec<u8>, Stopped> {
    let answer: Map<String, Value> = serde_json::from_str(answer).unwrap_or_default();
    let member = |name: &str| answer.get(name).cloned().unwrap_or_default();
    let response = member("response");
    if member("finishReason") == "error" {
        return Err(Stopped::Failure(response.as_str().unwrap_or_default().to_owned()));
    }
    let values = match method {
        Method::InferString | Method::InferNumber | Method::InferChat | Method::InferMessages => {
            json!([response])
        }
        Method::InferToolsChat => Value::from_iter([
            member("finishReason"),
            response,
            member("updatedRoles"),
            member("updatedMessages"),
            member("pendingToolCallIds"),
            member("pendingToolCalls"),
        ]),
    };
    let encoded = outputs(method).encode_answer(&values.to_string());
    encoded.map_err(|error| Stopped::Failure(format!("the answer: {error}")))
}

/// The method with its published outputs.
fn outputs(method: Method) -> abi::Method {
    let parameter = |name: &&str| {
        let of_type = abi::Type::new(abi::TypeName::parse(name).ok()?, Vec::new()).ok()?;
        Some(abi::Parameter { name: String::new(), of_type })
    };
    let types = published(method).map_or(&[][..], |it| it.1);
    let outputs = types.iter().filter_map(parameter).collect();
    abi::Method { name: method.name().to_owned(), inputs: Vec::new(), outputs }
}
