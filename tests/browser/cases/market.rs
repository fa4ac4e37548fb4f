//! The agent market: an agent is found, called from its form, answered, checked, and doubted.

use anyhow::{Context, ensure};
use serde_json::json;

use super::wallet::{open_account, sign};
use crate::market::{self, Said};
use crate::scene::Scene;

const NAME: &str = "review-judge";
/// Who calls: the second development account.
const CALLER: usize = 1;
/// Text of strangers stays text.
const GOOD: Said = ("<b>splendid</b>", true);
const BAD: Said = ("dreadful", false);

/// The call that the page has sent, by the link to it, once it is on the chain.
fn sent_call(scene: &Scene) -> anyhow::Result<String> {
    scene.browser.shows("included")?;
    let found = testkit::node::wait_for("a link to the call", || {
        let read =
            "return document.querySelector('.sent a[href^=\"#/call/\"]')?.getAttribute('href')";
        let link = scene.browser.run(read, &json!([]))?;
        Ok(link.as_str().and_then(|link| link.strip_prefix("#/call/")).map(str::to_owned))
    });
    found.context("the wallet leads to the call")
}

/// Fills the form of the agent.
fn fill_the_form(scene: &Scene, agent: &str, members: &str) -> anyhow::Result<()> {
    scene.go(&format!("agent/{agent}"))?;
    scene.browser.find("#field-arg-0")?.fill("What a book 😀")?;
    scene.browser.find("#field-arg-1")?.fill("5")?;
    scene.browser.find("#field-arg-2")?.fill("[\"one\", \"two\"]")?;
    let choose = "const one = document.querySelector('#field-members'); one.value = arguments[0]";
    scene.browser.run(choose, &json!([members])).map(drop)
}

pub(super) fn an_agent_is_called(scene: &mut Scene) -> anyhow::Result<()> {
    let agent = market::open(scene, NAME, 2..5)?;
    let caller = scene.people[CALLER].address().to_string();
    scene.load("wallet")?;
    open_account(scene, CALLER)?;
    found_by_anything(scene, &agent)?;

    fill_the_form(scene, &agent, "3")?;
    wrong_arguments_are_named(scene)?;
    scene.press("Estimate")?;
    scene.browser.shows("3, 3 are needed")?;
    scene.picture("agent")?;
    scene.press("Call …")?;
    sign(
        scene,
        &["AGENT_CALL", &agent, "ombra-dev", "judge(string,uint8,string[])", "What a book 😀"],
    )?;
    let call = sent_call(scene)?;
    scene.go(&format!("call/{call}"))?;
    unfolds(scene, &call)?;

    let bill = market::settled(scene, &call)?;
    ensure!(bill["requester"] == caller.as_str(), "{bill}");
    scene.browser.shows("settled")?;
    scene.browser.shows("✓ This browser has opened every commitment")?;
    for shown in [
        "<b>splendid</b>",
        "2 members",
        "0.000500 OMBRA",
        "0.002000 OMBRA",
        "What a book 😀",
        "differs",
    ] {
        scene.browser.shows(shown)?;
    }
    scene.press("Draw them again")?;
    scene.browser.shows("✓ This browser has drawn the same members.")?;
    scene.picture("call")?;
    of_accounts(scene, &call)
}

/// The agent is in its list, and found by a part of its name and by its id.
fn found_by_anything(scene: &Scene, agent: &str) -> anyhow::Result<()> {
    for route in ["agents", "agents/REVIEW", "agents/tag%3Areviews", "agents/deterministic"] {
        scene.go(route)?;
        scene.browser.shows(NAME)?;
    }
    scene.go("agents/tag%3Anothing")?;
    scene.browser.shows("There is no such agent.")?;
    for query in ["review-j", agent] {
        scene.browser.run("location.hash = arguments[0]", &json!([format!("#/search/{query}")]))?;
        scene.browser.holds(
            "the agent to be open",
            &format!("return location.hash === '#/agent/{agent}'"),
        )?;
    }
    scene.browser.shows(market::DESCRIPTION)?;
    scene.browser.shows("judge(string review, uint8 stars, string[] lines)")?;
    scene.browser.shows("✓ This browser has computed the same hash from the text.")
}

/// What no payload can be made of is said, and nothing is sent.
fn wrong_arguments_are_named(scene: &Scene) -> anyhow::Result<()> {
    let stars = scene.browser.find("#field-arg-1")?;
    stars.fill("256")?;
    scene.press("Call …")?;
    scene.browser.shows("args.stars: got \"256\", expected a value of uint8")?;
    stars.fill("5")
}

/// The page follows the call from the election to the answer, without a reload.
fn unfolds(scene: &mut Scene, call: &str) -> anyhow::Result<()> {
    let members = market::members(scene, call, 0)?;
    ensure!(members.len() == 3, "{members:?}");
    scene.browser.shows("Members work, and commit to their answers …")?;
    let said: Vec<(usize, Said)> = members.into_iter().zip([GOOD, BAD, GOOD]).collect();
    market::commit(scene, call, 0, &said)?;
    scene.browser.shows("Members reveal their answers …")?;
    scene.browser.shows("3 committed, 0 revealed")?;
    market::speak(scene, call, 0, &said)
}

/// Who differed sees what that cost on its account, beside its offer.
fn of_accounts(scene: &Scene, call: &str) -> anyhow::Result<()> {
    let found = scene.node.call("ombra_getCall", &json!([call]))?;
    let member = found["rounds"][0]["members"][1]["address"].as_str().context("a member")?;
    scene.go(&format!("account/{member}"))?;
    for shown in ["Offers", "model-1:eeee", "Calls in which it is a member", "0.002000 OMBRA"] {
        scene.browser.shows(shown)?;
    }
    let caller = scene.people[CALLER].address();
    scene.go(&format!("account/{caller}"))?;
    scene.browser.shows("Calls that it requested")?;
    scene.go("")?;
    scene.browser.shows("Latest calls of agents")
}

pub(super) fn an_answer_is_doubted(scene: &mut Scene) -> anyhow::Result<()> {
    let agent = market::open(scene, NAME, 2..6)?;
    scene.load("wallet")?;
    open_account(scene, CALLER)?;
    fill_the_form(scene, &agent, "1")?;
    scene.browser.find("#field-appealable")?.click()?;
    scene.press("Call …")?;
    sign(scene, &["AGENT_CALL", &agent])?;
    let call = sent_call(scene)?;
    scene.go(&format!("call/{call}"))?;

    let first: Vec<(usize, Said)> =
        market::members(scene, &call, 0)?.into_iter().map(|it| (it, BAD)).collect();
    market::answer(scene, &call, 0, &first)?;
    scene.browser.shows("Appeal the answer")?;
    scene.browser.shows("dreadful")?;
    scene.press("Appeal …")?;
    sign(scene, &["CALL_APPEAL", &call])?;

    let second: Vec<(usize, Said)> =
        market::members(scene, &call, 1)?.into_iter().map(|it| (it, GOOD)).collect();
    ensure!(second.len() == 3, "{second:?}");
    scene.browser.shows("Committee after the appeal")?;
    market::answer(scene, &call, 1, &second)?;
    let bill = market::settled(scene, &call)?;
    ensure!(bill["agreeing"] == 3, "{bill}");
    scene.browser.shows("<b>splendid</b>")?;
    scene.browser.shows("To the appellant")?;
    scene.browser.shows("✓ This browser has opened every commitment")?;
    scene.picture("appeal")
}
