//! `ombra chat`: a conversation in the terminal.

mod asking;
mod screen;

use std::time::Duration;

use clap::Args;
use node::clock::now_ms;
use serde_json::{Map, json};
use types::tx::ChatTurn;
use types::{Body, Hash, ids};
use wallet::{Client, Events, Kind};

use super::options::{NodeArgs, SignerArgs};
use super::run::Person;
use super::tx::{Sender, TermsArgs};
use super::{CliError, Out, Outcome, Signer};
use asking::Memory;
use screen::Screen;

const TURN_TIMEOUT: Duration = Duration::from_secs(30);

/// What the lines mean that are typed, with and without --ask.
const HELP_ASKING: &str = "Each line requests an agent run in this conversation. /say TEXT writes \
                           a turn (100 micro); /quit or ctrl-D ends the chat. To begin a question \
                           with /, type //.";
const HELP_SAYING: &str = "Each line becomes a turn (100 micro). /ask QUESTION requests an agent \
                           run in this conversation; /quit or ctrl-D ends the chat. To begin a \
                           turn with /, type //.";

/// A conversation.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
                  ombra chat --dev 0\n  \
                  ombra chat --ask --max-fee 0.01ombra --dev 0\n  \
                  ombra chat CONVERSATION --no-follow\n\n\
                  Each line that you type becomes a turn (100 micro), or with --ask a question to \
                  a miner. Without --ask, /ask QUESTION asks a miner; /help lists all commands. \
                  Without a signing key, you can only read the conversation.")]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub struct ChatArgs {
    /// The conversation [default: a new one]
    #[arg(value_name = "CONVERSATION")]
    topic: Option<Hash>,
    /// Print the turns so far and stop
    #[arg(long, requires = "topic")]
    no_follow: bool,
    /// Make each line a question: a run of its own with these terms
    #[arg(long, conflicts_with = "no_follow")]
    ask: bool,
    #[command(flatten)]
    terms: TermsArgs,
    #[arg(
        long,
        conflicts_with = "tools",
        help = "Ask without tools; if you give neither this nor --tools, questions may use \
                date_diff, date_parse and math_eval"
    )]
    no_tools: bool,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    signer: SignerArgs,
}

/// Carries out `ombra chat`.
///
/// # Errors
/// [`CliError`].
pub async fn run(args: ChatArgs, out: Out<'_>) -> Outcome {
    let client = args.node.client()?;
    let signer = args.signer.signer_if_given()?;
    let named = args.topic.or(args.terms.conversation);
    let conversation = match (named, &signer) {
        (Some(id), _) => id,
        (None, Some(signer)) => {
            ids::compute_conversation_id(&signer.address().to_string(), None, now_ms())
        }
        (None, None) => {
            let text = "a new conversation needs a key: --wallet FILE, or --dev N on a test chain";
            return Err(CliError::Usage(text.into()));
        }
    };
    if args.ask && signer.is_none() {
        let text = "--ask needs a key that pays: --wallet FILE, or --dev N on a test chain";
        return Err(CliError::Usage(text.into()));
    }
    let own = signer.as_ref().map(Signer::address);
    let mut screen = Screen::new(own, args.node.json);
    if args.no_follow {
        return screen.catch_up(&client, conversation, out).await;
    }
    let sender = signer.map(|signer| Sender::new(client.clone(), signer));
    // Before a line is typed that could not be said.
    let chain = match &sender {
        Some(sender) => Some(sender.chain().await?),
        None => None,
    };
    let mut person = Person::listen()?;
    let filter = Map::from_iter([("conversationId".to_owned(), json!(conversation))]);
    let events = client.subscribe(Kind::Chat, filter, None).await?;
    if !args.node.json {
        writeln!(out, "conversation {conversation}")?;
    }
    if let Some(chain) = chain {
        screen.note(&format!("chain {chain}"), out)?;
    }
    screen.catch_up(&client, conversation, out).await?;
    let terms = if args.no_tools { args.terms } else { args.terms.for_free_text() };
    let terms = TermsArgs { conversation: Some(conversation), ..terms };
    let memory = Memory::new(terms);
    let talk = Talk { client, conversation, events, sender, asks: args.ask, memory };
    talk.go_on(&mut screen, &mut person, out).await
}

/// An open conversation.
struct Talk {
    client: Client,
    conversation: Hash,
    events: Events,
    /// Who signs; without one the conversation is only read.
    sender: Option<Sender>,
    /// Whether a plain line is a question.
    asks: bool,
    memory: Memory,
}

/// What a typed line wants.
#[derive(Debug, PartialEq, Eq)]
enum Wish<'a> {
    Nothing,
    Say(&'a str),
    Ask(&'a str),
    Help,
    Unknown(&'a str),
    Quit,
}

impl Talk {
    /// Shows turns as they come and does what is typed, until ctrl-C or the end of the input.
    async fn go_on(mut self, screen: &mut Screen, person: &mut Person, out: Out<'_>) -> Outcome {
        loop {
            let is_open = self.sender.is_some();
            tokio::select! {
                biased;
                () = person.interrupts.next() => return Ok(()),
                event = self.events.next() => drop(event?),
                line = person.keyboard.line(), if is_open => {
                    let Some(line) = line? else { return Ok(()) };
                    if !self.obey(&line, screen, person, out).await? {
                        return Ok(());
                    }
                }
            }
            screen.catch_up(&self.client, self.conversation, out).await?;
        }
    }

    /// Does what a line wants; false if it wants an end.
    async fn obey(
        &mut self,
        line: &str,
        screen: &mut Screen,
        person: &mut Person,
        out: Out<'_>,
    ) -> Result<bool, CliError> {
        let Some(sender) = &self.sender else { return Ok(true) };
        match wish(line, self.asks) {
            Wish::Nothing => {}
            Wish::Say(text) => self.say(sender, text, screen).await?,
            Wish::Ask(text) => {
                self.memory.ask(sender, text, screen, person, out).await?;
            }
            Wish::Help => screen.note(if self.asks { HELP_ASKING } else { HELP_SAYING }, out)?,
            Wish::Unknown(command) => {
                screen
                    .note(&format!("unknown command {command}; /help lists all commands"), out)?;
            }
            Wish::Quit => return Ok(false),
        }
        Ok(true)
    }

    async fn say(&self, sender: &Sender, text: &str, screen: &mut Screen) -> Outcome {
        let body = Body::ChatTurn(ChatTurn {
            conversation_id: self.conversation,
            role: "user".into(),
            content: text.to_owned(),
            content_blob_id: None,
            parent_turn_hash: None,
            agent_run_id: None,
            attachments: None,
        });
        let included = sender.include(&body, TURN_TIMEOUT).await?;
        screen.said(included.hash);
        Ok(())
    }
}

/// Reads a line.
fn wish(line: &str, asks: bool) -> Wish<'_> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let plain = |text| if asks { Wish::Ask(text) } else { Wish::Say(text) };
    match (word, rest.trim()) {
        ("", _) | ("/ask" | "/say", "") => Wish::Nothing,
        ("/ask", question) => Wish::Ask(question),
        ("/say", text) => Wish::Say(text),
        ("/help", _) => Wish::Help,
        ("/quit", _) => Wish::Quit,
        // One slash is taken away, so that a text may begin with one.
        _ if line.starts_with("//") => plain(line.strip_prefix('/').unwrap_or(line)),
        _ if line.starts_with('/') => Wish::Unknown(word),
        _ => plain(line),
    }
}

#[cfg(test)]
mod tests;
