//! The second act: an agent is published, three miners are drawn, each executes it on the model in a process
//! of its own, and the work is done again in front of the user.
//!
//! Nothing in it is prepared either. What is shown is what the commands print that it names, run by this
//! program as a user would.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use agent::backend::EmbeddedConfig;
use infer::SMOLLM2_135M_MANIFEST;
use miner::program::ProgramError;
use miner::settings::{ModelConfig, Settings};
use serde_json::{Map, Value, json};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};
use wallet::{Answer, Client, Page};

use crate::client::{CliError, Out};
use crate::dev::{self, DevChain};
use crate::miner::failed;

/// The accounts that work for the agent; account 0 publishes it and asks.
const MEMBERS: [usize; 3] = [2, 3, 4];
const AGENT: &str = "sentiment";
const METHOD: &str = "isPositive";
const REVIEW: &str = "I loved it, every single page of it.";
/// How long the members may take to open the model, bond and offer.
const OFFERS_TIMEOUT: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(200);

/// Metadata of the agent.
fn metadata() -> String {
    let manifest = SMOLLM2_135M_MANIFEST;
    let metadata = json!({
        "name": AGENT,
        "description": "Says whether a review is positive.",
        "version": "1.0.0",
        "container_image": format!("ombra-model:{manifest}"),
        "executor": {
            "kind": "model",
            "model": manifest,
            "basePrompt": "You judge reviews of books. Say whether the review is positive.",
            "tools": [],
            "maxIterations": 1,
            "maxOutputTokens": 32,
        },
        "royalty": "100",
        "abi": [{
            "type": "function",
            "name": METHOD,
            "description": "Whether a review is positive.",
            "inputs": [{ "name": "review", "type": "string" }],
            "outputs": [{ "name": "positive", "type": "bool" }],
        }],
    });
    format!("{metadata:#}\n")
}

/// The settings of a member: it works on calls and claims no runs.
fn settings(model: &EmbeddedConfig) -> String {
    let file = model.file.as_ref().map(|path| format!("file = {:?}\n", path.display().to_string()));
    format!(
        "[embedded]\n{}\n[policy]\nclaiming = false\n\n[[market.offers]]\nexecutor = \
         \"model-1:{SMOLLM2_135M_MANIFEST}\"\nper_call_micro = 1000\n",
        file.unwrap_or_default()
    )
}

/// Miners that work for the agent; they end with this.
pub(super) struct Members {
    processes: Vec<(PathBuf, Child)>,
}

/// What the act is played with.
pub(super) struct Stage {
    program: PathBuf,
    folder: PathBuf,
    rpc: String,
    client: Client,
    model: EmbeddedConfig,
    /// The addresses of [`MEMBERS`].
    addresses: Vec<String>,
}

