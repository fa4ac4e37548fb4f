//! `ombra config`: the settings in force, and where each value came from.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use node::config::{self, Effective, Home};
use serde_json::json;

use super::client::{CliError, Out, Outcome};

/// Show and check the settings
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Print every setting with its value and where the value came from
    #[command(after_help = "Example: ombra config show --home /var/lib/ombra")]
    Show(ConfigArgs),
    /// Check the settings and say what is wrong with them
    #[command(after_help = "Example: ombra config check --home /var/lib/ombra")]
    Check(ConfigArgs),
}

#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    /// The node's home; without it, defaults and environment are shown
    #[arg(long, value_name = "DIR", env = "OMBRA_HOME")]
    home: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: ConfigCommand, out: Out<'_>) -> Outcome {
    match command {
        ConfigCommand::Show(args) => show(&args, &effective(&args)?, out),
        ConfigCommand::Check(args) => {
            let settings = effective(&args)?.origins.len();
            if args.json {
                writeln!(out, "{}", json!({ "ok": true, "settings": settings }))?;
            } else {
                writeln!(out, "{settings} settings are in order")?;
            }
            Ok(())
        }
    }
}

fn effective(args: &ConfigArgs) -> Result<Effective, CliError> {
    let file = args.home.as_ref().map(|home| Home::new(home.clone()).config());
    config::load(&[], file.as_deref(), std::env::vars_os(), &[])
        .map_err(|error| CliError::Usage(error.to_string()))
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
