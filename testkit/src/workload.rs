//! The transactions of a load, signed in advance.

use anyhow::Context;
use types::build::Envelope;
use types::tx::{
    AgentClaim, AgentFinish, AgentRequest, AgentStep, MinerRegister, ToolCall, Transfer,
};
use types::{Amount, Body, Hash, Keypair};
use wallet::Phrase;
use wallet::accounts::{DEVELOPMENT_MNEMONIC, development_account, first_accounts};

use crate::actor::{self, Actor};

const STEPS: u64 = 8;
const TOKENS_PER_STEP: u64 = 500;
const MAX_FEE: u64 = 100_000;
const MODEL: &str = "llama-server:Qwen2.5-7B-Q4_K_M";
/// The time that wallets write; the chain does not compare it with blocks.
const TIMESTAMP: u64 = 1_700_000_000_000;

/// Signed texts by sender, each list in nonce order.
#[derive(Debug)]
pub struct Wave {
    pub by_sender: Vec<Vec<String>>,
    /// Address and final nonce of each sender.
    pub nonces: Vec<(String, u64)>,
}

impl Wave {
    /// Deals the senders out to `lanes` connections; in a lane, senders take turns.
    #[must_use]
    pub fn into_lanes(self, lanes: usize) -> Vec<Vec<String>> {
        let mut dealt: Vec<Vec<std::vec::IntoIter<String>>> =
            (0..lanes).map(|_| Vec::new()).collect();
        for (index, texts) in self.by_sender.into_iter().enumerate() {
            if let Some(lane) = dealt.get_mut(index % lanes) {
                lane.push(texts.into_iter());
            }
        }
        dealt.into_iter().map(take_turns).filter(|lane| !lane.is_empty()).collect()
    }
}

/// One from each in turn until all are empty.
fn take_turns(mut senders: Vec<std::vec::IntoIter<String>>) -> Vec<String> {
    let mut lane = Vec::new();
    loop {
        let before = lane.len();
        for sender in &mut senders {
            lane.extend(sender.next());
        }
        if lane.len() == before {
            return lane;
        }
    }
}

/// What is sent, wave after wave, and how to see that all of it is in the chain.
#[derive(Debug)]
pub struct Workload {
    pub waves: Vec<Wave>,
    pub runs: usize,
}

impl Workload {
    #[must_use]
    pub fn total(&self) -> usize {
        self.waves.iter().flat_map(|wave| &wave.by_sender).map(Vec::len).sum()
    }

    /// Address and final nonce of every sender.
    #[must_use]
    pub fn nonces(&self) -> Vec<(String, u64)> {
        self.waves.iter().flat_map(|wave| wave.nonces.iter().cloned()).collect()
    }

    /// `txs` transfers, dealt out to the senders.
    pub fn transfers(txs: usize, accounts: usize) -> anyhow::Result<Self> {
        let mut senders = actors(accounts)?;
        let addresses: Vec<_> = senders.iter().map(Actor::address).collect();
        let others = addresses.iter().cycle().skip(1);
        let mut by_sender = Vec::with_capacity(senders.len());
        for (index, (sender, other)) in senders.iter_mut().zip(others).enumerate() {
            let count = txs / accounts + usize::from(index < txs % accounts);
            let transfer: Body = Transfer::new(*other, Amount::new(1), Amount::new(1)).into();
            by_sender.push((0..count).map(|_| sender.sign(&transfer)).collect());
        }
        let nonces = final_nonces(&senders);
        Ok(Self { waves: vec![Wave { by_sender, nonces }], runs: 0 })
    }

    /// `runs` whole runs: the first half of the accounts asks, the second half mines.
    pub fn runs(runs: usize, accounts: usize) -> anyhow::Result<Self> {
        let mut actors = actors(accounts.max(2))?;
        let half = actors.len() / 2;
        let (submitters, miners) = actors.split_at_mut(half);
        let mut requests = vec![Vec::new(); submitters.len()];
        let mut work = vec![Vec::new(); miners.len()];
        for index in 0..runs {
            let (asks, mines) = (index % submitters.len(), index % miners.len());
            let (text, run) = request(&mut submitters[asks], index);
            requests[asks].push(text);
            work[mines].extend(mine(&mut miners[mines], run));
        }
        let waves = vec![
            Wave { nonces: final_nonces(submitters), by_sender: requests },
            Wave { nonces: final_nonces(miners), by_sender: work },
        ];
        Ok(Self { waves, runs })
    }

