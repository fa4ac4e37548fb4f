//! A process that decides alone, and loses blocks.

use std::process::{Command, Stdio};

use testkit::home::HomeNode;
use testkit::node::binary;

use crate::validators::write_genesis;

#[test]
fn the_only_validator_takes_a_block_back_only_if_it_may_forget_what_it_signed() -> anyhow::Result<()>
{
    let folder = tempfile::tempdir()?;
    let mut node = HomeNode::with_keys(folder.path().join("node"), false)?;
    let genesis = folder.path().join("genesis.json");
    write_genesis(std::slice::from_ref(&node), &genesis)?;
    node.complete(&genesis)?;
    node.start(&[], &[])?;
    node.reaches(3)?;
    node.kill()?;

    let refused = node.db("rollback").expect_err("it could never go on");
    assert!(refused.to_string().contains("--forget-signed"), "{refused}");
    node.start(&[], &[])?;
    let height = node.height()?;
    node.reaches(height + 1)?;
    node.kill()?;

    node.db_with("rollback", &["--forget-signed"])?;
    node.start(&[], &[])?;
    node.reaches(height + 3)?;
    node.kill()?;
    assert!(node.db("verify")?.contains("verified"));
    Ok(())
}

#[test]
fn the_only_validator_that_lost_its_log_goes_on_when_the_last_block_is_named() -> anyhow::Result<()>
{
    let folder = tempfile::tempdir()?;
    let mut node = HomeNode::with_keys(folder.path().join("node"), false)?;
    let genesis = folder.path().join("genesis.json");
    write_genesis(std::slice::from_ref(&node), &genesis)?;
    node.complete(&genesis)?;
    node.start(&[], &[])?;
    node.reaches(3)?;
    node.kill()?;
    let (data, backup) = (node.home().join("data"), folder.path().join("backup"));
    node.db_with("snapshot", &[backup.to_str().unwrap_or_default()])?;
    node.start(&[], &[])?;
    let height = node.height()?;
    node.reaches(height + 3)?;
    node.kill()?;
    // An old database is put beside what the key has signed since, by hand.
    std::fs::remove_dir_all(data.join("db"))?;
    std::fs::rename(&backup, data.join("db"))?;
    std::fs::remove_file(data.join("consensus/consensus.wal"))?;

    let mut started = Command::new(binary());
    started.args(["start", "--home"]).arg(node.home()).stdin(Stdio::null());
    let refused = started.output()?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(5), "{said}");
    let (_, named) = said.split_once("the chain ends with block ").expect("it names the block");
    let named: Vec<&str> = named.split([' ', ';']).take(2).collect();
    let [height, hash] = named[..] else { panic!("{said}") };

    let other = "0".repeat(64);
    let refused = node.db_with("sign-again", &["--height", height, "--hash", &other]);
    let refused = refused.expect_err("another block").to_string();
    assert!(refused.contains(hash), "{refused}");
    node.db_with("sign-again", &["--height", height, "--hash", hash])?;
    node.start(&[], &[])?;
    node.reaches(height.parse::<u64>()? + 2)?;
    node.kill()?;
    let again = node.db_with("sign-again", &["--height", height, "--hash", hash]);
    again.expect_err("the chain goes on");
    assert!(node.db("verify")?.contains("verified"));
    Ok(())
}
