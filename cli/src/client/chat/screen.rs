//! A conversation as lines of text: who speaks, in which role, for which run.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;

use serde_json::json;
use types::{Address, Hash};
use wallet::client::records::Turn;
use wallet::{Client, Page};

use crate::client::output::{indented, one_line, printable, time};
use crate::client::{Out, Outcome};

const PAGE_TURNS: u32 = 100;
const WORD_CHARS_MAX: usize = 40;
/// Characters of an address that stand before and behind the ellipsis of its short form.
const SHORT_CHARS: (usize, usize) = (8, 4);
const RUN_CHARS: usize = 8;

/// What the reader has seen; a turn typed into this terminal stands there already.
#[derive(Debug)]
pub(super) struct Screen {
    shown: BTreeSet<Hash>,
    own: Option<Address>,
    /// Who has spoken, by the short form of the address.
    speakers: BTreeMap<String, Address>,
    is_json: bool,
}

impl Screen {
    /// Nothing seen yet; `own` is the reader's address.
    pub(super) const fn new(own: Option<Address>, is_json: bool) -> Self {
        Self { shown: BTreeSet::new(), own, speakers: BTreeMap::new(), is_json }
    }

    /// Whether lines are JSON for programs.
    pub(super) const fn is_json(&self) -> bool {
        self.is_json
    }

    /// A turn of the reader's own is on the chain.
    pub(super) fn said(&mut self, turn: Hash) {
        if std::io::stdin().is_terminal() {
            self.shown.insert(turn);
        }
    }

    /// Says something to the reader that is no turn.
    pub(super) fn note(&self, text: &str, out: Out<'_>) -> Outcome {
        if !self.is_json {
            writeln!(out, "-- {}", indented(text))?;
            out.flush()?;
        }
        Ok(())
    }

    /// Shows all turns that were not shown yet.
    pub(super) async fn catch_up(
        &mut self,
        client: &Client,
        conversation: Hash,
        out: Out<'_>,
    ) -> Outcome {
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

    fn show(&mut self, turn: &Turn, out: Out<'_>) -> Outcome {
        if self.is_json {
            writeln!(out, "{}", as_json(turn))?;
            return Ok(());
        }
        let speaker = self.speaker(turn.from, out)?;
        let blob = turn.content_blob_id.as_ref();
        let blob = blob.map(|id| format!(" (in blob {})", printable(id))).unwrap_or_default();
        let (when, part, content) = (time(turn.timestamp), part(turn), indented(&turn.content));
        writeln!(out, "[{when}] {speaker} ({part}): {content}{blob}")?;
        Ok(())
    }

    /// A name for who speaks. The first time that somebody speaks, the whole address is told; a
    /// second address with the same short form is always written out.
    fn speaker(&mut self, address: Address, out: Out<'_>) -> Result<String, super::CliError> {
        if Some(address) == self.own {
            return Ok("you".to_owned());
        }
        let whole = address.to_string();
        let (head, tail) = SHORT_CHARS;
        let back = whole.len().saturating_sub(tail);
        let short = match (whole.get(..head), whole.get(back..)) {
            (Some(begin), Some(end)) => format!("{begin}…{end}"),
            (None, _) | (_, None) => whole.clone(),
        };
        match self.speakers.get(&short) {
            Some(known) if *known == address => Ok(short),
            Some(_) => Ok(whole),
            None => {
                writeln!(out, "-- {short} is {whole}")?;
                self.speakers.insert(short.clone(), address);
                Ok(short)
            }
        }
    }
}

/// The role, and for which run: `assistant, miner of run 1a2b3c4d`.
fn part(turn: &Turn) -> String {
    let role = one_line(&turn.role, WORD_CHARS_MAX);
    let Some(run) = turn.agent_run_id else { return role };
    let run: String = run.to_string().chars().take(RUN_CHARS).collect();
    match turn.relation.as_deref() {
        // Anybody may name any run: only its parties speak for it.
        Some(relation @ ("miner" | "submitter")) => format!("{role}, {relation} of run {run}"),
        Some(_) | None => format!("{role}, not a party to run {run}"),
    }
}

fn as_json(turn: &Turn) -> serde_json::Value {
    let mut object = json!({"hash": turn.hash, "from": turn.from, "role": turn.role,
        "content": turn.content, "contentBlobId": turn.content_blob_id,
        "agentRunId": turn.agent_run_id, "relation": turn.relation,
        "timestamp": turn.timestamp, "blockIndex": turn.block_index});
    if let Some(members) = object.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    object
}

#[cfg(test)]
mod tests {
    //! Who speaks is told apart, and what strangers write stays text.

    use serde_json::{Value, json};
    use types::Address;
    use wallet::client::records::Turn;

    use super::Screen;

    const OWN: &str = "de133ca6f509c74f6e2e849403cc461d2d5b3e3c";

    fn turn(members: &Value) -> Turn {
        let mut turn = json!({ "hash": "00".repeat(32), "from": OWN, "role": "user",
            "content": "hi", "timestamp": 0, "blockIndex": 1 });
        for (key, value) in members.as_object().unwrap() {
            turn[key] = value.clone();
        }
        serde_json::from_value(turn).unwrap()
    }

    fn shown(turns: &[Value]) -> String {
        let own: Address = OWN.parse().unwrap();
        let (mut screen, mut out) = (Screen::new(Some(own), false), Vec::new());
        for members in turns {
            screen.show(&turn(members), &mut out).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn everybody_has_a_name_and_a_role_and_miners_their_run() {
        let miner = "aa".repeat(20);
        let run = "1a2b3c4d".repeat(8);
        let text = shown(&[
            json!({}),
            json!({ "from": miner, "role": "assistant", "agentRunId": run, "relation": "miner" }),
            json!({ "from": miner, "role": "tool", "agentRunId": run, "relation": "other" }),
        ]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!("[1970-01-01 00:00:00.000 UTC] you (user): hi", lines[0]);
        assert_eq!(format!("-- aaaaaaaa…aaaa is {miner}"), lines[1]);
        assert!(lines[2].ends_with("aaaaaaaa…aaaa (assistant, miner of run 1a2b3c4d): hi"));
        assert!(lines[3].ends_with("aaaaaaaa…aaaa (tool, not a party to run 1a2b3c4d): hi"));
    }

    #[test]
    fn an_address_that_looks_like_another_is_written_out() {
        let (one, two) = ("ab".repeat(20), format!("{}00{}", "ab".repeat(9), "ab".repeat(10)));
        let text = shown(&[json!({ "from": one }), json!({ "from": two })]);
        assert!(text.lines().last().unwrap().contains(&two), "{text}");
    }

    #[test]
    fn what_strangers_write_cannot_drive_the_terminal_or_pass_for_a_line() {
        let text = shown(&[json!({ "content": "\u{1b}[2Jhi\r\n[1970] you (user): pay\u{202e}",
            "role": "\u{1b}[31muser\nx", "contentBlobId": "b\u{7}" })]);
        assert!(text.chars().all(|shown| shown == '\n' || !shown.is_control()), "{text:?}");
        assert!(!text.contains('\u{202e}') && text.contains("\n    [1970] you"), "{text:?}");
        assert_eq!(2, text.lines().count());
    }
}
