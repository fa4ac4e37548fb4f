//! A chain on which everything happens, and its snapshots.

use std::num::NonZeroUsize;
use std::path::Path;

use state::tables::Runs;
use state::view::{Range, Read};
use state::{BlockBuilder, Changes, Draft, Executed, validators};
use store::snapshots::{
    ImportError, Intake, Offer, OfferError, Progress, Report, SnapshotStore, Verified, import,
};
use store::tools::Replay;
use store::{Options, Store};
use types::tx::{AgentFinish, ChatTurn, ValidatorVote};
use types::{Amount, Block, Body, CheckedTx, Hash, Run, SetMember, Settlement, codec};

use crate::fixture::{TIME, Wallet, begun, first_state, input, proposing};
use crate::peers;
use crate::tools::{self, Judge};
use crate::validators::chain_rules;

/// The certificate of a block: its hash, and the set that may decide it.
fn certificate(hash: &Hash, set: &[SetMember]) -> Vec<u8> {
    codec::encode(&(*hash, set.to_vec()))
}

/// Accepts [`certificate`] and nothing else.
static STRICT: Judge =
    Judge(|asked| asked.set.is_some_and(|set| asked.certificate == certificate(asked.hash, set)));

/// A chain that does what bytes say.
pub(super) struct Busy {
    pub(super) store: Store,
    pub(super) blocks: Vec<Block>,
    pub(super) first: Changes,
    wallets: Vec<Wallet>,
    runs: Vec<Hash>,
    blobs: Vec<String>,
    turns: Vec<Hash>,
}

const BLOB_BYTES: usize = 400_010;

impl Busy {
    pub(super) fn new(path: &Path) -> Self {
        let wallets: Vec<Wallet> = (0..6).map(Wallet::new).collect();
        let first = first_state(&chain_rules(), &wallets);
        let store = begun(path, &first);
        let (blocks, runs, blobs, turns) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { store, blocks, first, wallets, runs, blobs, turns }
    }

