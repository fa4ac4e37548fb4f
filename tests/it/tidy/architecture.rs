//! ARCHITECTURE.md names files, functions, tests and lints that exist.

use super::{Source, assert_none, code_spans, exists, files, read};

fn document() -> String {
    read("ARCHITECTURE.md")
}

/// Whether a line of the file defines `name`.
fn defines(text: &str, name: &str) -> bool {
    let keywords = ["fn", "struct", "enum", "trait", "const", "type", "mod", "static"];
    keywords.iter().any(|keyword| {
        let start = format!("{keyword} {name}");
        text.match_indices(&start).any(|(at, _)| {
            let after = text[at + start.len()..].chars().next();
            after.is_some_and(|next| !next.is_alphanumeric() && next != '_')
        })
    })
}

#[test]
fn every_path_in_the_architecture_is_there() {
    let text = document();
    let faults: Vec<_> = code_spans(&text)
        .into_iter()
        .map(|span| span.split("::").next().unwrap_or_default())
        .filter(|path| path.contains('/') && !path.contains([' ', '<', '*', '{']))
        .filter(|path| path.ends_with(".rs") || path.ends_with('/'))
        .filter(|path| !exists(path))
        .map(str::to_owned)
        .collect();
    assert_none(&faults, "paths in ARCHITECTURE.md");
}

#[test]
fn every_entry_point_in_the_architecture_is_there() {
    let text = document();
    let mut seen = 0;
    let mut faults = Vec::new();
    for span in code_spans(&text) {
        let Some((path, name)) = span.split_once(".rs::") else { continue };
        let path = format!("{path}.rs");
        let name = name.rsplit("::").next().unwrap_or_default();
        seen += 1;
        if !exists(&path) || !defines(&read(&path), name) {
            faults.push(span.to_owned());
        }
    }
    assert_none(&faults, "entry points in ARCHITECTURE.md");
    assert!(seen >= 10, "ARCHITECTURE.md names {seen} entry points");
}

#[test]
fn every_invariant_names_what_enforces_it() {
    let text = document();
    let sources = files(&[".rs", "Cargo.toml", "clippy.toml"]);
    let mut faults = Vec::new();
    let mut invariants = 0;
    for line in text.lines().filter(|line| line.contains("**Architecture invariant:**")) {
        invariants += 1;
        let guards = line.split_once("Enforced by").map(|(_, guards)| code_spans(guards));
        let guards = guards.unwrap_or_default();
        if guards.is_empty() || !guards.iter().all(|guard| is_guard(guard, &sources)) {
            faults.push(line.to_owned());
        }
    }
    assert_none(&faults, "invariants without a test or lint that exists");
    assert!(invariants >= 8, "ARCHITECTURE.md has {invariants} invariants");
}

/// A lint that is configured somewhere, a test, or a type that makes the fault impossible.
fn is_guard(guard: &str, sources: &[Source]) -> bool {
    let name = guard.rsplit("::").next().unwrap_or_default();
    let lint = format!("clippy::{name}");
    sources.iter().any(|source| {
        let is_configuration = source.path.ends_with(".toml");
        source.text.contains(&lint)
            || (is_configuration && source.text.contains(name))
            || defines(&source.text, name)
    })
}
