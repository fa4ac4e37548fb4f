//! A node that lies about its chain: it is of the chain on which the victim's money is, and names
//! another while the victim first uses the key; then it tells the truth, and what the victim signs for
//! a chain without value would be paid on the one with.

use std::process::Output;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor::people;
use testkit::front::Front;
use testkit::harness::{Town, User};
use testkit::node::program;
use testkit::process::output;
use testkit::suite::say;
use wallet::{KeyStore, Wallet};

/// The chain that the node names first.
const WORTHLESS: &str = "ombra-worthless";
const PASSWORD: &str = "secret";
/// Who is paid: development account 3, which a wallet pays only by its address.
const PAYEE: &str = "135151701fb060be16c737a0803e1259bb247f1e";
/// The exit code of wrong usage.
const USAGE: i32 = 2;

pub(super) fn run((): ()) -> anyhow::Result<()> {
    let town = Town::start(4, 0)?;
    let node = town.node(0)?;
    let [victim, user] = people()?.map(|it| it.key);
    let address = victim.address();
    let folder = tempfile::tempdir()?;
    let keys = KeyStore::at(folder.path().join("keys"));
    keys.add("victim", &Wallet::from_keypair(victim), PASSWORD)?;
    std::fs::write(folder.path().join("pw"), PASSWORD)?;
    let user = User::start(node.rpc, user);

    let front = Front::before(node.rpc)?;
    let genesis = "11".repeat(32);
    front.name(WORTHLESS, &genesis);
    let signs = |arguments: &[&str]| -> anyhow::Result<Output> {
        let mut command = program();
        command.args(arguments).args(["--wallet", "victim", "--rpc", &front.url()]);
        command.env("OMBRA_KEYS_DIR", folder.path().join("keys"));
        command.env("OMBRA_PASSWORD_FILE", folder.path().join("pw"));
        output(&mut command)
    };
    let balance = || -> anyhow::Result<String> {
        let account = node.call("ombra_getAccount", &json!([address]))?;
        Ok(account["balance"].as_str().context("a balance")?.to_owned())
    };
    let printed = signs(&["tx", "transfer", PAYEE, "1ombra", "--print"])?;
    let signed: Value = serde_json::from_slice(&printed.stdout)?;
    ensure!(signed["chainId"] == WORTHLESS, "it was signed for {}", signed["chainId"]);

    front.repent();
    let truth = node.call("ombra_chainInfo", &json!([]))?;
    let (id, hash) = (member(&truth, "chainId")?, member(&truth, "genesisHash")?);
    let (before, mut refused) = (balance()?, 0);
    let conversation = "22".repeat(32);
    let attempts: [&[&str]; 4] = [
        &["tx", "transfer", PAYEE, "500ombra"],
        &["tx", "chat", "hi", "--conversation", &conversation],
        &["run", "hi", "--max-fee", "1ombra", "--timeout", "1"],
        &["chat", &conversation],
    ];
    for attempt in attempts {
        let output = signs(attempt)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.code() == Some(USAGE),
            "{attempt:?} ended with {}, {} of {} transactions went through; balance {before} is {}: {said}",
            output.status,
            front.sent().len(),
            attempts.len(),
            balance()?
        );
        for part in [WORTHLESS, &genesis, id, hash, "--chain-id"] {
            ensure!(said.contains(part), "{attempt:?} does not say {part}: {said}");
        }
        refused += 1;
    }
    ensure!(front.sent().is_empty(), "the node was handed {:?}", front.sent());
    ensure!(balance()? == before, "money has moved: {before} is {}", balance()?);
    // Whoever means it says so, and is held to it.
    let meant = signs(&["tx", "transfer", PAYEE, "1ombra", "--chain-id", id])?;
    ensure!(meant.status.success(), "{}", String::from_utf8_lossy(&meant.stderr));
    front.name(WORTHLESS, &genesis);
    let lied = signs(&["tx", "transfer", PAYEE, "1ombra", "--chain-id", id])?;
    ensure!(lied.status.code() == Some(USAGE), "{}", String::from_utf8_lossy(&lied.stderr));
    let seen = user
        .tell(&format!("{refused} of {} signatures for another chain refused", attempts.len()))?;
    say("   no transaction was handed to the node, no money moved");
    seen.is_served()
}

fn member<'a>(record: &'a Value, name: &str) -> anyhow::Result<&'a str> {
    record[name].as_str().with_context(|| format!("no {name}"))
}
