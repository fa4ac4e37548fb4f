//! The methods. A test compares this list with what is registered.

use super::{Builder, Kind, Method, Param};
use crate::error::{LIMITED, NOT_FOUND, REJECTED, UNAVAILABLE};
use crate::wire::{
    AccountTx, AccountView, AddressText, AgentQuery, AgentSummary, AgentVersionView, AgentView,
    BlobView, BlockSelector, BlockSummary, BlockView, BlocksQuery, BondView, BuildEnvelope, Built,
    CallQuery, CallState, CallView, CallWaitOptions, ChainInfo, CommitmentQuery, ConversationId,
    DecodeQuery, DecodedResult, ElectionView, EncodeQuery, EncodedCall, EstimateQuery,
    EstimateView, EventFilter, EventKind, FeeSchedule, ForksView, HashText, InclusionEstimate,
    MinerSelector, MinerView, NetInfo, OfferQuery, OfferView, Page, PageOf, ParamsView, PeerQuery,
    PeerView, PoolContent, PoolStatus, ProofQuery, ProofView, PunishedKeyView, RandomnessView,
    RunQuery, RunView, SendAnswer, SendItem, SenderPool, SettlementView, SignedParts, Simulation,
    StepView, SupplyView, TurnView, TxObject, TxView, UnsignedTx, ValidatorView, WaitOptions,
};

/// What the network port serves.
pub(super) fn public() -> Vec<Method> {
    [
        chain(),
        submission(),
        accounts(),
        market(),
        runs(),
        calls(),
        computed(),
        builders(),
        pool(),
        events(),
    ]
    .concat()
}

/// What the operator's socket serves.
pub(super) fn admin() -> Vec<Method> {
    vec![
        Method::new::<String>("admin_logFilter", "Returns the log filter in force."),
        Method::new::<String>(
            "admin_setLogFilter",
            "Replaces the log filter until the node stops.",
        )
        .param(Param::required::<String>("filter", "the new filter, such as info,rpc=debug")),
        Method::new::<u64>(
            "admin_flushPool",
            "Drops every waiting transaction and returns their number.",
        ),
        Method::new::<Vec<PeerView>>("admin_peers", "Returns the connected peers."),
        Method::new::<Vec<PeerView>>(
            "admin_changePeer",
            "Connects to a peer, disconnects from one, or keeps one out.",
        )
        .param(Param::required::<PeerQuery>("change", "the change to make").spread()),
    ]
}

fn page() -> Param {
    Param::optional::<Page>("page", "the page of the list").spread()
}

fn hash(name: &'static str, summary: &'static str) -> Param {
    Param::required::<HashText>(name, summary)
}

fn address() -> Param {
    Param::required::<AddressText>("address", "the address of the account, in either form")
}

fn chain() -> Vec<Method> {
    vec![
        Method::new::<ChainInfo>("ombra_chainInfo", "Returns the chain's identity and state."),
        Method::new::<BlockView>("ombra_getBlock", "Returns a block by index or hash.")
            .param(
                Param::required::<BlockSelector>("block", "an index, a hash, or \"latest\"")
                    .or_named(&["index", "hash"]),
            )
            .param(Param::optional::<bool>("full", "true for objects (default), false for hashes"))
            .errors(&[NOT_FOUND]),
        Method::new::<PageOf<BlockSummary>>("ombra_getBlocks", "Returns blocks, newest first.")
            .param(Param::optional::<BlocksQuery>("query", "the range of blocks").spread()),
        Method::new::<SupplyView>("ombra_getSupply", "Returns the counters of the money supply."),
        Method::new::<FeeSchedule>("ombra_feeSchedule", "Returns the current prices and limits."),
        Method::new::<InclusionEstimate>(
            "ombra_feeEstimate",
            "Estimates the fees of a transaction in the next block.",
        )
        .param(
            Param::optional::<u64>("size", "the payload's size in bytes, plus 64; 512 if absent")
                .or_named(&["bytes"]),
        ),
        Method::new::<Vec<ValidatorView>>("ombra_getValidators", "Returns a height's validators.")
            .param(Param::optional::<u64>("height", "a height; the latest if absent"))
            .errors(&[NOT_FOUND]),
        Method::new::<PageOf<PunishedKeyView>>(
            "ombra_listPunishedKeys",
            "Returns the keys of validators that lost their power permanently.",
        )
        .param(page()),
        Method::new::<ForksView>("ombra_forks", "Returns upcoming forks: votes and fixed heights."),
        Method::new::<ParamsView>("ombra_params", "Returns the parameters that votes can change."),
        Method::new::<ProofView>("ombra_getProof", "Returns a Merkle proof of a record.")
            .param(
                Param::required::<ProofQuery>(
                    "of",
                    "what to prove: account, agentRun, validators, bond, offer, agent or call",
                )
                .spread(),
            )
            .errors(&[NOT_FOUND]),
        Method::new::<serde_json::Map<String, serde_json::Value>>(
            "rpc.discover",
            "Returns the OpenRPC document of all methods.",
        ),
        Method::new::<NetInfo>("net_info", "Returns this node's peer id and addresses."),
        Method::new::<Vec<PeerView>>("net_peers", "Returns the connected peers."),
    ]
}