impl Stage {
    /// Puts the stage up on a chain, in a folder of its own below the chain's; the inner error says why the
    /// act cannot be played there.
    pub(super) async fn on(chain: &DevChain) -> Result<Result<Self, &'static str>, CliError> {
        let members = MEMBERS.iter().filter_map(|account| chain.accounts().get(*account));
        let addresses: Vec<String> = members.map(|member| member.address().to_string()).collect();
        if !chain.has_public_accounts() || addresses.len() < MEMBERS.len() {
            return Ok(Err("it needs the accounts 0 to 4 that everybody can derive"));
        }
        let client = chain.client()?;
        let info: Answer<Value> = client.call("ombra_chainInfo", [(); 0]).await?;
        let height = info["height"].as_u64().unwrap_or_default();
        if info["forks"]["v8"].as_u64().is_none_or(|from| from > height) {
            return Ok(Err("this chain has no agent market yet"));
        }
        let settings = Settings::read(&dev::miner_config(chain.home()));
        let settings = settings.map_err(ProgramError::from).map_err(failed)?;
        let model = match settings.model {
            ModelConfig::Embedded(model) if model.pinned => model,
            ModelConfig::Embedded(_) | ModelConfig::Server(_) => {
                return Ok(Err("its agent needs the model that this program knows"));
            }
        };
        let program = std::env::current_exe()
            .map_err(|source| CliError::File { what: "this program".to_owned(), source })?;
        let folder = chain.home().directory().join("demo");
        let made = std::fs::create_dir_all(&folder);
        made.map_err(|source| CliError::file(folder.display(), source))?;
        Ok(Ok(Self { program, folder, rpc: chain.rpc(), client, model, addresses }))
    }

    /// Plays the act; the members go on to work until they are dropped.
    pub(super) async fn play(&self, out: Out<'_>) -> Result<Members, CliError> {
        writeln!(
            out,
            "\n\
             One agent, three miners. Each is a process of its own with the model in it; none sees \
             what the others answer before it has committed to its own answer."
        )?;
        let file = self.folder.join(format!("{AGENT}.json"));
        write(&file, &metadata())?;
        let file = file.display().to_string();
        if self.is_published().await? {
            writeln!(out, "\nThe agent {AGENT} is already on this chain.")?;
        } else {
            self.show(&["agents", "register", &file, "--dev", "0"], out).await?;
        }
        let mut members = self.start(out)?;
        self.offers(&mut members).await?;
        let printed = self
            .show(&["call", AGENT, METHOD, REVIEW, "--committee", "3", "--dev", "0"], out)
            .await?;
        let id = printed.lines().find_map(|line| line.strip_prefix("call ")).map(str::trim);
        let id = id.ok_or_else(|| CliError::Failed("the call has no id".to_owned()))?;
        writeln!(out, "\nThe same work again on this machine, without asking the miners:")?;
        self.show(&["verify", id], out).await?;
        Ok(members)
    }

    /// Whether the agent is there already, as on a chain that goes on.
    async fn is_published(&self) -> Result<bool, CliError> {
        let filter = Map::from_iter([("text".to_owned(), json!(AGENT))]);
        let found = self.client.agents(&filter, &Page { cursor: None, limit: Some(50) }).await?;
        let mut items = found["items"].as_array().into_iter().flatten();
        Ok(items.any(|it| it["name"] == AGENT))
    }

    /// Runs a command of this program and shows it; answers what it printed.
    async fn show(&self, arguments: &[&str], out: Out<'_>) -> Result<String, CliError> {
        let quoted = arguments.iter().map(|word| {
            if word.contains(' ') { format!("\"{word}\"") } else { (*word).to_owned() }
        });
        writeln!(out, "\n$ ombra {}", quoted.collect::<Vec<_>>().join(" "))?;
        out.flush()?;
        let mut command = Command::new(&self.program);
        command.args(arguments).args(["--rpc", &self.rpc]).stdin(Stdio::null()).kill_on_drop(true);
        let ran = command.output().await;
        let ran =
            ran.map_err(|source| CliError::File { what: "this program".to_owned(), source })?;
        let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
        write!(out, "{printed}")?;
        out.flush()?;
        if ran.status.success() {
            return Ok(printed);
        }
        let why = String::from_utf8_lossy(&ran.stderr);
        Err(CliError::Failed(format!(
            "{} ended with {}: {}",
            arguments.join(" "),
            ran.status,
            why.trim()
        )))
    }

    /// Starts the members, each with its settings, journal and log in the folder.
    fn start(&self, out: Out<'_>) -> Result<Members, CliError> {
        let mut processes = Vec::new();
        for account in MEMBERS {
            let config = self.folder.join(format!("miner-{account}.toml"));
            write(&config, &settings(&self.model))?;
            let log = self.folder.join(format!("miner-{account}.log"));
            let file = std::fs::File::create(&log);
            let file = file.map_err(|source| CliError::file(log.display(), source))?;
            let errors =
                file.try_clone().map_err(|source| CliError::file(log.display(), source))?;
            let mut command = Command::new(&self.program);
            command
                .arg("miner")
                .args(["--dev", &account.to_string(), "--rpc", &self.rpc, "--config"])
                .arg(&config)
                .arg("--data-dir")
                .arg(self.folder.join("miners"))
                // However this process ends, its miners do not outlive it.
                .arg("--until-input-ends")
                .stdin(Stdio::piped())
                .stdout(file)
                .stderr(errors)
                .kill_on_drop(true);
            let child = command.spawn();
            let child = child
                .map_err(|source| CliError::File { what: "this program".to_owned(), source })?;
            processes.push((log, child));
        }
        writeln!(out, "\nminers       the accounts 2, 3 and 4 bond, and offer to execute it")?;
        out.flush()?;
        Ok(Members { processes })
    }

    /// Waits until each member offers to execute the agent. Offers of other miners do not count.
    async fn offers(&self, members: &mut Members) -> Result<(), CliError> {
        let deadline = Instant::now() + OFFERS_TIMEOUT;
        let executor = format!("model-1:{SMOLLM2_135M_MANIFEST}");
        let mut waiting: Vec<&String> = self.addresses.iter().collect();
        loop {
            let mut still = Vec::new();
            for miner in waiting {
                let filter = json!({ "executor": executor, "miner": miner });
                let offers: Answer<Value> = self.client.call("ombra_listOffers", [&filter]).await?;
                if !is_among(&offers, miner) {
                    still.push(miner);
                }
            }
            waiting = still;
            if waiting.is_empty() {
                return Ok(());
            }
            members.check()?;
            if Instant::now() >= deadline {
                let text = "the miners did not offer to execute the agent in time";
                return Err(CliError::Failed(text.to_owned()));
            }
            sleep(PAUSE).await;
        }
    }
}

impl Members {
    /// A failure if one of them has ended.
    fn check(&mut self) -> Result<(), CliError> {
        for (log, child) in &mut self.processes {
            if let Ok(Some(status)) = child.try_wait() {
                let log = log.display();
                return Err(CliError::Failed(format!("a miner ended with {status}: see {log}")));
            }
        }
        Ok(())
    }
}

/// Whether this miner has an offer in an answer of `ombra_listOffers`.
fn is_among(offers: &Value, miner: &str) -> bool {
    let items = offers["items"].as_array();
    items.is_some_and(|items| items.iter().any(|offer| offer["miner"] == miner))
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    std::fs::write(path, text).map_err(|source| CliError::file(path.display(), source))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::is_among;

    #[test]
    fn only_an_offer_of_the_member_itself_counts() {
        let (member, other) = ("aa".repeat(20), "bb".repeat(20));
        let offers_of = |miners: &[&str]| {
            let items: Vec<_> = miners.iter().map(|miner| json!({ "miner": miner })).collect();
            json!({ "items": items, "nextCursor": null })
        };
        assert!(!is_among(&offers_of(&[]), &member));
        assert!(!is_among(&offers_of(&[&other, &other, &other]), &member));
        assert!(is_among(&offers_of(&[&other, &member]), &member));
    }
}
