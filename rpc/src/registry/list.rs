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
        Method::new::<String>("admin_logFilter", "The log filter in force."),
        Method::new::<String>("admin_setLogFilter", "Replaces the log filter.")
            .param(Param::required::<String>("filter", "directives like info,rpc=debug")),
        Method::new::<u64>("admin_flushPool", "Drops every waiting transaction; answers how many."),
        Method::new::<Vec<PeerView>>("admin_peers", "The connected peers."),
        Method::new::<Vec<PeerView>>(
            "admin_changePeer",
            "Connects to a peer, disconnects from one, or keeps one out.",
        )
        .param(Param::required::<PeerQuery>("change", "add or remove").spread()),
    ]
}

fn page() -> Param {
    Param::optional::<Page>("page", "which part of the list").spread()
}

fn hash(name: &'static str, summary: &'static str) -> Param {
    Param::required::<HashText>(name, summary)
}

fn address() -> Param {
    Param::required::<AddressText>("address", "an account's address")
}

fn chain() -> Vec<Method> {
    vec![
        Method::new::<ChainInfo>("ombra_chainInfo", "What chain this is and where it stands."),
        Method::new::<BlockView>("ombra_getBlock", "One block.")
            .param(
                Param::required::<BlockSelector>("block", "a block index, a hash, or \"latest\"")
                    .or_named(&["index", "hash"]),
            )
            .param(Param::optional::<bool>("full", "transactions as objects (default) or hashes"))
            .errors(&[NOT_FOUND]),
        Method::new::<PageOf<BlockSummary>>("ombra_getBlocks", "Blocks, newest first.")
            .param(Param::optional::<BlocksQuery>("query", "which blocks").spread()),
        Method::new::<SupplyView>("ombra_getSupply", "The counters of the supply."),
        Method::new::<FeeSchedule>("ombra_feeSchedule", "What sets prices and limits."),
        Method::new::<InclusionEstimate>(
            "ombra_feeEstimate",
            "What a place in the next block costs, and what others tip.",
        )
        .param(
            Param::optional::<u64>("size", "bytes of the payload and 64 more; 512 if not given")
                .or_named(&["bytes"]),
        ),
        Method::new::<Vec<ValidatorView>>("ombra_getValidators", "The validators of a height.")
            .param(Param::optional::<u64>("height", "a block index; the latest if not given"))
            .errors(&[NOT_FOUND]),
        Method::new::<PageOf<PunishedKeyView>>(
            "ombra_listPunishedKeys",
            "Keys of validators that lost their power for good.",
        )
        .param(page()),
        Method::new::<ForksView>("ombra_forks", "Forks that are to come: votes and fixed heights."),
        Method::new::<ParamsView>(
            "ombra_params",
            "Parameters that votes can change: values, bounds, votes.",
        ),
        Method::new::<ProofView>("ombra_getProof", "A proof that is checked without the node.")
            .param(
                Param::required::<ProofQuery>(
                    "of",
                    "account, agentRun, validators, bond, offer, agent or call",
                )
                .spread(),
            )
            .errors(&[NOT_FOUND]),
        Method::new::<serde_json::Map<String, serde_json::Value>>(
            "rpc.discover",
            "The OpenRPC document of every method.",
        ),
        Method::new::<NetInfo>("net_info", "This node's peer id and addresses."),
        Method::new::<Vec<PeerView>>("net_peers", "The connected peers."),
    ]
}

fn submission() -> Vec<Method> {
    vec![
        Method::new::<SendAnswer>("ombra_sendTransaction", "Takes a signed transaction.")
            .kind(Kind::Submit)
            .param(Param::required::<TxObject>("tx", "a signed transaction object"))
            .errors(&[REJECTED, UNAVAILABLE, LIMITED]),
        Method::new::<Vec<SendItem>>("ombra_sendTransactions", "Takes up to 1,000 transactions.")
            .param(Param::required::<Vec<TxObject>>("txs", "an array of signed transactions"))
            .errors(&[UNAVAILABLE, LIMITED]),
        Method::new::<SendAnswer>("ombra_sendSigned", "Joins a built transaction and a signature.")
            .param(Param::required::<SignedParts>("signed", "tx and signature").spread())
            .errors(&[REJECTED, UNAVAILABLE, LIMITED]),
        Method::new::<Simulation>("ombra_simulateTransaction", "What a transaction would do.")
            .param(Param::required::<UnsignedTx>("tx", "a transaction, signed or not"))
            .errors(&[UNAVAILABLE]),
        Method::new::<TxView>("ombra_getTransaction", "A transaction and what became of it.")
            .param(hash("hash", "a transaction's hash"))
            .errors(&[NOT_FOUND]),
        Method::new::<TxView>(
            "ombra_waitForTransaction",
            "The same, as soon as it is included or dropped.",
        )
        .kind(Kind::Wait)
        .param(hash("hash", "a transaction's hash"))
        .param(Param::optional::<WaitOptions>("options", "how long to wait").spread())
        .errors(&[NOT_FOUND, UNAVAILABLE, LIMITED]),
    ]
}

