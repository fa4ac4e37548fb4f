//! What a request asks of the chain: the envelope of `inferMessages`, its escrow, and what its place in
//! blocks may cost at most.

use agent::methods::{Refused, Request};
use serde_json::{Map, Value, json};
use types::params::{BLOB_CHUNK_BYTES, INLINE_TEXT_BYTES_MAX};

use crate::model::Model;
use crate::openai::{ApiFault, ChatRequest};
use crate::settings::Settings;

/// The method (docs/agent-methods.md).
pub const METHOD: &str = "inferMessages";
/// What a step burns, micro-OMBRA (docs/protocol.md section 5.5).
pub const STEP_MICRO: u64 = 100;
/// What a token of the answer costs, micro-OMBRA.
pub const TOKEN_MICRO: u64 = 1;
/// The longest envelope, bytes (docs/agent-methods.md section 3).
const ENVELOPE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// More than the members of an AGENT_REQUEST or of another transaction take beside its texts.
const TX_BYTES: u64 = 1_536;
/// What an AGENT_REQUEST is charged besides its size (docs/protocol.md section 15.1).
const REQUEST_CHARGED_BYTES: u64 = 2_048;
/// So many times what a place costs now: pools set so much aside for a transaction that waits
/// (docs/protocol.md section 15.3).
pub(crate) const FEE_MARGIN: u64 = 4;

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The prompt of the run.
    pub prompt: String,
    /// What goes into a blob because it is too long for a prompt.
    pub blob: Option<String>,
    /// Who is to answer.
    pub model: Model,
    /// The escrow, micro-OMBRA.
    pub max_fee_micro: u64,
    /// The most steps.
    pub steps_max: u64,
}

/// What places in blocks cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prices {
    /// Micro-OMBRA for each KiB.
    pub base_fee_micro: u64,
    /// What announcing a blob burns, micro-OMBRA.
    pub blob_init_micro: u64,
    /// What each chunk of a blob burns, micro-OMBRA.
    pub blob_chunk_micro: u64,
    /// The least escrow, micro-OMBRA.
    pub max_fee_micro_min: u64,
}

impl Question {
    /// The question of a request for the interface.
    ///
    /// # Errors
    /// When it is longer than any miner takes, or the answer may be longer than the settings allow.
    pub fn new(
        request: &ChatRequest,
        model: Model,
        settings: &Settings,
        prices: Prices,
    ) -> Result<Self, ApiFault> {
        let tokens = request.output_tokens_max.unwrap_or(settings.output_tokens_default);
        if tokens > settings.output_tokens_max {
            let most = settings.output_tokens_max;
            let name = request.output_tokens_param;
            let message = format!("{name}: expected at most {most}, got {tokens}");
            return Err(ApiFault::parameter(name, message));
        }
        let steps_max = settings.steps_max;
        let (prompt, blob) = written(&request.args, tokens)?;
        let steps_micro = steps_max.saturating_mul(STEP_MICRO);
        let max_fee_micro = tokens.saturating_mul(TOKEN_MICRO).saturating_add(steps_micro);
        let least_micro = settings.escrow_micro_min.max(prices.max_fee_micro_min);
        let max_fee_micro = max_fee_micro.max(least_micro);
        Ok(Self { prompt, blob, model, max_fee_micro, steps_max })
    }

    /// The most that the gateway's own transactions burn for it, micro-OMBRA: the request, taking it
    /// back, and the blob.
    #[must_use]
    pub fn fees_micro(&self, prices: Prices) -> u64 {
        let length = |text: &str| u64::try_from(json!(text).to_string().len()).unwrap_or(u64::MAX);
        let request_bytes =
            length(&self.prompt).saturating_add(TX_BYTES).saturating_add(REQUEST_CHARGED_BYTES);
        let (chunks, blob_bytes) = self.blob.as_ref().map_or((0, 0), |blob| {
            let bytes = u64::try_from(blob.len()).unwrap_or(u64::MAX);
            let chunks = bytes.div_ceil(BLOB_CHUNK_BYTES);
            let transactions = chunks.saturating_add(2).saturating_mul(TX_BYTES);
            // In Base64.
            (chunks, bytes.saturating_mul(4).div_ceil(3).saturating_add(transactions))
        });
        let bytes = request_bytes.saturating_add(TX_BYTES).saturating_add(blob_bytes);
        let places = bytes.saturating_mul(prices.base_fee_micro).div_ceil(1_024);
        let init_micro = if self.blob.is_some() { prices.blob_init_micro } else { 0 };
        let chunks_micro = chunks.saturating_mul(prices.blob_chunk_micro);
        let burned = init_micro.saturating_add(chunks_micro);
        places.saturating_mul(FEE_MARGIN).saturating_add(burned)
    }

    /// The most that it costs altogether, micro-OMBRA.
    #[must_use]
    pub fn micro(&self, prices: Prices) -> u64 {
        self.max_fee_micro.saturating_add(self.fees_micro(prices))
    }
}

