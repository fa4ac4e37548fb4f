//! The functions of the host (docs/market.md section 9.4).

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use crate::Fault;
use crate::json::{Object, member};

#[link(wasm_import_module = "ombra")]
unsafe extern "C" {
    #[link_name = "fail"]
    fn ombra_fail(pointer: usize, length: usize);
    #[link_name = "log"]
    fn ombra_log(pointer: usize, length: usize);
    #[link_name = "infer"]
    fn ombra_infer(pointer: usize, length: usize) -> u64;
    #[link_name = "tool"]
    fn ombra_tool(pointer: usize, length: usize) -> u64;
    #[link_name = "agent"]
    fn ombra_agent(pointer: usize, length: usize) -> u64;
    #[link_name = "context"]
    fn ombra_context() -> u64;
}

/// Memory for `length` bytes, which the host fills.
#[unsafe(no_mangle)]
extern "C" fn alloc(length: usize) -> *mut u8 {
    let mut bytes = vec![0_u8; length];
    let pointer = bytes.as_mut_ptr();
    core::mem::forget(bytes);
    pointer
}

/// The bytes that the host has put where `alloc` said.
pub(crate) fn take(pointer: usize, length: usize) -> Vec<u8> {
    // SAFETY: the host filled exactly what `alloc` has given out, and nobody else has it.
    unsafe { Vec::from_raw_parts(pointer as *mut u8, length, length) }
}

/// Where bytes are, for the host.
pub(crate) fn pack(bytes: Vec<u8>) -> u64 {
    let packed = (bytes.as_ptr() as u64) << 32 | bytes.len() as u64;
    core::mem::forget(bytes);
    packed
}

fn unpack(packed: u64) -> Result<String, Fault> {
    let bytes = take((packed >> 32) as usize, (packed & 0xffff_ffff) as usize);
    String::from_utf8(bytes).map_err(|_| Fault::from("the host says no text"))
}

/// Ends with a failure; a reason has at most 1,024 bytes.
pub fn fail(reason: &str) -> ! {
    let mut length = reason.len().min(1_024);
    while !reason.is_char_boundary(length) {
        length -= 1;
    }
    // SAFETY: the text lives until the host has read it; the host does not come back.
    unsafe { ombra_fail(reason.as_ptr() as usize, length) };
    unreachable!()
}

/// Writes a line into the receipt: at most 1,024 bytes, at most 1,000 lines.
pub fn log(line: &str) {
    // SAFETY: the text lives until the host has read it.
    unsafe { ombra_log(line.as_ptr() as usize, line.len()) }
}

/// What a model is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Instructions; empty for none.
    pub system: &'a str,
    /// The question.
    pub prompt: &'a str,
    /// The most tokens of the answer.
    pub output_tokens_max: u32,
    /// The answer is one of these; any text if there are none.
    pub choices: &'a [&'a str],
}

/// Asks the model of the metadata.
///
/// # Errors
/// When the host says something else than it should.
pub fn infer(question: &Question<'_>) -> Result<String, Fault> {
    let mut ask = Object::new()
        .text("system", question.system)
        .text("prompt", question.prompt)
        .number("maxOutputTokens", question.output_tokens_max.into());
    if !question.choices.is_empty() {
        ask = ask.texts("choices", question.choices);
    }
    let ask = ask.finish();
    // SAFETY: the text lives until the host has read it.
    let answer = unpack(unsafe { ombra_infer(ask.as_ptr() as usize, ask.len()) })?;
    member(&answer, "text").ok_or_else(|| Fault::from("infer: no text"))
}

/// Calls a built-in tool of the metadata with arguments, a JSON object.
///
/// # Errors
/// What the tool says instead of a result.
pub fn tool(name: &str, arguments: &str) -> Result<String, Fault> {
    let ask = Object::new().text("name", name).raw("arguments", arguments).finish();
    // SAFETY: the text lives until the host has read it.
    let answer = unpack(unsafe { ombra_tool(ask.as_ptr() as usize, ask.len()) })?;
    let content = member(&answer, "content").ok_or_else(|| Fault::from("tool: no content"))?;
    if answer.contains("\"ok\":true") { Ok(content) } else { Err(Fault(content)) }
}

/// Calls an agent of the metadata; its encoded outputs.
///
/// # Errors
/// Why it does not answer.
pub fn agent(id: &str, version: &str, payload: &[u8]) -> Result<Vec<u8>, Fault> {
    let hex = crate::abi::to_hex(payload);
    let ask =
        Object::new().text("agent", id).text("version", version).text("payload", &hex).finish();
    // SAFETY: the text lives until the host has read it.
    let answer = unpack(unsafe { ombra_agent(ask.as_ptr() as usize, ask.len()) })?;
    if let Some(reason) = member(&answer, "reason") {
        return Err(Fault(reason));
    }
    let result = member(&answer, "result").and_then(|hex| crate::abi::from_hex(&hex));
    result.ok_or_else(|| Fault::from("agent: no result"))
}

/// A member of the context: `callId`, `agentId`, `version` or `requester`.
///
/// # Errors
/// When there is none of that name.
pub fn context(name: &str) -> Result<String, Fault> {
    // SAFETY: it reads nothing of this program.
    let answer = unpack(unsafe { ombra_context() })?;
    member(&answer, name).ok_or_else(|| Fault::from("context: no such member"))
}
