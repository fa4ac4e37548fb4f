//! What consensus asks of the ledger: proposing, judging, committing, and the archive.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use consensus::{
    Archive, Candidate, Decided, Equivocation, Ledger, LedgerFault, Origin, Proposed, SignedChoice,
    SignedKind, Tip, Undecided, Verdict,
};
use state::block::{self, BlockBuilder, BlockError, Executed};
use tokio::sync::Notify;
use txpool::{Committed, Pool, Touched};
use types::block::BlockTx;
use types::{Address, Block, CheckedTx, Hash, Header, Keypair, SizeLimits, UncheckedBlock};

use crate::adapters::events::EventBus;
use crate::chain::NodeChain;
use crate::clock::now_ms;
use crate::metrics::BlockMetrics;
use crate::pace::Wake;
use crate::sync::TrustedBlock;
use crate::validator_sets::NextValidators;

mod compact_block;
mod fill;
mod time;

use compact_block::Draft;
pub(crate) use time::MachineClock;

/// The ledger over store and pool.
pub(crate) struct ChainLedger {
    pub(crate) chain: Arc<NodeChain>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) verifier: txpool::verifier::Verifier,
    pub(crate) bus: Arc<EventBus>,
    pub(crate) wake: Arc<Wake>,
    /// Told when evidence against a validator was kept.
    pub(crate) contradictions: Arc<Notify>,
    pub(crate) metrics: BlockMetrics,
    /// The key that this node proposes with; a follower has none. It makes the randomness of blocks.
    /// The guard has no part in that: there is one randomness for each height and past.
    pub(crate) proposer: Option<Keypair>,
    /// How long transactions are put into a proposal; the rest waits in the pool. Others have to
    /// execute them again before they can vote. From v7 on genesis may allow less.
    pub(crate) build_time_max: Duration,
    /// A block that no other may stand in the place of.
    pub(crate) trusted: Option<TrustedBlock>,
}

/// A height that is not the next one.
#[derive(Debug, thiserror::Error)]
enum OutOfTurn {
    #[error("asked for block {asked} when block {next} is next")]
    Height { asked: u64, next: u64 },
    #[error("asked to propose without a validator key")]
    NotValidator,
    #[error("block {height} {hash} is not among the undecided ones")]
    Unknown { height: u64, hash: Hash },
    #[error("block {height} {hash} was kept as valid but does not execute: {reason}")]
    Broken { height: u64, hash: Hash, reason: String },
}

impl ChainLedger {
    fn build(&self, proposer: &Keypair) -> Result<Executed, LedgerFault> {
        let store = self.chain.store();
        let parent = store.parent().map_err(LedgerFault::new)?;
        let rules =
            time::rules(&self.chain, parent.height.saturating_add(1)).map_err(LedgerFault::new)?;
        time::wait_for_parent(&parent, &rules);
        let started = Instant::now();
        let chain = Arc::clone(&self.chain.spec().rules);
        let base = store.latest();
        let mut builder =
            BlockBuilder::new(chain, base, parent, proposer, now_ms()).map_err(LedgerFault::new)?;
        let end = started + time::build_time(self.build_time_max, &rules);
        fill::fill(&self.pool, &mut builder, end)?;
        let executed = builder.finish().map_err(LedgerFault::new)?;
        self.metrics.build.observe(started.elapsed().as_secs_f64());
        Ok(executed)
    }

    /// Keeps an executed proposal: on the disk, then in memory.
    fn keep(&self, proposal: &store::Undecided, executed: Executed) -> Result<(), LedgerFault> {
        let height = executed.block.header.index;
        self.chain.store().put_undecided(height, proposal).map_err(LedgerFault::new)?;
        self.chain.keep_open(proposal.hash, Arc::new(executed));
        Ok(())
    }

    /// How large blocks may be.
    fn limits(&self) -> SizeLimits {
        SizeLimits::from(self.chain.spec().params())
    }

    /// Executes a block of another validator, or one that was kept before a restart.
    fn execute(
        &self,
        header: Header,
        transactions: Vec<BlockTx>,
    ) -> Result<Result<Executed, String>, LedgerFault> {
        let transactions = match self.check(transactions, header.index) {
            Ok(transactions) => transactions,
            Err(reason) => return Ok(Err(reason)),
        };
        let started = Instant::now();
        let store = self.chain.store();
        let executed = block::execute_block(
            &self.chain.spec().rules,
            store.latest(),
            &store.parent().map_err(LedgerFault::new)?,
            Block { header, transactions },
        );
        self.metrics.execute.observe(started.elapsed().as_secs_f64());
        match executed {
            Ok(executed) => Ok(Ok(executed)),
            Err(BlockError::Storage(fault)) => Err(LedgerFault::new(fault)),
            Err(invalid) => Ok(Err(invalid.to_string())),
        }
    }

