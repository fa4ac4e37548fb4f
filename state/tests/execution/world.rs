//! A chain with a few wallets, in memory or in a database. Tests say who does what; the world signs,
//! executes and, after every block, executes the block again and checks the invariants.

use std::collections::BTreeMap;
use std::sync::Arc;

use state::pieces::Pieces;
use state::table::Table;
use state::tables::{
    Accounts, BlobChunks, BlobPieces, Blobs, Bonds, CallMembers, Deadlines, Figures, Runs,
    SettledMembers,
};
use state::view::Range;
use state::{
    Base, BlockBuilder, ChainRules, Context, Draft, Executed, Forks, Memory, MemoryChain, Parent,
    PendingState, PushError, Read, Rules, TxError, execute, execute_block, invariants, validators,
    view,
};
use types::build::{Envelope, Unsigned};
use types::call::CallMember;
use types::check::{StaticRules, verify_unsigned};
use types::randomness::Input;
use types::tx::Protection;
use types::{
    Account, Address, Amount, Bid, Blob, Body, Bond, BondChange, CheckedTx, Credit, Event, Fork,
    Hash, Keypair, MinerFigures, Params, PublicKey, Rejection, Run, SetMember, Signature,
    SizeLimits, Supply, Transaction, ValidatorSets,
};

use crate::bodies::protected;
pub use crate::bodies::{
    DAY, bare_vote, blob_chunk, blob_finalize, blob_init, cancel, chat, claim, conversation,
    evidence, evidence_of, finish_body, request_body, signed_by, signed_in, step, transfer, turn,
    vote, vote_until,
};
use crate::database::Database;

/// What the wallets have at the beginning.
fn accounts() -> BTreeMap<Address, Amount> {
    let funded = [ALICE, BOB, MINER, OTHER_MINER, PROPOSER];
    funded.map(|who| (who.address(), Amount::new(FUNDS))).into()
}

/// A wallet of the world, by its place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Who(pub u8);

pub const ALICE: Who = Who(1);
pub const BOB: Who = Who(2);
pub const MINER: Who = Who(3);
pub const OTHER_MINER: Who = Who(4);
/// Makes every block, unless the rules of v7 hold and it is no validator, and is funded like the others.
pub const PROPOSER: Who = Who(5);
/// Has no account.
pub const STRANGER: Who = Who(6);

pub const FUNDS: u64 = 10_000_000;
pub const START: u64 = 1_700_000_000_000;
/// Milliseconds between two blocks unless a test says otherwise.
pub const SECOND: u64 = 1_000;

/// The rules of v7, and those of v8, from the start of a chain on.
pub const V7: Forks = Forks { v6: 0, validator_vote: Some(0), v7: Some(0), v8: None };
pub const V8: Forks = Forks { v8: Some(0), ..V7 };

impl Who {
    pub fn key(self) -> Keypair {
        Keypair::from_seed(&[self.0; 32])
    }

    pub fn sign(self, message: &[u8]) -> Signature {
        self.key().sign(message)
    }

    pub fn address(self) -> Address {
        self.key().address()
    }

    pub fn public_key(self) -> PublicKey {
        self.key().public_key()
    }
}

pub struct World {
    pub chain: Arc<ChainRules>,
    pub memory: Arc<Memory>,
    pub parent: Parent,
    /// Makes the open block.
    pub proposer: Who,
    /// Who take turns to make the blocks; [`World::next_proposer`] says who does if there is nobody.
    pub turns: Vec<Who>,
    blocks: MemoryChain,
    /// Has the same rows, if there is one; blocks are then made from it.
    database: Option<Database>,
    /// The rules of the open block.
    rules: Rules,
    open: Option<BlockBuilder>,
}

impl World {
    pub fn new() -> Self {
        Self::with(Params::default(), Forks::default())
    }

    pub fn with_params(change: impl FnOnce(&mut Params)) -> Self {
        let mut params = Params::default();
        change(&mut params);
        Self::with(params, Forks::default())
    }

    /// A chain whose validators can change; at first they are these, with these powers.
    pub fn with_validators(params: Params, validators: &[(Who, u64)]) -> Self {
        let forks = Forks { validator_vote: Some(0), ..Forks::default() };
        Self::with_forks(params, forks, validators)
    }

    pub fn with(params: Params, forks: Forks) -> Self {
        Self::with_forks(params, forks, &[])
    }

