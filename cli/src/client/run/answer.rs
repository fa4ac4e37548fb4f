//! The answer of a settled run: fetched, checked, and understood if a method was asked for.

use agent::methods::{ANSWER_BYTES_MAX, Answer, ENVELOPE_BYTES_MAX, Parsed, Reason, Request};
use serde_json::{Map, Value, json};
use wallet::Client;
use wallet::client::records::Run;

use super::agent::outputs;
use super::bill::counted;
use super::texts::Texts;
use crate::client::output::{indented, one_line};
use crate::client::{CliError, Out, Outcome};

/// The longest plain answer that is fetched; a method's has a limit of its own.
const TEXT_BYTES_MAX: usize = 16 * 1024 * 1024;
const SHOWN_CHARS_MAX: usize = 200;

/// What a run answered, as far as it can be had.
#[derive(Debug)]
pub(super) struct Reading {
    /// The answer as it stands on the chain; none if there is none, or it could not be had.
    text: Option<String>,
    /// What to say about an answer that could not be had.
    missing: Option<String>,
    /// For a run that asked for a method: what its answer says, or why it says nothing.
    method: Option<Result<MethodAnswer, String>>,
    /// For a run that had a method of an agent executed: the outputs, for people.
    outputs: Option<String>,
}

/// The answer to a request for a method.
#[derive(Debug)]
struct MethodAnswer {
    answer: Answer,
    calls: Vec<Call>,
    /// Why the calls are not what the model wanted, if they are not.
    fault: Option<String>,
}

/// A call that the requester is to execute.
#[derive(Debug)]
struct Call {
    id: String,
    /// None for the calls of `inferMessages`, which are what they say.
    calldata: Option<String>,
    /// Name and arguments; none if the calldata is no call of a declared function.
    decoded: Option<(String, Map<String, Value>)>,
}

impl Reading {
    /// Reads the answer of a settled run.
    pub(super) async fn of(run: &Run, client: &Client, texts: &Texts) -> Self {
        let request = question(run, texts).await;
        let bytes_max = match &request {
            Ok(Some(_)) => ANSWER_BYTES_MAX,
            Ok(None) | Err(_) => TEXT_BYTES_MAX,
        };
        let (text, missing) = match (&run.final_answer_inline, &run.final_answer_blob_id) {
            (Some(text), _) => (Some(text.clone()), None),
            (None, Some(id)) => match texts.read(id, bytes_max).await {
                Ok(text) => (Some(text), None),
                Err(error) => (None, Some(format!("the answer cannot be shown: {error}"))),
            },
            (None, None) => (None, None),
        };
        let method = match (request, &text) {
            (Ok(Some(request)), Some(text)) => Some(understand(&request, text)),
            // What a miner says of a request that nobody understands is a method's answer, too.
            (Err(error), Some(text)) => {
                let answer = Answer::parse(text).map_err(|_refused| error.to_string());
                Some(answer.map(MethodAnswer::without_calls))
            }
            (Ok(_) | Err(_), None) | (Ok(None), Some(_)) => None,
        };
        let outputs = match &text {
            Some(text) => outputs(run, text, client, texts).await,
            None => None,
        };
        Self { text, missing, method, outputs }
    }

    /// What was answered: the response of a method, or the text.
    pub(super) fn response(&self) -> Option<&str> {
        match &self.method {
            Some(Ok(understood)) => Some(&understood.answer.response),
            Some(Err(_)) => None,
            None => self.text.as_deref(),
        }
    }

    /// The answer for people.
    pub(super) fn print(&self, run: &Run, out: Out<'_>) -> Outcome {
        if let Some(missing) = &self.missing {
            writeln!(out, "{}", indented(missing))?;
        }
        match (&self.method, &self.text) {
            (Some(Ok(answer)), _) => answer.print(run, out)?,
            (Some(Err(why)), Some(text)) => {
                writeln!(
                    out,
                    "\n{}\n\nnot an answer of its method: {}",
                    indented(text),
                    indented(why)
                )?;
            }
            (None, Some(text)) => match &self.outputs {
                Some(outputs) => writeln!(out, "\n{outputs}\n")?,
                None => writeln!(out, "\n{}\n", indented(text))?,
            },
            (_, None) => {}
        }
        Ok(())
    }

    /// The answer as JSON; null if there is none.
    pub(super) fn json(&self) -> Value {
        let Some(text) = &self.text else {
            return self
                .missing
                .as_ref()
                .map_or(Value::Null, |missing| json!({ "fault": missing }));
        };
        match &self.method {
            None => match &self.outputs {
                None => json!({ "text": text }),
                Some(outputs) => json!({ "text": text, "outputs": outputs }),
            },
            Some(Err(why)) => json!({ "text": text, "fault": why }),
            Some(Ok(understood)) => understood.json(text),
        }
    }
}