fn accounts() -> Vec<Method> {
    vec![
        Method::new::<AccountView>("ombra_getAccount", "An account; zeros if it does not exist.")
            .param(address()),
        Method::new::<BondView>("ombra_getBond", "What an account has at stake as a miner.")
            .param(address()),
        Method::new::<AgentView>("ombra_getAgent", "An agent with one of its versions.")
            .param(hash("agentId", "the agent's id"))
            .param(Param::optional::<String>("version", "a version; the latest if not given"))
            .errors(&[NOT_FOUND]),
        Method::new::<PageOf<AgentVersionView>>(
            "ombra_getAgentVersions",
            "The versions of an agent, the latest first.",
        )
        .param(hash("agentId", "the agent's id"))
        .param(page())
        .errors(&[NOT_FOUND]),
        Method::new::<PageOf<AgentSummary>>("ombra_listAgents", "Agents of the market.")
            .param(Param::optional::<AgentQuery>("filter", "which agents").spread())
            .param(page()),
        Method::new::<PageOf<OfferView>>("ombra_listOffers", "Offers of miners for executors.")
            .param(Param::optional::<OfferQuery>("filter", "which offers").spread())
            .param(page()),
        Method::new::<PageOf<AccountTx>>(
            "ombra_getAccountTransactions",
            "The transactions of an account, newest first.",
        )
        .param(address())
        .param(page()),
        Method::new::<PageOf<MinerView>>("ombra_listMiners", "Miners, in order of addresses.")
            .param(page()),
        Method::new::<MinerView>("ombra_getMiner", "A miner by address or id.")
            .param(
                Param::required::<MinerSelector>("miner", "an address or a minerId")
                    .or_named(&["address", "minerId"]),
            )
            .errors(&[NOT_FOUND]),
        Method::new::<BlobView>("ombra_getBlob", "A blob's record.")
            .param(Param::required::<String>("blobId", "a blob's id"))
            .errors(&[NOT_FOUND]),
    ]
}

fn runs() -> Vec<Method> {
    vec![
        Method::new::<RunView>("ombra_getAgentRun", "A run.")
            .param(hash("agentRunId", "a run's id"))
            .errors(&[NOT_FOUND]),
        Method::new::<PageOf<StepView>>("ombra_getAgentSteps", "The steps of a run, by index.")
            .param(hash("agentRunId", "a run's id"))
            .param(page())
            .errors(&[NOT_FOUND]),
        Method::new::<PageOf<RunView>>("ombra_listAgentRuns", "Runs, newest first.")
            .param(Param::optional::<RunQuery>("filter", "which runs").spread())
            .param(page()),
        Method::new::<PageOf<TurnView>>("ombra_getConversation", "Turns, in chain order.")
            .param(hash("conversationId", "a conversation's id"))
            .param(page()),
        Method::new::<TurnView>("ombra_getChatTurn", "A turn.")
            .param(hash("hash", "a CHAT_TURN's hash"))
            .errors(&[NOT_FOUND]),
        Method::new::<SettlementView>("ombra_settlement", "What an AGENT_FINISH must state now.")
            .param(hash("agentRunId", "a run's id"))
            .errors(&[NOT_FOUND]),
    ]
}

