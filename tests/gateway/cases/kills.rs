//! `kill -9` at every phase, and the client asks again.

use anyhow::{Context as _, ensure};
use testkit::chat::{RETRY, chat};
use testkit::node::wait_until;
use testkit::wire::{Call, Side, Trap};
use types::Hash;

use crate::scene::Scene;

/// Where the gateway is killed.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Its money is reserved and nothing is signed.
    Reserved,
    /// The request is signed, and the node has not heard of it.
    Signed,
    /// The node has it, and the gateway does not know that.
    Sent,
    /// The blob of a long request is begun.
    Blob,
    /// A miner works.
    Running,
    /// Taking the escrow back is signed.
    CancelSigned,
    /// The node has that, and the gateway does not know.
    CancelSent,
}

const PHASES: [Phase; 7] = [
    Phase::Reserved,
    Phase::Signed,
    Phase::Sent,
    Phase::Blob,
    Phase::Running,
    Phase::CancelSigned,
    Phase::CancelSent,
];

pub(crate) fn run() -> anyhow::Result<String> {
    Scene::with_key(&[])?.play(|scene| {
        for phase in PHASES {
            kill(scene, phase).with_context(|| format!("killed when {phase:?}"))?;
            scene.check().with_context(|| format!("the books after {phase:?}"))?;
        }
        ensure!(scene.key()?["reserved_micro"] == 0, "money is reserved for nothing");
        Ok("seven deaths, and each client got one answer for one price".to_owned())
    })
}

fn kill(scene: &mut Scene, phase: Phase) -> anyhow::Result<()> {
    let name = format!("{phase:?}");
    let body = match phase {
        Phase::Blob => chat(&format!("{}\nsay {name}", "long ".repeat(5_000))),
        Phase::Running => chat(&format!("hold {name}")),
        Phase::CancelSigned | Phase::CancelSent => chat(&format!("{name}\nignore")),
        Phase::Reserved | Phase::Signed | Phase::Sent => chat(&format!("say {name}")),
    };
    let before = scene.runs()?;
    let send = |kind, side| Trap { after: "", call: Call::Send(kind), passing: 0, side };
    let trap = match phase {
        // The first thing that signing asks the node for.
        Phase::Reserved => {
            let call = Call::Method("ombra_chainInfo");
            Some(Trap { after: "", call, passing: 1, side: Side::Request })
        }
        Phase::Signed => Some(send("AGENT_REQUEST", Side::Request)),
        Phase::Sent => Some(send("AGENT_REQUEST", Side::Answer)),
        Phase::Blob => Some(send("SOCIAL_BLOB_CHUNK", Side::Answer)),
        Phase::Running => None,
        Phase::CancelSigned => Some(send("AGENT_CANCEL", Side::Request)),
        Phase::CancelSent => Some(send("AGENT_CANCEL", Side::Answer)),
    };
    let gate = trap.map(|trap| scene.wire.hold(trap, &Hash::ZERO));
    let connection = scene.client.begin(&body, &[])?;
    match gate {
        Some(gate) => gate.reached(&format!("the gateway to be {name}"))?,
        None => wait_until("the miner to hold it", || Ok(scene.worker.holds(&name)))?,
    }
    scene.kill_and_restart()?;
    drop(connection);
    scene.worker.let_go(&name);
    let answer = scene.client.ask(&body, &[RETRY])?;
    let runs = scene.runs()?.saturating_sub(before);
    match phase {
        Phase::CancelSigned | Phase::CancelSent => {
            // The retry followed the same run, or came after its end and made one of its own.
            ensure!(answer.fault() == (503, "no_miner".to_owned()), "{answer:?}");
            ensure!(runs == 1 || runs == 2, "{runs} runs");
        }
        Phase::Reserved | Phase::Signed | Phase::Sent | Phase::Blob | Phase::Running => {
            ensure!(answer.content()? == name, "{answer:?}");
            ensure!(runs == 1, "{runs} runs were asked for");
        }
    }
    Ok(())
}
