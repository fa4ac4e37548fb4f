//! A node whose files cannot be written.

use testkit::actor::{people, transfer};
use testkit::http::Connection;
use testkit::net::Net;

#[test]
fn a_journal_that_cannot_be_written_ends_the_node_with_the_file_and_the_reason()
-> anyhow::Result<()> {
    let mut net = Net::make(1, 0)?;
    let node = &mut net.members[0];
    node.start()?;
    let journal = node.home().join("data/pool.journal");
    std::fs::remove_dir_all(&journal)?;
    std::fs::write(&journal, "in the way")?;

    let [from, to] = people()?;
    // One that waits for another, and so has to be kept.
    let text = from.at(1).sign(&transfer(to.address(), 5));
    let answer = Connection::open(node.rpc)?.send(&text)?;
    assert!(answer.get("error").is_some(), "it is told that it was kept: {answer}");
    let status = node.ended()?;
    assert_eq!(Some(1), status.code());
    let log = node.logged()?;
    let last = log.lines().last().unwrap_or_default();
    assert!(last.contains("pool journal: cannot") && last.contains("pool.journal"), "{last}");

    std::fs::remove_file(&journal)?;
    node.start()?;
    node.send(&text)?;
    node.stop()
}
