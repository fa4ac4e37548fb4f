//! The repository stands alone: it names nothing outside itself, and what it names is there.

use super::{assert_none, exists, files, lines_with, read};

const TEXTS: &[&str] = &[".rs", ".md", ".toml", ".sh", ".json", ".yaml", ".yml", "run", ".txt"];

/// Beginnings of paths that exist on one machine only.
const FOREIGN: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("../sha", "red"),
];

#[test]
fn no_file_names_a_path_outside_the_repository() {
    assert_none(&lines_with(FOREIGN, TEXTS), "paths of one machine");
}

#[test]
fn every_link_between_documents_leads_somewhere() {
    let mut faults = Vec::new();
    for document in files(&[".md"]) {
        let folder = document.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for link in links(&document.text) {
            let path = link.split('#').next().unwrap_or_default();
            let target =
                if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") };
            if !path.is_empty() && !exists(&target) {
                faults.push(format!("{}: {link}", document.path));
            }
        }
    }
    assert_none(&faults, "links to nothing");
}

/// Targets of Markdown links within the repository.
fn links(text: &str) -> Vec<&str> {
    let parts = text.split("](").skip(1);
    let targets = parts.filter_map(|part| part.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with('#')).collect()
}

#[test]
fn every_document_that_is_named_is_there() {
    let mut faults = Vec::new();
    for source in files(&[".rs", ".md", ".toml", "run"]) {
        for word in source.text.split(|c: char| c.is_whitespace() || "`()[],;:\"'<>".contains(c)) {
            let word = word.trim_end_matches('.');
            if word.starts_with("docs/") && word.ends_with(".md") && !exists(word) {
                faults.push(format!("{}: {word}", source.path));
            }
        }
    }
    assert_none(&faults, "documents that do not exist");
}

#[test]
fn every_section_of_the_protocol_that_is_named_is_there() {
    const NAME: &str = "docs/protocol.md section";
    let protocol = read("docs/protocol.md");
    let headings: Vec<_> = protocol
        .lines()
        .filter(|line| line.starts_with('#'))
        .filter_map(|line| line.trim_start_matches('#').split_whitespace().next())
        .map(|number| number.trim_end_matches('.').to_owned())
        .collect();
    let mut faults = Vec::new();
    for source in files(&[".rs"]) {
        let text = source.text.replace("\n//! ", " ").replace("\n/// ", " ");
        for mention in text.split(NAME).skip(1) {
            let words = mention.trim_start_matches('s').trim_start();
            let number: String =
                words.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
            let number = number.trim_end_matches('.');
            if !number.is_empty() && !headings.iter().any(|heading| heading == number) {
                faults.push(format!("{}: section {number}", source.path));
            }
        }
    }
    assert_none(&faults, "sections that docs/protocol.md does not have");
}

#[test]
fn the_files_that_people_look_for_are_there() {
    let wanted = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "STYLE.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
        ".ci/run",
        "run",
    ];
    let missing: Vec<_> =
        wanted.iter().filter(|path| !exists(path)).map(|path| (*path).to_owned()).collect();
    assert_none(&missing, "missing files");
}

#[test]
fn the_two_commands_of_the_readme_are_the_ones_that_ci_runs() {
    let readme = read("README.md");
    for command in ["./run demo", "./run test"] {
        assert!(readme.contains(command), "README.md shows {command}");
    }
    assert!(read(".ci/run").contains("./run test"), ".ci/run calls the README's test command");
}
