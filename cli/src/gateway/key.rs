//! `ombra gateway key`: keys of clients.

use clap::{Args, Subcommand};
use gateway::keys::check_name;
use gateway::money::{KeyUsage, Limits};
use gateway::store::{KeyFault, KeyStanding};
use node::clock::now_ms;
use serde_json::json;
use types::Amount;

use super::control::{Made, Wanted};
use super::limits::LimitArgs;
use super::place::{PlaceArgs, Source};
use crate::client::output::{ombra, time};
use crate::client::{CliError, Out, Outcome};

/// Keys of clients
#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Make a key, and show it once
    New(Box<NewArgs>),
    /// List the keys and what they have spent
    List(ListArgs),
    /// Revoke a key; its requests that are under way go on
    Revoke(RevokeArgs),
}

/// Make a key, and show it this once
#[derive(Args, Debug)]
pub(super) struct NewArgs {
    /// A name for it
    #[arg(long, value_name = "NAME", value_parser = name)]
    name: String,
    #[command(flatten)]
    limits: LimitArgs,
    /// How long the key is valid: 30d, 12h, 90m
    #[arg(long, value_name = "TIME", value_parser = span_ms)]
    expires: Option<u64>,
    /// Reject parameters that have no effect instead of ignoring them
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    place: PlaceArgs,
}

/// What keys there are, and what they have spent
#[derive(Args, Debug)]
pub(super) struct ListArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

/// Take a key back
#[derive(Args, Debug)]
pub(super) struct RevokeArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    place: PlaceArgs,
}

pub(super) async fn run(command: KeyCommand, out: Out<'_>) -> Outcome {
    match command {
        KeyCommand::New(args) => new(*args, out).await,
        KeyCommand::List(args) => list(&args.place, out).await,
        KeyCommand::Revoke(args) => revoke(&args, out).await,
    }
}

async fn new(args: NewArgs, out: Out<'_>) -> Outcome {
    let expires_ms = args.expires.map(|span| now_ms().saturating_add(span));
    let limits = Limits { expires_ms, strict: args.strict, ..args.limits.limits() };
    let wanted = Wanted { name: args.name, limits };
    let made = match args.place.source(args.place.wallet()?).await? {
        Source::Running(control) => control.new_key(&wanted).await?,
        Source::Stopped(store) => {
            let made = store.new_key(&wanted.name, wanted.limits).await;
            let (key, secret) = made.map_err(fault)?;
            Made { key, secret: secret.reveal().to_owned() }
        }
    };
    if args.place.node.json {
        writeln!(out, "{}", json!({ "name": made.key.name, "key": made.secret }))?;
        return Ok(());
    }
    writeln!(out, "key   {}", made.secret)?;
    writeln!(out, "name  {}", made.key.name)?;
    writeln!(out, "The key is shown only once. Whoever has it can spend what it allows.")?;
    Ok(())
}

async fn list(place: &PlaceArgs, out: Out<'_>) -> Outcome {
    let keys = match place.source(place.wallet()?).await? {
        Source::Running(control) => control.keys().await?,
        Source::Stopped(store) => {
            store.keys().map_err(|error| CliError::Failed(error.to_string()))?
        }
    };
    if place.node.json {
        let keys: Vec<_> = keys.iter().map(described).collect();
        writeln!(out, "{}", json!(keys))?;
        return Ok(());
    }
    for standing in &keys {
        print(standing, out)?;
    }
    Ok(())
}

fn described(standing: &KeyStanding) -> serde_json::Value {
    let KeyStanding { key, tally, today } = standing;
    json!({
        "name": key.name,
        "shown": key.shown,
        "createdMs": key.created_ms,
        "revokedMs": key.revoked_ms,
        "limits": key.limits,
        "leftMicro": key.limits.left_micro(KeyUsage { tally, day: today }),
        "open": tally.open,
        "reservedMicro": tally.reserved_micro,
        "spentMicro": tally.spent_micro,
        "todayRequests": today.requests,
        "todaySpentMicro": today.spent_micro,
    })
}

fn print(standing: &KeyStanding, out: Out<'_>) -> Outcome {
    let KeyStanding { key, tally, today } = standing;
    let state = match (key.revoked_ms, key.limits.expires_ms) {
        (Some(at), _) => format!("revoked {}", time(at)),
        (None, Some(end)) if end <= now_ms() => format!("expired {}", time(end)),
        (None, Some(end)) => format!("until {}", time(end)),
        (None, None) => "in force".to_owned(),
    };
    let left = key.limits.left_micro(KeyUsage { tally, day: today });
    let left = left.map_or_else(|| "no budget".to_owned(), |it| format!("{} left", micro(it)));
    writeln!(out, "{}  {}…  {state}", key.name, key.shown)?;
    writeln!(
        out,
        "    {} open, {} reserved, {} spent, {} of it today in {} requests, {left}",
        tally.open,
        micro(tally.reserved_micro),
        micro(tally.spent_micro),
        micro(today.spent_micro),
        today.requests,
    )?;
    Ok(())
}

fn micro(micro: u64) -> String {
    ombra(Amount::new(micro))
}

async fn revoke(args: &RevokeArgs, out: Out<'_>) -> Outcome {
    let key = match args.place.source(args.place.wallet()?).await? {
        Source::Running(control) => control.revoke(&args.name).await?,
        Source::Stopped(store) => store.revoke_key(&args.name).await.map_err(fault)?,
    };
    writeln!(out, "{} is revoked", key.name)?;
    Ok(())
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to map_err")]
fn fault(fault: KeyFault) -> CliError {
    CliError::Failed(fault.to_string())
}

fn name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned())
}

/// A span in milliseconds: `30d`, `12h`, `90m`.
fn span_ms(text: &str) -> Result<u64, String> {
    let expected = || format!("{text:?}: expected a time such as 30d, 12h or 90m");
    let unit_ms = match text.chars().last() {
        Some('d') => 86_400_000,
        Some('h') => 3_600_000,
        Some('m') => 60_000,
        Some(_) | None => return Err(expected()),
    };
    let count = text.get(..text.len().saturating_sub(1)).unwrap_or_default();
    let count: u64 = count.parse().map_err(|_number| expected())?;
    count.checked_mul(unit_ms).filter(|span| *span > 0).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    //! What is read from the command line.

    use super::{name, span_ms};

    #[test]
    fn a_span_has_a_unit() {
        assert_eq!(Ok(2_592_000_000), span_ms("30d"));
        assert_eq!((Ok(43_200_000), Ok(60_000)), (span_ms("12h"), span_ms("1m")));
        for text in ["", "30", "d", "-1d", "0d", "1.5h", "99999999999999999d", "3ä"] {
            assert!(span_ms(text).unwrap_err().contains("expected"), "{text}");
        }
        assert!(name("a b").is_err() && name("a-b").is_ok());
    }
}