/// What a run asked for; none for plain text.
pub(super) async fn question(run: &Run, texts: &Texts) -> Result<Option<Request>, CliError> {
    let unreadable =
        |refused| CliError::Failed(format!("cannot read the run's request: {refused}"));
    match Request::parse(&run.prompt, None).map_err(unreadable)? {
        Parsed::PlainText(_) => Ok(None),
        Parsed::Method(request) => Ok(Some(request)),
        Parsed::NeedsBlob { .. } => {
            let Some(id) = &run.prompt_blob_id else {
                return Err(CliError::Failed(
                    "the request is in a blob, but the run does not name the blob".into(),
                ));
            };
            let blob = texts.read(id, ENVELOPE_BYTES_MAX).await?;
            match Request::parse(&run.prompt, Some(&blob)).map_err(unreadable)? {
                Parsed::Method(request) => Ok(Some(request)),
                Parsed::PlainText(_) | Parsed::NeedsBlob { .. } => Ok(None),
            }
        }
    }
}

/// The options of a command that gives the results of calls. A miner chose the ids, and the command is
/// there to be copied.
fn results(calls: &[Call]) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let results = calls
        .iter()
        .map(|call| call.id.bytes().all(is_plain).then(|| format!(" --result {}=TEXT", call.id)));
    results.collect::<Option<String>>().unwrap_or_else(|| " --results FILE".to_owned())
}

fn understand(request: &Request, text: &str) -> Result<MethodAnswer, String> {
    let answer = Answer::parse(text).map_err(|refused| refused.to_string())?;
    let functions = request.functions();
    let checked = answer
        .check_calls(functions)
        .and_then(|()| request.check_beginning(&answer))
        .and_then(|()| request.check_tool_calls(&answer));
    let fault = checked.err().map(|refused| refused.to_string());
    let calls = answer.hand_back.calls.iter().map(|call| Call {
        id: call.id.clone(),
        calldata: Some(const_hex::encode_prefixed(&call.calldata)),
        decoded: functions.decode(&call.calldata).ok().map(|call| (call.name, call.arguments)),
    });
    let plain = answer.tool_calls.iter().map(|call| Call {
        id: call.id.clone(),
        calldata: None,
        decoded: Some((call.name.clone(), call.arguments.clone())),
    });
    let calls = calls.chain(plain).collect();
    Ok(MethodAnswer { answer, calls, fault })
}

impl MethodAnswer {
    const fn without_calls(answer: Answer) -> Self {
        Self { answer, calls: Vec::new(), fault: None }
    }

    fn print(&self, run: &Run, out: Out<'_>) -> Outcome {
        let Self { answer, calls, fault } = self;
        if !answer.response.is_empty() {
            writeln!(out, "\n{}\n", indented(&answer.response))?;
        }
        write!(out, "finish       {}", answer.reason.name())?;
        match answer.reason {
            Reason::ToolCalls => writeln!(out, ": {} for you to execute", counted_calls(calls))?,
            Reason::MaxIterations => writeln!(out, ": the round trips are used up")?,
            Reason::Length => writeln!(out, ": the answer was cut off")?,
            Reason::Stop | Reason::Error => writeln!(out)?,
        }
        for Call { id, calldata, decoded } in calls {
            let id = one_line(id, SHOWN_CHARS_MAX);
            match decoded {
                Some((name, arguments)) => {
                    let arguments = Value::Object(arguments.clone()).to_string();
                    writeln!(out, "{id:<12} {name}({})", one_line(&arguments, SHOWN_CHARS_MAX))?;
                }
                None => writeln!(out, "{id:<12} no call of a declared function")?,
            }
            if let Some(calldata) = calldata {
                writeln!(out, "             calldata {}", one_line(calldata, SHOWN_CHARS_MAX))?;
            }
        }
        if let Some(fault) = fault {
            writeln!(out, "WARNING      do not execute these calls: {}", indented(fault))?;
        } else if !calls.is_empty() {
            writeln!(out, "to go on: ombra run --resume {}{}\n", run.agent_run_id, results(calls))?;
        }
        Ok(())
    }

    fn json(&self, text: &str) -> Value {
        let Self { answer, calls, fault } = self;
        let call = |call: &Call| {
            let Call { id, calldata, decoded } = call;
            let (name, arguments) = decoded.clone().unzip();
            let mut shown = json!({ "id": id, "name": name, "arguments": arguments });
            if let Some(calldata) = calldata {
                shown["calldata"] = json!(calldata);
            }
            shown
        };
        let calls: Vec<_> = calls.iter().map(call).collect();
        let decoded: Value = serde_json::from_str(text).unwrap_or_default();
        let mut object = json!({
            "text": text,
            "method": decoded["method"],
            "finishReason": answer.reason.name(),
            "response": answer.response,
        });
        for key in ["updatedRoles", "updatedMessages"] {
            if let Some(value) = decoded.get(key) {
                object[key] = value.clone();
            }
        }
        if decoded.get("pendingToolCalls").is_some() || decoded.get("toolCalls").is_some() {
            object["pendingCalls"] = Value::Array(calls);
        }
        if let Some(fault) = fault {
            object["fault"] = json!(fault);
        }
        object
    }
}

fn counted_calls(calls: &[Call]) -> String {
    counted(u64::try_from(calls.len()).unwrap_or(u64::MAX), "call")
}
