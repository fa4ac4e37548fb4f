//! A process that is killed while it imports leaves no half database, and loses no chunk.

use std::env;
use std::path::Path;

use super::busy::{Busy, follow};
use crate::fixture::open;
use crate::kill::child;
use crate::peers::fetch;

/// Tells the test program to be the process that is killed; its value is the folder.
const CHILD: &str = "OMBRA_TEST_SNAPSHOT_CHILD";

fn busy(dir: &Path, name: &str) -> Busy {
    let mut busy = Busy::new(&dir.join(name));
    for number in 0..40_u8 {
        busy.block(&[number.wrapping_mul(16), 0x10, 0x0a, 0x0b, 0x09, 0x22]);
    }
    busy
}

/// Imports for as long as it is not killed; tells of each chunk and of each stage.
#[test]
fn imports_until_it_is_killed() {
    let Some(dir) = env::var_os(CHILD) else { return };
    let dir = Path::new(&dir);
    let work = tempfile::tempdir_in(dir).unwrap();
    let mut busy = busy(work.path(), "chain");
    let (snapshot_store, offer) = busy.offered(&work.path().join("snapshot_store"));
    let verified = busy.intake(&offer, dir);
    let (_, intake) = &verified;
    for want in intake.missing() {
        intake.keep(&want, &fetch(&snapshot_store, &want.hash, want.bytes)).unwrap();
        println!("\nkept");
    }
    let mut tell = |_, _| {
        println!("\nimported a chunk");
        true
    };
    busy.import(&verified, dir, &mut tell).unwrap();
    println!("\ndone");
}

#[test]
fn a_kill_costs_nothing_that_was_kept_and_makes_no_half_database() {
    let dir = tempfile::tempdir().unwrap();
    let (mut kept, new) = (0, dir.path().join("new"));
    for lines in [3, 6, 9, usize::MAX] {
        let test = "snapshots::killed::imports_until_it_is_killed";
        let (mut child, out) = child(test, CHILD, dir.path());
        let told = out
            .map_while(Result::ok)
            .filter(|line| ["kept", "imported a chunk", "done"].contains(&line.as_str()));
        let mut seen = Vec::new();
        for line in told {
            seen.push(line);
            if seen.len() == lines {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        let is_done = seen.last().is_some_and(|line| line == "done");
        assert_eq!(new.exists(), is_done, "{seen:?}");
        let there = std::fs::read_dir(dir.path().join("intake")).unwrap().count();
        assert!(there >= kept, "{there} chunks, {kept} before");
        let again = seen.iter().filter(|line| *line == "kept").count();
        assert!(kept + again >= there.saturating_sub(1), "chunks were fetched twice");
        kept = there;
    }
    let mut expected = busy(dir.path(), "same");
    let store = open(&new);
    assert_eq!(store.tip().unwrap(), expected.store.tip().unwrap());
    expected.block(&[0]);
    follow(&store, &expected.blocks[expected.blocks.len() - 1..]);
    assert_eq!(store.tip().unwrap(), expected.store.tip().unwrap());
}