fn submission() -> Vec<Method> {
    vec![
        Method::new::<SendAnswer>(
            "ombra_sendTransaction",
            "Submits a signed transaction to the pool.",
        )
        .kind(Kind::Submit)
        .param(Param::required::<TxObject>("tx", "the signed transaction object"))
        .errors(&[REJECTED, UNAVAILABLE, LIMITED]),
        Method::new::<Vec<SendItem>>(
            "ombra_sendTransactions",
            "Submits up to 1,000 signed transactions to the pool.",
        )
        .param(Param::required::<Vec<TxObject>>("txs", "the signed transaction objects"))
        .errors(&[UNAVAILABLE, LIMITED]),
        Method::new::<SendAnswer>(
            "ombra_sendSigned",
            "Submits a built transaction with its signature to the pool.",
        )
        .param(
            Param::required::<SignedParts>("signed", "the built transaction and its signature")
                .spread(),
        )
        .errors(&[REJECTED, UNAVAILABLE, LIMITED]),
        Method::new::<Simulation>(
            "ombra_simulateTransaction",
            "Returns what a transaction would do now.",
        )
        .param(Param::required::<UnsignedTx>("tx", "the transaction object, signed or not"))
        .errors(&[UNAVAILABLE]),
        Method::new::<TxView>("ombra_getTransaction", "Returns a transaction and its status.")
            .param(hash("hash", "the hash of the transaction"))
            .errors(&[NOT_FOUND]),
        Method::new::<TxView>(
            "ombra_waitForTransaction",
            "Returns a transaction as soon as it is included or dropped.",
        )
        .kind(Kind::Wait)
        .param(hash("hash", "the hash of the transaction"))
        .param(Param::optional::<WaitOptions>("options", "how long to wait").spread())
        .errors(&[NOT_FOUND, UNAVAILABLE, LIMITED]),
    ]
}

fn accounts() -> Vec<Method> {
    vec![
        Method::new::<AccountView>(
            "ombra_getAccount",
            "Returns an account. All values are zero if it does not exist.",
        )
        .param(address()),
        Method::new::<BondView>(
            "ombra_getBond",
            "Returns the bond of an account, and its statistics as a submitter.",
        )
        .param(address()),
        Method::new::<AgentView>("ombra_getAgent", "Returns an agent with one of its versions.")
            .param(hash("agentId", "the id of the agent"))
            .param(Param::optional::<String>(
                "version",
                "the version of the agent; the latest if absent",
            ))
            .errors(&[NOT_FOUND]),
        Method::new::<PageOf<AgentVersionView>>(
            "ombra_getAgentVersions",
            "Returns the versions of an agent, the latest first.",
        )
        .param(hash("agentId", "the id of the agent"))
        .param(page())
        .errors(&[NOT_FOUND]),
        Method::new::<PageOf<AgentSummary>>(
            "ombra_listAgents",
            "Returns agents with their latest versions.",
        )
        .param(Param::optional::<AgentQuery>("filter", "conditions for the agents").spread())
        .param(page()),
        Method::new::<PageOf<OfferView>>(
            "ombra_listOffers",
            "Returns the offers that miners make for executors.",
        )
        .param(Param::optional::<OfferQuery>("filter", "conditions for the offers").spread())
        .param(page()),
        Method::new::<PageOf<AccountTx>>(
            "ombra_getAccountTransactions",
            "Returns the transactions of an account, newest first.",
        )
        .param(address())
        .param(page()),
        Method::new::<PageOf<MinerView>>(
            "ombra_listMiners",
            "Returns the miner directory in the order of addresses.",
        )
        .param(page()),
        Method::new::<MinerView>("ombra_getMiner", "Returns a miner by address or id.")
            .param(
                Param::required::<MinerSelector>(
                    "miner",
                    "the address or the minerId of the miner",
                )
                .or_named(&["address", "minerId"]),
            )
            .errors(&[NOT_FOUND]),
        Method::new::<BlobView>("ombra_getBlob", "Returns the record of a blob.")
            .param(Param::required::<String>("blobId", "the id of the blob"))
            .errors(&[NOT_FOUND]),
    ]
}

