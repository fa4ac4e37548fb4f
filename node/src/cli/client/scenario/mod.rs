//! One complete agent run between two wallets, through the public interface.
//!
//! Both roles are played by this program, and it says so: no language model takes part. The work is
//! real all the same. The miner's side asks the node for facts with the tools below, records every
//! call with the hashes of its real arguments and result, and composes the answer from what it got.

mod tools;

use std::time::Duration;

use serde_json::Value;
use types::tx::{AgentClaim, AgentFinish, AgentStep, ChatTurn, MinerAddress, ToolCall};
use types::{Address, Amount, Body, Hash, Keypair, ids};
use wallet::client::records::{Run, Settlement};
use wallet::sign::Request;
use wallet::{Answer, Client, Signed};

use super::output::{ombra, one_line};
use super::tx::{Included, Sender, block_of};
use super::{CliError, Out, Outcome};
use crate::clock::now_ms;
use tools::{Call, Tool};

/// Every transaction is included within this time or the scenario fails.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The escrow: one tenth of an OMBRA.
const MAX_FEE: Amount = Amount::new(100_000);
const MAX_STEPS: u64 = 10;
const MODEL: &str = "none: this program looks facts up on the chain";
/// Said first when the question names no fact that a tool can find.
const NO_TOOL: &str = "No tool of this run can answer that; what they tell is this.";
const QUOTED_CHARS_MAX: usize = 120;

/// Drives a run from question to settlement, and writes each transaction with its hash and block.
/// The answer is the settled run record.
///
/// # Errors
/// When the node is not reachable, refuses a transaction, or does not include it in time.
pub async fn agent_run(
    client: &Client,
    requester: &Keypair,
    miner: &Keypair,
    question: &str,
    out: Out<'_>,
) -> Result<Answer<Value>, CliError> {
    let scene = Scene {
        requester: Sender { client: client.clone(), keypair: requester.clone() },
        miner: Sender { client: client.clone(), keypair: miner.clone() },
    };
    scene.introduce(question, out)?;
    let before = scene.balances().await?;
    let conversation = scene.ask(question, out).await?;
    let run = scene.request(conversation, question, out).await?;
    scene.claim(run, out).await?;
    let answer = scene.work(run, question, out).await?;
    let settlement = scene.finish(run, &answer, out).await?;
    let after = scene.balances().await?;
    print_balances(&scene, before, after, &settlement, out)?;
    let settled: Answer<Run> = client.run(&run).await?;
    if settled.status != "completed" {
        return Err(CliError::Failed(format!("the run ended as {}", settled.status)));
    }
    Ok(client.call("ombra_getAgentRun", [run]).await?)
}

/// The two parties.
struct Scene {
    requester: Sender,
    miner: Sender,
}

impl Scene {
    fn introduce(&self, question: &str, out: Out<'_>) -> Outcome {
        writeln!(out, "One agent run over JSON-RPC at {}", self.requester.client.url())?;
        writeln!(
            out,
            "  Both roles are played by this program; no language model takes part. The miner's"
        )?;
        writeln!(
            out,
            "  side looks facts up on the chain with the tools of the run, and answers from them."
        )?;
        writeln!(
            out,
            "  Tokens are counted as white-space separated words of each step's output."
        )?;
        writeln!(out, "  requester {}", self.requester.keypair.address())?;
        writeln!(out, "  miner     {}", self.miner.keypair.address())?;
        writeln!(out, "  question  {}\n", one_line(question, QUOTED_CHARS_MAX))?;
        Ok(())
    }

    /// Balances of requester and miner.
    async fn balances(&self) -> Result<[Amount; 2], CliError> {
        let requester = balance(&self.requester).await?;
        let miner = balance(&self.miner).await?;
        Ok([requester, miner])
    }

    /// The question as a turn of a new conversation.
    async fn ask(&self, question: &str, out: Out<'_>) -> Result<Hash, CliError> {
        let creator = self.requester.keypair.address().to_string();
        let conversation_id = ids::compute_conversation_id(&creator, None, now_ms());
        let body = Body::ChatTurn(ChatTurn {
            conversation_id,
            role: "user".into(),
            content: question.to_owned(),
            content_blob_id: None,
            parent_turn_hash: None,
            agent_run_id: None,
            attachments: None,
        });
        let included = self.requester.include(&body, TIMEOUT).await?;
        report(
            &body,
            &included,
            "the question becomes a turn of a conversation; 100 micro burned",
            out,
        )?;
        Ok(conversation_id)
    }

    /// The escrow and the run's id.
    async fn request(
        &self,
        conversation_id: Hash,
        question: &str,
        out: Out<'_>,
    ) -> Result<Hash, CliError> {
        let Sender { client, keypair } = &self.requester;
        let envelope = client.envelope(keypair, now_ms()).await?;
        let request = Request {
            conversation_id,
            prompt: question.to_owned(),
            tools_whitelist: Tool::ALL.map(|tool| tool.name().to_owned()).to_vec(),
            max_fee: MAX_FEE,
            max_steps: MAX_STEPS,
            prompt_blob_id: None,
            model_hint: None,
        };
        let body = request.into_body(keypair, envelope.nonce);
        let run = body.agent_run_id;
        let body = Body::AgentRequest(body);
        let signed = Signed::new(keypair, &envelope, &body);
        let included = self.requester.include_signed(&signed, TIMEOUT).await?;
        let note = format!("{} go into escrow for run {run}", ombra(MAX_FEE));
        report(&body, &included, &note, out)?;
        Ok(run)
    }

