//! Chains of several nodes.

use std::net::SocketAddr;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use testkit::client;
use testkit::net::{Member, Net, NetOptions, Network};
use testkit::node::wait_for;
use testkit::senders::Senders;
use testkit::workload::{Workload, keys};

use crate::scene::Scene;
use crate::wire::Wire;

/// The validators of these chains.
const VALIDATORS: usize = 4;
/// The node after them, which validates nothing.
const FOLLOWER: usize = 4;
const KEY: &str = "keys/validator.key";

/// The text of each cell of a table's rows, under a caption.
const CELLS: &str = r"
const table = [...document.querySelectorAll('main table')].find((one) => one.caption.textContent === arguments[0]);
return [...(table?.tBodies[0].rows ?? [])].map((row) => [...row.cells].map((cell) => cell.querySelector('[title]')?.title ?? cell.innerText.trim()));
";

/// Waits until the rows of a table are as they should be, and answers them.
fn rows(
    scene: &Scene,
    caption: &str,
    are_right: impl Fn(&[Vec<String>]) -> bool,
) -> anyhow::Result<Vec<Vec<String>>> {
    let read = || -> anyhow::Result<Vec<Vec<String>>> {
        Ok(serde_json::from_value(scene.browser.run(CELLS, &json!([caption]))?)?)
    };
    let seen = wait_for(caption, || Ok(Some(read()?).filter(|rows| are_right(rows))));
    seen.with_context(|| format!("the table {caption:?} has {:?}", read().unwrap_or_default()))
}

/// A chain whose blocks come fast, without anybody's transactions; the page looks at its first node.
fn chain(scene: &mut Scene, followers: usize) -> anyhow::Result<Net> {
    scene.node.kill()?;
    let params = ["minBlockIntervalMs=100", "heartbeatMs=200"].map(str::to_owned).to_vec();
    Net::make_as(&NetOptions { params, ..NetOptions::new(VALIDATORS, followers) })
}

fn start(scene: &Scene, net: &mut Net) -> anyhow::Result<()> {
    net.start_all()?;
    scene.wire.lead_to(net.members[0].rpc);
    scene.load("network")?;
    scene.browser.shows("Live")
}

pub(super) fn several_nodes_are_shown(scene: &mut Scene) -> anyhow::Result<()> {
    let mut net = chain(scene, 1)?;
    start(scene, &mut net)?;
    let seen = rows(scene, "Validators", |rows| rows.len() == VALIDATORS)?;
    for member in &net.members[..VALIDATORS] {
        let key = member.validator_key()?;
        let (address, public) = (key.address().to_string(), key.public_key().to_string());
        let row = seen.iter().find(|row| row[0] == address).context("a validator's row")?;
        ensure!(row[1] == public && row[2].contains("25.0 %") && row[5] == "none", "{row:?}");
    }
    let peers = net.members[0].peers()?;
    let seen = rows(scene, "Peers", |rows| rows.len() == VALIDATORS)?;
    for peer in &peers {
        let row = seen.iter().find(|row| peer["peerId"] == row[0].as_str()).context("a peer")?;
        ensure!(peer["address"] == row[1].as_str() && row[3].ends_with("ms"), "{row:?}: {peer}");
    }
    scene.picture("network-of-five")?;
    phone(scene, "network-of-five-phone")?;

    // What one has unfolded stays so while the page is drawn anew.
    scene.browser.find("main details summary")?.click()?;
    scene.browser.run("window.before = document.querySelector('main details')", &json!([]))?;
    scene.browser.holds(
        "the parameters to stay",
        "const one = document.querySelector('main details'); return one !== window.before && one.open",
    )?;

    a_lost_node_is_missed(scene, &mut net)?;
    a_newcomer_is_voted_in(scene, &net)
}

/// A picture as on a phone, which must not be wider than one.
fn phone(scene: &Scene, name: &str) -> anyhow::Result<()> {
    scene.browser.resize(360, 740)?;
    scene.fits(360, name)?;
    scene.picture(name)?;
    scene.browser.resize(1280, 900)
}

fn a_lost_node_is_missed(scene: &Scene, net: &mut Net) -> anyhow::Result<()> {
    let lost = net.members[3].validator_key()?.address().to_string();
    net.members[3].kill()?;
    rows(scene, "Peers", |rows| rows.len() == VALIDATORS - 1)?;
    rows(scene, "Validators", |rows| rows.iter().any(|row| row[0] == lost && row[4] != "0"))?;
    net.members[3].start()?;
    rows(scene, "Peers", |rows| rows.len() == VALIDATORS)?;
    Ok(())
}

fn a_newcomer_is_voted_in(scene: &Scene, net: &Net) -> anyhow::Result<()> {
    let newcomer = keys(1)?.remove(0);
    let (key, address) = (newcomer.public_key().to_string(), newcomer.address().to_string());
    for (at, member) in net.members[..3].iter().enumerate() {
        let file = member.home().join(KEY);
        let file = file.to_str().context("a path in UTF-8")?;
        let vote = ["tx", "validator-vote", &key, "--power", "1", "--key-file", file];
        client::told(member.rpc, &vote)?;
        if at == 0 {
            let voter = member.validator_key()?.address().to_string();
            let wanted = [voter.as_str(), &key, "1"];
            rows(scene, "Open votes", |rows| rows.len() == 1 && rows[0][..3] == wanted)?;
            scene.picture("network-vote")?;
        }
    }
    rows(scene, "Validators", |rows| {
        rows.len() == 5 && rows.iter().any(|row| row[0] == address && row[2].contains("20.0 %"))
    })?;
    // Votes that were carried out are not open any more.
    rows(scene, "Open votes", <[_]>::is_empty).map(drop)
}

