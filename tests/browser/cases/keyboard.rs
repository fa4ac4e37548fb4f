//! The page without a mouse.

use anyhow::ensure;
use serde_json::{Value, json};

use crate::cases::pages;
use crate::scene::Scene;

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
/// More than there are things to reach before the content.
const STEPS_MAX: usize = 30;

/// What has the focus: its id, or its text.
fn focus(scene: &Scene) -> anyhow::Result<String> {
    let read = "const one = document.activeElement; return one.id || one.textContent.trim()";
    Ok(scene.browser.run(read, &json!([]))?.as_str().unwrap_or_default().to_owned())
}

/// Presses the tabulator until the thing has the focus.
fn reach(scene: &Scene, wanted: &str) -> anyhow::Result<()> {
    let mut passed = Vec::new();
    for _ in 0..STEPS_MAX {
        scene.browser.press(TAB)?;
        let reached = focus(scene)?;
        if reached == wanted {
            let outline = "return getComputedStyle(document.activeElement).outlineStyle";
            let outline = scene.browser.run(outline, &json!([]))?;
            ensure!(
                outline != Value::String("none".to_owned()),
                "the focus on {wanted} is not seen"
            );
            return Ok(());
        }
        passed.push(reached);
    }
    anyhow::bail!("{wanted} was not reached; passed {passed:?}")
}

pub(super) fn reaches_everything(scene: &mut Scene) -> anyhow::Result<()> {
    let story = pages::plain(scene)?;
    scene.load("")?;
    scene.browser.shows("Live")?;
    reach(scene, "skip")?;
    scene.browser.press(ENTER)?;
    ensure!(focus(scene)? == "main", "the skip button leads to the content");

    scene.load("")?;
    scene.browser.shows("Live")?;
    reach(scene, "query")?;
    scene.browser.press(&format!("{}{ENTER}", story.run))?;
    scene.browser.shows("Settlement")?;
    ensure!(focus(scene)? == "main", "a new page begins at its content");

    scene.browser.press("/1")?;
    ensure!(focus(scene)? == "query", "a slash leads to the search");
    scene.browser.press(ENTER)?;
    scene.browser.shows("Certificate")?;

    scene.load("")?;
    scene.browser.shows("Live")?;
    reach(scene, "Miners")?;
    scene.picture("keyboard-focus")?;
    scene.browser.press(ENTER)?;
    scene.browser.shows("Cat counters of Cluj")?;
    for name in ["headings", "labels", "landmarks"] {
        let script = match name {
            "headings" => "return document.querySelectorAll('h1').length === 1",
            "labels" => {
                "return [...document.querySelectorAll('input, textarea, button, select')].every((one) => one.labels?.length > 0 || one.textContent.trim() !== '' || one.ariaLabel)"
            }
            _ => {
                "return ['header', 'nav', 'main', 'footer', '[role=search]'].every((one) => document.querySelectorAll(one).length === 1)"
            }
        };
        scene.browser.holds(name, script)?;
    }
    Ok(())
}