    /// A chain with these forks, decided by these validators.
    pub fn with_forks(params: Params, forks: Forks, validators: &[(Who, u64)]) -> Self {
        let validators = validators.iter().map(|(who, power)| member(*who, *power)).collect();
        let genesis_hash = genesis_hash();
        let chain_id = "test".to_owned();
        let chain = Arc::new(ChainRules { chain_id, genesis_hash, params, forks, validators });
        let blocks =
            MemoryChain::new(Arc::clone(&chain), genesis_hash, START, &accounts()).unwrap();
        let (memory, parent) = (Arc::clone(blocks.state()), blocks.tip());
        let rules = Rules::at(&chain, &*memory, 1).unwrap();
        let mut world = Self {
            chain,
            memory,
            parent,
            proposer: PROPOSER,
            turns: Vec::new(),
            blocks,
            database: None,
            rules,
            open: None,
        };
        world.open(SECOND);
        world
    }

    /// The same chain in a database, which is closed and opened again now and then. Before the first
    /// block.
    pub fn in_a_database(mut self) -> Self {
        let changes = self.chain.first_state(&accounts()).unwrap();
        let database = Database::new(&changes, &self.parent);
        self.parent = database.parent();
        self.database = Some(database);
        self.open(SECOND);
        self
    }

    fn open(&mut self, after_ms: u64) {
        let now = self.parent.timestamp.checked_add(after_ms).unwrap();
        self.rules = Rules::at(&self.chain, &*self.memory, self.parent.height + 1).unwrap();
        self.proposer = self.next_proposer();
        let key = self.proposer.key();
        let block = match &self.database {
            Some(database) => database.begin(&self.chain, &key, now),
            None => self.blocks.begin(&key, now),
        };
        self.open = Some(block.unwrap());
    }

    /// [`PROPOSER`], or the first wallet that is a validator if the rules ask for one.
    fn next_proposer(&self) -> Who {
        let nth = usize::try_from(self.parent.height).unwrap().checked_rem(self.turns.len());
        if let Some(whose) = nth.and_then(|nth| self.turns.get(nth)) {
            return *whose;
        }
        let Some(sets) = validators::sets(&*self.memory).unwrap() else { return PROPOSER };
        let may =
            |who: &Who| sets.current.iter().any(|member| member.public_key == who.public_key());
        let mut others = (1..=u8::MAX).map(Who);
        let is_free = !self.rules.is_v7() || may(&PROPOSER);
        if is_free { PROPOSER } else { others.find(may).unwrap() }
    }

    /// Whether the open block has another proposer than the one before, or there is one validator.
    pub fn is_of_another(&self) -> bool {
        let sets = validators::sets(&*self.memory).unwrap();
        sets.is_some_and(|sets| sets.current.len() == 1)
            || self.parent.proposer != Some(self.proposer.address())
    }

    /// The randomness of the open block: what its proposer's key gives.
    pub fn randomness(&self) -> Hash {
        let (chain_id, previous) = (self.chain.chain_id.as_str(), self.parent.randomness);
        let input = Input { chain_id, previous, height: self.parent.height + 1 };
        input.prove(&self.proposer.key()).value
    }

    /// Opens the block once more, after the state was changed behind its back.
    pub fn reopen(&mut self) {
        self.open(SECOND);
    }

    /// Changes the state behind the back of the open block.
    pub fn write(&mut self, rows: impl FnOnce(&mut Draft)) {
        let mut draft = Draft::new(self.base());
        rows(&mut draft);
        self.memory.apply(&draft.into_changes());
        self.reopen();
    }

    /// The committed state.
    pub fn base(&self) -> Arc<dyn Read> {
        Arc::<Memory>::clone(&self.memory)
    }

    /// The committed state, standing still.
    pub fn still(&self) -> Base {
        self.blocks.base()
    }

    pub fn builder(&mut self) -> &mut BlockBuilder {
        self.open.as_mut().unwrap()
    }

    /// The state with the open block.
    pub fn state(&self) -> &Draft {
        self.open.as_ref().unwrap().state()
    }

    /// Closes the block and opens the next one, a second later.
    pub fn next_block(&mut self) -> Executed {
        self.next_block_after(SECOND)
    }

    /// Closes so many blocks, and opens each next one a second later.
    pub fn next_blocks(&mut self, count: usize) {
        for _ in 0..count {
            self.next_block();
        }
    }