/// The prompt, and the blob if the envelope is too long for it.
fn written(args: &Map<String, Value>, tokens: u64) -> Result<(String, Option<String>), ApiFault> {
    let mut args = args.clone();
    args.insert("maxOutputTokens".to_owned(), json!(tokens));
    let envelope = json!({ "ombraAgent": 1, "method": METHOD, "args": args }).to_string();
    if envelope.len() > ENVELOPE_BYTES_MAX {
        let got = envelope.len();
        let message = format!(
            "messages: the request has {got} bytes as miners read it, but they take at most \
             {ENVELOPE_BYTES_MAX}"
        );
        let fault = ApiFault::parameter("messages", message);
        return Err(ApiFault { code: "context_length_exceeded", ..fault });
    }
    // Miners read it with the same code, and take no run whose request they refuse.
    if let Err(refused) = Request::parse(&envelope, None) {
        let param = parameter_of(&refused.field);
        let Refused { got, expected, .. } = refused;
        let message = format!("{param}: expected {expected}, got {got}");
        return Err(ApiFault::parameter(param, message));
    }
    if envelope.len() <= INLINE_TEXT_BYTES_MAX {
        return Ok((envelope, None));
    }
    let stub = json!({ "ombraAgent": 1, "method": METHOD, "blob": true }).to_string();
    Ok((stub, Some(envelope)))
}

/// The parameter of the interface from which a field of an envelope is made.
fn parameter_of(field: &str) -> String {
    let field = field.strip_prefix("args.").unwrap_or(field);
    if let Some((index, rest)) = field.strip_prefix("functions[").and_then(|it| it.split_once(']'))
    {
        return format!("tools[{index}].function{rest}");
    }
    let names = [
        ("functions", "tools"),
        ("responseSchema", "response_format.json_schema"),
        ("toolChoice", "tool_choice"),
        ("maxOutputTokens", "max_completion_tokens"),
    ];
    let renamed = names.iter().find_map(|(own, theirs)| Some((*theirs, field.strip_prefix(own)?)));
    renamed.map_or_else(|| field.to_owned(), |(name, rest)| format!("{name}{rest}"))
}

#[cfg(test)]
mod tests {
    //! What is written into a request, and what it may cost.

    use serde_json::{Value, json};

    use super::{Prices, Question};
    use crate::model::Model;
    use crate::openai::{ApiFault, ChatRequest, parse};
    use crate::settings::Settings;

    const PRICES: Prices = Prices {
        base_fee_micro: 10,
        blob_init_micro: 1_000,
        blob_chunk_micro: 100,
        max_fee_micro_min: 100,
    };

    fn asked(content: &str, tokens: Value) -> ChatRequest {
        let messages = json!([{ "role": "user", "content": content }]);
        let body = json!({ "model": "ombra", "messages": messages, "max_tokens": tokens });
        parse(body.to_string().as_bytes()).unwrap()
    }

    fn tried(request: &ChatRequest) -> Result<Question, ApiFault> {
        Question::new(request, Model::Any, &Settings::default(), PRICES)
    }

    fn question(request: &ChatRequest) -> Question {
        tried(request).unwrap()
    }

    #[test]
    fn the_escrow_is_for_the_tokens_and_the_steps() {
        assert_eq!(1_100, question(&asked("Hi", json!(300))).max_fee_micro);
        // Miners take no run for less.
        let least = question(&asked("Hi", json!(50)));
        assert_eq!(1_000, least.max_fee_micro);
        let envelope: Value = serde_json::from_str(&least.prompt).unwrap();
        assert_eq!("inferMessages", envelope["method"]);
        assert_eq!(json!(50), envelope["args"]["maxOutputTokens"]);
        assert_eq!(1_824, question(&asked("Hi", Value::Null)).max_fee_micro);
        let much = tried(&asked("Hi", json!(65_537))).unwrap_err();
        assert_eq!(Some("max_tokens".to_owned()), much.param);
    }

    #[test]
    fn a_long_request_goes_into_a_blob_and_its_chunks_are_reserved() {
        let short = question(&asked("Hi", json!(50)));
        let long = question(&asked(&"x".repeat(20_000), json!(50)));
        assert_eq!(r#"{"ombraAgent":1,"method":"inferMessages","blob":true}"#, long.prompt);
        assert!(long.blob.as_ref().is_some_and(|blob| blob.contains("xxx")));
        assert_eq!(None, short.blob);
        assert!(long.fees_micro(PRICES) >= short.fees_micro(PRICES) + 1_100);
        assert_eq!(short.max_fee_micro + short.fees_micro(PRICES), short.micro(PRICES));
        assert_eq!(0, short.fees_micro(Prices::default()));
    }

    #[test]
    fn what_no_miner_takes_is_refused_before_it_costs_anything() {
        let request = asked(&"x".repeat(5_000_000), json!(50));
        let fault = tried(&request).unwrap_err();
        assert_eq!((400, "context_length_exceeded"), (fault.status, fault.code));
    }

    #[test]
    fn what_miners_refuse_is_told_with_the_parameter_of_the_interface() {
        let messages = json!([{ "role": "user", "content": "Hi" }]);
        let asked = |schema: Value| {
            let tool = json!({ "type": "function",
                "function": { "name": "f", "description": "", "parameters": schema } });
            let body = json!({ "model": "ombra", "messages": messages, "tools": [tool] });
            tried(&parse(body.to_string().as_bytes()).unwrap())
        };
        let schema = |of: Value| json!({ "type": "object", "properties": { "x": of } });
        assert!(asked(schema(json!({ "type": "string" }))).is_ok());
        let fault = asked(schema(json!({ "type": "string", "pattern": "^a" }))).unwrap_err();
        let param = fault.param.unwrap();
        assert!(param.starts_with("tools[0].function.parameters"), "{param}");
        assert!(fault.message.starts_with(&param), "{}", fault.message);
        for (field, param) in [
            ("args.responseSchema.schema.type", "response_format.json_schema.schema.type"),
            ("args.messages[1].content", "messages[1].content"),
            ("args.functions", "tools"),
        ] {
            assert_eq!(param, super::parameter_of(field));
        }
    }
}
