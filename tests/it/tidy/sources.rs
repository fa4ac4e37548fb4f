//! What a source file looks like.

use super::{Source, assert_none, files, lines_with};

/// The most lines of a source file, its tests and its comments not counted.
const LINES_MAX: usize = 500;

/// Serde attributes that break the binary form: bincode writes such values, and cannot read them
/// back or reads something else.
const BANNED_SERDE: &[&str] = &["flatten", "untagged", "skip_serializing_if", "tag =", "content ="];

/// Crates whose types are stored.
const STORED: &[&str] = &["types", "state", "store"];

/// Where tests find the helpers that wait for a condition with a deadline, and the load program.
const HELPERS: &[&str] = &["testkit/src/", "tests/load/"];

/// Names of files that only this project understands, and the field's word for each.
const PRIVATE_WORDS: &[(&str, &str)] = &[
    ("aside", "an archive"),
    ("course", "a session"),
    ("courses", "sessions"),
    ("desk", "requests, or a service"),
    ("door", "authentication"),
    ("extent", "a cost, or a length"),
    ("floor", "a cursor"),
    ("gate", "flow control, or admission"),
    ("hands", "a tool runner"),
    ("lane", "a verifier, or a connection"),
    ("lanes", "a verifier, or connections"),
    ("later", "what comes later"),
    ("lookout", "a probe, or a subscription"),
    ("outline", "a compact block"),
    ("patience", "timeouts, or a backoff"),
    ("room", "space, or capacity"),
    ("scribe", "a writer"),
    ("settle", "a settlement, or an outcome"),
    ("shelf", "a store"),
    ("talk", "messages"),
    ("visitors", "a check of origins"),
];

/// The lines before the file's test module that are not comments.
fn code_lines(source: &Source) -> usize {
    let tests = source.text.find("#[cfg(test)]\nmod tests {");
    let code = &source.text[..tests.unwrap_or(source.text.len())];
    code.lines().filter(|line| !line.trim_start().starts_with("//")).count()
}

#[test]
fn a_source_file_has_at_most_500_lines_of_code() {
    let faults: Vec<_> = files(&[".rs"])
        .iter()
        .filter(|source| !source.is_test())
        .map(|source| (source, code_lines(source)))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(source, lines)| format!("{}: {lines}", source.path))
        .collect();
    assert_none(&faults, "files that are too long; split them by what they hold");
}

/// What begins a block of code in a comment that the tests of documentation would run.
const RUST_BLOCKS: &[&str] = &["", "rust", "no_run", "should_panic", "compile_fail"];

/// The blocks of code in the comments of a file that are Rust.
fn rust_blocks(text: &str) -> usize {
    let documentation = text.lines().filter_map(|line| {
        let comment = line.trim_start();
        comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!"))
    });
    let fences = documentation.filter_map(|line| line.trim_start().strip_prefix("```"));
    // Every second one ends a block.
    fences.step_by(2).filter(|language| RUST_BLOCKS.contains(&language.trim())).count()
}

/// No crate has tests of its documentation, because to look for them takes almost a minute.
#[test]
fn no_comment_has_code_that_only_tests_of_documentation_would_run() {
    let faults: Vec<_> = files(&[".rs"])
        .iter()
        .map(|source| (source, rust_blocks(&source.text)))
        .filter(|(_, blocks)| *blocks > 0)
        .map(|(source, blocks)| format!("{}: {blocks}", source.path))
        .collect();
    assert_none(&faults, "blocks of Rust in comments: make them unit tests, or mark them as text");
}

#[test]
fn files_and_folders_have_names_of_the_field() {
    let mut faults = Vec::new();
    for source in files(&[".rs"]) {
        let stem = source.path.trim_end_matches(".rs");
        for (word, instead) in PRIVATE_WORDS {
            if stem.split('/').any(|part| part == *word) {
                faults.push(format!("{}: say {instead} instead of {word}", source.path));
            }
        }
    }
    assert_none(&faults, "names that a newcomer cannot guess (STYLE.md)");
}

#[test]
fn a_source_file_begins_by_saying_what_it_holds() {
    let faults: Vec<_> = files(&[".rs"])
        .iter()
        .filter(|source| !says_what_it_holds(&source.text))
        .map(|source| source.path.clone())
        .collect();
    assert_none(&faults, "files whose first line is not `//!` and a text");
}

/// An inner attribute may stand before the text.
fn says_what_it_holds(text: &str) -> bool {
    let first = text.lines().find(|line| !line.starts_with("#!["));
    first.is_some_and(|line| line.strip_prefix("//! ").is_some_and(|words| words.len() > 3))
}

#[test]
fn stored_types_have_no_serde_attribute_that_breaks_the_binary_form() {
    let mut faults = Vec::new();
    for source in files(&[".rs"]).iter().filter(|source| STORED.contains(&source.folder())) {
        for (number, line) in source.text.lines().enumerate() {
            let Some((_, attribute)) = line.split_once("#[serde(") else { continue };
            for banned in BANNED_SERDE.iter().filter(|banned| attribute.contains(**banned)) {
                faults.push(format!("{}:{}: {banned}", source.path, number + 1));
            }
        }
    }
    assert_none(&faults, "serde attributes that bincode cannot carry");
}

#[test]
fn nothing_is_left_for_later_or_switched_off() {
    let marks = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("#[ign", "ore"),
        concat!("todo", "!("),
        concat!("unimplemented", "!("),
    ];
    let faults = lines_with(&marks, &[".rs", ".sh", ".toml", ".md", "run"]);
    assert_none(&faults, "unfinished or switched off");
}

#[test]
fn tests_wait_for_conditions_and_not_for_time() {
    let sleeps = [concat!("thread::sl", "eep"), concat!("time::sl", "eep")];
    let waits = |source: &&Source| {
        source.is_test() && !HELPERS.iter().any(|folder| source.path.starts_with(folder))
    };
    let mut faults = Vec::new();
    for source in files(&[".rs"]).iter().filter(waits) {
        let mut above = "";
        for (number, line) in source.text.lines().enumerate() {
            let pauses = sleeps.iter().any(|sleep| line.contains(sleep));
            if pauses && !above.trim_start().starts_with("//") {
                faults.push(format!("{}:{}", source.path, number + 1));
            }
            above = line;
        }
    }
    assert_none(&faults, "pauses in tests without a comment right above that says why");
}

#[test]
fn one_lint_configuration_rules_the_workspace() {
    let nested: Vec<_> = files(&["clippy.toml", "rustfmt.toml"])
        .into_iter()
        .map(|source| source.path)
        .filter(|path| path.contains('/'))
        .collect();
    assert_none(&nested, "a nested file replaces the one at the top, it does not extend it");
    let mut faults = Vec::new();
    for manifest in files(&["Cargo.toml"]) {
        let is_root = manifest.text.contains("[workspace]\n");
        let is_member = !is_root && manifest.folder() != "fuzz";
        if is_member && !manifest.text.contains("[lints]\nworkspace = true") {
            faults.push(manifest.path);
        }
    }
    assert_none(&faults, "crates that do not take the workspace's lints");
}
