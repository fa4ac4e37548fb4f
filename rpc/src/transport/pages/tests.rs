//! The files of the page are those of the folders, and none of them can do what it must not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

/// Bytes of all files together: what a browser gets from the node once, and keeps. The agent market
/// took a quarter of them: pages of agents and calls, encoding of payloads, and checks of calls.
const BYTES_MAX: usize = 310_000;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

/// Paths of the files in a folder and its folders, with a prefix.
fn paths(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            paths(&entry.path(), &format!("{path}/"), found);
        } else {
            assert!(found.insert(path), "two files of one name");
        }
    }
}

fn text(file: &File) -> &'static str {
    std::str::from_utf8(file.bytes).unwrap()
}

#[test]
fn every_file_of_the_folder_is_served_and_no_other() {
    let mut expected = BTreeSet::new();
    paths(&folder("explorer"), "", &mut expected);
    let own = FILES.iter().filter(|file| !file.path.starts_with("lib/"));
    assert_eq!(expected, own.map(|file| file.path.to_owned()).collect());
    let bytes: usize = FILES.iter().map(|file| file.bytes.len()).sum();
    assert!(bytes <= BYTES_MAX, "{bytes} bytes");
}

/// What a module imports, as paths below the place of the page.
fn imports(file: &File) -> Vec<String> {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let quoted = text(file).split(['"']).collect::<Vec<_>>();
    let wanted = quoted.windows(2).filter(|pair| {
        let before = pair[0].trim_end();
        before.ends_with(" from") || before.ends_with("import(") || before.ends_with("\nimport")
    });
    wanted
        .map(|pair| match pair[1].strip_prefix("../") {
            Some(rest) => rest.to_owned(),
            None => format!("{folder}/{}", pair[1].trim_start_matches("./")),
        })
        .map(|path| path.trim_start_matches('/').to_owned())
        .filter(|path| !path.contains(':'))
        .collect()
}

#[test]
fn everything_that_a_module_imports_is_served() {
    let known: BTreeSet<_> = FILES.iter().map(|file| file.path).collect();
    let mut seen = 0;
    for file in FILES.iter().filter(|file| file.path.ends_with(".js")) {
        for import in imports(file) {
            seen += 1;
            assert!(known.contains(import.as_str()), "{} imports {import}", file.path);
        }
    }
    assert!(seen > 50, "{seen} imports");
}

#[test]
fn no_script_makes_markup_from_text() {
    let ways = [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "createContextualFragment",
        "DOMParser",
        "setHTML",
        "srcdoc",
        "eval(",
        "new Function",
        "javascript:",
        "setAttribute(\"style",
        "setAttribute(\"on",
        "importScripts",
        "setTimeout(\"",
        "setInterval(\"",
        ".src =",
        ".href =",
    ];
    for file in FILES.iter().filter(|file| file.path.ends_with(".js")) {
        for way in ways {
            assert!(!text(file).contains(way), "{} has {way}", file.path);
        }
    }
}

#[test]
fn elements_are_made_in_one_file_only() {
    let makers = ["createElement", "setAttribute(\"href\"", "location.assign", "window.open"];
    for file in FILES.iter().filter(|file| file.path.ends_with(".js") && file.path != "dom.js") {
        for maker in makers {
            assert!(!text(file).contains(maker), "{} has {maker}", file.path);
        }
    }
}

#[test]
fn the_page_names_no_other_machine_and_has_nothing_inline() {
    for file in FILES.iter().filter(|file| !file.path.starts_with("lib/")) {
        for line in text(file).lines().filter(|line| line.contains("://")) {
            assert!(line.contains("http://www.w3.org/2000/svg"), "{}: {line}", file.path);
        }
    }
    let page = FILES.iter().find(|file| file.path == "index.html").map(text).unwrap();
    for inline in [" style=", " onclick=", " onload=", "<style", "<script>"] {
        assert!(!page.contains(inline), "index.html has {inline}");
    }
    assert_eq!(1, page.matches("<script").count());
}