/// What requesters ask of the market.
fn market() -> Vec<Method> {
    vec![
        Method::new::<EncodedCall>("ombra_encodeCall", "The payload of a call with arguments.")
            .param(
                Param::required::<EncodeQuery>("call", "an agent's method and arguments").spread(),
            )
            .errors(&[NOT_FOUND]),
        Method::new::<DecodedResult>("ombra_decodeResult", "What a result of a method says.")
            .param(
                Param::required::<DecodeQuery>("answer", "an agent's method and a result").spread(),
            )
            .errors(&[NOT_FOUND]),
        Method::new::<EstimateView>(
            "ombra_estimateCall",
            "What a call would cost, and who would work for it.",
        )
        .param(Param::required::<EstimateQuery>("call", "the call that is meant").spread())
        .errors(&[NOT_FOUND]),
        Method::new::<ElectionView>(
            "ombra_getElection",
            "An election of a call's members, with what it was drawn from.",
        )
        .param(hash("callId", "a call's id"))
        .param(Param::optional::<u8>("round", "0, or 1 after an appeal; 0 if not given"))
        .errors(&[NOT_FOUND, UNAVAILABLE]),
    ]
}

fn calls() -> Vec<Method> {
    let id = || hash("callId", "a call's id");
    vec![
        Method::new::<CallView>("ombra_getCall", "A call with its members and texts.")
            .param(id())
            .errors(&[NOT_FOUND]),
        Method::new::<PageOf<CallState>>("ombra_listCalls", "Calls of agents, newest first.")
            .param(Param::optional::<CallQuery>("filter", "which calls").spread())
            .param(page()),
        Method::new::<CallView>(
            "ombra_waitForCall",
            "A call, as soon as it is decided or settled.",
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
            "The randomness of a block, with its proof.",
        )
        .param(Param::required::<u64>("height", "a block index"))
        .errors(&[NOT_FOUND]),
        Method::new::<HashText>("ombra_computeCallId", "The id of a call to be made.")
            .param(Param::required::<String>("from", "the requester's address, in either form"))
            .param(Param::required::<u64>("nonce", "the nonce of the AGENT_CALL")),
        Method::new::<HashText>("ombra_computeCommitment", "What hides a member's answer.").param(
            Param::required::<CommitmentQuery>("answer", "the answer, and whose it is").spread(),
        ),
    ]
}

fn computed() -> Vec<Method> {
    vec![
        Method::new::<HashText>("ombra_computeAgentRunId", "The id of a run to be asked for.")
            .param(Param::required::<String>("from", "the submitter, as written"))
            .param(Param::required::<u64>("nonce", "the nonce of the AGENT_REQUEST"))
            .param(Param::required::<String>("prompt", "the prompt")),
        Method::new::<ConversationId>("ombra_computeConversationId", "The id of a conversation.")
            .param(Param::required::<String>("creator", "the creator's address, as written"))
            .param(Param::optional::<String>("seed", "any text"))
            .param(Param::optional::<u64>("now", "milliseconds since 1970; now if not given")),
        Method::new::<HashText>("ombra_computeAgentId", "The id of an agent.")
            .param(Param::required::<String>("owner", "the owner's address, in either form"))
            .param(Param::required::<String>("name", "the name in the agent's metadata")),
        Method::new::<HashText>("ombra_computeContentHash", "The hash of a content.")
            .param(Param::required::<String>("content", "the content")),
    ]
}

/// One method for each kind, made from its declaration.
fn builders() -> Vec<Method> {
    let method = |builder: &'static Builder| {
        let envelope =
            Param::required::<BuildEnvelope>("envelope", "from, publicKey, nonce, timestamp");
        Method::new::<Built>(&builder.method, &builder.summary)
            .param(envelope.spread())
            .param(Param::fields(builder))
            .errors(builder.errors())
    };
    Builder::all().iter().map(method).collect()
}

fn pool() -> Vec<Method> {
    vec![
        Method::new::<PoolStatus>("txpool_status", "Counts and bytes, together and by type."),
        Method::new::<PoolContent>("txpool_content", "What waits, by sender and nonce.")
            .param(page()),
        Method::new::<SenderPool>("txpool_contentFrom", "What one sender has waiting, by nonce.")
            .param(address()),
    ]
}

fn events() -> Vec<Method> {
    vec![
        Method::new::<String>("ombra_subscribe", "Notifications of one kind of event.")
            .kind(Kind::Subscription)
            .param(Param::required::<EventKind>("kind", "what to be told of"))
            .param(Param::optional::<EventFilter>("filter", "which events").spread())
            .errors(&[UNAVAILABLE]),
        Method::new::<bool>("ombra_unsubscribe", "Ends a subscription.")
            .kind(Kind::Subscription)
            .param(Param::required::<String>("subscription", "what ombra_subscribe answered")),
    ]
}
