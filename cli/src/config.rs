//! `ombra config`: the settings in force, and where each value came from.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use node::config::{self, ConfigErrors, Effective, Home};
use serde_json::json;

use super::client::output::facts;
use super::client::{CliError, Out, Outcome};

/// Show and check the settings
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print every setting with its value and where the value came from
    #[command(after_help = "Example: ombra config show --home /var/lib/ombra")]
    Show(ConfigArgs),
    /// Check the settings of a home and of the environment, and report all errors in them
    #[command(after_help = "Example: ombra config check --home /var/lib/ombra")]
    Check(ConfigArgs),
}

#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    /// The node's home; without it, the command reads no file, only the environment
    #[arg(long, value_name = "DIR", env = "OMBRA_HOME")]
    home: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: ConfigCommand, out: Out<'_>) -> Outcome {
    match command {
        ConfigCommand::Show(args) => show(&args, &effective(&args).map_err(wrong)?, out),
        ConfigCommand::Check(args) => check(&args, out),
    }
}

impl ConfigArgs {
    /// The file that is read, if any.
    fn file(&self) -> Option<PathBuf> {
        self.home.as_ref().map(|home| Home::new(home.clone()).config())
    }
}

fn effective(args: &ConfigArgs) -> Result<Effective, ConfigErrors> {
    config::load(&[], args.file().as_deref(), std::env::vars_os(), &[])
}

fn wrong(errors: ConfigErrors) -> CliError {
    CliError::Usage(errors.to_string())
}

/// Says what was checked, too: whoever forgets the home would take its file to be in order.
fn check(args: &ConfigArgs, out: Out<'_>) -> Outcome {
    let (file, variables) = (args.file(), config::variables(std::env::vars_os()));
    let outcome = effective(args);
    if args.json {
        let settings = outcome.as_ref().ok().map(|effective| effective.origins.len());
        let errors = outcome.as_ref().err().into_iter().flat_map(ConfigErrors::iter);
        let errors: Vec<_> = errors.map(ToString::to_string).collect();
        let answer = json!({
            "ok": outcome.is_ok(),
            "settings": settings,
            "file": file,
            "variables": variables,
            "errors": errors,
        });
        writeln!(out, "{answer}")?;
        return outcome.map(drop).map_err(wrong);
    }
    let file = file.map_or_else(
        || "none, because --home names no home".to_owned(),
        |file| file.display().to_string(),
    );
    let variables = match variables.as_slice() {
        [] => "none; no variable begins with OMBRA__".to_owned(),
        names => names.join(", "),
    };
    writeln!(out, "{}", facts([("checked file", file), ("checked variables", variables)]))?;
    let settings = outcome.map_err(wrong)?.origins.len();
    writeln!(out, "{settings} settings are in order")?;
    Ok(())
}

fn show(args: &ConfigArgs, effective: &Effective, out: Out<'_>) -> Outcome {
    if args.json {
        let rows: serde_json::Map<_, _> = effective
            .origins
            .iter()
            .map(|(key, (value, origin))| {
                (key.clone(), json!({ "value": value, "origin": origin.to_string() }))
            })
            .collect();
        writeln!(out, "{}", serde_json::Value::Object(rows))?;
        return Ok(());
    }
    for (key, (value, origin)) in &effective.origins {
        writeln!(out, "{key} = {value}  # {origin}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    //! What is checked, and what is said of it.

    use super::{ConfigArgs, check};
    use crate::testing::parsed;

    /// What the check of a home with this file prints, and its exit code.
    fn checked(text: &str, more: &[&str]) -> (String, Option<(u8, String)>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.toml"), text).unwrap();
        let args: ConfigArgs =
            parsed(&[&["--home", folder.path().to_str().unwrap()], more].concat());
        let mut out = Vec::new();
        let failure = check(&args, &mut out).err();
        let failure = failure.map(|error| (error.exit_code(), error.to_string()));
        (String::from_utf8(out).unwrap(), failure)
    }

    #[test]
    fn a_check_says_which_file_it_read_or_that_it_read_none() {
        let (told, failure) = checked("", &[]);
        assert!(told.contains("config.toml\n") && told.contains("are in order"), "{told}");
        assert_eq!(None, failure);
        let mut out = Vec::new();
        check(&parsed(&[]), &mut out).unwrap();
        let told = String::from_utf8(out).unwrap();
        assert!(told.contains("none, because --home names no home"), "{told}");
    }

    #[test]
    fn all_errors_are_told_and_the_exit_code_is_that_of_wrong_configuration() {
        let text = "p2p.gossip.peers = [\"node1:30778\"]\nrpc.limits.ping_interval_ms = 0\n";
        let (told, failure) = checked(text, &[]);
        assert!(!told.contains("in order"), "{told}");
        let (code, said) = failure.unwrap();
        assert_eq!(2, code);
        let parts = ["2 faults", "p2p.gossip.peers", "ping_interval_ms` is 0", "1 millisecond"];
        for part in parts {
            assert!(said.contains(part), "{part} in {said}");
        }
        let (told, failure) = checked(text, &["--json"]);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(
            (&told["ok"], told["errors"].as_array().map(Vec::len)),
            (&false.into(), Some(2))
        );
        assert_eq!(Some(2), failure.map(|(code, _)| code));
    }
}
