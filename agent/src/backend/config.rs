//! Settings of a back end behind HTTP.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Which interface a server has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Interface {
    /// `POST /chat/completions`, as llama-server, vLLM and many services have it.
    #[default]
    OpenAi,
    /// `POST /api/chat` of Ollama.
    Ollama,
}

/// How tools are shown to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolForm {
    /// Asks the server at the start whether tools change the prompt: some accept and ignore them.
    #[default]
    Probe,
    /// By the member `tools` of the request.
    Native,
    /// By a description in the prompt, and a JSON object in the output.
    Prompted,
}

/// How the model is held to a form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constrain {
    /// Not at all: the output is checked afterwards.
    #[default]
    No,
    /// By a JSON schema that the server enforces.
    JsonSchema,
}

/// How a model goes on with a text that was cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GoOn {
    /// Asks the server at the start which it is.
    #[default]
    Probe,
    /// The text is the last message, and the model writes on in it.
    Prefix,
    /// The text is a message like any other, and the model is asked to go on.
    Asked,
}

/// Settings of one back end; the table `[backend]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The name in the claim; the model's name if absent.
    pub name: Option<String>,
    /// Which interface.
    #[serde(default)]
    pub interface: Interface,
    /// The base, for example `http://127.0.0.1:8080/v1`, for Ollama `http://127.0.0.1:11434`.
    pub url: String,
    /// The model, as the server calls it.
    pub model: String,
    /// A file whose first line is the server's API key.
    pub api_key_file: Option<PathBuf>,
    /// Tokens of prompt and output together.
    #[serde(default = "context_tokens_max")]
    pub context_tokens_max: u32,
    /// How tools are shown.
    #[serde(default)]
    pub tool_form: ToolForm,
    /// How the model is held to a form.
    #[serde(default)]
    pub constrain: Constrain,
    /// How the model goes on with a text that was cut off.
    #[serde(default)]
    pub go_on: GoOn,
    /// Whether prompts are counted by the server, by `POST /tokenize`, where it can.
    #[serde(default = "tokenize")]
    pub tokenize: bool,
    /// Attempts at one question.
    #[serde(default = "attempts_max")]
    pub attempts_max: usize,
    /// The longest silence before the first token: the prompt is read meanwhile.
    #[serde(default = "first_token_timeout_ms")]
    pub first_token_timeout_ms: u64,
    /// The longest silence between two parts of an answer.
    #[serde(default = "token_timeout_ms")]
    pub token_timeout_ms: u64,
    /// More bytes of prompt per counted token than this mean that the server cut the prompt.
    #[serde(default = "bytes_per_token_max")]
    pub bytes_per_token_max: u32,
    /// Where the server does not count prompts, so few bytes are taken for a token before a claim.
    #[serde(default = "bytes_per_token_min")]
    pub bytes_per_token_min: u32,
}

const fn tokenize() -> bool {
    true
}

const fn context_tokens_max() -> u32 {
    4_096
}
const fn attempts_max() -> usize {
    4
}
const fn first_token_timeout_ms() -> u64 {
    120_000
}
const fn token_timeout_ms() -> u64 {
    30_000
}
const fn bytes_per_token_max() -> u32 {
    8
}
const fn bytes_per_token_min() -> u32 {
    2
}

impl Config {
    /// A back end with the settings that are not given at their defaults.
    #[must_use]
    pub fn new(interface: Interface, url: &str, model: &str) -> Self {
        Self {
            name: None,
            interface,
            url: url.to_owned(),
            model: model.to_owned(),
            api_key_file: None,
            context_tokens_max: context_tokens_max(),
            tool_form: ToolForm::Probe,
            constrain: Constrain::No,
            go_on: GoOn::Probe,
            tokenize: tokenize(),
            attempts_max: attempts_max(),
            first_token_timeout_ms: first_token_timeout_ms(),
            token_timeout_ms: token_timeout_ms(),
            bytes_per_token_max: bytes_per_token_max(),
            bytes_per_token_min: bytes_per_token_min(),
        }
    }

    /// Everything that is wrong with the values, as sentences that name the setting.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut least = |field: &str, value: u64, min: u64| {
            if value < min {
                faults.push(format!("backend.{field} is {value}; expected at least {min}"));
            }
        };
        least("context_tokens_max", self.context_tokens_max.into(), 256);
        least("attempts_max", u64::try_from(self.attempts_max).unwrap_or(u64::MAX), 1);
        least("first_token_timeout_ms", self.first_token_timeout_ms, 100);
        least("token_timeout_ms", self.token_timeout_ms, 100);
        least("bytes_per_token_max", self.bytes_per_token_max.into(), 2);
        least("bytes_per_token_min", self.bytes_per_token_min.into(), 1);
        if self.model.trim().is_empty() {
            faults.push("backend.model is empty; expected the name of a model".into());
        }
        if !self.url.starts_with("http://") && !self.url.starts_with("https://") {
            let url = &self.url;
            faults.push(format!("backend.url is {url:?}; expected http://… or https://…"));
        }
        faults
    }
}
