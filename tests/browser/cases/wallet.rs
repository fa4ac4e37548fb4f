//! The wallet of the page.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use testkit::actor;

use crate::scene::Scene;

/// The words of the development accounts, which are public.
const WORDS: &str = "test test test test test test test test test test test junk";

/// Signs what the dialog shows, after a look at it.
pub(super) fn sign(scene: &Scene, wanted: &[&str]) -> anyhow::Result<()> {
    let dialog = scene.browser.find("dialog[open]")?;
    let text = dialog.text()?;
    for wanted in wanted {
        ensure!(text.contains(wanted), "the dialog does not show {wanted}: {text}");
    }
    scene.browser.find("#confirm-sign")?.click()?;
    scene.browser.holds("the dialog to close", "return document.querySelector('dialog') === null")
}

/// Opens the key of a development account; the wallet is open.
pub(super) fn open_account(scene: &Scene, index: usize) -> anyhow::Result<()> {
    scene.browser.find("#field-secret")?.fill(WORDS)?;
    scene.browser.find("#field-index")?.fill(&index.to_string())?;
    scene.press("Open")?;
    let own = own_address(scene)?;
    ensure!(own == scene.people[index].address().to_string(), "development account {index}: {own}");
    Ok(())
}

/// The address of the key that is open.
fn own_address(scene: &Scene) -> anyhow::Result<String> {
    let read = "return document.querySelector('main .who code')?.textContent ?? ''";
    let found = testkit::node::wait_for("the address", || {
        let text = scene.browser.run(read, &json!([]))?;
        Ok(text.as_str().filter(|text| text.len() == 40).map(str::to_owned))
    });
    found.context("the wallet shows its address")
}

fn last_of(scene: &Scene, address: &str) -> anyhow::Result<Value> {
    let page = json!([address, { "limit": 1 }]);
    Ok(scene.node.call("ombra_getAccountTransactions", &page)?["items"][0].take())
}

pub(super) fn does_everything(scene: &mut Scene) -> anyhow::Result<()> {
    scene.load("wallet")?;
    scene.press("Make a new key")?;
    let own = own_address(scene)?;
    let to = scene.people[1].address().to_string();
    scene.act(0, &actor::transfer(types::Address::parse(&own)?, 5_000_000))?;
    scene.browser.shows("5.000000 OMBRA")?;

    scene.browser.find("#field-to")?.fill(&to)?;
    scene.browser.find("#field-amount")?.fill("1.25")?;
    scene.press("Send …")?;
    scene.picture("wallet-confirm")?;
    sign(scene, &["TRANSFER", &to, "1.250000 OMBRA", "ombra-dev"])?;
    scene.browser.shows("included")?;
    scene.browser.shows("3.750000 OMBRA")?;
    let sent = last_of(scene, &own)?;
    ensure!(sent["amount"] == "1250000" && sent["to"] == to.as_str(), "{sent}");

    scene.unfold("Write a turn")?;
    scene.browser.find("#field-content")?.fill("Hello from a browser 😀")?;
    scene.press("Write …")?;
    sign(scene, &["CHAT_TURN", "Hello from a browser 😀", "user"])?;
    scene.browser.shows("Open the conversation")?;
    scene.browser.shows("3.749900 OMBRA")?;

    scene.unfold("Ask for an agent run")?;
    scene.browser.find("#field-prompt")?.fill("How high is the chain?")?;
    scene.browser.find("#field-tools")?.fill("chain_height, now")?;
    scene.press("Ask …")?;
    sign(scene, &["AGENT_REQUEST", "How high is the chain?", "0.100000 OMBRA", "chain_height"])?;
    scene.browser.shows("3.649900 OMBRA")?;
    scene.unfold("Take back a run")?;
    scene.browser.shows("How high is the chain?")?;
    scene.press("Take back …")?;
    sign(scene, &["AGENT_CANCEL"])?;
    scene.browser.shows("3.749900 OMBRA")?;
    scene.browser.shows("No run of this account waits for a miner.")?;
    scene.picture("wallet")?;
    nothing_is_signed_unasked(scene, &own)?;
    the_key_was_not_sent(scene)
}

/// Who does not sign sends nothing, and who asks for too much is told so.
fn nothing_is_signed_unasked(scene: &Scene, own: &str) -> anyhow::Result<()> {
    let before = last_of(scene, own)?;
    scene.unfold("Send a transfer")?;
    scene.browser.find("#field-amount")?.fill("1000000")?;
    scene.press("Send …")?;
    scene.browser.find("dialog[open]")?;
    scene.browser.press("\u{e00c}")?;
    scene
        .browser
        .holds("the dialog to close", "return document.querySelector('dialog') === null")?;
    scene.press("Send …")?;
    sign(scene, &["1,000,000.000000 OMBRA"])?;
    scene.browser.shows("refused")?;
    scene.browser.shows("Insufficient balance")?;
    ensure!(before == last_of(scene, own)?, "something was sent");
    scene.browser.find("#field-amount")?.fill("a lot")?;
    scene.press("Send …")?;
    scene.browser.shows("is not an amount")
}

/// No request of the page has the private key in it, in its address or its body.
fn the_key_was_not_sent(scene: &Scene) -> anyhow::Result<()> {
    scene.press("Show the private key")?;
    let key = scene.browser.find("#private-key")?.text()?;
    ensure!(key.len() == 64, "{key}");
    let sent = scene.browser.sent()?;
    ensure!(sent.iter().any(|text| text.contains("\"signature\"")), "a transaction was sent");
    let addresses = scene.browser.requested()?;
    let mut everything = sent.iter().chain(&addresses);
    ensure!(!everything.any(|text| text.contains(&key)), "the private key was sent");
    Ok(())
}

pub(super) fn opens_keys(scene: &mut Scene) -> anyhow::Result<()> {
    let first = scene.people[0].address().to_string();
    let third = scene.people[3].address().to_string();
    scene.load("wallet")?;
    scene.browser.find("#field-secret")?.fill("twelve words that are no mnemonic")?;
    scene.press("Open")?;
    scene.browser.holds(
        "a reason",
        "return [...document.querySelectorAll('.wrong')].some((one) => one.textContent !== '')",
    )?;
    open_account(scene, 3)?;

    scene.press("Show the private key")?;
    let key = scene.browser.find("#private-key")?.text()?;
    scene.go("blocks")?;
    scene.go("wallet")?;
    ensure!(own_address(scene)? == third, "the key is kept from page to page");
    scene.load("wallet")?;
    scene.browser.shows("Make a new key")?;
    scene.browser.find("#field-secret")?.fill(&key)?;
    scene.press("Open")?;
    ensure!(own_address(scene)? == third, "the same key");

    scene.browser.find("#keep")?.click()?;
    scene.load("wallet")?;
    ensure!(own_address(scene)? == third, "the key is kept in the browser");
    scene.press("Forget the key")?;
    scene.browser.shows("Make a new key")?;
    let left = scene.browser.run(
        "return Object.keys(localStorage).filter((name) => name.startsWith('ombra.key')).length",
        &json!([]),
    )?;
    ensure!(left == json!(0), "{left} keys are left in the browser");
    ensure!(first != third, "two accounts");
    Ok(())
}