    /// The static checks; what the pool has already is not checked again.
    fn check(&self, txs: Vec<BlockTx>, height: u64) -> Result<Vec<CheckedTx>, String> {
        let unchecked = txs.iter().filter_map(BlockTx::unchecked);
        let mut pooled = self.pool.recognise(unchecked).into_iter();
        let mut strange = Vec::new();
        let mut known = Vec::with_capacity(txs.len());
        for tx in txs {
            known.push(match tx {
                BlockTx::Checked(tx) => Some(tx),
                BlockTx::Unchecked(tx) => {
                    let pooled = pooled.next().flatten();
                    if pooled.is_none() {
                        strange.push(*tx);
                    }
                    pooled
                }
            });
        }
        let mut checked = self.verifier.verify(strange, height).into_iter();
        let checked = known.into_iter().map(|known| match known {
            Some(tx) => Ok(tx),
            None => checked
                .next()
                .ok_or("a transaction was not checked")?
                .map_err(|rejection| rejection.to_string()),
        });
        checked.collect()
    }
}

impl Ledger for ChainLedger {
    fn tip(&self) -> Result<Tip, LedgerFault> {
        let tip = self.chain.tip();
        let NextValidators { next, after } = self.chain.validators();
        Ok(Tip { height: tip.height, hash: tip.hash, validators: next, next_validators: after })
    }

    fn propose(&self, height: u64, round: u32) -> Result<Proposed, LedgerFault> {
        let next = self.chain.tip().height.saturating_add(1);
        if height != next {
            return Err(LedgerFault::new(OutOfTurn::Height { asked: height, next }));
        }
        self.chain.store().require_known_fork().map_err(LedgerFault::new)?;
        let key = self.proposer.as_ref();
        let key = key.ok_or_else(|| LedgerFault::new(OutOfTurn::NotValidator))?;
        let proposer = key.address();
        let kept = self.chain.store().undecided(height).map_err(LedgerFault::new)?;
        if let Some(own) =
            kept.into_iter().find(|kept| kept.round == round && kept.proposer == proposer)
        {
            let hash = own.hash;
            let bytes = self.body(height, &hash)?;
            let bytes =
                bytes.ok_or_else(|| LedgerFault::new(OutOfTurn::Unknown { height, hash }))?;
            return Ok(Proposed { hash, bytes });
        }
        let executed = self.build(key)?;
        let (hash, bytes) = (executed.block.hash(), executed.block.encode());
        let kept = store::Undecided { round, proposer, hash, seal: None, bytes };
        self.keep(&kept, executed)?;
        Ok(Proposed { hash, bytes: Bytes::from(kept.bytes) })
    }

    fn validate(&self, candidate: Candidate) -> Result<Verdict, LedgerFault> {
        self.chain.store().require_known_fork().map_err(LedgerFault::new)?;
        let Candidate { height, round, proposer, seal, content, origin } = candidate;
        let Draft { header, transactions, bytes } =
            match compact_block::read(&self.pool, content, &self.limits()) {
                Ok(draft) => draft,
                Err(verdict) => return Ok(verdict),
            };
        let hash = header.hash();
        let invalid = |reason: String| Ok(Verdict::Invalid { hash, reason });
        // A synced block may have been built for an earlier round than it was decided in.
        let other_proposer = origin != Origin::Synced && header.proposer != proposer;
        if header.index != height || other_proposer {
            return invalid(format!("it is block {} of {}", header.index, header.proposer));
        }
        if let Origin::Live(seen) = origin
            && let Some(verdict) = time::untimely(&self.chain, &header, round, seen)?
        {
            return Ok(verdict);
        }
        if self.chain.open_block(&hash).is_none() {
            let executed = match self.execute(header, transactions)? {
                Ok(executed) => executed,
                Err(reason) => return invalid(reason),
            };
            let kept = store::Undecided { round, proposer, hash, seal, bytes: bytes.to_vec() };
            self.keep(&kept, executed)?;
        }
        Ok(Verdict::Valid(hash))
    }

