//! The transactions of a load, signed in advance.

use anyhow::Context;
use types::build::{self, Envelope};
use types::tx::{
    AgentClaim, AgentFinish, AgentRequest, AgentStep, MinerRegister, ToolCall, Transfer,
};
use types::{Amount, Hash, Keypair, ids};
use wallet::Phrase;
use wallet::accounts::{DEVELOPMENT_MNEMONIC, first_accounts};

const STEPS: u64 = 8;
const TOKENS_PER_STEP: u64 = 500;
const MAX_FEE: u64 = 100_000;
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
        let keys = keys(accounts)?;
        let mut by_sender = Vec::with_capacity(keys.len());
        for (index, key) in keys.iter().enumerate() {
            let count = txs / accounts + usize::from(index < txs % accounts);
            let next = keys.get((index + 1) % keys.len()).unwrap_or(key).address();
            let transfer = Transfer::new(next, Amount::new(1), Amount::new(1));
            let texts = (0..u64::try_from(count)?)
                .map(|nonce| build::build_tx(key, &transfer.clone().into(), &envelope(nonce)))
                .collect();
            by_sender.push(texts);
        }
        let nonces = final_nonces(&keys, &by_sender)?;
        Ok(Self { waves: vec![Wave { by_sender, nonces }], runs: 0 })
    }

    /// `runs` whole runs: the first half of the accounts asks, the second half mines.
    pub fn runs(runs: usize, accounts: usize) -> anyhow::Result<Self> {
        let keys = keys(accounts.max(2))?;
        let (submitters, miners) = keys.split_at(keys.len() / 2);
        let mut requests = vec![Vec::new(); submitters.len()];
        let mut work = vec![Vec::new(); miners.len()];
        for index in 0..runs {
            let (asks, mines) = (index % submitters.len(), index % miners.len());
            let (Some(submitter), Some(miner)) = (submitters.get(asks), miners.get(mines)) else {
                anyhow::bail!("too few accounts");
            };
            if let Some(texts) = requests.get_mut(asks) {
                let (text, run) = request(submitter, u64::try_from(texts.len())?, index);
                texts.push(text);
                if let Some(texts) = work.get_mut(mines) {
                    let nonce = u64::try_from(texts.len())?;
                    texts.extend(mine(miner, nonce, run));
                }
            }
        }
        let waves = vec![
            Wave { nonces: final_nonces(submitters, &requests)?, by_sender: requests },
            Wave { nonces: final_nonces(miners, &work)?, by_sender: work },
        ];
        Ok(Self { waves, runs })
    }

    /// The same in a crowd: more accounts enter the miner directory first, and those who ask give
    /// something to others after their requests.
    pub fn runs_in_a_crowd(runs: usize, accounts: usize, crowd: Crowd) -> anyhow::Result<Self> {
        let mut work = Self::runs(runs, accounts)?;
        let keys = keys(accounts.max(2))?;
        let (givers, _) = keys.split_at(keys.len() / 2);
        let asking = work.waves.first_mut().context("a wave of requests")?;
        for index in 0..crowd.holders {
            let giver = index % givers.len();
            let (Some(key), Some(texts)) = (givers.get(giver), asking.by_sender.get_mut(giver))
            else {
                anyhow::bail!("too few accounts");
            };
            let to = newcomer("holder", index).address();
            let amount = Amount::new(u64::try_from(1 + index % 1_000)?);
            let transfer = Transfer::new(to, amount, Amount::new(1));
            let envelope = envelope(u64::try_from(texts.len())?);
            texts.push(build::build_tx(key, &transfer.into(), &envelope));
        }
        asking.nonces = final_nonces(givers, &asking.by_sender)?;
        let miners: Vec<_> = (0..crowd.miners).map(|index| newcomer("miner", index)).collect();
        let entries: Vec<_> = miners.iter().enumerate().map(registration).collect();
        let nonces = final_nonces(&miners, &entries)?;
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

fn newcomer(kind: &str, index: usize) -> Keypair {
    Keypair::from_seed(Hash::digest(format!("{kind} {index}").as_bytes()).as_bytes())
}

fn registration((index, key): (usize, &Keypair)) -> Vec<String> {
    let fields = MinerRegister {
        name: format!("miner {index}"),
        capabilities: vec!["chain_get_balance".to_owned(), "now".to_owned()],
        model_info: "llama-server:Qwen2.5-7B-Q4_K_M".to_owned(),
    };
    vec![build::build_tx(key, &fields.into(), &envelope(0))]
}

pub fn keys(accounts: usize) -> anyhow::Result<Vec<Keypair>> {
    let phrase = Phrase::parse(DEVELOPMENT_MNEMONIC)?;
    Ok(first_accounts(&phrase, u32::try_from(accounts)?)?)
}

#[must_use]
pub const fn envelope(nonce: u64) -> Envelope {
    Envelope::new(nonce, TIMESTAMP, None)
}

fn final_nonces(keys: &[Keypair], texts: &[Vec<String>]) -> anyhow::Result<Vec<(String, u64)>> {
    keys.iter()
        .zip(texts)
        .filter(|(_, texts)| !texts.is_empty())
        .map(|(key, texts)| Ok((key.address().to_string(), u64::try_from(texts.len())?)))
        .collect()
}

#[must_use]
pub fn request(key: &Keypair, nonce: u64, index: usize) -> (String, Hash) {
    let prompt = format!(
        "What is the balance of account {index}, and what has changed since the last block?"
    );
    let run = ids::compute_agent_run_id(&key.address().to_string(), nonce, &prompt);
    let fields = AgentRequest {
        agent_run_id: run,
        conversation_id: Hash::digest(prompt.as_bytes()),
        prompt,
        tools_whitelist: vec!["chain_get_balance".to_owned(), "now".to_owned()],
        max_fee: Amount::new(MAX_FEE),
        max_steps: 50,
        prompt_blob_id: None,
        model_hint: None,
        protection: types::Late::default(),
        agent: types::Late::default(),
    };
    (build::build_tx(key, &fields.into(), &envelope(nonce)), run)
}

/// Claim, eight steps, finish.
#[must_use]
pub fn mine(key: &Keypair, nonce: u64, run: Hash) -> Vec<String> {
    let claim = AgentClaim {
        agent_run_id: run,
        miner_address: key.address().into(),
        model_info: "llama-server:Qwen2.5-7B-Q4_K_M".to_owned(),
        hardware_tier: "desktop".to_owned(),
    };
    let mut texts = vec![build::build_tx(key, &claim.into(), &envelope(nonce))];
    for step_index in 0..STEPS {
        let output = Hash::digest(format!("{run}{step_index}").as_bytes());
        let call = ToolCall {
            name: "chain_get_balance".to_owned(),
            args_hash: output,
            result_hash: run,
            duration_ms: 87,
            ok: true,
        };
        let step = AgentStep {
            agent_run_id: run,
            step_index,
            output_tokens: TOKENS_PER_STEP,
            output_hash: output,
            thought_blob_id: None,
            tool_calls: Some(vec![call]),
            output_blob_id: None,
        };
        texts.push(build::build_tx(key, &step.into(), &envelope(nonce + 1 + step_index)));
    }
    let tokens = STEPS * TOKENS_PER_STEP;
    let fee = STEPS * 100;
    let finish = AgentFinish {
        agent_run_id: run,
        total_tokens_out: tokens,
        status: "completed".to_owned(),
        miner_reward: Amount::new(tokens),
        user_refund: Amount::new(MAX_FEE - tokens - fee),
        network_fee: Amount::new(fee),
        final_answer_inline: Some("The balance is 12.34 OMBRA; nothing changed.".to_owned()),
        final_answer_blob_id: None,
    };
    texts.push(build::build_tx(key, &finish.into(), &envelope(nonce + 1 + STEPS)));
    texts
}
