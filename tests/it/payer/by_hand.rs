//! Runs that the test works on by hand: what is shown of steps, texts, and every end.

use super::{Begun, Scene, assert_has};
use crate::support::dev;
use anyhow::Context as _;

/// Does as the miner of account 1.
fn does(scene: &Scene, arguments: &[&str]) -> anyhow::Result<String> {
    scene.done(&[&["tx"], arguments, &["--dev", "1"]].concat())
}

/// Stores a text and answers its blob's id.
fn store(scene: &Scene, text: &str) -> anyhow::Result<String> {
    let file = scene.write("blob.txt", text)?;
    let told = does(scene, &["blob", &file])?;
    let id = told.lines().find_map(|line| line.strip_prefix("blob ")?.split(',').next());
    Ok(id.context("a blob")?.to_owned())
}

/// A run that is asked for and taken.
fn taken(scene: &Scene, more: &[&str]) -> anyhow::Result<(Begun, String)> {
    let mut begun = scene.begin(&[&["What?"], more].concat(), "pending ")?;
    let run = begun.run()?;
    does(scene, &["claim", &run, "--model-info", "a \u{1b}[31mperson", "--tier", "laptop"])?;
    begun.read_to("claimed ")?;
    Ok((begun, run))
}

#[test]
fn steps_tools_texts_and_a_long_answer_are_shown() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let (mut begun, run) = taken(&scene, &["--thoughts"])?;
    let (output, answer) = ("I looked it up.", "A".repeat(20_000));
    let hash = "ab".repeat(32);
    let call = format!("look_up,{hash},{hash},1500,ok");
    let failed = format!("fetch,{hash},{hash},12,failed");
    let [output_blob, thoughts] = [output, "First I look."].map(|text| store(&scene, text));
    let (output_blob, thoughts) = (output_blob?, thoughts?);
    let step = ["step", &run, "--tokens", "5", "--output", output];
    let texts = ["--output-blob", &output_blob, "--thought-blob", &thoughts];
    let calls = ["--tool", &call, "--tool", &failed];
    does(&scene, &[&step[..], &texts[..], &calls[..]].concat())?;
    begun.read_to("             thought: First I look.")?;
    // A blob that says something else than the step reported.
    does(&scene, &["step", &run, "--tokens", "1", "--output", "x", "--output-blob", &thoughts])?;
    begun.read_to("             output blob ")?;
    let answer_blob = store(&scene, &answer)?;
    does(&scene, &["finish", &run, "--answer-blob", &answer_blob])?;
    let printed = begun.ends_with(0)?;
    assert_has(
        &printed,
        &[
            "model a \u{fffd}[31mperson, laptop",
            "tool look_up: ok in 1.5 s",
            "tool fetch: failed in 12 ms",
            "said \"I looked it up.\"",
            "is not the text that the step reports",
            "completed: the miner answered",
            &answer,
            "to miner   0.000006 OMBRA for 6 tokens",
            "paid         0.000206 OMBRA",
        ],
    );
    for once in ["\nstep 0 ", "\nstep 1 ", "said \"I looked it up.\""] {
        assert_eq!(1, printed.matches(once).count(), "{once:?} in {printed}");
    }
    let named = scene.done(&["run", "--follow", &run])?;
    assert_has(&named, &[&format!("thoughts in blob {thoughts}; --thoughts shows them"), &answer]);
    Ok(())
}

#[test]
fn a_run_that_was_not_completed_is_explained_and_is_a_failure() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let ends = [
        ("failed", "failed: the miner gave up; the miner gets 0.000003 OMBRA, 0.000100 OMBRA are"),
        ("timeout", "timeout: the miner ran out of time; the miner gets 0.000003 OMBRA"),
        ("insufficient_funds", "insufficient_funds: the escrow is used up;"),
    ];
    for (status, expected) in ends {
        let (begun, run) = taken(&scene, &[])?;
        does(&scene, &["step", &run, "--tokens", "3", "--output", "x"])?;
        does(&scene, &["finish", &run, "--status", status, "--answer", "no"])?;
        let printed = begun.ends_with(1)?;
        assert_has(&printed, &[expected, "\nno\n", &format!("the run ended as {status}")]);
    }
    Ok(())
}

#[test]
fn a_run_that_nobody_works_on_comes_back_with_its_money() -> anyhow::Result<()> {
    // Long enough for the claim to be seen.
    let times = ["--param", "claimTtlMs=1500", "--param", "pendingTtlMs=6000"];
    let scene = Scene::with(dev(&times))?;
    let before = scene.balance(0)?;
    // The miner takes it and does nothing, so it is open again, and then nobody comes.
    let (begun, _) = taken(&scene, &[])?;
    let printed = begun.ends_with(1)?;
    assert_has(
        &printed,
        &[
            "re-opened    the miner gave it back or did not begin in time, and may not take it again;",
            "timeout: the run was open 2 times and nobody worked on it; all of 0.010000 OMBRA",
            "paid         0.000000 OMBRA",
        ],
    );
    assert_eq!(before, scene.balance(0)?);
    Ok(())
}

#[test]
fn a_node_that_is_away_for_a_moment_does_not_end_the_watching() -> anyhow::Result<()> {
    let mut scene = Scene::new()?;
    let (mut begun, run) = taken(&scene, &[])?;
    scene.node.kill()?;
    begun.read_to("node away ")?;
    scene.node.restart_in_place()?;
    begun.read_to("node back ")?;
    does(&scene, &["finish", &run, "--answer", "still here"])?;
    let printed = begun.ends_with(0)?;
    assert_has(&printed, &["still here"]);
    Ok(())
}