    async fn claim(&self, run: Hash, out: Out<'_>) -> Outcome {
        let address = self.miner.keypair.address();
        let body = Body::AgentClaim(AgentClaim {
            agent_run_id: run,
            miner_address: MinerAddress { address, text: address.to_string() },
            model_info: MODEL.to_owned(),
            hardware_tier: "laptop".to_owned(),
        });
        let included = self.miner.include(&body, TIMEOUT).await?;
        report(&body, &included, "the miner takes the run", out)
    }

    /// One step for each tool that the question needs, and one for the answer.
    async fn work(&self, run: Hash, question: &str, out: Out<'_>) -> Result<String, CliError> {
        let asker = self.requester.keypair.address();
        let (tools, preface) = match tools::asked_for(question) {
            tools if tools.is_empty() => (Tool::ALL.to_vec(), Some(NO_TOOL)),
            tools => (tools, None),
        };
        let mut facts: Vec<String> = preface.into_iter().map(str::to_owned).collect();
        for (index, tool) in (0_u64..).zip(tools.iter().copied()) {
            let call = tool.call(&self.miner.client, asker).await?;
            let output = format!("{}({}) = {}", tool.name(), call.arguments, call.result);
            self.step(run, index, &output, Some(&call), out).await?;
            facts.push(call.sentence);
        }
        let answer = facts.join(" ");
        let last = u64::try_from(tools.len()).unwrap_or(MAX_STEPS);
        self.step(run, last, &answer, None, out).await?;
        Ok(answer)
    }

    async fn step(
        &self,
        run: Hash,
        step_index: u64,
        output: &str,
        call: Option<&Call>,
        out: Out<'_>,
    ) -> Outcome {
        let output_tokens = words(output);
        let body = Body::AgentStep(AgentStep {
            agent_run_id: run,
            step_index,
            output_tokens,
            output_hash: ids::compute_content_hash(output),
            thought_blob_id: None,
            tool_calls: call.map(|call| vec![record(call)]),
            output_blob_id: None,
        });
        let included = self.miner.include(&body, TIMEOUT).await?;
        let what = call.map_or_else(
            || "composes the answer".to_owned(),
            |call| {
                let name = call.tool.name();
                format!("calls {name}({}), ok in {} ms", call.arguments, call.duration_ms)
            },
        );
        report(
            &body,
            &included,
            &format!("step {step_index}, {output_tokens} tokens: {what}"),
            out,
        )?;
        writeln!(out, "    output: {}", one_line(output, QUOTED_CHARS_MAX))?;
        Ok(())
    }

    async fn finish(&self, run: Hash, answer: &str, out: Out<'_>) -> Result<Settlement, CliError> {
        let settlement = self.miner.client.settlement(&run).await?.into_value();
        let body = Body::AgentFinish(AgentFinish {
            agent_run_id: run,
            total_tokens_out: settlement.total_tokens_out,
            status: "completed".into(),
            miner_reward: settlement.miner_reward,
            user_refund: settlement.user_refund,
            network_fee: settlement.network_fee,
            final_answer_inline: Some(answer.to_owned()),
            final_answer_blob_id: None,
        });
        let included = self.miner.include(&body, TIMEOUT).await?;
        report(&body, &included, "the run is settled", out)?;
        writeln!(out, "    answer: {answer}")?;
        Ok(settlement)
    }
}

async fn balance(party: &Sender) -> Result<Amount, CliError> {
    Ok(party.client.account(&party.keypair.address()).await?.balance)
}

/// What goes on the chain about a tool call.
fn record(call: &Call) -> ToolCall {
    ToolCall {
        name: call.tool.name().to_owned(),
        args_hash: Hash::digest(call.arguments.as_bytes()),
        result_hash: Hash::digest(call.result.as_bytes()),
        duration_ms: call.duration_ms,
        ok: true,
    }
}

/// The stated rule of counting: white-space separated words.
fn words(output: &str) -> u64 {
    u64::try_from(output.split_whitespace().count()).unwrap_or(u64::MAX)
}

fn report(body: &Body, included: &Included, note: &str, out: Out<'_>) -> Outcome {
    writeln!(out, "{:<13} {note}", body.type_name())?;
    writeln!(out, "    tx {} in block {}", included.hash, block_of(included))?;
    out.flush()?;
    Ok(())
}

fn print_balances(
    scene: &Scene,
    before: [Amount; 2],
    after: [Amount; 2],
    settlement: &Settlement,
    out: Out<'_>,
) -> Outcome {
    let Settlement { total_tokens_out, step_count, miner_reward, user_refund, network_fee } =
        *settlement;
    writeln!(out, "\nsettlement    escrow {}", ombra(MAX_FEE))?;
    writeln!(out, "    to the miner      {} for {total_tokens_out} tokens", ombra(miner_reward))?;
    writeln!(out, "    burned            {} for {step_count} steps", ombra(network_fee))?;
    writeln!(out, "    to the requester  {} back", ombra(user_refund))?;
    writeln!(out, "balances")?;
    let parties = [("requester", &scene.requester), ("miner", &scene.miner)];
    for ((name, party), (before, after)) in parties.into_iter().zip(before.into_iter().zip(after)) {
        let address: Address = party.keypair.address();
        let change = change(before, after);
        writeln!(
            out,
            "    {name:<9} {address}  {} -> {} ({change})",
            before.ombra(),
            after.ombra()
        )?;
    }
    Ok(())
}

/// `+0.000051 OMBRA`.
fn change(before: Amount, after: Amount) -> String {
    match (after.checked_sub(before), before.checked_sub(after)) {
        (Some(gain), _) => format!("+{}", ombra(gain)),
        (None, loss) => format!("-{}", ombra(loss.unwrap_or_default())),
    }
}