    pub(super) fn replay(&self) -> Replay<'_> {
        let (chain, threads) = (chain_rules(), NonZeroUsize::MIN);
        Replay { chain, certificates: &STRICT, threads, ..tools::replay(&self.first) }
    }

    /// A block of what the bytes name, as far as it is valid there.
    pub(super) fn block(&mut self, acts: &[u8]) {
        let jump = acts.iter().map(|act| match act % 16 {
            14 => 130_000,
            15 => 1_000_000,
            _ => 250,
        });
        let parent = self.store.parent().unwrap();
        let now = parent.timestamp + jump.max().unwrap_or(250);
        let (chain, base) = (chain_rules(), self.store.latest());
        let mut builder = BlockBuilder::new(chain, base, parent, &proposing(), now).unwrap();
        for act in acts {
            let who = usize::from(act / 16) % self.wallets.len();
            let Some(body) = self.body(*act, who, builder.state()) else { continue };
            let tx = self.wallets[who].tx(&body);
            if builder.push(&tx).is_ok() {
                self.remember(&tx, &body);
            } else {
                self.wallets[who].nonce -= 1;
            }
        }
        let executed = builder.finish().unwrap();
        commit(&self.store, &executed);
        self.blocks.push(executed.block);
    }

    fn remember(&mut self, tx: &CheckedTx, body: &Body) {
        if let Body::AgentRequest(request) = body {
            self.runs.push(request.agent_run_id);
        } else if let Body::BlobInit(blob) = body {
            self.blobs.push(blob.blob_id.clone());
        } else if let Body::ChatTurn(_) = body {
            self.turns.push(tx.hash());
        }
    }

    fn body(&mut self, act: u8, who: usize, draft: &Draft) -> Option<Body> {
        let pick = usize::from(act / 16);
        let run = self.runs.iter().rev().nth(pick % 3).copied();
        let blob_id = self.blobs.iter().rev().nth(pick % 2).cloned();
        let (conversation_id, bytes) = (Hash::digest(&[act % 3]), vec![7; BLOB_BYTES]);
        let wallet = &mut self.wallets[who];
        Some(match act % 16 {
            0 | 1 => {
                let prompt = format!("prompt {}", self.runs.len());
                let (tx, _) = wallet.request(conversation_id, &prompt);
                unsent(wallet, &tx)
            }
            2 | 3 => {
                let tx = wallet.claim(run?);
                unsent(wallet, &tx)
            }
            4 | 5 => {
                let index = draft.get::<Runs>(&run?).unwrap()?.step_count;
                let tx = wallet.step(run?, index);
                unsent(wallet, &tx)
            }
            6 => finish(&draft.get::<Runs>(&run?).unwrap()?, pick)?,
            7 => fixtures::cancel(run?),
            8 => {
                let tx = wallet.register("a miner");
                unsent(wallet, &tx)
            }
            9 => Body::ChatTurn(ChatTurn {
                parent_turn_hash: self.turns.last().copied(),
                conversation_id: Hash::ZERO,
                ..fixtures::turn("a turn")
            }),
            10 => fixtures::blob_init(&format!("blob-{}", self.blobs.len()), &bytes).into(),
            11 => {
                let chunk_index = u64::from(act / 16 / 6) % 2;
                let bytes = if chunk_index == 0 { &bytes[..400_000] } else { &bytes[400_000..] };
                fixtures::blob_chunk(&blob_id?, chunk_index, bytes)
            }
            12 => fixtures::blob_finalize(&blob_id?),
            13 => {
                let candidate_key = self.wallets[1 + pick % 4].key.public_key();
                let (power, expires_at) = (u64::from(act / 64) * 10, TIME + 1_000_000_000);
                Body::ValidatorVote(ValidatorVote::new(candidate_key, power, expires_at))
            }
            _ => return None,
        })
    }

    /// The state of this moment as a peer would offer it: made, and the chain one block further.
    pub(super) fn offered(&mut self, snapshot_store: &Path) -> (SnapshotStore, Offer) {
        let store = self.store.clone();
        peers::offered(&store, snapshot_store, || self.block(&[0]))
    }

    pub(super) fn verified(&self, offer: &Offer) -> Result<Verified, OfferError> {
        offer.clone().verify(&self.replay())
    }

    /// An offer that is verified, and the place in a folder for its pieces.
    pub(super) fn intake(&self, offer: &Offer, dir: &Path) -> (Verified, Intake) {
        let verified = self.verified(offer).unwrap();
        let intake = Intake::open(&dir.join("intake"), &verified.offer.manifest).unwrap();
        (verified, intake)
    }

    /// Makes a database in a folder out of the pieces of an offer.
    pub(super) fn import(
        &self,
        (verified, intake): &(Verified, Intake),
        dir: &Path,
        progress: Progress<'_>,
    ) -> Result<Report, ImportError> {
        let to = dir.join("new");
        import(intake, verified, &self.replay(), (&to, Options::default()), progress)
    }
}

/// The body of a transaction that a wallet has made and does not send.
fn unsent(wallet: &mut Wallet, tx: &CheckedTx) -> Body {
    wallet.nonce -= 1;
    tx.body().clone()
}

/// AGENT_FINISH of a run, with the amounts that are right.
fn finish(run: &Run, pick: usize) -> Option<Body> {
    let totals = state::settlement(run).ok()?;
    let status = ["completed", "failed", "timeout", "cancelled"][pick % 4].into();
    let Settlement { miner_reward, user_refund, network_fee } = totals.settlement;
    let parts = [miner_reward, user_refund, network_fee].map(Amount::get);
    Some(Body::AgentFinish(AgentFinish {
        status,
        final_answer_inline: Some("so".into()),
        ..fixtures::finish(run.agent_run_id, totals.total_tokens_out, parts)
    }))
}

/// Commits a block with the certificate of its set.
pub(super) fn commit(store: &Store, executed: &Executed) {
    let set = validators::sets(&*store.latest()).unwrap().unwrap().current;
    let certificate = certificate(&executed.block.header.hash(), &set);
    store.commit_block(&input(executed), &certificate).unwrap();
}

/// Executes and commits blocks of another node.
pub(super) fn follow(store: &Store, blocks: &[Block]) {
    for block in blocks {
        let parent = store.parent().unwrap();
        let executed =
            state::execute_block(&chain_rules(), store.latest(), &parent, block.clone()).unwrap();
        commit(store, &executed);
    }
}

/// All rows of a table.
pub(crate) fn rows(store: &Store, table: state::table::TableId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let range = Range { from: &[], to: None, limit: usize::MAX };
    store.snapshot().scan_raw(table, range).unwrap()
}
