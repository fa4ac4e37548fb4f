//! What is in blobs.

use anyhow::{Context, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use testkit::actor;
use types::tx::{AgentFinish, AgentStep, Attachment, ChatTurn};
use types::{Body, Hash};

use super::strangers::{is_harmless, set_trap, shows_whole};
use crate::scene::Scene;
use crate::story::stored;

const JSON: &[u8] = br#"{"cats":2,"sure":[true,0.99],"seen":12345678901234567890}"#;
const PRETTY: &str = "{\n  \"cats\": 2,\n  \"sure\": [\n    true,\n    0.99\n  ],\n  \"seen\": 12345678901234567890\n}";
/// What the answer says, and as many other letters.
const TRUE_BYTES: &[u8] = b"Two cats, and no dog.";
const FALSE_BYTES: &[u8] = b"No cats, but two dogs";

/// A picture of that type and size, as the browser makes it.
fn picture(scene: &Scene, media: &str, width: u32, height: u32) -> anyhow::Result<Vec<u8>> {
    let draw = r"
        const canvas = document.createElement('canvas');
        [canvas.width, canvas.height] = [arguments[1], arguments[2]];
        const context = canvas.getContext('2d');
        context.fillStyle = 'teal';
        context.fillRect(0, 0, arguments[1] / 2, arguments[2]);
        return canvas.toDataURL(arguments[0]).split(',')[1];";
    let text = scene.browser.run(draw, &json!([media, width, height]))?;
    Ok(STANDARD.decode(text.as_str().context("a picture")?)?)
}

/// Stores blobs of the first of the people.
fn store(scene: &mut Scene, blobs: &[(&str, &str, Vec<u8>)]) -> anyhow::Result<()> {
    for (id, media, bytes) in blobs {
        let texts = stored(&mut scene.people[0], id, media, bytes);
        scene.include(&texts)?;
    }
    Ok(())
}

/// A text that is longer than what is shown at first, and how it ends.
fn long_text() -> String {
    let lines = (0..2_000).map(|line| format!("line {line} of a long turn\n"));
    lines.collect::<String>() + "and this is the end of it"
}

/// A conversation, and a run in it that was asked for, thought about and answered with blobs.
fn play(scene: &mut Scene) -> anyhow::Result<Hash> {
    let [asks, mines] = [0, 1];
    let miner = scene.people[mines].address();
    scene.act(asks, &actor::transfer(miner, 1_000_000))?;
    let mut request = scene.people[asks].request("Count the cats.", 100_000, 4);
    request.prompt_blob_id = Some("prompt".to_owned());
    let run = request.agent_run_id;
    let mut turn = actor::turn("");
    turn.content_blob_id = Some("long-turn".to_owned());
    let attached = Attachment { kind: "image".to_owned(), blob_id: "cats".to_owned() };
    turn.attachments = Some(vec![attached]);
    let asked = [
        scene.people[asks].sign(&Body::AgentRequest(request)),
        scene.people[asks].sign(&Body::ChatTurn(turn)),
    ];
    scene.include(&asked)?;
    let step = AgentStep {
        thought_blob_id: Some("thought".to_owned()),
        output_blob_id: Some("not-stored".to_owned()),
        ..actor::plain_step(run, 0, 1_000)
    };
    let finish = AgentFinish {
        final_answer_blob_id: Some("answer".to_owned()),
        ..actor::finish(run, 1_000, [1_000, 98_900, 100])
    };
    let miner = &mut scene.people[mines];
    let bodies: [Body; 3] = [miner.claim(run).into(), step.into(), finish.into()];
    let texts = bodies.map(|body| miner.sign(&body));
    scene.include(&texts)?;
    Ok(run)
}

pub(super) fn are_shown_where_they_are_met(scene: &mut Scene) -> anyhow::Result<()> {
    let cats = picture(scene, "image/png", 160, 90)?;
    let blobs = [
        ("prompt", "application/json", JSON.to_vec()),
        ("cats", "image/png", cats),
        ("long-turn", "text/plain", long_text().into_bytes()),
        ("thought", "text/markdown", b"I see *two* tails, so two cats.".to_vec()),
        ("answer", "text/plain", TRUE_BYTES.to_vec()),
    ];
    store(scene, &blobs)?;
    let run = play(scene)?;
    let route = format!("run/{run}");
    scene.load(&route)?;
    scene.browser.shows("Settlement")?;
    // It is asked for when one comes to it.
    let asked = format!("{}/api/blob/answer", scene.origin());
    ensure!(!scene.browser.requested()?.contains(&asked), "it was asked for unseen");
    // The settlement may stand there before the places of the blobs do.
    let to_answer = "const found = [...document.querySelectorAll('.blob')].at(-1); found?.scrollIntoView(); return found !== undefined";
    scene.browser.holds("the place of the answer", to_answer)?;
    scene.browser.shows("Two cats, and no dog.")?;
    shows_whole(scene, &route, &[PRETTY.to_owned()])?;
    scene.unfold("What it thought")?;
    scene.browser.shows("I see *two* tails, so two cats.")?;
    scene.unfold("What it wrote")?;
    scene.browser.shows("There is no blob not-stored on this chain.")?;
    let verdicts = "return [...document.querySelectorAll('.blob .fine')].filter((one) => one.checkVisibility()).length === 3";
    scene.browser.holds("three hashes that were checked", verdicts)?;
    scene.picture("blobs-run")?;

    scene.go(&format!("conversation/{}", actor::conversation()))?;
    scene.browser.shows("line 100 of a long turn")?;
    scene.browser.shows("Two cats, and no dog.")?;
    scene.unfold("Attached: image")?;
    scene.press_first("Show the PNG picture, 160 × 90")?;
    let drawn = "const one = document.querySelector('main canvas'); return one?.width === 160 && one.height === 90 && one.getBoundingClientRect().height > 50";
    scene.browser.holds("the picture", drawn)?;
    for _ in 0..3 {
        scene.press_first("Show")?;
    }
    scene.browser.shows("and this is the end of it")?;
    shows_whole(scene, "the conversation", &[long_text()])?;
    scene.picture("blobs-conversation")?;

    scene.go("blob/answer")?;
    scene.browser.shows("Two cats, and no dog.")?;
    it_can_be_kept(scene)?;
    an_unfinished_one_appears(scene)?;
    forged_bytes_are_not_shown(scene)
}

/// The link gives a file, and the page stays where it is.
fn it_can_be_kept(scene: &Scene) -> anyhow::Result<()> {
    scene.browser.devtools("Browser.setDownloadBehavior", &json!({ "behavior": "deny" }))?;
    let link = "const one = document.querySelector('main a[download]'); return [one.textContent, one.getAttribute('href'), one.download]";
    let link = scene.browser.run(link, &json!([]))?;
    ensure!(link == json!(["Save as a file", "../api/blob/answer", "answer"]), "{link}");
    scene.browser.run("window.isTheSame = true", &json!([]))?;
    scene.browser.find("main a[download]")?.click()?;
    let asked = format!("{}/api/blob/answer", scene.origin());
    testkit::node::wait_until("the file to be asked for", || {
        let asked = scene.browser.requested()?.iter().filter(|one| **one == asked).count();
        Ok(asked >= 2)
    })?;
    let is_here = "return window.isTheSame === true && location.hash === '#/blob/answer' && document.contentType === 'text/html'";
    scene.browser.holds("the page to stay", is_here)
}

fn an_unfinished_one_appears(scene: &mut Scene) -> anyhow::Result<()> {
    let texts = stored(&mut scene.people[0], "later", "text/plain", b"Here it is.");
    let (last, first) = texts.split_last().context("three transactions")?;
    scene.include(first)?;
    scene.go("blob/later")?;
    scene.browser.shows("Blob later is not finished: 1 of 1 chunks are there.")?;
    scene.include(std::slice::from_ref(last))?;
    scene.browser.shows("Here it is.")
}

/// Bytes that are not those of the hash could be anybody's.
fn forged_bytes_are_not_shown(scene: &Scene) -> anyhow::Result<()> {
    scene.wire.forge(TRUE_BYTES, FALSE_BYTES);
    scene.load("blob/answer")?;
    scene.browser.shows("The content does not have the hash of this blob, so it is not shown.")?;
    ensure!(!scene.browser.text()?.contains("dogs"), "the forged bytes are shown");
    scene.wire.behave();
    scene.load("blob/answer")?;
    scene.browser.shows("Two cats, and no dog.")
}

/// What a stranger stores, and what the page shows of it.
struct Hostile {
    id: &'static str,
    media: &'static str,
    bytes: Vec<u8>,
    shown: &'static str,
}

const HTML: &str = "<!doctype html><script>pwned()</script><img src=x onerror=pwned()><iframe srcdoc='<script>parent.pwned()</script>'></iframe>";
const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\" onload=\"pwned()\"><script>pwned()</script><image href=\"http://evil.test/a.png\"/></svg>";

fn hostile(scene: &Scene) -> anyhow::Result<Vec<Hostile>> {
    let png = picture(scene, "image/png", 16, 8)?;
    let [mut bomb, broken] = [png.clone(), [&png[..40], b"<script>pwned()</script>"].concat()];
    // The first chunk has the size: 60,000 by 60,000.
    bomb[16..24].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]);
    let both = [png.as_slice(), HTML.as_bytes()].concat();
    let jpeg = picture(scene, "image/jpeg", 24, 12)?;
    let webp = picture(scene, "image/webp", 20, 10)?;
    let one = |id, media, bytes: &[u8], shown| Hostile { id, media, bytes: bytes.to_vec(), shown };
    Ok(vec![
        one("page", "text/html", HTML.as_bytes(), HTML),
        one("page-as-picture", "image/png", HTML.as_bytes(), HTML),
        one("drawing", "image/svg+xml", SVG.as_bytes(), SVG),
        one("drawing-as-picture", "image/png", SVG.as_bytes(), SVG),
        one("picture-as-page", "text/html", &png, "Show the PNG picture, 16 × 8"),
        one("jpeg", "application/octet-stream", &jpeg, "Show the JPEG picture, 24 × 12"),
        one("webp", "image/svg+xml", &webp, "Show the WebP picture, 20 × 10"),
        one("picture-and-page", "text/html", &both, "Show the PNG picture, 16 × 8"),
        one("broken", "image/png", &broken, "Show the PNG picture, 16 × 8"),
        one("bomb", "image/png", &bomb, "too many pixels to be shown here"),
        one(
            "__proto__",
            "application/json",
            b"{\"__proto__\": {\"a\": \"<b>\"}}",
            "\"a\": \"<b>\"",
        ),
        one("latin", "text/plain", b"caf\xe9 <b>", "caf\u{fffd} <b>"),
        one("bytes", "application/zip", b"PK\x03\x04<b>\xff", "50 4b 03 04 3c 62 3e ff"),
        one("nul", "text/html", b"<b>\0</b>", "<b>U+0000</b>"),
        one("bidi", "text/plain", "a\u{202e}txt.exe\u{2066}".as_bytes(), "aU+202Etxt.exeU+2066"),
        one("bom", "text/html", "\u{feff}<b>".as_bytes(), "U+FEFF<b>"),
    ])
}