    /// Closes the block and opens the next one so much later.
    pub fn next_block_after(&mut self, after_ms: u64) -> Executed {
        let executed = self.open.take().unwrap().finish().unwrap();
        self.assert_repeatable(&executed);
        self.blocks.append(&executed).unwrap();
        let stands_on = self.database.as_mut().and_then(|it| it.append(&executed, &self.memory));
        if stands_on.is_none() {
            self.database = None;
        }
        self.parent = stands_on.unwrap_or_else(|| self.blocks.tip());
        let report = invariants::verify(&*self.memory, &self.chain.params).unwrap();
        assert_eq!(report.broken, [], "invariants after block {}", self.parent.height);
        self.open(after_ms);
        executed
    }

    /// Lets time pass: an empty block so much later, and what its end did.
    pub fn wait(&mut self, ms: u64) -> Vec<Event> {
        self.next_block_after(ms);
        self.next_block().swept()
    }

    fn assert_repeatable(&self, executed: &Executed) {
        let block = executed.block.clone();
        let again = execute_block(&self.chain, self.base(), &self.parent, block).unwrap();
        assert_eq!(again.changes, executed.changes);
        assert_eq!(again.events, executed.events);
    }

    pub fn account(&self, who: Who) -> Account {
        self.state().get::<Accounts>(&who.address()).unwrap().unwrap_or_default()
    }

    pub fn balance(&self, who: Who) -> u64 {
        self.account(who).balance.get()
    }

    pub fn supply(&self) -> Supply {
        state::supply(self.state()).unwrap()
    }

    /// The money before the open block.
    pub fn supply_before_the_block(&self) -> Supply {
        state::supply(&*self.memory).unwrap()
    }

    /// An account before the open block.
    pub fn account_committed(&self, who: Who) -> Account {
        view::get::<Accounts>(&*self.memory, &who.address()).unwrap().unwrap_or_default()
    }

    /// A bond before the open block.
    pub fn bond_committed(&self, who: Who) -> Bond {
        view::get::<Bonds>(&*self.memory, &who.address()).unwrap().unwrap_or_default()
    }

    /// A member of a call before the open block, settled or not.
    pub fn member_committed(&self, call: Hash, who: Address) -> Option<CallMember> {
        let open = view::get::<CallMembers>(&*self.memory, &(call, who)).unwrap();
        open.or_else(|| view::get::<SettledMembers>(&*self.memory, &(call, who)).unwrap())
    }

    /// All rows of a table before the open block.
    pub fn rows<T: Table>(&self) -> Vec<view::Row<T>> {
        let all = Range { from: &[], to: None, limit: usize::MAX };
        view::scan::<T>(&*self.memory, all).unwrap()
    }

    pub fn run(&self, id: Hash) -> Run {
        self.state().get::<Runs>(&id).unwrap().unwrap()
    }

    pub fn figures(&self, miner: Who) -> MinerFigures {
        self.state().get::<Figures>(&miner.address()).unwrap().unwrap()
    }

    /// The validators before the open block, on a chain whose validators can change.
    pub fn sets(&self) -> ValidatorSets {
        validators::sets(&*self.memory).unwrap().unwrap()
    }

    /// A pool in which nothing waits, on top of the committed state.
    pub fn pool(&self) -> PendingState {
        PendingState::new(self.still(), Arc::clone(&self.chain)).unwrap()
    }

    /// A transaction with the nonce that comes after what waits in the pool.
    pub fn pool_tx(&self, pool: &PendingState, who: Who, body: &Body) -> CheckedTx {
        self.tx(who, pool.account(who.address()).unwrap().nonce, body).unwrap()
    }

    /// Tells the pool of the last block, as `txpool::Touched` sums it up; these are its transactions that
    /// waited. Answers whether the pool is right with that.
    pub fn tell(&self, pool: &mut PendingState, taken: &[CheckedTx], executed: &Executed) -> bool {
        let mut credits: BTreeMap<Address, Amount> = BTreeMap::new();
        for Credit { address, amount } in &executed.events.credits {
            let sum = credits.entry(*address).or_default();
            *sum = sum.checked_add(*amount).unwrap();
        }
        let mut bonds: BTreeMap<Address, BondChange> = BTreeMap::new();
        for (miner, change) in executed.events.iter().filter_map(|(_, event)| event.bond_change()) {
            let sum = bonds.entry(miner).or_default();
            sum.unlocked = sum.unlocked.checked_add(change.unlocked).unwrap();
            sum.burned = sum.burned.checked_add(change.burned).unwrap();
        }
        pool.advance(self.still(), taken, &credits, &bonds).unwrap()
    }

