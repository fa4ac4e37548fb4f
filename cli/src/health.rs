//! `ombra health`: asks the node of a home how it is, for health checks of containers and scripts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use axum::http::StatusCode;
use bytes::Bytes;
use clap::Args;
use node::config::{self, Home};
use serde_json::Value;
use tokio::net::TcpStream;

use super::client::{CliError, Out, Outcome};

/// How long the node may take to answer; less than health checks of containers usually wait.
const PATIENCE: Duration = Duration::from_secs(4);
/// Far more than the list of checks.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// Ask the node of a home whether it can serve, or whether it is alive
#[derive(Debug, Args)]
#[command(after_help = "Example: ombra health --home /var/lib/ombra\n\n\
                        A node is ready if it can serve now. It is alive if it answers: it may be \
                        catching up or have no peers, and that is no reason to restart it.\n\
                        Exit codes: 0 yes, 1 no, 2 no such home, 3 no answer.")]
pub(super) struct HealthArgs {
    /// The node's home
    #[arg(long, value_name = "DIR", env = "OMBRA_HOME")]
    home: PathBuf,
    /// Only ask whether the node answers
    #[arg(long)]
    alive: bool,
    /// Print JSON: what the node said
    #[arg(long, conflicts_with = "alive")]
    json: bool,
}

pub(super) async fn run(args: &HealthArgs, out: Out<'_>) -> Outcome {
    let address = address(&Home::new(args.home.clone()))?;
    if args.alive {
        let (status, _) = get(address, "/healthz").await?;
        if status != StatusCode::OK {
            return Err(CliError::Failed(format!("the node answers {status}")));
        }
        writeln!(out, "alive")?;
        return Ok(());
    }
    let (status, body) = get(address, "/readyz").await?;
    let answer: Value = serde_json::from_slice(&body).map_err(|_unreadable| {
        CliError::Failed(format!("{address} does not answer like an ombra node"))
    })?;
    if args.json {
        writeln!(out, "{answer}")?;
    } else if status == StatusCode::OK {
        writeln!(out, "ready")?;
        if let Some(detail) = wrong_clock(&answer) {
            writeln!(out, "but the clock: {detail}")?;
        }
    }
    if status == StatusCode::OK { Ok(()) } else { Err(not_ready(&answer)) }
}

/// What is wrong with the clock, which makes no node unready.
fn wrong_clock(answer: &Value) -> Option<&str> {
    let clock = answer.get("clock").filter(|clock| clock["ok"] == Value::Bool(false))?;
    clock["detail"].as_str()
}

/// The checks that fail, each with what it says.
fn not_ready(answer: &Value) -> CliError {
    let checks = answer.get("checks").and_then(Value::as_array).into_iter().flatten();
    let failing = checks.filter(|check| check.get("ok") != Some(&Value::Bool(true)));
    let text =
        |check: &Value, key| check.get(key).and_then(Value::as_str).unwrap_or("?").to_owned();
    let lines: Vec<_> = failing
        .map(|check| format!("{} ({})", text(check, "name"), text(check, "detail")))
        .collect();
    CliError::Failed(format!("not ready: {}", lines.join(", ")))
}

/// Where the node of a home answers: as it says itself, else as its settings say.
fn address(home: &Home) -> Result<SocketAddr, CliError> {
    if !home.directory().is_dir() {
        let message = format!("there is no folder {}", home.directory().display());
        return Err(CliError::Usage(message));
    }
    let told = std::fs::read(home.endpoints()).ok();
    let told: Option<Value> = told.and_then(|text| serde_json::from_slice(&text).ok());
    let told = told.as_ref().and_then(|endpoints| endpoints.get("rpc")).and_then(Value::as_str);
    if let Some(address) = told.and_then(|text| text.parse().ok()) {
        return Ok(reachable(address));
    }
    let file = Some(home.config()).filter(|file| file.exists());
    let settings = config::load(&[], file.as_deref(), std::env::vars_os(), &[])
        .map_err(|error| CliError::Usage(error.to_string()))?;
    Ok(reachable(settings.config.rpc.listen))
}

/// A node that listens on all addresses is reached on loopback.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

async fn get(address: SocketAddr, path: &str) -> Result<(StatusCode, Bytes), CliError> {
    let silent = |why: String| CliError::NoAnswer { address, why };
    match tokio::time::timeout(PATIENCE, exchange(address, path)).await {
        Ok(answer) => answer.map_err(|error| silent(error.to_string())),
        Err(_) => Err(silent(format!("no answer within {} seconds", PATIENCE.as_secs()))),
    }
}

async fn exchange(
    address: SocketAddr,
    path: &str,
) -> Result<(StatusCode, Bytes), super::http::AnyError> {
    let stream = TcpStream::connect(address).await?;
    super::http::get(stream, &address.to_string(), path, ANSWER_BYTES_MAX).await
}

#[cfg(test)]
mod tests {
    //! Where a node is asked, and what is said of its answers.

    use serde_json::json;

    use super::*;

    #[test]
    fn a_wrong_clock_is_told_and_a_right_one_is_not() {
        let answer = |ok: bool| json!({"ready": true, "clock": {"ok": ok, "detail": "why"}});
        assert_eq!(Some("why"), wrong_clock(&answer(false)));
        assert_eq!(None, wrong_clock(&answer(true)));
        assert_eq!(None, wrong_clock(&json!({"ready": true})), "a miner has no clock to be judged");
    }

    #[test]
    fn the_node_is_asked_where_it_says_that_it_answers() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().to_owned());
        std::fs::write(home.config(), "[rpc]\nlisten = \"0.0.0.0:1234\"\n").unwrap();
        assert_eq!("127.0.0.1:1234", address(&home).unwrap().to_string());
        std::fs::write(home.endpoints(), r#"{"rpc":"[::]:5678","metrics":null}"#).unwrap();
        assert_eq!("[::1]:5678", address(&home).unwrap().to_string());
        std::fs::write(home.endpoints(), r#"{"rpc":"192.0.2.1:5678"}"#).unwrap();
        assert_eq!("192.0.2.1:5678", address(&home).unwrap().to_string());
    }

    #[test]
    fn a_home_that_is_not_there_is_wrong_usage() {
        let refused = address(&Home::new("/nowhere/home".into())).unwrap_err();
        assert_eq!(2, refused.exit_code());
    }

    #[test]
    fn the_failing_checks_are_named() {
        let answer = json!({ "ready": false, "checks": [
            { "name": "peers", "ok": false, "detail": "0 connected" },
            { "name": "disk", "ok": true, "detail": "9 bytes free" },
        ]});
        assert_eq!("not ready: peers (0 connected)", not_ready(&answer).to_string());
    }
}
