//! A process that decides alone, and loses blocks.

use tests::home::HomeNode;

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
