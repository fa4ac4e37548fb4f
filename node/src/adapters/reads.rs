//! What the interfaces read: blocks, transactions, accounts, runs, the directory, proofs.

mod agents;
mod calls;
mod census;
mod early;
mod market;
mod offers;
mod rules;

use std::collections::BTreeSet;
use std::sync::Arc;

use rpc::ports::{
    self, Census, Certificate, Equivocation, Escrows, IncludedTx, MinerEntry, PortFault, Proof,
    ProofTarget, RunFilter, ShownBlock, Slice, Tip, Validator, ValidatorVote,
};
use state::StorageError;
use state::table::{Key, Table};
use state::tables;
use state::validators::CastVote;
use store::{self, Snapshot};
use types::{
    Account, Address, Blob, Block, CommittedBlock, Hash, Header, OpenVote, Run, SealedBlock,
    SealedTx, Step, Supply, TxLocation,
};

use self::early::ended_early;
use self::market::Estimates;
use crate::chain::NodeChain;
use crate::validator_sets::set_of;

/// The reading side of the interfaces. Every call looks at one moment of the chain.
pub(crate) struct Reads {
    chain: Arc<NodeChain>,
    estimates: Estimates,
}

fn fault(doing: &'static str) -> impl FnOnce(StorageError) -> PortFault {
    move |error| {
        if let StorageError::History { earliest } = error {
            return PortFault::history(earliest);
        }
        PortFault::new(doing, error)
    }
}

/// A page of one more item than asked for, cut to the page and the mark to go on from.
fn page<T, P>(mut items: Vec<T>, limit: usize, mark: impl Fn(&T) -> P) -> Slice<T, P> {
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().map(mark).filter(|_| more);
    Slice { items, next }
}

impl Reads {
    pub(crate) fn new(chain: Arc<NodeChain>) -> Self {
        Self { chain, estimates: Estimates::default() }
    }

    fn snapshot(&self) -> Snapshot<'_> {
        self.chain.store().snapshot()
    }
}

impl ports::ChainQueries for Reads {
    fn tip(&self) -> Tip {
        let store::Tip { height, hash, timestamp, .. } = self.chain.tip();
        let store = self.chain.store();
        let (earliest, events_from) = (store.earliest(), store.events_from());
        Tip { height, hash, timestamp, earliest, events_from }
    }

    fn block(&self, height: u64) -> Result<Option<Arc<CommittedBlock>>, PortFault> {
        if let Some(recent) = self.chain.recent(height) {
            return Ok(Some(recent));
        }
        let snapshot = self.snapshot();
        let read = || -> Result<Option<Arc<CommittedBlock>>, StorageError> {
            let Some(block) = snapshot.block(height)? else { return Ok(None) };
            let (hash, events) = (block.hash(), snapshot.events(height)?);
            Ok(Some(Arc::new(CommittedBlock { block, hash, events })))
        };
        read().map_err(fault("reading a block"))
    }

    fn height_of(&self, hash: &Hash) -> Result<Option<u64>, PortFault> {
        self.snapshot().height_by_hash(hash).map_err(fault("reading a block's height"))
    }

    fn shown(&self, height: u64) -> Result<Option<ShownBlock>, PortFault> {
        let snapshot = self.snapshot();
        let block = match self.chain.recent(height) {
            Some(recent) => Some(sealed(&recent)),
            None => snapshot.sealed_block(height).map_err(fault("reading a block"))?,
        };
        let Some(block) = block else { return Ok(None) };
        let bytes = snapshot.certificate(height).map_err(fault("reading a certificate"))?;
        let certificate = bytes.map(|bytes| certificate(&bytes)).transpose()?;
        let fees = self.fees_of(&snapshot, height).map_err(fault("reading a block's fees"))?;
        Ok(Some(ShownBlock { block, certificate, fees }))
    }

