//! A model server that follows a script of the test, its failures included.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::breakpoint::lock;
use crate::web::{self, Request};

/// Tokens that an answer counts unless it says otherwise.
pub const TOKENS: u64 = 7;
/// What miners ask at their start, to see whether the server counts.
const PROBE: &str = "Hello";
/// Between two parts of an answer that never ends.
const DRIP: Duration = Duration::from_millis(20);

/// A question to the model.
#[derive(Clone, Debug)]
pub struct Question {
    /// What the requester asked.
    pub prompt: String,
    /// What the model was told last.
    pub told: String,
    /// Outputs of the model in the conversation.
    pub outputs: usize,
    /// How often this place of the conversation was asked about, this time counted.
    pub times: usize,
    /// The most tokens that the answer may have.
    pub tokens_max: u64,
    /// The whole request.
    pub body: Value,
}

impl Question {
    fn read(body: Value) -> Option<Self> {
        let messages = body["messages"].as_array()?;
        let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
        let is_of = |role: &'static str| move |message: &&Value| message["role"] == role;
        Some(Self {
            prompt: text(messages.iter().find(is_of("user"))?),
            told: text(messages.last()?),
            outputs: messages.iter().filter(is_of("assistant")).count(),
            times: 0,
            tokens_max: body["max_tokens"].as_u64()?,
            body,
        })
    }

    /// The number after `word=` in the prompt, 0 if there is none.
    #[must_use]
    pub fn number(&self, word: &str) -> usize {
        let words = self.prompt.split_whitespace();
        let mut values = words.filter_map(|it| it.strip_prefix(word)?.strip_prefix('='));
        values.find_map(|value| value.parse().ok()).unwrap_or_default()
    }
}

/// A piece of what the server does.
#[derive(Clone, Debug)]
enum Piece {
    /// The head of a streamed answer.
    Head,
    /// A part of the answer.
    Part(Value),
    /// These bytes within the answer.
    Bytes(Vec<u8>),
    /// The regular end.
    Done,
    /// Silence until the other side leaves, or for ever.
    Silence,
    /// This part again and again, until the other side leaves.
    Drip(Value),
    /// These bytes again and again, as fast as they are taken, until the other side leaves.
    Flood(Vec<u8>),
    /// The connection breaks.
    Cut,
    /// Another status, with a header.
    Status(&'static str, Vec<String>),
}

/// What the server does about a question.
#[derive(Clone, Debug)]
pub struct Reply(Vec<Piece>);

/// How an answer ends and what it counts.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    pub finish: &'static str,
    pub output: Option<u64>,
    pub prompt: Option<u64>,
}

impl Default for Count {
    fn default() -> Self {
        Self { finish: "stop", output: Some(TOKENS), prompt: None }
    }
}

impl Reply {
    /// An answer in plain words.
    #[must_use]
    pub fn said(text: &str) -> Self {
        Self::counted(&json!({ "content": text }), Count::default())
    }

    /// Calls of tools, with what is thought and said before them.
    #[must_use]
    pub fn calls(calls: &[(&str, Value)], delta: &Value) -> Self {
        let arguments =
            |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let call = |(index, (name, value)): (usize, &(&str, Value))| {
            json!({
                "index": index, "id": format!("call {index}"),
                "function": { "name": name, "arguments": arguments(value) },
            })
        };
        let mut delta = delta.clone();
        delta["tool_calls"] = calls.iter().enumerate().map(call).collect();
        Self::counted(&delta, Count { finish: "tool_calls", ..Count::default() })
    }

    /// Any answer with any counts; without the prompt's tokens they follow from its length.
    #[must_use]
    pub fn counted(delta: &Value, count: Count) -> Self {
        let Count { finish, output, prompt } = count;
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        let mut usage = json!({});
        output.iter().for_each(|tokens| usage["completion_tokens"] = json!(tokens));
        prompt.iter().for_each(|tokens| usage["prompt_tokens"] = json!(tokens));
        Self(vec![
            Piece::Head,
            Piece::Part(json!({ "choices": [choice] })),
            Piece::Part(json!({ "choices": [], "usage": usage })),
            Piece::Done,
        ])
    }

    /// An answer without counts.
    #[must_use]
    pub fn uncounted(text: &str) -> Self {
        let mut pieces = Self::said(text).0;
        pieces.remove(2);
        Self(pieces)
    }

    /// A status that is no success.
    #[must_use]
    pub fn status(status: &'static str, headers: &[&str]) -> Self {
        Self(vec![Piece::Status(status, headers.iter().map(ToString::to_string).collect())])
    }

    /// Nothing at all, for ever.
    #[must_use]
    pub fn silence() -> Self {
        Self(vec![Piece::Silence])
    }

    /// The begin of an answer, and then nothing, for ever.
    #[must_use]
    pub fn stall(text: &str) -> Self {
        Self(begun(text, Piece::Silence))
    }

    /// The begin of an answer, and then the connection breaks.
    #[must_use]
    pub fn cut(text: &str) -> Self {
        Self(begun(text, Piece::Cut))
    }