pub(super) fn of_strangers_are_harmless(scene: &mut Scene) -> anyhow::Result<()> {
    let all = hostile(scene)?;
    set_trap(scene)?;
    for one in &all {
        store(scene, &[(one.id, one.media, one.bytes.clone())])?;
    }
    scene.load("")?;
    for one in &all {
        let route = format!("blob/{}", one.id);
        scene.go(&route)?;
        scene.browser.shows(one.shown).with_context(|| route.clone())?;
        is_harmless(scene, &route)?;
        if one.shown.starts_with("Show") {
            scene.press_first("Show the")?;
            let outcome = if one.id == "broken" { ".blob .wrong" } else { ".blob canvas" };
            scene.browser.find(outcome).with_context(|| route.clone())?;
            is_harmless(scene, &route)?;
        }
    }
    they_are_attached(scene, &all)?;
    long_ones_do_not_fill_the_page(scene)?;
    scene.has_no_complaints()
}

/// The same, unfolded in a conversation.
fn they_are_attached(scene: &mut Scene, all: &[Hostile]) -> anyhow::Result<()> {
    let attached =
        |one: &Hostile| Attachment { kind: "file".to_owned(), blob_id: one.id.to_owned() };
    let turn = ChatTurn {
        attachments: Some(all.iter().map(attached).collect()),
        ..actor::turn("Look at these.")
    };
    scene.act(0, &Body::ChatTurn(turn))?;
    let route = format!("conversation/{}", actor::conversation());
    scene.go(&route)?;
    scene.browser.run("for (const one of document.querySelectorAll('details')) { one.open = true; one.scrollIntoView(); }", &json!([]))?;
    scene.browser.holds(
        "every blob",
        "for (const one of document.querySelectorAll('.blob')) { if (!one.querySelector('.fine')) { one.scrollIntoView(); return false; } } return document.querySelectorAll('.blob').length === 16",
    )?;
    scene.picture("hostile-blobs")?;
    is_harmless(scene, &route)
}

