//! A chain with a few wallets, in memory or in a database. Tests say who does what; the world signs,
//! executes and, after every block, executes the block again and checks the invariants.

use std::collections::BTreeMap;
use std::sync::Arc;

use state::tables::{Accounts, Bonds, CallMembers, Runs, SettledMembers};
use state::{
    Base, BlockBuilder, ChainRules, Context, Draft, Executed, Forks, Memory, MemoryChain, Parent,
    PushError, Read, Rules, TxError, execute, execute_block, invariants, validators, view,
};
use types::build::{Envelope, Unsigned};
use types::call::CallMember;
use types::check::{StaticRules, verify_unsigned};
use types::randomness::Input;
use types::sign_bytes::{Domain, acceptance};
use types::tx::{
    AgentCancel, AgentClaim, AgentFinish, AgentRequest, AgentStep, BlobChunk, BlobFinalize,
    BlobInit, ChatTurn, Evidence, NIL, Transfer, ValidatorVote,
};
use types::{
    Account, Address, Amount, Bid, Body, Bond, CheckedTx, Event, Fork, Hash, Keypair, Params,
    PublicKey, Rejection, Run, SetMember, Settlement, Signature, SizeLimits, Supply, Transaction,
    ids,
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
        Self::begin(params, forks, validators)
    }

    pub fn with(params: Params, forks: Forks) -> Self {
        Self::begin(params, forks, &[])
    }

    /// A chain with these forks, decided by these validators.
    pub fn with_forks(params: Params, forks: Forks, validators: &[(Who, u64)]) -> Self {
        Self::begin(params, forks, validators)
    }

    fn begin(params: Params, forks: Forks, validators: &[(Who, u64)]) -> Self {
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

    pub fn run(&self, id: Hash) -> Run {
        self.state().get::<Runs>(&id).unwrap().unwrap()
    }

    /// A transaction with a stated nonce, through the static checks but for the signature.
    pub fn tx(&self, who: Who, nonce: u64, body: &Body) -> Result<CheckedTx, Rejection> {
        self.bidding_tx(who, nonce, body, Bid::default())
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

    fn parsed(&self, who: Who, nonce: u64, body: &Body, bid: Bid) -> Transaction {
        let key = who.key();
        let chain_id = (body.fork() == Some(Fork::V8)).then(|| self.chain.chain_id.clone());
        let envelope = Envelope { bid, ..Envelope::new(nonce, START, chain_id) };
        let from = who.address().to_string();
        let unsigned = Unsigned::build(body, &from, &key.public_key(), &envelope);
        let limits = SizeLimits::from(&self.chain.params);
        Transaction::parse_unsigned(unsigned.payload().as_bytes(), &limits).unwrap()
    }

    /// Sends with the right nonce into the open block.
    pub fn send(&mut self, who: Who, body: &Body) -> Result<CheckedTx, Rejection> {
        let tx = self.tx(who, self.account(who).nonce, body)?;
        match self.builder().push(&tx) {
            Ok(()) => Ok(tx),
            Err(PushError::Rejected(rejection)) => Err(*rejection),
            Err(other) => panic!("{other}"),
        }
    }

    /// Sends what must be accepted.
    pub fn must(&mut self, who: Who, body: &Body) -> CheckedTx {
        self.send(who, body).unwrap_or_else(|rejection| panic!("{rejection}"))
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
        }
    }

    /// Requests a run and answers its id.
    pub fn request(&mut self, who: Who, max_fee: u64, max_steps: u64) -> Hash {
        let body = self.request_body(who, max_fee, max_steps);
        self.must(who, &body);
        body.agent_run_id().unwrap()
    }

    pub fn request_body(&self, who: Who, max_fee: u64, max_steps: u64) -> Body {
        let nonce = self.account(who).nonce;
        request_body(who, nonce, max_fee, max_steps)
    }

    /// Finishes a run with the amounts that its steps give.
    pub fn finish_body(&self, id: Hash, status: &str) -> Body {
        let totals = state::settlement(&self.run(id)).unwrap();
        let Settlement { miner_reward, user_refund, network_fee } = totals.settlement;
        Body::AgentFinish(AgentFinish {
            agent_run_id: id,
            total_tokens_out: totals.total_tokens_out,
            status: status.to_owned(),
            miner_reward,
            user_refund,
            network_fee,
            final_answer_inline: Some("done".to_owned()),
            final_answer_blob_id: None,
        })
    }

    /// A finalised blob of these bytes.
    pub fn blob(&mut self, who: Who, id: &str, bytes: &[u8]) {
        self.must(who, &blob_init(id, bytes));
        for (index, chunk) in bytes.chunks(400_000).enumerate() {
            self.must(who, &blob_chunk(id, u64::try_from(index).unwrap(), chunk));
        }
        self.must(who, &blob_finalize(id));
    }
}

pub const PROMPT: &str = "What is the answer?";

