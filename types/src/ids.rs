//! How ids are computed (docs/protocol.md sections 5.1, 5.2 and 18.1).

use crate::call::Answer;
use crate::{Address, Hash, Usage};

/// How many UTF-16 code units of the prompt go into an agent run id.
const PROMPT_UNITS: usize = 256;

/// `sha256hex(utf8(content))`.
#[must_use]
pub fn compute_content_hash(content: &str) -> Hash {
    Hash::digest(content.as_bytes())
}

/// `sha256hex(creator + "|" + now + "|" + seed)`, with `now` in milliseconds since 1970 and the
/// empty string for a missing seed. The chain treats the result as an opaque id.
#[must_use]
pub fn compute_conversation_id(creator: &str, seed: Option<&str>, now_ms: u64) -> Hash {
    let seed = seed.unwrap_or_default();
    Hash::digest(format!("{creator}|{now_ms}|{seed}").as_bytes())
}

/// `sha256hex("agent|" + owner + "|" + name)`, with the owner as 40 hex characters and the name
/// from the agent's metadata (docs/market.md section 2).
#[must_use]
pub fn compute_agent_id(owner: &Address, name: &str) -> Hash {
    Hash::digest(format!("agent|{owner}|{name}").as_bytes())
}

/// `sha256hex("call|" + chainId + "|" + from + "|" + nonce)`, with `from` as 40 hex characters and
/// the nonce of the AGENT_CALL in decimal (docs/protocol.md section 18).
#[must_use]
pub fn compute_call_id(chain_id: &str, from: &Address, nonce: u64) -> Hash {
    Hash::digest(format!("call|{chain_id}|{from}|{nonce}").as_bytes())
}

/// The SHA-256 of the bytes of a result; of no bytes if there is no result.
#[must_use]
pub fn compute_result_hash(result: &[u8]) -> Hash {
    Hash::digest(result)
}

/// The member whose answer a commitment hides, and the round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Committer {
    /// The id of the call.
    pub call_id: Hash,
    /// The round, 0 or 1.
    pub round: u64,
    /// The address of the member.
    pub member: Address,
}

/// The commitment of a member (docs/protocol.md section 18.1): the SHA-256 of the text
/// `commit|callId|round|member|salt|outcome|resultHash|inputTokens|outputTokens|fuel|receiptHash`.
#[must_use]
pub fn compute_commitment(by: &Committer, salt: &Hash, answer: &Answer) -> Hash {
    let Committer { call_id, round, member } = by;
    let Answer { outcome, result_hash, usage, receipt_hash } = answer;
    let outcome = outcome.as_str();
    let Usage { input_tokens, output_tokens, fuel } = usage;
    let text = format!(
        "commit|{call_id}|{round}|{member}|{salt}|{outcome}|{result_hash}|{input_tokens}|\
         {output_tokens}|{fuel}|{receipt_hash}"
    );
    Hash::digest(text.as_bytes())
}

/// `sha256hex(utf8(from + nonce + prompt[:256]))`, with `from` as written in the transaction, the
/// nonce in decimal, and the first 256 UTF-16 code units of the prompt. If the cut falls inside a
/// surrogate pair, the half becomes U+FFFD.
#[must_use]
pub fn compute_agent_run_id(from: &str, nonce: u64, prompt: &str) -> Hash {
    let nonce = nonce.to_string();
    let (whole, cut_pair) = prompt_prefix(prompt);
    let replacement = if cut_pair { "\u{fffd}" } else { "" };
    Hash::digest_parts(&[
        from.as_bytes(),
        nonce.as_bytes(),
        whole.as_bytes(),
        replacement.as_bytes(),
    ])
}

/// The characters that fit whole into the first 256 code units, and whether a pair was cut.
fn prompt_prefix(prompt: &str) -> (&str, bool) {
    let mut units = 0_usize;
    for (at, character) in prompt.char_indices() {
        let after = units.saturating_add(character.len_utf16());
        if after > PROMPT_UNITS {
            let whole = prompt.get(..at).unwrap_or_default();
            return (whole, units < PROMPT_UNITS);
        }
        units = after;
    }
    (prompt, false)
}

#[cfg(test)]
mod tests;