/// The page has few elements and little text, whatever is in the blob.
fn long_ones_do_not_fill_the_page(scene: &mut Scene) -> anyhow::Result<()> {
    let long = [
        ("letters", "text/plain", "A".repeat(1_000_000)),
        ("unseen", "text/plain", "\u{200b}\u{202e}".repeat(100_000)),
        ("deep", "application/json", "[".repeat(60_000) + &"]".repeat(60_000)),
        ("wide", "application/json", format!("[{}0]", "[],".repeat(60_000))),
    ];
    for (id, media, text) in long {
        store(scene, &[(id, media, text.clone().into_bytes())])?;
        let route = format!("blob/{id}");
        scene.go(&route)?;
        scene.press_first("Show")?;
        scene.browser.find(".blob .fine")?;
        scene.browser.shows("more characters")?;
        let before = letters(scene)?;
        scene.press_first("Show")?;
        scene.browser.holds(
            "more letters",
            &format!("return document.querySelector('main').textContent.length > {before}"),
        )?;
        letters(scene)?;
        is_harmless(scene, &route)?;
    }
    scene.picture("long-blob")
}

/// How many letters the page has, if they and its elements are not too many.
fn letters(scene: &Scene) -> anyhow::Result<u64> {
    let size = "return [document.querySelectorAll('main *').length, document.querySelector('main').textContent.length]";
    let size = scene.browser.run(size, &json!([]))?;
    let (elements, letters) = (size[0].as_u64(), size[1].as_u64());
    ensure!(elements < Some(30_000) && letters < Some(250_000), "the page has {size}");
    letters.context("a number")
}
