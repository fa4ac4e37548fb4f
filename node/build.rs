//! Tells the binary which commit it is built from.

use std::path::Path;
use std::process::Command;

/// Names the commit where there is no Git, as in the build of an image.
const VARIABLE: &str = "OMBRA_COMMIT";

fn main() {
    let given = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let commit = given.or_else(of_git).unwrap_or_else(|| "unknown".to_owned());
    write_line(&format!("cargo::rustc-env=OMBRA_COMMIT={commit}"));
    write_line(&format!("cargo::rerun-if-env-changed={VARIABLE}"));
    // The second grows with each commit and each pull, which leave the first as it is.
    for file in ["../.git/HEAD", "../.git/logs/HEAD"] {
        if Path::new(file).exists() {
            write_line(&format!("cargo::rerun-if-changed={file}"));
        }
    }
}

fn of_git() -> Option<String> {
    let output = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn write_line(line: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stdout(), "{line}"));
}
