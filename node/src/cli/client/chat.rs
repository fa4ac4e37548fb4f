//! `ombra chat`: a conversation in the terminal.

use std::collections::BTreeSet;
use std::io::{BufRead, IsTerminal};
use std::time::Duration;

use clap::Args;
use serde_json::{Map, json};
use tokio::sync::mpsc;
use types::tx::ChatTurn;
use types::{Body, Hash, Keypair, ids};
use wallet::client::records::Turn;
use wallet::{Client, Events, Kind, Page};

use super::options::{NodeArgs, SignerArgs};
use super::output::{indented, printable, time};
use super::tx::Sender;
use super::{CliError, Out, Outcome, until_interrupted};
use crate::clock::now_ms;

/// Lines typed ahead of the chain.
const LINES_HELD_MAX: usize = 16;
const TURN_TIMEOUT: Duration = Duration::from_secs(30);
const PAGE_TURNS: u32 = 100;

/// A conversation.
#[derive(Args, Debug)]
#[command(
    after_help = "Example: ombra chat --dev 0\n         ombra chat CONVERSATION --no-follow\n\nEach line typed is one turn (100 micro). Without a signing key the conversation is only read."
)]
pub struct ChatArgs {
    /// The conversation [default: a new one]
    conversation: Option<Hash>,
    /// Print the turns until now and stop
    #[arg(long, requires = "conversation")]
    no_follow: bool,
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
    let keypair = args.signer.keypair_if_given()?;
    let conversation = match (args.conversation, &keypair) {
        (Some(id), _) => id,
        (None, Some(key)) => {
            ids::compute_conversation_id(&key.address().to_string(), None, now_ms())
        }
        (None, None) => {
            let text = "a new conversation needs a key: --wallet FILE, or --dev N on a test chain";
            return Err(CliError::Usage(text.into()));
        }
    };
    let mut screen = Screen { shown: BTreeSet::new(), json: args.node.json };
    if args.no_follow {
        return screen.catch_up(&client, conversation, out).await;
    }
    let talk = talk(client, conversation, keypair, &mut screen, out);
    until_interrupted(talk).await?.unwrap_or(Ok(()))
}

/// Shows the turns, and says what is typed, until the input ends.
async fn talk(
    client: Client,
    conversation: Hash,
    keypair: Option<Keypair>,
    screen: &mut Screen,
    out: Out<'_>,
) -> Outcome {
    let filter = Map::from_iter([("conversationId".to_owned(), json!(conversation))]);
    let events = client.subscribe(Kind::Chat, filter, None).await?;
    if !screen.json {
        writeln!(out, "conversation {conversation}")?;
    }
    screen.catch_up(&client, conversation, out).await?;
    let talk = Talk { client, conversation, events };
    match keypair {
        Some(keypair) => talk.write_and_read(keypair, screen, out).await,
        None => talk.read(screen, out).await,
    }
}

/// An open conversation.
struct Talk {
    client: Client,
    conversation: Hash,
    events: Events,
}

impl Talk {
    /// Shows turns as they come.
    async fn read(mut self, screen: &mut Screen, out: Out<'_>) -> Outcome {
        loop {
            self.events.next().await?;
            screen.catch_up(&self.client, self.conversation, out).await?;
        }
    }

    /// Sends each line of standard input as a turn and shows all turns, until the input ends.
    async fn write_and_read(
        mut self,
        keypair: Keypair,
        screen: &mut Screen,
        out: Out<'_>,
    ) -> Outcome {
        let sender = Sender { client: self.client.clone(), keypair };
        let mut lines = lines_of_stdin();
        loop {
            tokio::select! {
                event = self.events.next() => drop(event?),
                line = lines.recv() => match line {
                    None => return Ok(()),
                    Some(line) => self.say(&sender, line?, screen).await?,
                },
            }
            screen.catch_up(&self.client, self.conversation, out).await?;
        }
    }

    async fn say(&self, sender: &Sender, line: String, screen: &mut Screen) -> Outcome {
        if line.trim().is_empty() {
            return Ok(());
        }
        let body = Body::ChatTurn(ChatTurn {
            conversation_id: self.conversation,
            role: "user".into(),
            content: line,
            content_blob_id: None,
            parent_turn_hash: None,
            agent_run_id: None,
            attachments: None,
        });
        let included = sender.include(&body, TURN_TIMEOUT).await?;
        if std::io::stdin().is_terminal() {
            screen.shown.insert(included.hash);
        }
        Ok(())
    }
}

/// What the reader has seen; a turn typed into this terminal stands there already.
struct Screen {
    shown: BTreeSet<Hash>,
    json: bool,
}

impl Screen {
    /// Shows all turns that were not shown yet.
    async fn catch_up(&mut self, client: &Client, conversation: Hash, out: Out<'_>) -> Outcome {
        let mut page = Page { cursor: None, limit: Some(PAGE_TURNS) };
        loop {
            let turns = client.conversation(&conversation, &page).await?;
            for turn in &turns.items {
                if self.shown.insert(turn.hash) {
                    self.show(turn, out)?;
                }
            }
            page.cursor.clone_from(&turns.next_cursor);
            if page.cursor.is_none() {
                break;
            }
        }
        Ok(out.flush()?)
    }

    fn show(&self, turn: &Turn, out: Out<'_>) -> Outcome {
        if self.json {
            let mut object = json!({"hash": turn.hash, "from": turn.from, "role": turn.role,
                "content": turn.content, "contentBlobId": turn.content_blob_id,
                "agentRunId": turn.agent_run_id, "timestamp": turn.timestamp,
                "blockIndex": turn.block_index});
            if let Some(members) = object.as_object_mut() {
                members.retain(|_, value| !value.is_null());
            }
            writeln!(out, "{object}")?;
            return Ok(());
        }
        let relation = turn.relation.as_ref().map(|text| format!(", {}", printable(text)));
        writeln!(
            out,
            "[{}] {} ({}{}): {}",
            time(turn.timestamp),
            turn.from,
            printable(&turn.role),
            relation.unwrap_or_default(),
            indented(&turn.content)
        )?;
        Ok(())
    }
}

/// The lines of standard input, read by a thread of their own: it ends with the input or the process.
fn lines_of_stdin() -> mpsc::Receiver<std::io::Result<String>> {
    let (sender, receiver) = mpsc::channel(LINES_HELD_MAX);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    receiver
}
