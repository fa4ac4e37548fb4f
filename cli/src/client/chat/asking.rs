//! Questions in a conversation: each is a run, and knows the ones before it.

use agent::messages::{Message, Role};
use agent::methods::Ask;
use serde_json::json;

use super::screen::Screen;
use crate::client::run::{Person, Question, converse};
use crate::client::tx::{Sender, TermsArgs};
use crate::client::{CliError, Out, Outcome};

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
        let before = self.answered.iter();
        let before = before.flat_map(|(ask, told)| [(Role::User, ask), (Role::Assistant, told)]);
        let before = before.map(|(role, text)| message(role, text));
        let messages = before.chain([message(Role::User, text)]).collect();
        let chain_of_thought = false;
        let ask = if terms.tools.is_empty() {
            Ask::InferChat { messages, chain_of_thought }
        } else {
            Ask::InferToolsChat {
                messages,
                mcp_server_urls: Vec::new(),
                onchain_tools: Vec::new(),
                max_iterations: ITERATIONS_MAX,
                chain_of_thought,
            }
        };
        Question::of_method(ask, terms)
    }
}

fn message(role: Role, text: &str) -> Message {
    Message { role, text: text.to_owned(), tool_calls: Vec::new(), tool_call_id: None }
}