fn runs() -> Vec<Method> {
    vec![
        Method::new::<RunView>("ombra_getAgentRun", "Returns a run.")
            .param(hash("agentRunId", "the id of the run"))
            .errors(&[NOT_FOUND]),
        Method::new::<PageOf<StepView>>(
            "ombra_getAgentSteps",
            "Returns the steps of a run in the order of their indexes.",
        )
        .param(hash("agentRunId", "the id of the run"))
        .param(page())
        .errors(&[NOT_FOUND]),
        Method::new::<PageOf<RunView>>("ombra_listAgentRuns", "Returns runs, newest first.")
            .param(Param::optional::<RunQuery>("filter", "conditions for the runs").spread())
            .param(page()),
        Method::new::<PageOf<TurnView>>(
            "ombra_getConversation",
            "Returns the turns of a conversation in the order of the chain.",
        )
        .param(hash("conversationId", "the id of the conversation"))
        .param(page()),
        Method::new::<TurnView>("ombra_getChatTurn", "Returns a turn of a conversation.")
            .param(hash("hash", "the hash of the CHAT_TURN"))
            .errors(&[NOT_FOUND]),
        Method::new::<SettlementView>(
            "ombra_settlement",
            "Returns the amounts that an AGENT_FINISH must state now.",
        )
        .param(hash("agentRunId", "the id of the run"))
        .errors(&[NOT_FOUND]),
    ]
}

/// Methods for requesters in the agent market.
fn market() -> Vec<Method> {
    vec![
        Method::new::<EncodedCall>(
            "ombra_encodeCall",
            "Encodes the payload of a call of an agent's method.",
        )
        .param(
            Param::required::<EncodeQuery>("call", "the agent's method and the arguments").spread(),
        )
        .errors(&[NOT_FOUND]),
        Method::new::<DecodedResult>(
            "ombra_decodeResult",
            "Decodes the result of an agent's method.",
        )
        .param(
            Param::required::<DecodeQuery>("answer", "the agent's method and the result").spread(),
        )
        .errors(&[NOT_FOUND]),
        Method::new::<EstimateView>(
            "ombra_estimateCall",
            "Estimates the cost of a call and the number of eligible miners.",
        )
        .param(Param::required::<EstimateQuery>("call", "the call whose cost to estimate").spread())
        .errors(&[NOT_FOUND]),
        Method::new::<ElectionView>(
            "ombra_getElection",
            "Returns the candidates from which the members of a call were drawn.",
        )
        .param(hash("callId", "the id of the call"))
        .param(Param::optional::<u8>("round", "the round: 0, or 1 after an appeal; 0 if absent"))
        .errors(&[NOT_FOUND, UNAVAILABLE]),
    ]
}