    /// A transaction with a stated nonce, through the static checks but for the signature.
    pub fn tx(&self, who: Who, nonce: u64, body: &Body) -> Result<CheckedTx, Rejection> {
        self.bidding_tx(who, nonce, body, Bid::default())
    }

    /// A transaction with the right nonce for the open block.
    pub fn next_tx(&self, who: Who, body: &Body) -> CheckedTx {
        self.tx(who, self.account(who).nonce, body).unwrap()
    }

    /// The same with a bid for its place.
    pub fn bidding_tx(
        &self,
        who: Who,
        nonce: u64,
        body: &Body,
        bid: Bid,
    ) -> Result<CheckedTx, Rejection> {
        let (params, chain_id) = (&self.chain.params, self.chain.chain_id.as_str());
        let height = self.parent.height + 1;
        let rules = StaticRules { chain_id, params, forks: self.chain.forks, height };
        verify_unsigned(self.parsed(who, nonce, body, bid), &rules)
    }

    /// The same without any check.
    pub fn unchecked_tx(&self, who: Who, nonce: u64, body: &Body) -> Transaction {
        self.parsed(who, nonce, body, Bid::default())
    }

    /// A transaction with the right nonce for the open block, whose payload was changed, without any check.
    pub fn edited_tx(
        &self,
        who: Who,
        body: &Body,
        bid: Bid,
        edit: impl FnOnce(&str) -> String,
    ) -> CheckedTx {
        let nonce = self.account(who).nonce;
        CheckedTx::trust(self.read(&edit(&self.payload(who, nonce, body, bid))))
    }

    fn parsed(&self, who: Who, nonce: u64, body: &Body, bid: Bid) -> Transaction {
        self.read(&self.payload(who, nonce, body, bid))
    }

    fn payload(&self, who: Who, nonce: u64, body: &Body, bid: Bid) -> String {
        let chain_id = (body.fork() == Some(Fork::V8)).then(|| self.chain.chain_id.clone());
        let envelope = Envelope { bid, ..Envelope::new(nonce, START, chain_id) };
        let from = who.address().to_string();
        let unsigned = Unsigned::build(body, &from, &who.public_key(), &envelope);
        unsigned.payload().to_owned()
    }

    fn read(&self, payload: &str) -> Transaction {
        let limits = SizeLimits::from(&self.chain.params);
        Transaction::parse_unsigned(payload.as_bytes(), &limits).unwrap()
    }

    /// Sends with the right nonce into the open block.
    pub fn send(&mut self, who: Who, body: &Body) -> Result<CheckedTx, Rejection> {
        let tx = self.tx(who, self.account(who).nonce, body)?;
        self.push(&tx).map(|()| tx)
    }

    /// Puts a transaction into the open block, which has room for it.
    pub fn push(&mut self, tx: &CheckedTx) -> Result<(), Rejection> {
        self.builder().push(tx).map_err(|error| match error {
            PushError::Rejected(rejection) => *rejection,
            other => panic!("{other}"),
        })
    }