pub(super) fn contradictions_are_shown(scene: &mut Scene) -> anyhow::Result<()> {
    let mut net = chain(scene, 1)?;
    // The follower has the key of a validator, and so votes and proposes in its name, too.
    let twin = net.members[3].home().join(KEY);
    std::fs::copy(twin, net.members[FOLLOWER].home().join(KEY))?;
    let liar = net.members[3].validator_key()?.address().to_string();
    start(scene, &mut net)?;
    let seen = rows(scene, "Validators", |rows| rows.iter().any(|row| row[5].ends_with("seen")))?;
    for row in &seen {
        ensure!((row[0] == liar) == row[5].ends_with("seen"), "who contradicts itself? {seen:?}");
    }
    let shown = rows(scene, "Contradictions", |rows| !rows.is_empty())?;
    let told = net.members[0].call("ombra_getValidators", &json!([]))?;
    let told = told.as_array().into_iter().flatten().find(|one| one["address"] == liar.as_str());
    let told = told.context("the validator")?["evidence"].as_array().context("evidence")?.clone();
    ensure!(
        told.iter().any(|pair| shown.contains(&evidence_row(&liar, pair))),
        "{shown:?}: {told:?}"
    );
    scene.picture("contradictions")?;
    phone(scene, "contradictions-phone")
}

/// A pair of messages as the table has it.
fn evidence_row(liar: &str, pair: &Value) -> Vec<String> {
    let mut row = vec![
        liar.to_owned(),
        pair["height"].to_string(),
        pair["round"].to_string(),
        pair["kind"].as_str().unwrap_or_default().to_owned(),
    ];
    let says = |message: &Value| message["blockHash"].as_str().unwrap_or("no block").to_owned();
    row.extend(pair["messages"].as_array().into_iter().flatten().map(says));
    row
}

/// Transfers of the chain that is caught up with: what takes a newcomer's time.
const TRANSFERS: usize = 20_000;
const SENDERS: usize = 10;
/// How much of it the newcomer gets at first.
const BYTES: usize = 2_000_000;
/// So many blocks later, five seconds or more have passed. A block made less than three seconds ago would
/// let the newcomer start consensus, whose network has the other blocks too.
const BLOCKS_LATER: u64 = 100;

pub(super) fn catching_up_is_said(scene: &mut Scene) -> anyhow::Result<()> {
    scene.node.kill()?;
    // Many blocks: what a node says of its height may be two seconds old.
    let params = ["minBlockIntervalMs=50", "heartbeatMs=50"].map(str::to_owned).to_vec();
    let mut net = Net::make_as(&NetOptions { params, ..NetOptions::new(1, 1) })?;
    net.members[0].start_with(&[peers(&[])])?;
    let goal = a_chain_with_much_in_it(&net)?;
    net.members[0].reaches(goal + BLOCKS_LATER)?;
    // The only way to the blocks is a line that stops in the middle of them.
    let (line, way) = line_to(&net.members[0])?;
    line.hold_after(BYTES);
    net.members[1].start_with(&[peers(&[way])])?;

    let newcomer = &net.members[1];
    scene.wire.lead_to(newcomer.rpc);
    scene.load("")?;
    scene.browser.shows("This node is catching up with its chain.")?;
    scene.browser.shows("Syncing")?;
    scene.go("network")?;
    scene.browser.shows("catching up")?;
    scene.picture("syncing")?;
    let height = newcomer.height()?;
    ensure!(height < goal, "it had caught up, at {height}");

    line.behave();
    newcomer.reaches(goal)?;
    scene.browser.shows("Live")?;
    scene.browser.shows("up to date")?;
    scene.browser.holds("no notice", "return document.getElementById('notice').hidden")
}

/// A line to a node's network for transactions and blocks, and the address of its other end.
fn line_to(node: &Member) -> anyhow::Result<(Wire, String)> {
    let address = node.p2p_address(Network::Gossip);
    let (place, port) = address.rsplit_once('/').context("an address with a port")?;
    let line = Wire::to(SocketAddr::new(node.rpc.ip(), port.parse()?))?;
    let id = node.call("net_info", &json!([]))?["peerId"].clone();
    let way = format!("{place}/{}/p2p/{}", line.address.port(), id.as_str().context("an id")?);
    Ok((line, way))
}

/// The setting by which a node has these peers for transactions and blocks.
fn peers(peers: &[String]) -> (&'static str, String) {
    ("OMBRA__P2P__GOSSIP__PEERS", json!(peers).to_string())
}

/// Has the first node include all transfers; answers the height after them.
fn a_chain_with_much_in_it(net: &Net) -> anyhow::Result<u64> {
    let validator = &net.members[0];
    let mut senders = Senders::open(validator.rpc)?;
    let mut nonces = Vec::new();
    for wave in Workload::transfers(TRANSFERS, SENDERS)?.waves {
        for texts in wave.by_sender {
            for part in texts.chunks(500) {
                senders.hand_in(part)?;
            }
        }
        nonces = wave.nonces;
    }
    for (address, nonce) in nonces {
        wait_for("all transfers", || {
            let account = validator.call("ombra_getAccount", &json!([address]))?;
            Ok((account["nonce"].as_u64() >= Some(nonce)).then_some(()))
        })?;
    }
    validator.height()
}
