//! Every page with data on it.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use testkit::actor;
use testkit::client;

use crate::scene::Scene;
use crate::story::{self, Story, Texts};

/// What a chain of reasonable people has.
struct Plain;

impl Texts for Plain {
    fn text(&self, field: &str, _bytes_max: usize) -> String {
        let text = match field {
            "content" => "How many cats are in this picture?\nPlease count twice. Mulțumesc 😀",
            "answer turn" => "Two cats, and one of them is asleep.",
            "prompt" => "Look at the picture of the conversation and count the cats in it.",
            "toolsWhitelist" => "image_describe",
            "modelHint" => "any vision model",
            "modelInfo" => "llama-server:Qwen2.5-VL-7B-Q4_K_M",
            "toolCalls.name" => "image_describe",
            "finalAnswerInline" => "There are two cats.",
            "name" => "Cat counters of Cluj",
            "capabilities" => "vision",
            "contentType" => "image/png",
            _ => "text",
        };
        text.to_owned()
    }
}

pub(super) fn plain(scene: &mut Scene) -> anyhow::Result<Story> {
    story::play(scene, &Plain, 0)
}

/// The pages of a story, and what each shows of it.
fn pages(story: &Story) -> Vec<(&'static str, String, Vec<&'static str>)> {
    let mut pages = vec![
        (
            "overview",
            String::new(),
            vec!["Latest agent runs", "Latest blocks", "Circulating", "count the cats", "Live"],
        ),
        ("blocks", "blocks".to_owned(), vec!["Blocks", "Burned"]),
        (
            "block",
            "block/1".to_owned(),
            vec!["Block 1", "Certificate", "1 of 1 validators", "Root of transactions"],
        ),
        (
            "run",
            format!("run/{}", story.run),
            vec![
                "completed",
                "Settlement",
                "0.005000 OMBRA",
                "0.094800 OMBRA",
                "0.000200 OMBRA",
                "Step 0",
                "Step 1",
                "image_describe",
                "There are two cats.",
                "any vision model",
            ],
        ),
        (
            "run-waiting",
            format!("run/{}", story.waiting_run),
            vec!["pending", "Waiting for a miner", "nobody yet", "in escrow", "Deadline"],
        ),
        ("runs", "runs".to_owned(), vec!["completed", "cancelled", "pending", "count the cats"]),
        ("runs-cancelled", "runs/cancelled".to_owned(), vec!["cancelled"]),
        (
            "conversation",
            format!("conversation/{}", story.conversation),
            vec![
                "Please count twice.",
                "mined the run",
                "asks for a run",
                "There are two cats.",
                "as assistant",
                "as user",
            ],
        ),
        ("pool", "pool".to_owned(), vec!["queued", "CHAT_TURN"]),
        (
            "network",
            "network".to_owned(),
            vec![
                "Validators",
                "100.0 %",
                "This node",
                "Genesis",
                "no peers",
                "What this node relies on",
                "its own newest block",
            ],
        ),
        ("blob", format!("blob/{}", story.blob), vec!["image/png", "final", "18 bytes"]),
        ("wallet", "wallet".to_owned(), vec!["For test chains.", "Make a new key"]),
    ];
    pages.extend(people(story));
    pages.extend(transactions(story));
    pages
}

/// The pages of those who take part, and what each shows of them.
fn people(story: &Story) -> [(&'static str, String, Vec<&'static str>); 3] {
    [
        ("miners", "miners".to_owned(), vec!["Cat counters of Cluj", "vision", "1 of 1", "5,000"]),
        (
            "account",
            format!("account/{}", story.submitter),
            vec!["Balance", "Runs that it requested", "TRANSFER"],
        ),
        (
            "account-miner",
            format!("account/{}", story.miner),
            vec!["Cat counters of Cluj", "1 completed", "Runs that it mined", "Earned"],
        ),
    ]
}