    /// An answer that never comes to an end.
    #[must_use]
    pub fn drip(text: &str) -> Self {
        let choice = json!({ "index": 0, "delta": { "content": text }, "finish_reason": null });
        Self(vec![Piece::Head, Piece::Drip(json!({ "choices": [choice] }))])
    }

    /// Bytes without an end that are no answer.
    #[must_use]
    pub fn flood(bytes: Vec<u8>) -> Self {
        Self(vec![Piece::Head, Piece::Flood(bytes)])
    }

    /// Bytes that are no answer.
    #[must_use]
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Self(vec![Piece::Head, Piece::Bytes(bytes), Piece::Done])
    }
}

fn begun(text: &str, then: Piece) -> Vec<Piece> {
    let choice = json!({ "index": 0, "delta": { "content": text }, "finish_reason": null });
    vec![Piece::Head, Piece::Part(json!({ "choices": [choice] })), then]
}

/// A running server. It ends with the process.
#[derive(Clone, Debug)]
pub struct Model {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<(Instant, Question)>>>,
}

impl Model {
    /// A server that does what `script` says; it may hold the question up.
    pub fn start(
        script: impl Fn(&Question) -> Reply + Clone + Send + 'static,
    ) -> anyhow::Result<Self> {
        Self::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), script)
    }

    /// The same at an address; port 0 is any.
    pub fn start_at(
        at: SocketAddr,
        script: impl Fn(&Question) -> Reply + Clone + Send + 'static,
    ) -> anyhow::Result<Self> {
        let asked: Arc<Mutex<Vec<_>>> = Arc::default();
        let seen: Arc<Mutex<BTreeMap<(String, usize), usize>>> = Arc::default();
        let notes = Arc::clone(&asked);
        let answer = move |mut question: Question| {
            if question.prompt == PROBE {
                return Reply::said("Hello.");
            }
            {
                let mut seen = lock(&seen);
                let place = (question.prompt.clone(), question.outputs);
                let times = seen.entry(place).or_default();
                *times += 1;
                question.times = *times;
            }
            lock(&notes).push((Instant::now(), question.clone()));
            script(&question)
        };
        let address = web::listen_at(at, move |stream| serve(stream, &answer))?;
        Ok(Self { address, asked })
    }

    /// The questions so far, and when they came.
    #[must_use]
    pub fn asked(&self) -> Vec<(Instant, Question)> {
        lock(&self.asked).clone()
    }

    /// The table `[backend]` of a miner that uses it, with `more` settings.
    #[must_use]
    pub fn settings(&self, more: &str) -> String {
        let address = self.address;
        format!(
            "[backend]\nurl = \"http://{address}\"\nmodel = \"script\"\ntool_form = \"native\"\n{more}\n"
        )
    }
}

fn serve(stream: TcpStream, answer: &impl Fn(Question) -> Reply) -> Option<()> {
    let (mut reader, mut writer) = web::both(stream)?;
    loop {
        let request = Request::read(&mut reader)?;
        if !request.line.starts_with("POST") {
            web::answer(&mut writer, "200 OK", &[], "{\"data\":[]}")?;
            continue;
        }
        let prompt_tokens = request.body.len() / 4;
        let Reply(pieces) = answer(Question::read(request.json())?);
        for piece in pieces {
            write_piece(&mut writer, piece, prompt_tokens)?;
        }
    }
}

fn write_piece(writer: &mut TcpStream, piece: Piece, prompt_tokens: usize) -> Option<()> {
    match piece {
        Piece::Head => writer.write_all(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        ),
        Piece::Part(mut part) => {
            if let Some(usage) = part.get_mut("usage").filter(|it| it["prompt_tokens"].is_null()) {
                usage["prompt_tokens"] = json!(prompt_tokens);
            }
            write_chunk(writer, format!("data: {part}\n\n").as_bytes())
        }
        Piece::Bytes(bytes) => write_chunk(writer, &bytes),
        Piece::Done => {
            write_chunk(writer, b"data: [DONE]\n\n").ok()?;
            writer.write_all(b"0\r\n\r\n")
        }
        Piece::Silence => {
            // What ends it is the other side: it leaves, and there is nothing more to read.
            writer.set_read_timeout(Some(Duration::from_secs(120))).ok()?;
            drop(std::io::Read::read(writer, &mut [0]));
            return None;
        }
        Piece::Drip(part) => {
            let part = format!("data: {part}\n\n");
            while write_chunk(writer, part.as_bytes()).is_ok() {
                std::thread::sleep(DRIP);
            }
            return None;
        }
        Piece::Flood(bytes) => {
            while write_chunk(writer, &bytes).is_ok() {}
            return None;
        }
        Piece::Cut => return None,
        Piece::Status(status, headers) => {
            return web::answer(writer, status, &headers, "{\"error\":\"as the script says\"}");
        }
    }
    .ok()
}

fn write_chunk(writer: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    write!(writer, "{:x}\r\n", bytes.len())?;
    writer.write_all(bytes)?;
    writer.write_all(b"\r\n")
}