    fn commit(&self, height: u64, hash: Hash, certificate: Bytes) -> Result<(), LedgerFault> {
        if self.chain.tip().height >= height {
            return Ok(());
        }
        if let Some(trusted) = &self.trusted {
            trusted.check(height, &hash).map_err(LedgerFault::new)?;
        }
        let executed = match self.chain.open_block(&hash) {
            Some(executed) => executed,
            None => Arc::new(self.execute_kept(height, hash)?),
        };
        let started = Instant::now();
        self.chain.commit(hash, &executed, &certificate).map_err(LedgerFault::new)?;
        self.metrics.commit.observe(started.elapsed().as_secs_f64());
        self.update_pool(&executed)?;
        let count = executed.block.header.tx_count;
        self.metrics.transactions.inc_by(count);
        self.metrics.size.observe(f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
        self.metrics.count_fees(&executed.events);
        self.metrics.count_calls(&executed.events);
        self.metrics.height.set(i64::try_from(height).unwrap_or(i64::MAX));
        self.bus.block_committed(height);
        self.wake.block_may_be_due();
        Ok(())
    }

    fn decided(&self, height: u64) -> Result<Option<Decided>, LedgerFault> {
        let snapshot = self.chain.store().snapshot();
        if height < snapshot.earliest() {
            return Ok(None);
        }
        let Some(bytes) = snapshot.block_bytes(height).map_err(LedgerFault::new)? else {
            return Ok(None);
        };
        let certificate = snapshot.certificate(height).map_err(LedgerFault::new)?;
        Ok(certificate.map(|certificate| Decided {
            bytes: Bytes::from(bytes),
            certificate: Bytes::from(certificate),
        }))
    }
}

impl ChainLedger {
    /// Tells the pool what a block did.
    fn update_pool(&self, executed: &Executed) -> Result<(), LedgerFault> {
        let started = Instant::now();
        let Executed { block, events, .. } = executed;
        let touched = Touched::by(events);
        let included = Committed { included: &block.transactions, touched: &touched };
        self.pool.committed(&included, now_ms()).map_err(LedgerFault::new)?;
        self.metrics.pool.observe(started.elapsed().as_secs_f64());
        Ok(())
    }

    /// Executes a block that was kept before this process started.
    fn execute_kept(&self, height: u64, hash: Hash) -> Result<Executed, LedgerFault> {
        let kept = self.chain.store().undecided_by_hash(height, &hash).map_err(LedgerFault::new)?;
        let kept = kept.ok_or_else(|| LedgerFault::new(OutOfTurn::Unknown { height, hash }))?;
        let broken = |reason| LedgerFault::new(OutOfTurn::Broken { height, hash, reason });
        let UncheckedBlock { header, transactions } =
            compact_block::decode(&kept.bytes, &self.limits()).map_err(broken)?;
        let transactions = transactions.into_iter().map(Box::new).map(BlockTx::Unchecked).collect();
        self.execute(header, transactions)?.map_err(broken)
    }
}

impl Archive for ChainLedger {
    fn compact_block(&self, hash: &Hash) -> Result<Option<Bytes>, LedgerFault> {
        let executed = self.chain.open_block(hash);
        Ok(executed.and_then(|executed| compact_block::make(&self.pool, &executed.block)))
    }

    fn undecided(&self, height: u64) -> Result<Vec<Undecided>, LedgerFault> {
        let kept = self.chain.store().undecided(height).map_err(LedgerFault::new)?;
        Ok(kept
            .into_iter()
            .map(|store::UndecidedHead { round, proposer, hash, seal }| Undecided {
                round,
                proposer,
                seal,
                hash,
            })
            .collect())
    }

    fn body(&self, height: u64, hash: &Hash) -> Result<Option<Bytes>, LedgerFault> {
        let kept = self.chain.store().undecided_by_hash(height, hash).map_err(LedgerFault::new)?;
        Ok(kept.map(|kept| Bytes::from(kept.bytes)))
    }

    fn earliest(&self) -> Result<u64, LedgerFault> {
        Ok(self.chain.store().earliest())
    }

    fn keep_evidence(&self, pairs: &[Equivocation]) -> Result<(), LedgerFault> {
        let pairs: Vec<_> = pairs.iter().map(stored).collect();
        self.chain.store().add_equivocations(&pairs).map_err(LedgerFault::new)?;
        self.contradictions.notify_one();
        Ok(())
    }
}

/// A pair of contradicting messages as the store keeps it.
fn stored(pair: &Equivocation) -> (Address, store::Equivocation) {
    let Equivocation { validator, height, round, kind, first, second } = *pair;
    let choice = |SignedChoice { block_hash, valid_round, signature }| store::SignedChoice {
        block_hash,
        valid_round,
        signature,
    };
    let kind = match kind {
        SignedKind::Proposal => store::Equivocation::PROPOSAL,
        SignedKind::Prevote => store::Equivocation::PREVOTE,
        SignedKind::Precommit => store::Equivocation::PRECOMMIT,
    };
    let (first, second) = (choice(first), choice(second));
    (validator, store::Equivocation { height, round, kind, first, second })
}
