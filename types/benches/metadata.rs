//! What it costs to read and check the metadata of an agent, for the worst texts of 65,536 bytes that we
//! know: each takes another part of the reader to its limit. Prints the median and the best of many
//! rounds.
//!
//! `./run cargo bench -p types --bench metadata [-- PART_OF_A_NAME]`

#![expect(clippy::print_stdout, reason = "a benchmark reports on standard output")]
#![expect(clippy::unwrap_used, reason = "a benchmark stops at the first surprise")]

use std::hint::black_box;

use fixtures::times;
use types::agent::{Document, METADATA_BYTES_MAX, ROYALTY_MAX};

const ROUNDS: usize = 301;

/// The metadata up to what fills it.
const HEAD: &str =
    r#"{"name":"a","description":"b","container_image":"ipfs://c","version":"0.0.0""#;
/// The smallest list of methods.
const ABI: &str = r#","abi":[{"type":"function","name":"d","inputs":[],"outputs":[]}]"#;

fn main() {
    let unknown = |open: &str, item: &dyn Fn(usize) -> String, close: &str| {
        filled(&format!("{HEAD}{ABI},\"x\":{open}"), item, &format!("{close}}}"))
    };
    let same = |text: &'static str| move |_| text.to_owned();
    let keys = |at: usize| format!("\"{}\":0", short(at));
    report("one value after another", &unknown("[", &same("1"), "]"), true);
    report("many arrays", &unknown("[", &same("[1]"), "]"), true);
    report("many objects", &unknown("[", &same("{\"\":0}"), "]"), true);
    report("many strings with escapes", &unknown("[", &same("\"\\n\""), "]"), true);
    report("one string of escapes", &one_string(), true);
    report("one object of many keys", &unknown("{", &keys, "}"), true);
    report(
        "many keys of the document",
        &filled(&format!("{HEAD}{ABI}"), &|at| format!("\"{}\":0", short(at)), "}"),
        true,
    );
    report("objects of 24 keys", &unknown("[", &object_of(24), "]"), true);
    report("objects of 9 keys", &unknown("[", &object_of(9), "]"), true);
    report("keys that begin alike", &unknown("{", &|at| format!("\"{at:032}\":0"), "}"), true);
    report(
        "deep arrays",
        &unknown("[", &|_| format!("{}{}", "[".repeat(30), "]".repeat(30)), "]"),
        true,
    );
    report("many keys, then half a pair", &unknown("{", &keys, ",\"x\":\"\\ud800\"}"), false);
    report("many keys, then one twice", &unknown("{", &keys, ",\"a\":0}"), false);
    report(
        "objects of 9 keys, then half a pair",
        &unknown("[", &object_of(9), ",\"\\ud800\"]"),
        false,
    );
    report(
        "many objects, then half a pair",
        &unknown("[", &same("{\"\":0}"), ",\"\\ud800\"]"),
        false,
    );
    report("many halves of pairs", &unknown("[", &same("\"\\ud800\""), "]"), false);
    report("nothing but nesting", &"[".repeat(METADATA_BYTES_MAX), false);
    report("nesting of objects", &"{\"\":".repeat(METADATA_BYTES_MAX / 4), false);
    report("many keys, then no end", &unknown("{", &keys, ":"), false);
    let tuple = format!(
        "{HEAD},\"abi\":[{{\"type\":\"function\",\"name\":\"d\",\"outputs\":[],\"inputs\":[{{\"name\":\"\",\"type\":\"tuple\",\"components\":["
    );
    let components = |item: &dyn Fn(usize) -> String| filled(&tuple, item, "]}]}]}");
    report("many components", &components(&same("{\"name\":\"\",\"type\":\"int\"}")), true);
    report(
        "many components of arrays",
        &components(&same("{\"name\":\"\",\"type\":\"int[][][][]\"}")),
        true,
    );
    report(
        "many components with names",
        &components(&|at| format!("{{\"name\":\"{}\",\"type\":\"int\"}}", short(at))),
        true,
    );
    report(
        "many tuples",
        &components(&same(
            "{\"name\":\"\",\"type\":\"tuple\",\"components\":[{\"name\":\"\",\"type\":\"int\"}]}",
        )),
        true,
    );
    report("methods of many inputs", &methods(), true);
}

/// `head`, items with commas between them as many as fit, and `tail`, with white space up to the limit.
fn filled(head: &str, item: &dyn Fn(usize) -> String, tail: &str) -> String {
    let mut text = head.to_owned();
    let mut separator = if head.ends_with(['[', '{']) { "" } else { "," };
    for at in 0.. {
        let next = item(at);
        if text.len() + separator.len() + next.len() + tail.len() > METADATA_BYTES_MAX {
            break;
        }
        text += separator;
        text += &next;
        separator = ",";
    }
    text += tail;
    text
}

/// Names of one to three letters.
fn short(mut at: usize) -> String {
    let mut name = String::new();
    loop {
        name.push(char::from(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$"[at % 54]));
        at /= 54;
        if at == 0 {
            return name;
        }
        at -= 1;
    }
}

fn object_of(keys: usize) -> impl Fn(usize) -> String {
    let members: Vec<_> = (0..keys).map(|at| format!("\"{}\":0", short(at))).collect();
    move |_| format!("{{{}}}", members.join(","))
}

fn one_string() -> String {
    let head = format!("{HEAD}{ABI},\"x\":\"");
    let escapes = (METADATA_BYTES_MAX - head.len() - 2) / 6;
    format!("{head}{}\"}}", "\\u0041".repeat(escapes))
}

/// 64 methods with as many inputs and outputs as fit.
fn methods() -> String {
    let parameters = vec!["{\"name\":\"\",\"type\":\"int\"}"; 18].join(",");
    let method = |at| {
        format!(
            "{{\"type\":\"function\",\"name\":\"{}_\",\"inputs\":[{parameters}],\"outputs\":[{parameters}]}}",
            short(at)
        )
    };
    let methods: Vec<_> = (0..64).map(method).collect();
    format!("{HEAD},\"abi\":[{}]}}", methods.join(","))
}

/// Prints the median and the best time of reading and checking a text. On a busy machine the best says
/// more.
fn report(name: &str, text: &str, is_good: bool) {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    if filter.is_some_and(|filter| !name.contains(&filter)) {
        return;
    }
    assert!(text.len() <= METADATA_BYTES_MAX && text.len() > METADATA_BYTES_MAX - 2_000);
    let times = times(ROUNDS, |_| {
        let outcome = Document::read(black_box(text.as_bytes()))
            .and_then(|document| black_box(document.check(ROYALTY_MAX)).outcome);
        assert_eq!(outcome.is_ok(), is_good, "{name}: {outcome:.200?}");
    });
    let micros = |round: usize| times.get(round).unwrap().as_secs_f64() * 1e6;
    println!("{name:40} median {:7.0} us   best {:7.0} us", micros(ROUNDS / 2), micros(0));
}
