//! The disk of one node is full.

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::node::wait_until;
use testkit::process::run;

use crate::Extent;
use testkit::harness::{Load, Town, catches_up};
use testkit::suite::say;

const REST: &[usize] = &[0, 1, 2];
const FULL: usize = 3;
const DISK_MIB: u64 = 512;
/// The setting that makes the node look, its default, and the value with which it never looks.
const FREE_MIN: &str = "storage.free_disk_bytes_min";
const WATCHED: &str = "268435456";
const UNWATCHED: &str = "0";
/// What the system says when nothing can be written.
const NO_ROOM: &str = "No space left on device";
/// Room for the files of the consensus engine alone.
const LOG_DISK_MIB: u64 = 8;
/// How long the disk is filled before it is looked whether the node has ended.
const FILLING: Duration = Duration::from_millis(200);
/// What a node says whose engine's log has no room.
const NO_ROOM_FOR_LOG: &str = "the consensus engine cannot write its log";
/// What fills the disk.
const BALLAST: &str = "ballast";

/// Less room than the node wants: it stops in order before anything fails.
pub(crate) fn short(_: Extent) -> anyhow::Result<()> {
    // 256 MiB have to be free.
    out_of_room(DISK_MIB - 200, WATCHED)
}

/// No room at all, at once: writes fail before the node looks how much there is.
pub(crate) fn full(_: Extent) -> anyhow::Result<()> {
    out_of_room(DISK_MIB, WATCHED)
}

/// No room at all, and a node that never looks how much there is: writes that fail end it.
pub(crate) fn unwatched(_: Extent) -> anyhow::Result<()> {
    out_of_room(DISK_MIB, UNWATCHED)
}

/// No room for the engine's log alone. The engine stops "for safety"; the node may start again all the
/// same, because nothing was signed that the log has not.
pub(crate) fn log(_: Extent) -> anyhow::Result<()> {
    let mut town = Town::make(4, 0)?;
    let folder = town.node(FULL)?.home().join("data/consensus");
    std::fs::create_dir_all(&folder)?;
    small_blocks(&folder)?;
    town.start_all()?;
    let load = Load::steady(&town.net, REST, 4)?;
    town.goes_on(&[0, 1, 2, FULL], 2)?;

    for life in ["it", "started without room it"] {
        wait_until("the end of the node without room", || {
            // What the log gives back at the end of a height is taken from it.
            let until = Instant::now() + FILLING;
            while Instant::now() < until {
                fill(&folder, LOG_DISK_MIB)?;
            }
            town.node_mut(FULL)?.has_ended()
        })?;
        let (status, last) = end_of(&mut town)?;
        say(&format!("   {life} ended with {status}: {last}"));
        ensure!(last.contains(NO_ROOM_FOR_LOG) && last.contains(NO_ROOM), "it ended for that");
        town.goes_on(REST, 4)?;
        if life == "it" {
            town.node_mut(FULL)?.launch(&[])?;
        }
    }

    comes_back(&mut town, &folder, 20)?;
    for node in REST {
        let told = town.node(*node)?.call("ombra_getValidators", &json!([]))?;
        let members = told.as_array().context("a list of validators")?;
        let is_honest = |member: &Value| member["equivocations"] == json!(0);
        let is_right = !members.is_empty() && members.iter().all(is_honest);
        ensure!(is_right, "it has contradicted itself: {told}");
    }
    town.check(&*load.stop()?)
}

fn out_of_room(ballast_mib: u64, setting: &str) -> anyhow::Result<()> {
    let mut town = Town::make(4, 0)?;
    let home = town.node(FULL)?.home().to_owned();
    town.node(FULL)?.configure(FREE_MIN, setting)?;
    // There is room for what it says.
    std::os::unix::fs::symlink(home.with_extension("log"), home.join("node.log"))?;
    own_disk(&home)?;
    town.start_all()?;
    let load = Load::steady(&town.net, REST, 4)?;
    town.goes_on(&[0, 1, 2, FULL], 2)?;

    fill(&home, ballast_mib)?;
    let (status, last) = end_of(&mut town)?;
    say(&format!("   it ended with {status}: {last}"));
    town.goes_on(REST, 4)?;
    if setting == UNWATCHED {
        ensure!(last.contains(NO_ROOM), "it does not say {NO_ROOM:?}");
        // Its end may have made room.
        fill(&home, ballast_mib)?;
        town.node_mut(FULL)?.launch(&[])?;
        let (status, last) = end_of(&mut town)?;
        say(&format!("   started without room it ended with {status}: {last}"));
        ensure!(last.contains(NO_ROOM), "it does not say {NO_ROOM:?}");
    }

    comes_back(&mut town, &home, 4)?;
    town.check(&*load.stop()?)
}

/// Waits until the node has ended by itself; answers how, and the last that it said.
fn end_of(town: &mut Town) -> anyhow::Result<(ExitStatus, String)> {
    let status = town.node_mut(FULL)?.ended()?;
    let log = town.node(FULL)?.logged()?;
    let last = log.lines().last().unwrap_or_default().to_owned();
    ensure!(!status.success(), "it says that nothing was wrong");
    ensure!(status.code().is_some_and(|code| code != 5), "it must be startable: {status}: {last}");
    Ok((status, last))
}

/// Makes room again; the node is started, catches up, and makes so many blocks with the others.
fn comes_back(town: &mut Town, folder: &Path, blocks: u64) -> anyhow::Result<()> {
    std::fs::remove_file(folder.join(BALLAST))?;
    town.restart(FULL)?;
    let took = catches_up(town.node(FULL)?, town.node(0)?)?;
    say(&format!("   with room again it had the others' height after {took:.1?}"));
    town.goes_on(&[0, 1, 2, FULL], blocks).map(drop)
}

/// Moves a home to a small file system of its own.
fn own_disk(home: &Path) -> anyhow::Result<()> {
    let kept = home.with_extension("kept");
    std::fs::rename(home, &kept)?;
    std::fs::create_dir(home)?;
    mount(home, DISK_MIB)?;
    run(Command::new("cp").arg("-a").arg(kept.join(".")).arg(home)).map(drop)
}

/// Puts a small file system there whose blocks are smaller than what the log has of a height.
fn small_blocks(folder: &Path) -> anyhow::Result<()> {
    let image = folder.with_extension("image");
    std::fs::File::create(&image)?.set_len(LOG_DISK_MIB * 1024 * 1024)?;
    run(Command::new("mkfs.ext2").args(["-q", "-b", "1024", "-m", "0"]).arg(&image))?;
    run(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(folder)).map(drop)
}

/// Puts a small file system there, which goes with this process's mounts.
fn mount(folder: &Path, mib: u64) -> anyhow::Result<()> {
    let options = format!("size={mib}m,mode=0700");
    run(Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(folder)).map(drop)
}

/// Writes until so much is there or nothing more fits.
fn fill(home: &Path, mib: u64) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut file = std::fs::File::options().create(true).append(true).open(home.join(BALLAST))?;
    let block = vec![1; 1024 * 1024];
    for _ in 0..mib {
        if file.write_all(&block).is_err() {
            break;
        }
    }
    Ok(())
}