pub fn request_body(who: Who, nonce: u64, max_fee: u64, max_steps: u64) -> Body {
    let from = who.address().to_string();
    Body::AgentRequest(AgentRequest {
        agent_run_id: ids::compute_agent_run_id(&from, nonce, PROMPT),
        conversation_id: conversation(),
        prompt: PROMPT.to_owned(),
        tools_whitelist: Vec::new(),
        max_fee: Amount::new(max_fee),
        max_steps,
        prompt_blob_id: None,
        model_hint: None,
        protection: types::Late::default(),
        agent: types::Late::default(),
    })
}

pub fn conversation() -> Hash {
    Hash::digest(b"conversation")
}

pub fn claim(who: Who, agent_run_id: Hash) -> Body {
    Body::AgentClaim(AgentClaim {
        agent_run_id,
        miner_address: who.address().into(),
        model_info: "model".to_owned(),
        hardware_tier: "server".to_owned(),
    })
}

pub fn step(agent_run_id: Hash, step_index: u64, output_tokens: u64) -> Body {
    Body::AgentStep(AgentStep {
        agent_run_id,
        step_index,
        output_tokens,
        output_hash: Hash::ZERO,
        thought_blob_id: None,
        tool_calls: None,
        output_blob_id: None,
    })
}

pub fn cancel(agent_run_id: Hash) -> Body {
    Body::AgentCancel(AgentCancel { agent_run_id })
}

pub fn transfer(to: Who, amount: u64, fee: u64) -> Body {
    Body::Transfer(Transfer::new(to.address(), Amount::new(amount), Amount::new(fee)))
}

pub fn turn(content: &str) -> ChatTurn {
    ChatTurn {
        conversation_id: conversation(),
        role: "user".to_owned(),
        content: content.to_owned(),
        content_blob_id: None,
        parent_turn_hash: None,
        agent_run_id: None,
        attachments: None,
    }
}

pub fn chat(content: &str) -> Body {
    Body::ChatTurn(turn(content))
}

pub fn blob_init(id: &str, bytes: &[u8]) -> Body {
    let total_bytes = u64::try_from(bytes.len()).unwrap();
    Body::BlobInit(BlobInit {
        blob_id: id.to_owned(),
        content_type: "text/plain".to_owned(),
        total_bytes,
        total_chunks: total_bytes.div_ceil(400_000),
        content_hash: Hash::digest(bytes),
    })
}

pub fn blob_chunk(id: &str, chunk_index: u64, bytes: &[u8]) -> Body {
    Body::BlobChunk(BlobChunk { blob_id: id.to_owned(), chunk_index, chunk_data: bytes.to_vec() })
}

pub fn blob_finalize(id: &str) -> Body {
    Body::BlobFinalize(BlobFinalize { blob_id: id.to_owned() })
}

pub fn member(who: Who, power: u64) -> SetMember {
    SetMember { public_key: who.public_key(), power }
}

/// A day in milliseconds.
pub const DAY: u64 = 24 * 3_600_000;

/// A vote that counts for a day.
pub fn vote(candidate: Who, power: u64) -> Body {
    vote_until(candidate, power, START + DAY)
}

pub fn vote_until(candidate: Who, power: u64, expires_at: u64) -> Body {
    let vote = ValidatorVote::new(candidate.public_key(), power, expires_at);
    let message = acceptance(&genesis_hash(), &candidate.address(), expires_at);
    Body::ValidatorVote(vote.with_acceptance(candidate.sign(&message)))
}

/// A vote that counts for a day, without the acceptance of the candidate's key.
pub fn bare_vote(candidate: Who, power: u64) -> Body {
    let expires_at = START + DAY;
    Body::ValidatorVote(ValidatorVote::new(candidate.public_key(), power, expires_at))
}

/// Evidence that a key signed prevotes for two blocks of this height.
pub fn evidence(accused: Who, height: u64) -> Evidence {
    evidence_of(accused, height, "prevote", [Some(1), Some(2)])
}

/// Evidence that a key signed both in round 0; none is nil.
pub fn evidence_of(
    accused: Who,
    height: u64,
    kind: &str,
    [first, second]: [Option<u8>; 2],
) -> Evidence {
    let text = |value: Option<u8>| {
        value.map_or_else(|| NIL.to_owned(), |byte| Hash::new([byte; 32]).to_string())
    };
    let nothing = Signature::new([0; 64]);
    let evidence = Evidence {
        validator_key: accused.public_key(),
        height,
        round: 0,
        kind: kind.to_owned(),
        first_value: text(first),
        first_signature: nothing,
        second_value: text(second),
        second_signature: nothing,
        first_valid_round: None,
        second_valid_round: None,
    };
    signed_by(accused, evidence)
}

/// The same evidence with signatures of that key.
pub fn signed_by(signer: Who, evidence: Evidence) -> Evidence {
    let domain = Domain { chain_id: "test".into(), genesis_hash: genesis_hash(), v7_from: Some(0) };
    signed_in(&domain, signer, evidence)
}

/// The same with signatures as that domain has them.
pub fn signed_in(domain: &Domain, signer: Who, evidence: Evidence) -> Evidence {
    let sign = |message| signer.sign(&evidence.signed_bytes(message, domain).unwrap());
    let [first_signature, second_signature] = evidence.messages().each_ref().map(sign);
    Evidence { first_signature, second_signature, ..evidence }
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
