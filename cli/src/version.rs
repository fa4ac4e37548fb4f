//! `ombra version`.

use clap::Args;
use serde_json::json;

use super::client::{Out, Outcome};

/// Print version, commit, protocol and database format
#[derive(Debug, Args)]
#[command(after_help = "Example: ombra version --json")]
pub(super) struct VersionArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The commit that this binary was built from, or `unknown` outside a checkout.
const COMMIT: &str = node::COMMIT;
/// The rules that the node follows.
pub(crate) const PROTOCOL: &str = "v6";

pub(super) fn run(args: &VersionArgs, out: Out<'_>) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    let format = store::FORMAT;
    if args.json {
        let answer = json!({
            "version": version, "commit": COMMIT, "protocol": PROTOCOL, "databaseFormat": format,
        });
        writeln!(out, "{answer}")?;
    } else {
        writeln!(out, "ombra {version} ({COMMIT})")?;
        writeln!(out, "protocol {PROTOCOL}, database format {format}")?;
    }
    Ok(())
}