    fn validators(&self, height: u64) -> Result<Option<Vec<Validator>>, PortFault> {
        let snapshot = self.snapshot();
        let read = || -> Result<Option<Vec<Validator>>, StorageError> {
            if height > snapshot.tip()?.height.saturating_add(2) {
                return Ok(None);
            }
            let set = match snapshot.validator_set(height)? {
                Some(stored) => set_of(&stored.members)?,
                None => self.chain.spec().validators.clone(),
            };
            let votes = snapshot.validator_votes()?;
            let members = set.validators().iter();
            let all = members.map(|member| validator(&snapshot, member, &votes));
            all.collect::<Result<_, _>>().map(Some)
        };
        read().map_err(fault("reading the validators"))
    }
}

/// A validator with how it has done and what it votes for.
fn validator(
    snapshot: &Snapshot<'_>,
    member: &consensus::Validator,
    votes: &[CastVote],
) -> Result<Validator, StorageError> {
    let consensus::Validator { address, public_key, power } = *member;
    let stats = snapshot.validator_stats(&address)?;
    let seen = snapshot.equivocations(&address)?;
    // They are in order of voters.
    let first = votes.partition_point(|((voter, _), _)| *voter < address);
    let own = votes.iter().skip(first).take_while(|((voter, _), _)| *voter == address);
    let votes = own.map(|((_, candidate_key), vote)| {
        let OpenVote { power, expires_at } = *vote;
        ValidatorVote { candidate_key: *candidate_key, power, expires_at }
    });
    Ok(Validator {
        address,
        public_key,
        power,
        proposed: stats.proposed,
        missed: stats.missed,
        votes: votes.collect(),
        equivocations: seen.count,
        evidence: seen.last.iter().map(equivocation).collect(),
    })
}

fn equivocation(pair: &store::Equivocation) -> Equivocation {
    let message = |choice: store::SignedChoice| {
        let store::SignedChoice { block_hash, valid_round, signature } = choice;
        (block_hash, valid_round, signature)
    };
    Equivocation {
        height: pair.height,
        round: pair.round,
        kind: pair.word(),
        messages: [message(pair.first), message(pair.second)],
    }
}

fn sealed(committed: &CommittedBlock) -> SealedBlock {
    let CommittedBlock { block: Block { header, transactions }, hash, .. } = committed;
    let transactions = transactions.iter().map(|tx| SealedTx::from(&**tx)).collect();
    SealedBlock { header: header.clone(), hash: *hash, transactions }
}

fn certificate(bytes: &[u8]) -> Result<Certificate, PortFault> {
    let decoded = consensus::Certificate::decode(bytes)
        .map_err(|error| PortFault::new("reading a certificate", error))?;
    let consensus::Certificate { height, round, block_hash, signatures } = decoded;
    let signatures = signatures.into_iter().map(|one| (one.address, one.signature)).collect();
    Ok(Certificate { height, round, block_hash, signatures })
}

impl ports::Transactions for Reads {
    fn by_hash(&self, hash: &Hash) -> Result<Option<IncludedTx>, PortFault> {
        let snapshot = self.snapshot();
        let read = || -> Result<Option<IncludedTx>, StorageError> {
            let Some(stored) = snapshot.transaction(hash)? else { return Ok(None) };
            let store::StoredTx { location, tx } = stored;
            included(&snapshot, vec![(location, tx)]).map(|mut txs| txs.pop())
        };
        read().map_err(fault("reading a transaction"))
    }

    fn at(&self, locations: &[TxLocation]) -> Result<Vec<IncludedTx>, PortFault> {
        let snapshot = self.snapshot();
        let read = || {
            let txs = snapshot.transactions(locations)?;
            included(&snapshot, locations.iter().copied().zip(txs).collect())
        };
        read().map_err(fault("reading transactions"))
    }

    fn headers(&self, from: u64, limit: usize) -> Result<Vec<(Hash, Header)>, PortFault> {
        let headers = self.snapshot().headers(Some(from), limit);
        let headers = headers.map_err(fault("reading headers"))?;
        Ok(headers.into_iter().map(|stored| (stored.hash, stored.header)).collect())
    }

