//! Merkle proofs.

use crate::error::RpcError;
use crate::ports::{Ports, ProofTarget};
use crate::wire::{ProofQuery, ProofView};

/// A proof that can be checked without the node.
pub(crate) fn proof(ports: &Ports, of: ProofQuery) -> Result<ProofView, RpcError> {
    let proof = ports.proofs.prove(&target(of)?)?;
    proof.map(ProofView::from).ok_or_else(|| RpcError::not_found("proof", "latest state"))
}

/// The one thing that is to be proved.
fn target(of: ProofQuery) -> Result<ProofTarget, RpcError> {
    let ProofQuery { account, agent_run, validators, bond, offer, agent, call } = of;
    let offer = offer.map(|it| ProofTarget::Offer(it.miner.0, it.executor.0));
    let named = [
        account.map(|address| ProofTarget::Account(address.0)),
        agent_run.map(|id| ProofTarget::AgentRun(id.0)),
        validators.filter(|wanted| *wanted).map(|_wanted| ProofTarget::Validators),
        bond.map(|address| ProofTarget::Bond(address.0)),
        offer,
        agent.map(|id| ProofTarget::Agent(id.0)),
        call.map(|id| ProofTarget::Call(id.0)),
    ];
    let mut named = named.into_iter().flatten();
    let (target, second) = (named.next(), named.next());
    target.filter(|_| second.is_none()).ok_or_else(|| {
        let got = if second.is_some() { "several" } else { "none" };
        let expected = "one of account, agentRun, validators (true), bond, offer, agent and call";
        RpcError::invalid("of", got, expected)
    })
}
