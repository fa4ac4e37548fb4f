//! What must hold of the containers, in the order in which it is tried.

use std::time::Instant;

use anyhow::{Context, ensure};
use testkit::docker::docker;
use testkit::http::Connection;
use testkit::node::{wait_for, wait_until};
use testkit::suite::Case;

use crate::testnet::Testnet;

/// What a check may add for the reader.
type Note = anyhow::Result<Option<String>>;

/// A check: its name is the claim.
type Check = Case<fn(&mut Testnet<'_>) -> Note>;

/// The four validators.
const VALIDATORS: [usize; 4] = [0, 1, 2, 3];
/// All nodes: the validators and the follower.
const ALL_NODES: [usize; 5] = [0, 1, 2, 3, 4];
const FOLLOWER: usize = 4;

/// Every check.
pub(crate) const ALL: &[Check] = &[
    Case::new("five containers come up healthy and find each other by name", comes_up),
    Case::new(
        "nodes are not root, keep their keys, and cannot write outside their volume",
        is_confined,
    ),
    Case::new(
        "only JSON-RPC is published, on loopback, and foreign host names are refused",
        is_closed,
    ),
    Case::new("metrics are reached by name within the network", tells_metrics),
    Case::new("a transfer through the follower is in the same block on all nodes", pays),
    Case::new("a node that crashes is started again and catches up", restarts),
    Case::new(
        "a killed validator does not stop the chain, and catches up after its restart",
        loses_one,
    ),
    Case::new(
        "blocks go on while a validator is cut off, which catches up when it is back",
        cuts_off,
    ),
    Case::new("down and up keep the chain", keeps_the_chain),
    Case::new("down with volumes leaves nothing", leaves_nothing),
];

fn comes_up(net: &mut Testnet<'_>) -> Note {
    net.compose(&["config"])?;
    net.compose(&["up", "-d"])?;
    net.healthy(0..ALL_NODES.len())?;
    for member in &net.members {
        member.meets(ALL_NODES.len() - 1)?;
    }
    for node in ALL_NODES {
        wait_for("readiness", || Ok(net.inside(node, &["ombra", "health"]).ok()))?;
    }
    Ok(None)
}

fn is_confined(net: &mut Testnet<'_>) -> Note {
    for node in ALL_NODES {
        ensure!(net.inside(node, &["id", "-u"])? == "10001");
        let keys = net.inside(node, &["stat", "-c", "%a %U", "keys/node.key"])?;
        ensure!(keys == "600 ombra", "{keys}");
        ensure!(net.inside(node, &["touch", "/usr/local/bin/other"]).is_err());
        ensure!(net.inside(node, &["touch", "/tmp/other"]).is_err());
    }
    ensure!(net.inside(FOLLOWER, &["test", "-e", "keys/validator.key"]).is_err());
    Ok(None)
}

fn is_closed(net: &mut Testnet<'_>) -> Note {
    for node in ALL_NODES {
        let published = docker(&["port", &net.container(&net.members[node].name)?])?;
        let expected = format!("8777/tcp -> {}", net.members[node].rpc);
        ensure!(published == expected, "{published}");
    }
    let member = &net.members[0];
    ensure!(Connection::open(member.rpc)?.get("/healthz")? == "ok\n");
    let foreign = Connection::open(member.rpc)?.get_as("page.example", "/healthz");
    let refusal = foreign.err().context("a foreign host name was answered")?;
    ensure!(refusal.to_string().contains("403"), "{refusal:#}");
    Ok(None)
}

fn tells_metrics(net: &mut Testnet<'_>) -> Note {
    // The image has no client for HTTP; its shell can open a connection.
    let script = "exec 3<>/dev/tcp/node0/9777; \
                  printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3";
    let text = net.inside(FOLLOWER, &["bash", "-c", script])?;
    ensure!(text.contains("\nombra_chain_height "), "{text}");
    Ok(None)
}

fn pays(net: &mut Testnet<'_>) -> Note {
    let began = Instant::now();
    let block = net.transfer(FOLLOWER)?;
    let first = began.elapsed();
    net.agree(&ALL_NODES, &block)?;

    // The same with the program's own wallet, which waits for the block.
    let began = Instant::now();
    net.client(FOLLOWER, &["tx", "transfer", "dev:3", "1.5ombra", "--dev", "5", "--json"])?;
    let second = began.elapsed();
    let account = net.client(FOLLOWER, &["query", "account", "dev:3", "--json"])?;
    for node in VALIDATORS {
        wait_until("the same account", || {
            let other = net.client(node, &["query", "account", "dev:3", "--json"])?;
            Ok(other == account)
        })?;
    }
    Ok(Some(format!(
        "in a block {} ms after it was sent, {} ms with `ombra tx transfer`",
        first.as_millis(),
        second.as_millis()
    )))
}

fn restarts(net: &mut Testnet<'_>) -> Note {
    let before = net.inspect(1, "{{.RestartCount}}")?;
    // From within the container the first process cannot be killed; the node is its child.
    let script = "for file in /proc/[0-9]*/comm; do read -r name <\"$file\"; \
                  process=${file#/proc/}; process=${process%/comm}; \
                  [ \"$name\" != ombra ] || [ \"$process\" = 1 ] || kill -9 \"$process\"; done";
    drop(net.inside(1, &["bash", "-c", script]));
    wait_until("the engine to start node1 again", || {
        Ok(net.inspect(1, "{{.RestartCount}}")? != before)
    })?;
    let block = net.transfer(0)?;
    net.agree(&ALL_NODES, &block)?;
    net.healthy(1..2)?;
    Ok(None)
}

fn loses_one(net: &mut Testnet<'_>) -> Note {
    let container = net.container("node3")?;
    docker(&["kill", &container])?;
    let mut block = net.transfer(FOLLOWER)?;
    for _ in 0..4 {
        block = net.transfer(FOLLOWER)?;
    }
    net.agree(&[0, 1, 2, FOLLOWER], &block)?;
    docker(&["start", &container])?;
    net.agree(&[3], &block)?;
    net.healthy(3..4)?;
    let block = net.transfer(3)?;
    net.agree(&ALL_NODES, &block)?;
    Ok(None)
}

fn cuts_off(net: &mut Testnet<'_>) -> Note {
    let container = net.container("node2")?;
    let network = format!("{}_chain", net.project()?);
    docker(&["network", "disconnect", &network, &container])?;
    let mut block = net.transfer(0)?;
    for _ in 0..4 {
        block = net.transfer(0)?;
    }
    net.agree(&[0, 1, 3, FOLLOWER], &block)?;
    // Cut off, it still answers from within; it is alive, and has no peers.
    wait_until("node2 to notice", || Ok(net.inside(2, &["ombra", "health"]).is_err()))?;
    net.inside(2, &["ombra", "health", "--alive"])?;
    docker(&["network", "connect", "--alias", "node2", &network, &container])?;
    net.agree(&[2], &block)?;
    let block = net.transfer(2)?;
    net.agree(&ALL_NODES, &block)?;
    Ok(None)
}

fn keeps_the_chain(net: &mut Testnet<'_>) -> Note {
    let block = net.transfer(1)?;
    net.agree(&ALL_NODES, &block)?;
    net.compose(&["down"])?;
    ensure!(net.container("node0").is_err(), "the containers are gone");
    net.compose(&["up", "-d"])?;
    net.agree(&ALL_NODES, &block)?;
    let block = net.transfer(FOLLOWER)?;
    net.agree(&ALL_NODES, &block)?;
    Ok(None)
}

fn leaves_nothing(net: &mut Testnet<'_>) -> Note {
    let project = format!("label=com.docker.compose.project={}", net.project()?);
    let volumes = || docker(&["volume", "ls", "--quiet", "--filter", &project]);
    ensure!(!volumes()?.is_empty());
    net.compose(&["down", "--volumes"])?;
    ensure!(volumes()?.is_empty());
    ensure!(docker(&["network", "ls", "--quiet", "--filter", &project])?.is_empty());
    Ok(None)
}