    fn turns(
        &self,
        conversation_id: &Hash,
        after: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<TxLocation, TxLocation>, PortFault> {
        let places = self
            .snapshot()
            .conversation_places(conversation_id, after, limit.saturating_add(1))
            .map_err(fault("reading a conversation"))?;
        Ok(page(places, limit, |place| *place))
    }
}

/// Adds block hash and time; neighbours share the look-up of their header.
fn included(
    snapshot: &Snapshot<'_>,
    txs: Vec<(TxLocation, types::CheckedTx)>,
) -> Result<Vec<IncludedTx>, StorageError> {
    let mut last: Option<store::StoredHeader> = None;
    let mut answers = Vec::with_capacity(txs.len());
    for (location, tx) in txs {
        if last.as_ref().is_none_or(|stored| stored.header.index != location.height) {
            last = snapshot.header(location.height)?;
        }
        let missing = StorageError::Inconsistent { what: "the header of a transaction is missing" };
        let stored = last.as_ref().ok_or(missing)?;
        let (block_hash, timestamp) = (stored.hash, stored.header.timestamp);
        answers.push(IncludedTx { tx, location, block_hash, timestamp });
    }
    Ok(answers)
}

impl ports::Accounts for Reads {
    fn account(&self, address: &Address) -> Result<Account, PortFault> {
        self.snapshot().account(address).map_err(fault("reading an account"))
    }

    fn transactions(
        &self,
        address: &Address,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<TxLocation, TxLocation>, PortFault> {
        let snapshot = self.snapshot();
        let places = snapshot
            .account_places(address, before, limit.saturating_add(1))
            .map_err(fault("reading an account's transactions"))?;
        ended_early(page(places, limit, |place| *place), snapshot.earliest(), |place| *place)
    }

    fn supply(&self) -> Result<Supply, PortFault> {
        self.snapshot().supply().map_err(fault("reading the supply"))
    }

    fn census(&self, richest_max: usize) -> Result<Census, PortFault> {
        let next = self.chain.validators().next;
        let validators: BTreeSet<_> = next.validators().iter().map(|it| it.address).collect();
        census::count(&self.snapshot(), &validators, richest_max)
            .map_err(fault("counting the accounts"))
    }

    fn escrows(&self) -> Result<Escrows, PortFault> {
        census::escrows(&self.snapshot()).map_err(fault("adding up escrows"))
    }
}

impl ports::Runs for Reads {
    fn run(&self, agent_run_id: &Hash) -> Result<Option<Run>, PortFault> {
        self.snapshot().run(agent_run_id).map_err(fault("reading a run"))
    }

    fn steps(
        &self,
        agent_run_id: &Hash,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Slice<Step, u64>, PortFault> {
        let steps = self
            .snapshot()
            .step_records(agent_run_id, after, limit.saturating_add(1))
            .map_err(fault("reading steps"))?;
        Ok(page(steps, limit, |step: &Step| step.step_index))
    }

    fn list(
        &self,
        filter: &RunFilter,
        before: Option<TxLocation>,
        limit: usize,
    ) -> Result<Slice<Run, TxLocation>, PortFault> {
        let RunFilter { status, submitter, miner, conversation_id } = *filter;
        let filter = store::RunFilter { status, submitter, miner, conversation_id };
        let snapshot = self.snapshot();
        let page = snapshot.runs(&filter, before, limit);
        let store::RunPage { mut runs, mut next } = page.map_err(fault("listing runs"))?;
        let (all, earliest) = (runs.len(), snapshot.earliest());
        // The texts of a run that was requested before are not here.
        runs.retain(|run| run.request.height >= earliest);
        if runs.len() < all {
            next = None;
        }
        let slice = Slice { items: runs, next };
        if slice.items.len() == all {
            return Ok(slice);
        }
        ended_early(slice, earliest, |run| run.request)
    }
}

fn entry(detail: store::MinerDetail) -> MinerEntry {
    let store::MinerDetail { miner, figures } = detail;
    MinerEntry { miner, figures }
}

impl ports::Directory for Reads {
    fn miners(
        &self,
        after: Option<Address>,
        limit: usize,
    ) -> Result<Slice<MinerEntry, Address>, PortFault> {
        let miners = self
            .snapshot()
            .miners(after.as_ref(), limit.saturating_add(1))
            .map_err(fault("listing miners"))?;
        let entries = miners.into_iter().map(entry).collect();
        Ok(page(entries, limit, |entry: &MinerEntry| entry.miner.address))
    }

