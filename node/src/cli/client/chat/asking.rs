//! Questions in a conversation: each is a run, and knows the ones before it.

use serde_json::json;

use super::screen::Screen;
use crate::cli::client::run::{Person, Question, converse};
use crate::cli::client::tx::{Sender, TermsArgs};
use crate::cli::client::{CliError, Out, Outcome};

/// Round trips between model and tools that a question may take.
const ITERATIONS_MAX: u32 = 8;

/// The terms of questions, and those of this session that were answered, with their answers.
#[derive(Debug)]
pub(super) struct Memory {
    terms: TermsArgs,
    answered: Vec<(String, String)>,
}

impl Memory {
    /// Nothing was asked yet.
    pub(super) const fn new(terms: TermsArgs) -> Self {
        Self { terms, answered: Vec::new() }
    }

    /// Asks, follows the run, and shows its answer and its bill. What goes wrong with the run is
    /// told, and the conversation goes on.
    pub(super) async fn ask(
        &mut self,
        sender: &Sender,
        text: &str,
        screen: &Screen,
        person: &mut Person,
        out: Out<'_>,
    ) -> Outcome {
        let mut discarded = std::io::sink();
        let narration: Out<'_> = if screen.is_json() { &mut discarded } else { &mut *out };
        let asked = match self.question(text) {
            Ok(question) => converse(sender, question, self.terms.clone(), person, narration).await,
            Err(error) => Err(error),
        };
        match asked {
            Ok(end) => {
                if let Some(answer) = end.response() {
                    self.answered.push((text.to_owned(), answer.to_owned()));
                }
                if screen.is_json() {
                    writeln!(out, "{}", end.json(&sender.client).await?)?;
                } else {
                    end.print(out)?;
                }
            }
            Err(CliError::Output(error)) => return Err(error.into()),
            Err(error) if screen.is_json() => {
                writeln!(out, "{}", json!({ "error": error.to_string() }))?;
            }
            Err(error) => screen.note(&error.to_string(), out)?,
        }
        Ok(())
    }

    /// The first question is plain text; later ones carry what was said before them.
    fn question(&self, text: &str) -> Result<Question, CliError> {
        let terms = &self.terms;
        if self.answered.is_empty() {
            return Question::of_text(text.to_owned(), terms);
        }
        let before = self.answered.iter().flat_map(|(question, answer)| [question, answer]);
        let messages: Vec<_> = before.map(String::as_str).chain([text]).collect();
        let roles: Vec<_> =
            (0..messages.len()).map(|at| if at % 2 == 0 { "user" } else { "assistant" }).collect();
        let mut arguments = json!({ "roles": roles, "messages": messages });
        let method = if terms.tools.is_empty() {
            "inferChat"
        } else {
            arguments["mcpServerUrls"] = json!([]);
            arguments["onchainTools"] = json!([]);
            arguments["maxIterations"] = json!(ITERATIONS_MAX);
            "inferToolsChat"
        };
        arguments["chainOfThought"] = json!(false);
        Question::of_envelope(
            &json!({ "ombraAgent": 1, "method": method, "args": arguments }).to_string(),
            terms,
        )
    }
}