/// The page of a transaction of each type, and what it shows of it.
fn transactions(story: &Story) -> Vec<(&'static str, String, Vec<&'static str>)> {
    let page = |(kind, hash): &(String, String)| {
        let wanted = match kind.as_str() {
            "TRANSFER" => vec!["1.500000 OMBRA", "0.000000 OMBRA"],
            "CHAT_TURN" => vec!["How many cats", "user", "image: ", "😀"],
            "AGENT_REQUEST" => {
                vec!["count the cats", "image_describe", "0.100000 OMBRA", "Most steps"]
            }
            "AGENT_CLAIM" => vec!["Qwen2.5", "desktop"],
            "AGENT_STEP" => vec!["2,500", "image_describe", "ok", "thought-of-the-step"],
            "AGENT_FINISH" => vec!["There are two cats.", "0.094800 OMBRA", "completed"],
            "MINER_REGISTER" => vec!["Cat counters of Cluj", "vision"],
            "SOCIAL_BLOB_INIT" => vec!["image/png", "18 B"],
            "SOCIAL_BLOB_CHUNK" => vec!["YSBwaWN0dXJlIG9mIGEgY2F0"],
            _ => vec!["included"],
        };
        ("transaction", format!("tx/{hash}"), wanted)
    };
    story.txs.iter().map(page).collect()
}

pub(super) fn show_what_is_there(scene: &mut Scene) -> anyhow::Result<()> {
    let story = plain(scene)?;
    ensure!(story.txs.len() == 11, "{:?}", story.txs);
    scene.load("")?;
    for (name, route, wanted) in pages(&story) {
        scene.go(&route)?;
        for text in wanted {
            scene.browser.shows(text).with_context(|| route.clone())?;
        }
        scene.picture(&format!("page-{name}"))?;
    }
    for (_, hash) in &story.txs {
        scene.go(&format!("tx/{hash}"))?;
        scene.browser.shows("This browser has computed the same hash")?;
    }
    a_vote_is_shown(scene)?;
    scene.has_no_complaints()
}

/// The chain's only validator votes for more power of its own.
fn a_vote_is_shown(scene: &Scene) -> anyhow::Result<()> {
    let set = scene.node.call("ombra_getValidators", &json!([]))?;
    let key = set[0]["publicKey"].as_str().context("a key")?;
    let power = (set[0]["power"].as_u64().context("a power")? + 1).to_string();
    let file = scene.node.data().join("keys/validator.key");
    let file = file.to_str().context("a path in UTF-8")?;
    let vote = ["tx", "validator-vote", key, "--power", &power, "--key-file", file];
    let answer = client::told(scene.node.rpc, &[&vote[..], &["--json"]].concat())?;
    let answer: Value = serde_json::from_str(&answer)?;
    let hash = answer["hash"].as_str().with_context(|| answer.to_string())?;
    scene.go(&format!("tx/{hash}"))?;
    scene.browser.shows("Key of the candidate")?;
    scene.browser.shows(key)
}

pub(super) fn are_found_by_anything(scene: &mut Scene) -> anyhow::Result<()> {
    let story = plain(scene)?;
    let block = scene.node.call("ombra_getBlock", &json!([1, false]))?;
    let block_hash = block["hash"].as_str().context("a hash")?.to_owned();
    let set = scene.node.call("ombra_getValidators", &json!([]))?;
    let miner = scene.node.call("ombra_getMiner", &json!([story.miner]))?;
    let text = |value: &Value| value.as_str().map(str::to_owned).context("a text");
    let (key, validator) = (text(&set[0]["publicKey"])?, text(&set[0]["address"])?);
    let searches = [
        ("1".to_owned(), "block/1".to_owned()),
        (block_hash, "block/1".to_owned()),
        (story.txs[0].1.clone(), format!("tx/{}", story.txs[0].1)),
        (story.miner.clone(), format!("account/{}", story.miner)),
        (format!("ox{}", story.miner), format!("account/{}", story.miner)),
        (story.miner.to_uppercase(), format!("account/{}", story.miner)),
        (story.run.clone(), format!("run/{}", story.run)),
        (story.conversation.clone(), format!("conversation/{}", story.conversation)),
        (story.blob.clone(), format!("blob/{}", story.blob)),
        (text(&miner["minerId"])?, format!("account/{}", story.miner)),
        ("counters OF".to_owned(), format!("account/{}", story.miner)),
        (key, format!("account/{validator}")),
    ];
    scene.load("")?;
    for (query, route) in searches {
        scene.go("")?;
        scene.browser.find("#query")?.fill(&query)?;
        scene.browser.find("#search button")?.click()?;
        let is_there = format!("return location.hash === '#/{route}'");
        scene.browser.holds(&format!("{query} to lead to {route}"), &is_there)?;
    }
    scene.browser.find("#query")?.fill("nobody is called so")?;
    scene.browser.find("#search button")?.click()?;
    scene.browser.shows("Nothing on this chain matches.")
}