    fn miner(&self, address: &Address) -> Result<Option<MinerEntry>, PortFault> {
        let miner = self.snapshot().miner(address).map_err(fault("reading a miner"))?;
        Ok(miner.map(entry))
    }

    fn miner_by_id(&self, miner_id: &Hash) -> Result<Option<MinerEntry>, PortFault> {
        let miner = self.snapshot().miner_by_id(miner_id).map_err(fault("reading a miner"))?;
        Ok(miner.map(entry))
    }

    fn blob(&self, blob_id: &str) -> Result<Option<Blob>, PortFault> {
        self.snapshot().blob(blob_id).map_err(fault("reading a blob"))
    }

    fn blob_bytes(&self, blob_id: &str) -> Result<Option<Vec<u8>>, PortFault> {
        self.snapshot().blob_bytes(blob_id).map_err(fault("reading the bytes of a blob"))
    }
}

impl ports::Proofs for Reads {
    fn prove(&self, target: &ProofTarget) -> Result<Option<Proof>, PortFault> {
        let snapshot = self.snapshot();
        let proven = match target {
            ProofTarget::Account(address) => snapshot.prove::<tables::Accounts>(address),
            ProofTarget::AgentRun(id) => snapshot.prove::<tables::Runs>(id),
            ProofTarget::Validators => snapshot.prove::<tables::Validators>(&()),
            ProofTarget::Bond(address) => snapshot.prove::<tables::Bonds>(address),
            ProofTarget::Offer(miner, executor) => {
                snapshot.prove::<tables::Offers>(&(*miner, *executor))
            }
            ProofTarget::Agent(id) => snapshot.prove::<tables::Agents>(id),
            ProofTarget::Call(id) => snapshot.prove::<tables::Calls>(id),
        };
        let Some(proven) = proven.map_err(fault("making a proof"))? else { return Ok(None) };
        let height = proven.header_height;
        let header = snapshot.header(height).map_err(fault("reading a header"))?;
        let bytes = snapshot.certificate(height).map_err(fault("reading a certificate"))?;
        let (Some(header), Some(bytes)) = (header, bytes) else { return Ok(None) };
        let (table, row) = match target {
            ProofTarget::Account(address) => (tables::Accounts::ID, address.to_bytes()),
            ProofTarget::AgentRun(id) => (tables::Runs::ID, id.to_bytes()),
            ProofTarget::Validators => (tables::Validators::ID, ().to_bytes()),
            ProofTarget::Bond(address) => (tables::Bonds::ID, address.to_bytes()),
            ProofTarget::Offer(miner, executor) => {
                (tables::Offers::ID, (*miner, *executor).to_bytes())
            }
            ProofTarget::Agent(id) => (tables::Agents::ID, id.to_bytes()),
            ProofTarget::Call(id) => (tables::Calls::ID, id.to_bytes()),
        };
        let Some(key) = store::tree::key_hash(table, &row) else { return Ok(None) };
        Ok(Some(Proof {
            key,
            value: proven.value,
            leaf: proven.proof.leaf.map(|leaf| (leaf.key_hash, leaf.value_hash)),
            siblings: proven.proof.siblings,
            state_root: proven.root,
            header: header.header,
            certificate: certificate(&bytes)?,
        }))
    }
}
