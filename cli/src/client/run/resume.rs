//! `ombra run --resume`: the results of calls go back to the model, in a new run of the same
//! conversation (docs/agent-methods.md section 8).

use std::collections::BTreeMap;
use std::path::PathBuf;

use agent::methods::{ANSWER_BYTES_MAX, Answer, Request};
use clap::Args;
use types::Hash;
use wallet::client::records::Run;
use wallet::{Answer as Told, Client};

use super::answer::question;
use super::texts::Texts;
use crate::client::output::one_line;
use crate::client::{CliError, input};

/// More than any envelope: its own limit gives the exact answer.
const RESULTS_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Characters of a call's id that are shown: a miner chose it.
const ID_CHARS_MAX: usize = 80;

/// A run to go on with.
#[derive(Args, Debug, Default)]
pub struct ResumeArgs {
    /// Resume this run, which handed calls back to you; its terms apply again unless you give
    /// others
    #[arg(long, value_name = "RUN", conflicts_with_all = ["prompt", "prompt_file", "method"],
        help_heading = HEADING)]
    pub(super) resume: Option<Hash>,
    /// The result of a call; may be given several times
    #[arg(long, value_name = "CALL=TEXT", requires = "resume", value_parser = result,
        help_heading = HEADING)]
    result: Vec<(String, String)>,
    /// File with results, a JSON object of texts by the ids of calls ('-': standard input)
    #[arg(long, value_name = "FILE", requires = "resume", help_heading = HEADING)]
    results: Option<PathBuf>,
}

const HEADING: &str = "Resuming (docs/agent-methods.md section 8)";

/// A run that is being resumed.
#[derive(Debug)]
pub(super) struct Resumed {
    /// The run before.
    pub(super) run: Told<Run>,
    /// The request that follows.
    pub(super) request: Request,
}

impl ResumeArgs {
    /// The request that goes on where `id` stopped.
    ///
    /// # Errors
    /// A run that handed nothing back, a result that is missing or that nobody waits for.
    pub(super) async fn request(&self, id: Hash, client: &Client) -> Result<Resumed, CliError> {
        let run = client.run(&id).await?;
        let texts = Texts::of(client)?;
        let nothing = |why: &str| CliError::Usage(format!("--resume: run {id} {why}"));
        if !run.is_settled() {
            return Err(nothing("is not settled yet; follow it: ombra run --follow"));
        }
        let request = question(&run, &texts).await?;
        let request = request.ok_or_else(|| nothing("asked for no method"))?;
        let text = match (&run.final_answer_inline, &run.final_answer_blob_id) {
            (Some(text), _) => text.clone(),
            (None, Some(blob)) => texts.read(blob, ANSWER_BYTES_MAX).await?,
            (None, None) => return Err(nothing("has no answer")),
        };
        let unusable = |refused| nothing(&format!("cannot be resumed: {refused}"));
        let answer = Answer::parse(&text).map_err(unusable)?;
        if answer.hand_back.calls.is_empty() && answer.tool_calls.is_empty() {
            let reason = answer.reason.name();
            return Err(nothing(&format!("handed no calls back: it finished with {reason}")));
        }
        answer.check_calls(request.functions()).map_err(unusable)?;
        request.check_beginning(&answer).map_err(unusable)?;
        request.check_tool_calls(&answer).map_err(unusable)?;
        let results = self.in_order(&answer)?;
        let request = request.resume(&answer, &results).map_err(unusable)?;
        Ok(Resumed { run, request })
    }

    /// The results in the order of the calls.
    fn in_order(&self, answer: &Answer) -> Result<Vec<String>, CliError> {
        let mut given = self.given()?;
        let ids = || {
            let pending = answer.hand_back.calls.iter().map(|call| call.id.as_str());
            pending.chain(answer.tool_calls.iter().map(|call| call.id.as_str()))
        };
        let take = |id: &str| {
            given.remove(id).ok_or_else(|| {
                let shown = one_line(id, ID_CHARS_MAX);
                CliError::Usage(format!("--result: call {id:?} has no result; give {shown}=TEXT"))
            })
        };
        let results = ids().map(take).collect::<Result<Vec<_>, _>>()?;
        if let Some(unknown) = given.keys().next() {
            let shown = ids().map(|id| one_line(id, ID_CHARS_MAX));
            let waiting = shown.collect::<Vec<_>>().join(", ");
            let text = format!(
                "--result: no call {unknown:?} is waiting for a result; waiting: {waiting}"
            );
            return Err(CliError::Usage(text));
        }
        Ok(results)
    }

    /// All results by their calls.
    fn given(&self) -> Result<BTreeMap<String, String>, CliError> {
        let mut given = BTreeMap::new();
        if let Some(path) = &self.results {
            let text = input::read_text(path, RESULTS_BYTES_MAX)?;
            given = serde_json::from_str(&text).map_err(|error| {
                let name = path.display();
                CliError::Usage(format!("{name}: expected {{\"CALL\":\"TEXT\", …}}: {error}"))
            })?;
        }
        for (id, text) in &self.result {
            if given.insert(id.clone(), text.clone()).is_some() {
                return Err(CliError::Usage(format!("--result: {id:?} is given twice")));
            }
        }
        Ok(given)
    }
}

/// `call_0=the result`.
fn result(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').ok_or_else(|| format!("{text:?}: expected CALL=TEXT"))?;
    Ok((parts.0.to_owned(), parts.1.to_owned()))
}