/// Elements whose text differs from what is behind it by less than the ratio that WCAG AA wants.
const FAINT: &str = r"
const parse = (color) => {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = 1;
  const context = canvas.getContext('2d', { willReadFrequently: true });
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data];
};
const light = ([r, g, b]) => {
  const part = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const found = [];
for (const element of document.querySelectorAll('body *')) {
  const texts = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== '');
  if (!texts || element.closest('.unseen') || element.disabled || !element.checkVisibility()) continue;
  let behind = element;
  while (behind && parse(getComputedStyle(behind).backgroundColor)[3] === 0) behind = behind.parentElement;
  const ground = behind ? getComputedStyle(behind).backgroundColor : 'white';
  const [one, other] = [light(parse(getComputedStyle(element).color)), light(parse(ground))];
  const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (ratio < 4.5) found.push(`${element.tagName} ${element.className} ${ratio.toFixed(2)} ${element.textContent.slice(0, 30)}`);
}
return found;
";

pub(super) fn look_right(scene: &mut Scene) -> anyhow::Result<()> {
    let story = plain(scene)?;
    scene.load("")?;
    for (name, route, _) in pages(&story) {
        scene.browser.resize(360, 740)?;
        scene.go(&route)?;
        scene.fits(360, &route)?;
        scene.picture(&format!("phone-{name}"))?;
        scene.browser.resize(1280, 900)?;
        for scheme in ["dark", "light"] {
            scene.browser.prefers(scheme)?;
            let faint = scene.browser.run(FAINT, &json!([]))?;
            ensure!(faint == json!([]), "{route}, {scheme}: too little contrast: {faint}");
            if scheme == "dark" {
                scene.picture(&format!("dark-{name}"))?;
            }
        }
    }
    // The button beats what the system prefers.
    scene.browser.find("#theme")?.click()?;
    scene.browser.find("#theme")?.click()?;
    let is_dark = "return getComputedStyle(document.documentElement).colorScheme === 'dark'";
    scene.browser.holds("the dark theme", is_dark)
}

pub(super) fn say_what_is_missing(scene: &mut Scene) -> anyhow::Result<()> {
    let nothing = "0".repeat(64);
    scene.load("nothing/of/the/kind")?;
    scene.browser.shows("There is no such page")?;
    for kind in ["tx", "run", "block"] {
        scene.go(&format!("{kind}/{nothing}"))?;
        scene.browser.shows("Not found")?;
    }
    scene.go("block/999999")?;
    scene.browser.shows("Not found")?;
    scene.go("blob/nothing")?;
    scene.browser.shows("Not found")?;
    scene.picture("missing")?;
    scene.go(&format!("conversation/{nothing}"))?;
    scene.browser.shows("Nobody has used this conversation.")?;
    scene.go(&format!("account/{}", "0".repeat(40)))?;
    scene.browser.shows("0.000000 OMBRA")?;
    scene.browser.shows("It has not sent or received anything.")
}

const MANY: usize = 1_000;

pub(super) fn page_through(scene: &mut Scene) -> anyhow::Result<()> {
    let (index, _) = a_large_block(scene)?;
    scene.load(&format!("block/{index}"))?;
    scene.browser.shows("1 to 25 of")?;
    let rows = "return document.querySelectorAll('main tbody tr').length <= 30";
    scene.browser.holds("few rows", rows)?;
    scene.press("Later →")?;
    scene.browser.shows("26 to 50 of")?;
    scene.browser.holds("few rows", rows)?;
    scene.browser.shows("TRANSFER")?;
    scene.picture("large-block")
}

/// Sends many transfers at once; answers the block that holds the most, and how many.
pub(super) fn a_large_block(scene: &mut Scene) -> anyhow::Result<(u64, u64)> {
    let gift = actor::transfer(scene.people[9].address(), 1);
    let texts: Vec<_> = (0..MANY).map(|index| scene.people[index % 9].sign(&gift)).collect();
    scene.include(&texts)?;
    let blocks = scene.node.call("ombra_getBlocks", &json!({ "limit": 100 }))?;
    let blocks = blocks["items"].as_array().context("blocks")?;
    let figure = |block: &Value, name: &str| block[name].as_u64().unwrap_or_default();
    let largest = blocks.iter().max_by_key(|block| figure(block, "txCount")).context("a block")?;
    let (index, count) = (figure(largest, "index"), figure(largest, "txCount"));
    ensure!(count >= 500, "the largest block has {count} transactions");
    Ok((index, count))
}