fn calls() -> Vec<Method> {
    let id = || hash("callId", "the id of the call");
    vec![
        Method::new::<CallView>("ombra_getCall", "Returns a call with its members and texts.")
            .param(id())
            .errors(&[NOT_FOUND]),
        Method::new::<PageOf<CallState>>(
            "ombra_listCalls",
            "Returns calls of agents, newest first.",
        )
        .param(Param::optional::<CallQuery>("filter", "conditions for the calls").spread())
        .param(page()),
        Method::new::<CallView>(
            "ombra_waitForCall",
            "Returns a call as soon as it is decided or settled.",
        )
        .kind(Kind::Wait)
        .param(id())
        .param(
            Param::optional::<CallWaitOptions>("options", "what to wait for, and how long")
                .spread(),
        )
        .errors(&[NOT_FOUND, UNAVAILABLE, LIMITED]),
        Method::new::<RandomnessView>(
            "ombra_getRandomness",
            "Returns the randomness of a block and its proof.",
        )
        .param(Param::required::<u64>("height", "the height of the block"))
        .errors(&[NOT_FOUND]),
        Method::new::<HashText>(
            "ombra_computeCallId",
            "Computes the id of the call that an AGENT_CALL makes.",
        )
        .param(Param::required::<String>("from", "the requester's address, in either form"))
        .param(Param::required::<u64>("nonce", "the nonce of the AGENT_CALL")),
        Method::new::<HashText>(
            "ombra_computeCommitment",
            "Computes the commitment to a member's answer.",
        )
        .param(
            Param::required::<CommitmentQuery>(
                "answer",
                "the answer, with the call, the round and the member",
            )
            .spread(),
        ),
    ]
}

fn computed() -> Vec<Method> {
    vec![
        Method::new::<HashText>(
            "ombra_computeAgentRunId",
            "Computes the id of the run that an AGENT_REQUEST requests.",
        )
        .param(Param::required::<String>(
            "from",
            "the submitter's address, as written in the transaction",
        ))
        .param(Param::required::<u64>("nonce", "the nonce of the AGENT_REQUEST"))
        .param(Param::required::<String>("prompt", "the prompt of the run")),
        Method::new::<ConversationId>(
            "ombra_computeConversationId",
            "Computes the id of a new conversation.",
        )
        .param(Param::required::<String>(
            "creator",
            "the creator's address, as the id should contain it",
        ))
        .param(Param::optional::<String>("seed", "any text; the empty text if absent"))
        .param(Param::optional::<u64>(
            "now",
            "the time in milliseconds since 1970; the node's clock if absent",
        )),
        Method::new::<HashText>("ombra_computeAgentId", "Computes the id of an agent.")
            .param(Param::required::<String>("owner", "the owner's address, in either form"))
            .param(Param::required::<String>("name", "the name in the agent's metadata")),
        Method::new::<HashText>("ombra_computeContentHash", "Computes the hash of a text.")
            .param(Param::required::<String>("content", "the text to hash")),
    ]
}

/// One method for each kind, made from its declaration.
fn builders() -> Vec<Method> {
    let method = |builder: &'static Builder| {
        let envelope = Param::required::<BuildEnvelope>(
            "envelope",
            "the sender, and the members that every transaction has",
        );
        Method::new::<Built>(&builder.method, &builder.summary)
            .param(envelope.spread())
            .param(Param::fields(builder))
            .errors(builder.errors())
    };
    Builder::all().iter().map(method).collect()
}

fn pool() -> Vec<Method> {
    vec![
        Method::new::<PoolStatus>(
            "txpool_status",
            "Returns the number and size of the waiting transactions.",
        ),
        Method::new::<PoolContent>(
            "txpool_content",
            "Returns the waiting transactions by sender and nonce.",
        )
        .param(page()),
        Method::new::<SenderPool>(
            "txpool_contentFrom",
            "Returns the waiting transactions of one sender by nonce.",
        )
        .param(address()),
    ]
}

fn events() -> Vec<Method> {
    vec![
        Method::new::<String>("ombra_subscribe", "Begins a subscription to one kind of event.")
            .kind(Kind::Subscription)
            .param(Param::required::<EventKind>("kind", "the kind of event"))
            .param(Param::optional::<EventFilter>("filter", "conditions for the events").spread())
            .errors(&[UNAVAILABLE]),
        Method::new::<bool>("ombra_unsubscribe", "Ends a subscription.")
            .kind(Kind::Subscription)
            .param(Param::required::<String>(
                "subscription",
                "the id that ombra_subscribe returned",
            )),
    ]
}