    /// The code with which the open block refuses a transaction.
    pub fn refused(&mut self, who: Who, body: &Body) -> &'static str {
        self.send(who, body).expect_err("it was accepted").code().as_str()
    }

    /// Sends what must be accepted.
    pub fn must(&mut self, who: Who, body: &Body) -> CheckedTx {
        self.send(who, body).unwrap_or_else(|rejection| panic!("{rejection}"))
    }

    /// Each of them sends the same, which must be accepted.
    pub fn all(&mut self, whose: &[Who], body: &Body) {
        for who in whose {
            self.must(*who, body);
        }
    }

    /// Why the committed state refuses a transaction, which must leave a draft untouched.
    pub fn rejection(&self, who: Who, nonce: u64, body: &Body) -> Rejection {
        let tx = CheckedTx::trust(self.unchecked_tx(who, nonce, body));
        let ctx = self.context();
        let mut draft = Draft::new(self.base());
        let refused = execute(&tx, &mut draft, &ctx).expect_err("it was accepted");
        assert!(draft.into_changes().is_empty(), "a rejection wrote something");
        match refused {
            TxError::Rejected(rejection) => *rejection,
            TxError::Storage(fault) => panic!("{fault}"),
        }
    }

    /// The code of [`World::rejection`] with the right nonce.
    pub fn code(&self, who: Who, body: &Body) -> &'static str {
        let account = view::get::<Accounts>(&*self.memory, &who.address()).unwrap();
        self.rejection(who, account.unwrap_or_default().nonce, body).code().as_str()
    }

    pub fn context(&self) -> Context<'_> {
        Context {
            rules: &self.rules,
            height: self.parent.height + 1,
            timestamp: self.parent.timestamp + SECOND,
            proposer: self.proposer.address(),
            position: 0,
            rankings: None,
        }
    }

    /// Requests a run and answers its id.
    pub fn request(&mut self, who: Who, max_fee: u64, max_steps: u64) -> Hash {
        let body = self.request_body(who, max_fee, max_steps);
        self.must(who, &body).body().agent_run_id().unwrap()
    }

    /// ALICE requests a run, and MINER claims it.
    pub fn claimed(&mut self, max_fee: u64, max_steps: u64) -> Hash {
        let run = self.request(ALICE, max_fee, max_steps);
        self.must(MINER, &claim(MINER, run));
        run
    }

    /// ALICE requests a run that is protected so, of five steps and 5,000 micro.
    pub fn request_protected(&mut self, protection: Protection) -> Hash {
        let body = protected(self.request_body(ALICE, 5_000, 5), protection);
        self.must(ALICE, &body).body().agent_run_id().unwrap()
    }

    pub fn request_body(&self, who: Who, max_fee: u64, max_steps: u64) -> Body {
        let nonce = self.account(who).nonce;
        request_body(who, nonce, max_fee, max_steps)
    }

    /// A miner finishes its run.
    pub fn finish(&mut self, miner: Who, id: Hash, status: &str) {
        let body = finish_body(&self.run(id), status);
        self.must(miner, &body);
    }

    /// A finalised blob of these bytes.
    pub fn blob(&mut self, who: Who, id: &str, bytes: &[u8]) {
        for body in fixtures::blob(id, bytes) {
            self.must(who, &body);
        }
    }

    /// Puts a blob of ALICE's into the state that has its first chunks, of one byte each: what counts is
    /// their number.
    pub fn put_begun_blob(&mut self, id: &str, total_bytes: u64, received: u32) {
        let created_at = self.parent.timestamp;
        let id = id.to_owned();
        let blob = Blob {
            blob_id: id.clone(),
            owner: ALICE.address(),
            content_type: "text/plain".to_owned(),
            total_bytes,
            total_chunks: total_bytes.div_ceil(400_000),
            received: u64::from(received),
            content_hash: Hash::ZERO,
            received_hash: None,
            is_final: false,
            created_at,
        };
        self.write(|draft| {
            let mut pieces = Pieces::default();
            for index in 0..received {
                pieces.insert(index);
                draft.put::<BlobChunks>(&(index, id.clone()), &vec![1]);
            }
            draft.put::<BlobPieces>(&id, &pieces);
            draft.put::<Blobs>(&id, &blob);
            draft.put::<Deadlines>(&(created_at + 3_600_000, Deadlines::BLOB, id), &());
        });
    }
}

/// `ok`, or the code with which a transaction was refused.
pub fn answer<T>(outcome: Result<T, impl Into<PushError>>) -> &'static str {
    match outcome.map_err(Into::<PushError>::into) {
        Ok(_) => "ok",
        Err(PushError::Rejected(rejection)) => rejection.code().as_str(),
        Err(other) => panic!("{other}"),
    }
}

pub fn member(who: Who, power: u64) -> SetMember {
    SetMember { public_key: who.public_key(), power }
}

/// The hash of the world's genesis file.
pub fn genesis_hash() -> Hash {
    Hash::digest(b"genesis")
}

/// What the end of a block did, but for its reward, which every block has, and for the start of a set that
/// was decided before.
pub trait Swept {
    fn swept(&self) -> Vec<Event>;
}

impl Swept for Executed {
    fn swept(&self) -> Vec<Event> {
        let is_told = |event: &Event| {
            !matches!(
                event,
                Event::RewardMinted { .. }
                    | Event::ValidatorSetActivated { .. }
                    | Event::FeesCharged { .. }
            )
        };
        self.events.end.iter().filter(|event| is_told(event)).cloned().collect()
    }
}
