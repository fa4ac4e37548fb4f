//! A chain on which everything happens, and its snapshots.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use state::tables::Runs;
use state::view::{Range, Read};
use state::{BlockBuilder, ChainRules, Changes, Draft, Executed, Forks, Memory, validators};
use store::snapshots::{Intake, Offer, OfferError, SnapshotStore, Verified};
use store::tools::{Certificates, Replay, V7Height};
use store::{CommitBlock, GenesisState, Options, Store};
use types::tx::{
    AgentCancel, AgentFinish, BlobChunk, BlobFinalize, BlobInit, ChatTurn, ValidatorVote,
};
use types::{Address, Block, Body, CheckedTx, Hash, Run, SetMember, codec};

use crate::fixture::{TIME, Wallet, genesis_changes, genesis_hash, proposing, rules};

/// The certificate of a block: its hash, and the set that may decide it.
fn certificate(hash: &Hash, set: &[SetMember]) -> Vec<u8> {
    codec::encode(&(*hash, set.to_vec()))
}

/// Accepts [`certificate`] and nothing else.
pub(super) struct Strict;

impl Certificates for Strict {
    fn verify(
        &self,
        _: V7Height,
        set: Option<&[SetMember]>,
        height: u64,
        hash: &Hash,
        bytes: &[u8],
    ) -> Result<Vec<Address>, String> {
        let is_right = bytes == certificate(hash, set.ok_or("no set")?);
        if is_right { Ok(Vec::new()) } else { Err(format!("not of block {height} and its set")) }
    }
}

/// The rules: VALIDATOR_VOTE from the first block on.
fn chain_rules() -> Arc<ChainRules> {
    let forks = Forks { validator_vote: Some(0), ..Forks::default() };
    Arc::new(ChainRules { forks, ..ChainRules::clone(&rules()) })
}

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
        let mut draft = Draft::new(Arc::new(Memory::default()));
        let validator = SetMember { public_key: wallets[0].key.public_key(), power: 10 };
        validators::put_first(&mut draft, [validator]);
        let mut first = genesis_changes(&wallets);
        first.extend(draft.into_changes());
        let store = Store::open(path, Options::default()).unwrap();
        let genesis = GenesisState { hash: genesis_hash(), timestamp: TIME, changes: &first };
        store.init(&genesis).unwrap();
        let (blocks, runs, blobs, turns) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { store, blocks, first, wallets, runs, blobs, turns }
    }

    pub(super) fn replay(&self) -> Replay<'_> {
        Replay {
            chain: chain_rules(),
            genesis_hash: genesis_hash(),
            genesis_time: TIME,
            genesis_changes: &self.first,
            certificates: &Strict,
            threads: NonZeroUsize::MIN,
        }
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
        Some(match act % 16 {
            0 | 1 => {
                let wallet = &mut self.wallets[who];
                let (tx, _) =
                    wallet.request(conversation_id, &format!("prompt {}", self.runs.len()));
                wallet.nonce -= 1;
                tx.body().clone()
            }
            2 | 3 => {
                let tx = self.wallets[who].claim(run?);
                self.wallets[who].nonce -= 1;
                tx.body().clone()
            }
            4 | 5 => {
                let index = draft.get::<Runs>(&run?).unwrap()?.step_count;
                let tx = self.wallets[who].step(run?, index);
                self.wallets[who].nonce -= 1;
                tx.body().clone()
            }
            6 => finish(&draft.get::<Runs>(&run?).unwrap()?, pick)?,
            7 => Body::AgentCancel(AgentCancel { agent_run_id: run? }),
            8 => {
                let tx = self.wallets[who].register("a miner");
                self.wallets[who].nonce -= 1;
                tx.body().clone()
            }
            9 => Body::ChatTurn(ChatTurn {
                conversation_id: Hash::ZERO,
                role: "user".into(),
                content: "a turn".into(),
                content_blob_id: None,
                parent_turn_hash: self.turns.last().copied(),
                agent_run_id: None,
                attachments: None,
            }),
            10 => Body::BlobInit(BlobInit {
                blob_id: format!("blob-{}", self.blobs.len()),
                content_type: "text/plain".into(),
                total_bytes: u64::try_from(BLOB_BYTES).unwrap(),
                total_chunks: 2,
                content_hash: Hash::digest(&bytes),
            }),
            11 => {
                let chunk_index = u64::from(act / 16 / 6) % 2;
                let chunk_data = if chunk_index == 0 { vec![7; 400_000] } else { vec![7; 10] };
                Body::BlobChunk(BlobChunk { blob_id: blob_id?, chunk_index, chunk_data })
            }
            12 => Body::BlobFinalize(BlobFinalize { blob_id: blob_id? }),
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
        let snapshot_store = SnapshotStore::open(snapshot_store, 2, &self.store).unwrap();
        snapshot_store.make(&self.store, |_| (), &mut |_| true).unwrap();
        assert_eq!(
            snapshot_store.settle(&self.store).unwrap(),
            None,
            "no header carries the root yet"
        );
        self.block(&[0]);
        snapshot_store.settle(&self.store).unwrap().expect("an offer");
        let head = snapshot_store.offers()[0];
        let bytes = fetch(&snapshot_store, &head.hash, head.bytes);
        assert_eq!(Hash::digest(&bytes), head.hash);
        (snapshot_store, Offer::decode(&bytes).unwrap())
    }

    pub(super) fn verified(&self, offer: &Offer) -> Result<Verified, OfferError> {
        offer.clone().verify(&self.replay())
    }
}

/// AGENT_FINISH of a run, with the amounts that are right.
fn finish(run: &Run, pick: usize) -> Option<Body> {
    let totals = state::settlement(run).ok()?;
    let status = ["completed", "failed", "timeout", "cancelled"][pick % 4].into();
    Some(Body::AgentFinish(AgentFinish {
        agent_run_id: run.agent_run_id,
        total_tokens_out: totals.total_tokens_out,
        status,
        miner_reward: totals.settlement.miner_reward,
        user_refund: totals.settlement.user_refund,
        network_fee: totals.settlement.network_fee,
        final_answer_inline: Some("so".into()),
        final_answer_blob_id: None,
    }))
}

/// Commits a block with the certificate of its set.
pub(super) fn commit(store: &Store, executed: &Executed) {
    let Executed { block, changes, events } = executed;
    let set = validators::sets(&*store.latest()).unwrap().unwrap().current;
    let input = CommitBlock { block, changes, events, missed: &[] };
    store.commit_block(&input, &certificate(&block.header.hash(), &set)).unwrap();
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

/// A whole piece, out of small answers.
pub(crate) fn fetch(snapshot_store: &SnapshotStore, hash: &Hash, bytes: u64) -> Vec<u8> {
    let mut whole = Vec::new();
    while u64::try_from(whole.len()).unwrap() < bytes {
        let offset = u64::try_from(whole.len()).unwrap();
        whole.extend(snapshot_store.piece(hash, offset, 100_000).unwrap().expect("a piece"));
    }
    whole
}

/// Fetches all that is missing.
pub(crate) fn fill(intake: &Intake, snapshot_store: &SnapshotStore) -> usize {
    let missing = intake.missing();
    for want in &missing {
        intake.keep(want, &fetch(snapshot_store, &want.hash, want.bytes)).unwrap();
    }
    missing.len()
}

/// All rows of a table.
pub(crate) fn rows(store: &Store, table: state::table::TableId) -> Vec<(Vec<u8>, Vec<u8>)> {
    let range = Range { from: &[], to: None, limit: usize::MAX };
    store.snapshot().scan_raw(table, range).unwrap()
}
