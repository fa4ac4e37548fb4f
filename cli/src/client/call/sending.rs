//! The sending of a call: signed, told, sent, and waited for until it is in a block.

use std::time::Duration;

use node::clock::now_ms;
use types::call::Consensus;
use types::ids::compute_call_id;
use types::tx::{AgentCall, HexBytes};
use types::{Body, Hash};
use wallet::{Envelope, Signed};

use super::{CallArgs, Draft};
use crate::client::tx::{Sender, block_of};
use crate::client::{CliError, Interrupts, Out};

/// How long the request may take into a block.
const INCLUSION: Duration = Duration::from_secs(60);

/// Signs and sends, until ctrl-C; the call is in a block then.
pub(super) async fn send(
    args: &CallArgs,
    sender: &Sender,
    draft: &Draft,
    interrupts: &mut Interrupts,
    out: Out<'_>,
) -> Result<Hash, CliError> {
    let mut sending = None;
    let sent = interrupts.unless(include(args, sender, draft, &mut sending, out)).await;
    sent.unwrap_or_else(|| Err(interrupted(sending)))
}

/// A call that may be on the chain.
struct Sending {
    call_id: Hash,
    tx: Hash,
}

/// ctrl-C before it was known that the call is in a block.
fn interrupted(sending: Option<Sending>) -> CliError {
    match sending {
        None => CliError::Failed("interrupted before the call was sent".to_owned()),
        Some(Sending { call_id, tx }) => {
            let text = format!("interrupted while sending the call {call_id}");
            CliError::Failed(text).after_signing(&tx)
        }
    }
}

/// Signs and sends. Both `sending` and the reader are told before anything is sent.
async fn include(
    args: &CallArgs,
    sender: &Sender,
    draft: &Draft,
    sending: &mut Option<Sending>,
    out: Out<'_>,
) -> Result<Hash, CliError> {
    let envelope: Envelope = sender.envelope(now_ms()).await?;
    let chain = sender.chain().await?;
    let from = sender.keypair().address();
    let call_id = compute_call_id(&chain.chain_id, &from, envelope.nonce);
    let body = Body::AgentCall(body(args, draft, call_id));
    let signed = Signed::new(sender.keypair(), &envelope, &body);
    let tx = signed.hash();
    *sending = Some(Sending { call_id, tx });
    writeln!(out, "\ncall         {call_id}")?;
    writeln!(out, "transaction  {tx}")?;
    out.flush()?;
    let included = sender.include_signed(&signed, INCLUSION).await?;
    writeln!(out, "requested    in block {}", block_of(&included))?;
    out.flush()?;
    Ok(call_id)
}

fn body(args: &CallArgs, draft: &Draft, call_id: Hash) -> AgentCall {
    let payments = args.on_result.iter().map(|it| it.payment.clone()).collect();
    AgentCall {
        call_id,
        agent_id: draft.agent.id,
        agent_version: draft.agent.version.clone(),
        payload: HexBytes(draft.payload.clone()),
        consensus: draft.consensus.as_str().to_owned(),
        committee_size: u64::from(args.committee),
        prices: draft.terms.prices(),
        limits: draft.terms.limits(),
        max_fee: draft.max_fee,
        timeout_ms: args.timeout_ms,
        threshold: match draft.consensus {
            Consensus::Majority => None,
            Consensus::Threshold(needed) => Some(u64::from(needed)),
        },
        appealable: args.appealable.then_some(true),
        on_result: Some(payments).filter(|payments: &Vec<_>| !payments.is_empty()),
        conversation_id: args.conversation,
    }
}
