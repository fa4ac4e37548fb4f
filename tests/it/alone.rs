//! A process that decides alone, and loses blocks or keys.

use std::path::Path;

use testkit::home::HomeNode;

use crate::validators::write_genesis;

/// The only validator of a chain, whose home is in a folder: it was killed when it had some blocks.
fn killed(folder: &Path) -> anyhow::Result<HomeNode> {
    let mut node = HomeNode::with_keys(folder.join("node"), false)?;
    let genesis = folder.join("genesis.json");
    write_genesis(std::slice::from_ref(&node), &[], &genesis)?;
    node.complete(&genesis)?;
    lives_to(&mut node, 3)?;
    Ok(node)
}

/// Starts the node, and kills it when it has a block of this height.
fn lives_to(node: &mut HomeNode, height: u64) -> anyhow::Result<()> {
    node.start(&[], &[])?;
    node.reaches(height)?;
    node.kill()
}

/// The same when it has so many more blocks than at its start; answers the height then.
fn lives_for(node: &mut HomeNode, blocks: u64) -> anyhow::Result<u64> {
    node.start(&[], &[])?;
    let height = node.height()?;
    node.reaches(height + blocks)?;
    node.kill()?;
    Ok(height)
}

#[test]
fn the_only_validator_takes_a_block_back_only_if_it_may_forget_what_it_signed() -> anyhow::Result<()>
{
    let folder = tempfile::tempdir()?;
    let mut node = killed(folder.path())?;
    let refused = node.db("rollback").expect_err("it could never go on");
    assert!(refused.to_string().contains("--forget-signed"), "{refused}");
    let height = lives_for(&mut node, 1)?;

    node.tell(&["db", "rollback", "--forget-signed"])?;
    lives_to(&mut node, height + 3)?;
    assert!(node.db("verify")?.contains("verified"));
    Ok(())
}

#[test]
fn the_only_validator_that_lost_its_log_goes_on_when_the_last_block_is_named() -> anyhow::Result<()>
{
    let folder = tempfile::tempdir()?;
    let mut node = killed(folder.path())?;
    let (data, backup) = (node.home().join("data"), folder.path().join("backup"));
    node.tell(&["db", "snapshot", backup.to_str().unwrap_or_default()])?;
    lives_for(&mut node, 3)?;
    // An old database is put beside what the key has signed since, by hand.
    std::fs::remove_dir_all(data.join("db"))?;
    std::fs::rename(&backup, data.join("db"))?;
    std::fs::remove_file(data.join("consensus/consensus.wal"))?;

    let refused = node.ombra(&["start"])?;
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(5), "{said}");
    let (_, named) = said.split_once("the chain ends with block ").expect("it names the block");
    let named: Vec<&str> = named.split([' ', ';']).take(2).collect();
    let [height, hash] = named[..] else { panic!("{said}") };

    let sign_again = |node: &HomeNode, hash: &str| {
        node.tell(&["db", "sign-again", "--height", height, "--hash", hash])
    };
    let refused = sign_again(&node, &"0".repeat(64)).expect_err("another block").to_string();
    assert!(refused.contains(hash), "{refused}");
    sign_again(&node, hash)?;
    lives_to(&mut node, height.parse::<u64>()? + 2)?;
    let refused = sign_again(&node, hash).expect_err("the chain goes on").to_string();
    assert!(refused.contains(&format!(", not {height} {hash}")), "{refused}");
    assert!(node.db("verify")?.contains("verified"));
    Ok(())
}

#[test]
fn a_node_that_lost_its_node_key_starts_with_a_new_one_and_says_so() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut node = killed(folder.path())?;
    let old = node.node_key()?;
    std::fs::remove_file(node.home().join("keys/node.key"))?;
    let height = lives_for(&mut node, 1)?;
    assert!(height >= 3, "it has its blocks and votes for the next");
    assert_ne!(old, node.node_key()?);
    let log = node.logged()?;
    let id = consensus::peer_id(&node.node_key()?)?;
    assert!(log.contains("there was no node key") && log.contains(&id), "{log}");
    let told = log.len();
    lives_for(&mut node, 1)?;
    assert!(!node.logged()?[told..].contains("there was no node key"), "once");
    Ok(())
}

#[test]
fn a_validator_whose_key_is_gone_says_that_it_does_not_vote() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let mut node = killed(folder.path())?;
    assert!(node.logged()?.contains("this node is a validator"));
    std::fs::remove_file(node.home().join("keys/validator.key"))?;
    node.start(&[], &[])?;
    let log = node.logged()?;
    assert!(log.contains("although a validator has signed here"), "{log}");
    Ok(())
}
