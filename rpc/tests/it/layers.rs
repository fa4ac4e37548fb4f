//! What is asked for knows nothing of how it was asked.

use std::fs;
use std::path::{Path, PathBuf};

/// Names of what carries requests.
const CARRIERS: [&str; 5] = ["crate::transport", "axum::", "hyper::", "jsonrpsee::", "tower"];

/// The source files in a folder and its folders.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(sources(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn services_and_what_they_stand_on_know_no_transport() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    for layer in ["service", "admission", "ports", "wire"] {
        for path in sources(&folder.join(layer)) {
            let text = fs::read_to_string(&path).unwrap();
            let known = CARRIERS.into_iter().find(|name| text.contains(name));
            assert_eq!(None, known, "{}", path.display());
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen} files");
}
