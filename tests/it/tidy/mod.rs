//! Tests that hold the repository to its own rules: which crate may know which, what a source file
//! looks like, and that the documents say what the code says.

mod architecture;
mod arrows;
mod circles;
mod documents;
mod kinds;
mod market;
mod packaging;
mod repository;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};

/// The repository's top folder.
fn root() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.parent().expect("the crate is in a folder of the repository").to_owned()
}

/// A text file of the repository.
struct Source {
    /// Its path from the top folder, with `/` between the parts.
    path: String,
    text: String,
}

impl Source {
    /// The name of the top-level folder that it is in.
    fn folder(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether the file holds tests or benchmarks only.
    fn is_test(&self) -> bool {
        self.name() == "tests.rs"
            || self.path.split('/').any(|part| {
                matches!(part, "tests" | "fixtures" | "testkit" | "benches" | "examples")
            })
    }
}

/// Reads one file of the repository.
fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn exists(path: &str) -> bool {
    root().join(path).exists()
}

/// Every text file whose name ends in one of `endings`.
fn files(endings: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    walk(&root(), String::new(), &mut |path, file| {
        if endings.iter().any(|ending| path.ends_with(ending))
            && let Ok(text) = fs::read_to_string(file)
        {
            found.push(Source { path, text });
        }
    });
    found.sort_by(|left, right| left.path.cmp(&right.path));
    assert!(!found.is_empty(), "no file ends in {endings:?}");
    found
}

/// Where one of these words stands in a file whose name ends in one of `endings`.
fn lines_with(words: &[&str], endings: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for Source { path, text } in files(endings) {
        for (number, line) in text.lines().enumerate() {
            let here = words.iter().filter(|word| line.contains(**word));
            found.extend(here.map(|word| format!("{path}:{}: {word}", number + 1)));
        }
    }
    found
}

/// Visits every file but those that tools or others made.
fn walk(folder: &Path, prefix: String, visit: &mut impl FnMut(String, &Path)) {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    for entry in entries.map(|entry| entry.expect("a folder that opened can be read")) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type().expect("an entry has a type");
        if kind.is_dir() {
            if !matches!(name.as_str(), ".git" | "target" | "corpus" | "artifacts" | "vendor") {
                walk(&entry.path(), format!("{path}/"), visit);
            }
        } else if kind.is_file() {
            visit(path, &entry.path());
        }
    }
}

/// Fails with every fault at once.
fn assert_none(faults: &[String], rule: &str) {
    assert!(faults.is_empty(), "{rule}:\n  {}", faults.join("\n  "));
}

/// The texts between pairs of backticks, outside fenced blocks.
fn code_spans(markdown: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut spans = Vec::new();
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            spans.extend(line.split('`').skip(1).step_by(2));
        }
    }
    spans
}

/// The part of a document below the heading that begins with `heading`, up to the next heading of
/// the same or a higher level.
fn section<'a>(document: &'a str, heading: &str) -> &'a str {
    let level = heading.bytes().take_while(|byte| *byte == b'#').count();
    let start = document
        .match_indices(heading)
        .map(|(at, _)| at)
        .find(|at| *at == 0 || document[..*at].ends_with('\n'))
        .unwrap_or_else(|| panic!("there is no heading {heading:?}"));
    let body = &document[start..];
    let first_line = body.find('\n').unwrap_or(body.len());
    let mut end = first_line;
    for line in body[first_line..].split_inclusive('\n') {
        let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
        if (1..=level).contains(&hashes) && line[hashes..].starts_with(' ') {
            break;
        }
        end += line.len();
    }
    &body[..end]
}

/// The cells of all table rows of `text`.
fn all_table_rows(text: &str) -> Vec<Vec<&str>> {
    let rows = text.lines().filter(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// The same without headings and rules.
fn table_rows(text: &str) -> Vec<Vec<&str>> {
    let mut rows = all_table_rows(text);
    rows.retain(|row| row.first().is_some_and(|cell| cell.starts_with('`')));
    rows
}
