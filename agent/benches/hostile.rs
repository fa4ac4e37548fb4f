//! How long it takes to read requests, and schemas of answers, that are as much work as the limits allow.
//! Anybody may send one for nothing, so this program fails if one takes a millisecond.
//!
//! `./run cargo bench -p agent --bench hostile`

#![expect(clippy::print_stdout, reason = "the figures are the output")]

#[path = "../src/methods/messages/tests/hostile.rs"]
mod requests;
#[path = "../src/methods/schema/tests/hostile.rs"]
mod schemas;

use std::hint::black_box;
use std::time::{Duration, Instant};

use agent::methods::{AgentSession, Parsed, Request, Schema};

/// The longest that reading one may take.
const READ_MAX: Duration = Duration::from_millis(1);
/// How often each is read; the least time counts, because the machine has other work, too.
const TIMES: usize = 21;

fn main() {
    for (name, prompt) in requests::requests() {
        measure(name, &prompt, |prompt| {
            if let Ok(Parsed::Method(request)) = Request::parse(prompt, None) {
                drop(black_box(AgentSession::of_request(&request, &[])));
            }
        });
    }
    for (name, schema) in schemas::schemas() {
        measure(name, &schema.to_string(), |text| drop(black_box(Schema::of("schema", text))));
    }
}

fn measure(name: &str, text: &str, read: impl Fn(&str)) {
    let took = (0..TIMES).map(|_| {
        let begun = Instant::now();
        read(black_box(text));
        begun.elapsed()
    });
    let least = took.min().unwrap_or_default();
    println!("{name}, {} bytes: {least:?}", text.len());
    assert!(least < READ_MAX, "{name} takes {least:?}");
}
