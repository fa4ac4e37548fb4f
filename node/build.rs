//! Tells the binary which commit it is built from.

use std::path::Path;
use std::process::Command;

fn main() {
    let commit = Command::new("git")
        .args(["rev-parse", "--short=12", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned());
    write_line(&format!("cargo::rustc-env=OMBRA_COMMIT={commit}"));
    if Path::new("../.git/HEAD").exists() {
        write_line("cargo::rerun-if-changed=../.git/HEAD");
    }
}

fn write_line(line: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stdout(), "{line}"));
}