    /// The same in a crowd: more accounts enter the miner directory first, and those who ask give
    /// something to others after their requests.
    pub fn runs_in_a_crowd(runs: usize, accounts: usize, crowd: Crowd) -> anyhow::Result<Self> {
        let mut work = Self::runs(runs, accounts)?;
        let mut givers = actors(accounts.max(2))?;
        givers.truncate(givers.len() / 2);
        let asking = work.waves.first_mut().context("a wave of requests")?;
        for (giver, texts) in givers.iter_mut().zip(&asking.by_sender) {
            giver.nonce = u64::try_from(texts.len())?;
        }
        for index in 0..crowd.holders {
            let giver = index % givers.len();
            let to = newcomer("holder", index).address();
            let amount = Amount::new(u64::try_from(1 + index % 1_000)?);
            let transfer = Transfer::new(to, amount, Amount::new(1));
            asking.by_sender[giver].push(givers[giver].sign(&transfer.into()));
        }
        asking.nonces = final_nonces(&givers);
        let mut miners: Vec<_> = (0..crowd.miners).map(|index| newcomer("miner", index)).collect();
        let entries = miners.iter_mut().enumerate().map(registration).collect();
        let nonces = final_nonces(&miners);
        work.waves.insert(0, Wave { by_sender: entries, nonces });
        Ok(work)
    }
}

/// Accounts beside those that send.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// In the miner directory.
    pub miners: usize,
    /// That hold something.
    pub holders: usize,
}

fn newcomer(kind: &str, index: usize) -> Actor {
    let seed = Hash::digest(format!("{kind} {index}").as_bytes());
    Actor::new(Keypair::from_seed(seed.as_bytes()))
}

fn registration((index, miner): (usize, &mut Actor)) -> Vec<String> {
    let fields = MinerRegister {
        name: format!("miner {index}"),
        capabilities: tools(),
        model_info: MODEL.to_owned(),
    };
    vec![miner.sign(&fields.into())]
}

/// The keys of the first development accounts.
pub fn keys(accounts: usize) -> anyhow::Result<Vec<Keypair>> {
    let phrase = Phrase::parse(DEVELOPMENT_MNEMONIC)?;
    Ok(first_accounts(&phrase, u32::try_from(accounts)?)?)
}

/// The key of one development account.
pub fn key(account: usize) -> anyhow::Result<Keypair> {
    Ok(development_account(u32::try_from(account)?)?)
}

fn actors(accounts: usize) -> anyhow::Result<Vec<Actor>> {
    Ok(keys(accounts)?.into_iter().map(Actor::new).collect())
}

#[must_use]
pub const fn envelope(nonce: u64) -> Envelope {
    Envelope::new(nonce, TIMESTAMP, None)
}

/// Address and nonce of those who have signed something.
fn final_nonces(actors: &[Actor]) -> Vec<(String, u64)> {
    let senders = actors.iter().filter(|actor| actor.nonce > 0);
    senders.map(|actor| (actor.address().to_string(), actor.nonce)).collect()
}

fn tools() -> Vec<String> {
    ["chain_get_balance", "now"].map(str::to_owned).to_vec()
}

fn request(submitter: &mut Actor, index: usize) -> (String, Hash) {
    let prompt = format!(
        "What is the balance of account {index}, and what has changed since the last block?"
    );
    let fields = AgentRequest {
        conversation_id: Hash::digest(prompt.as_bytes()),
        tools_whitelist: tools(),
        ..submitter.request(&prompt, MAX_FEE, 50)
    };
    let run = fields.agent_run_id;
    (submitter.sign(&fields.into()), run)
}

/// Claim, eight steps, finish.
fn mine(miner: &mut Actor, run: Hash) -> Vec<String> {
    let claim = AgentClaim { model_info: MODEL.to_owned(), ..miner.claim(run) };
    let mut texts = vec![miner.sign(&claim.into())];
    for step_index in 0..STEPS {
        let output_hash = Hash::digest(format!("{run}{step_index}").as_bytes());
        let call = ToolCall {
            args_hash: output_hash,
            result_hash: run,
            ..actor::tool_call("chain_get_balance")
        };
        let tool_calls = Some(vec![call]);
        let step = actor::plain_step(run, step_index, TOKENS_PER_STEP);
        texts.push(miner.sign(&AgentStep { output_hash, tool_calls, ..step }.into()));
    }
    let (tokens, fee) = (STEPS * TOKENS_PER_STEP, STEPS * 100);
    let finish = AgentFinish {
        final_answer_inline: Some("The balance is 12.34 OMBRA; nothing changed.".to_owned()),
        ..actor::finish(run, tokens, [tokens, MAX_FEE - tokens - fee, fee])
    };
    texts.push(miner.sign(&finish.into()));
    texts
}
