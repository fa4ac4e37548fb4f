//! Every state of the journal, and how a miner is brought there so that it can be killed.

use testkit::wire::{Call, Side, Trap};

/// Where a miner is held up.
#[derive(Clone, Debug)]
pub(super) enum Moment {
    /// The model has this question, counted from 1, and does not answer.
    Asked(usize),
    /// The tools' server has this call, counted from 1, and does not answer.
    Called(usize),
    /// In the first call of a tool, and in the next life when that call is made again.
    CalledTwice,
    /// A call to the node is held up.
    Wire(Trap),
}

impl Moment {
    /// Whether the miner is killed in this call of a tool.
    pub(super) fn is_call(&self, number: usize) -> bool {
        matches!(self, Self::Called(it) if *it == number)
    }
}

/// A state of the journal.
#[derive(Clone, Debug)]
pub(super) struct Case {
    /// In words.
    pub(super) name: &'static str,
    /// How the miner comes there.
    pub(super) moment: Moment,
    /// What the chain must have when the miner is killed.
    pub(super) chain: Chain,
    /// What the journal must have: the phase, how far the calls of the next step are, turns to be
    /// written, and what is signed.
    pub(super) journal: &'static str,
}

/// What the chain has of the run.
#[derive(Clone, Copy, Debug)]
pub(super) enum Chain {
    /// This status and so many steps.
    Is(&'static str, u64),
    /// The same, and this many transactions of the miner.
    Has(&'static str, u64, u64),
}

/// The worker looks at the run: it does so before every action.
const LOOK: Call = Call::Run;

/// The first state; the others differ from it in what is said of them.
const fn case(name: &'static str) -> Case {
    Case { name, moment: looks(""), chain: Chain::Is("pending", 0), journal: "reserved" }
}

impl Case {
    const fn at(self, moment: Moment) -> Self {
        Self { moment, ..self }
    }

    const fn finds(self, chain: Chain, journal: &'static str) -> Self {
        Self { chain, journal, ..self }
    }
}

/// Held up when it looks what is next, after something has happened.
const fn looks(after: &'static str) -> Moment {
    Moment::Wire(Trap { after, call: LOOK, passing: 0, side: Side::Request })
}

/// Held up when it sends a transaction of this type, the first after something has happened.
const fn sends(after: &'static str, kind: &'static str, side: Side) -> Moment {
    Moment::Wire(Trap { after, call: Call::Send(kind), passing: 0, side })
}

const CLAIM: &str = "AGENT_CLAIM";
const BOND: &str = "MINER_BOND";
const STEP: &str = "AGENT_STEP";
const FINISH: &str = "AGENT_FINISH";
const TURN: &str = "CHAT_TURN";
const INIT: &str = "SOCIAL_BLOB_INIT";
const CHUNK: &str = "SOCIAL_BLOB_CHUNK";
const CLOSE: &str = "SOCIAL_BLOB_FINALIZE";

/// Around the bond that the claim of a protected run needs, on a chain with fork v7.
pub(super) const BOND_CASES: &[Case] = &[
    case("the bond is signed, and not sent")
        .at(sends("", BOND, Side::Request))
        .finds(Chain::Has("pending", 0, 0), "reserved, signed bond"),
    case("the bond is sent and included, and the answer lost")
        .at(sends("", BOND, Side::Answer))
        .finds(Chain::Has("pending", 0, 1), "reserved, signed bond"),
    case("the bond is there, and the claim signed and not sent")
        .at(sends("", CLAIM, Side::Request))
        .finds(Chain::Has("pending", 0, 1), "claim_signed, signed claim"),
    case("the claim has locked the bond, and the answer is lost")
        .at(sends("", CLAIM, Side::Answer))
        .finds(Chain::Has("claimed", 0, 2), "claim_signed, signed claim"),
    case("the settlement is sent, the reward held, and the answer lost")
        .at(sends("", FINISH, Side::Answer))
        .finds(Chain::Is("completed", 3), "finish_signed, signed finish"),
];

/// All others, in the order of a run's life. The run is always the same: two calls of tools, which
/// are turns of the conversation too; thoughts, which are a blob, and a call; and an answer that takes
/// a blob as an output and one as the answer.
pub(super) const CASES: &[Case] = &[
    case("a slot is reserved").at(looks("")).finds(Chain::Is("pending", 0), "reserved"),
    case("the claim is signed, and not sent")
        .at(sends("", CLAIM, Side::Request))
        .finds(Chain::Is("pending", 0), "claim_signed, signed claim"),
    case("the claim is sent and included, and the answer lost")
        .at(sends("", CLAIM, Side::Answer))
        .finds(Chain::Is("claimed", 0), "claim_signed, signed claim"),
    case("the claim is accepted, and its block not known")
        .at(Moment::Wire(Trap {
            after: "sent AGENT_CLAIM 1",
            call: Call::Method("ombra_waitForTransaction"),
            passing: 0,
            side: Side::Answer,
        }))
        .finds(Chain::Is("claimed", 0), "claim_signed, signed claim"),
    case("the run is its own")
        .at(looks("sent AGENT_CLAIM 1"))
        .finds(Chain::Is("claimed", 0), "working"),
    case("the model is asked").at(Moment::Asked(1)).finds(Chain::Is("claimed", 0), "working"),
    case("the output is written down")
        .at(looks("said 1"))
        .finds(Chain::Is("claimed", 0), "working, wanted wanted"),
    case("a call that may be repeated has begun")
        .at(Moment::Called(1))
        .finds(Chain::Is("claimed", 0), "working, begun wanted"),
    case("a call that must not be repeated has begun")
        .at(Moment::Called(2))
        .finds(Chain::Is("claimed", 0), "working, done begun"),
    case("all calls are done")
        .at(looks("called 2"))
        .finds(Chain::Is("claimed", 0), "working, done done"),
    case("the step is signed, and not sent")
        .at(sends("", STEP, Side::Request))
        .finds(Chain::Is("claimed", 0), "step_signed, done done, 3 turns, signed step"),
    case("the step is sent and included, and the answer lost")
        .at(sends("", STEP, Side::Answer))
        .finds(Chain::Is("running", 1), "step_signed, done done, 3 turns, signed step"),
    case("the step is on the chain, and its turns are to be written")
        .at(looks("sent AGENT_STEP 1"))
        .finds(Chain::Is("running", 1), "working, 3 turns"),
    case("a turn is signed, and not sent")
        .at(sends("", TURN, Side::Request))
        .finds(Chain::Is("running", 1), "working, 3 turns, signed turn"),
    case("a turn is sent and included, and the answer lost")
        .at(sends("", TURN, Side::Answer))
        .finds(Chain::Has("running", 1, 3), "working, 3 turns, signed turn"),
    case("the model is asked again").at(Moment::Asked(2)).finds(Chain::Is("running", 1), "working"),
    case("a blob is signed, and not sent")
        .at(sends("", INIT, Side::Request))
        .finds(Chain::Is("running", 1), "working, done, signed blob"),
    case("a chunk is sent and included, and the answer lost")
        .at(sends("", CHUNK, Side::Answer))
        .finds(Chain::Has("running", 1, 7), "working, done, signed blob"),
    case("the end of a blob is signed, and not sent")
        .at(sends("", CLOSE, Side::Request))
        .finds(Chain::Is("running", 1), "working, done, signed blob"),
    case("the last step is signed, with the end that follows from it")
        .at(sends("sent AGENT_STEP 2", STEP, Side::Request))
        .finds(Chain::Is("running", 2), "step_signed, no calls, 1 turns, signed step"),
    case("the end is decided, and a turn is to be written")
        .at(looks("sent AGENT_STEP 3"))
        .finds(Chain::Is("running", 3), "ending, 1 turns"),
    case("the end is decided, and a turn is signed")
        .at(sends("sent AGENT_STEP 3", TURN, Side::Request))
        .finds(Chain::Is("running", 3), "ending, 1 turns, signed turn"),
    case("the end is decided, and a chunk of the answer is signed")
        .at(sends("sent AGENT_STEP 3", CHUNK, Side::Request))
        .finds(Chain::Is("running", 3), "ending, signed blob"),
    case("the settlement is signed, and not sent")
        .at(sends("", FINISH, Side::Request))
        .finds(Chain::Is("running", 3), "finish_signed, signed finish"),
    case("the settlement is sent and included, and the answer lost")
        .at(sends("", FINISH, Side::Answer))
        .finds(Chain::Is("completed", 3), "finish_signed, signed finish"),
    case("the settlement is known to be in a block")
        .at(looks("sent AGENT_FINISH 1"))
        .finds(Chain::Is("completed", 3), "finish_signed"),
    case("nothing is left to do")
        .at(Moment::Wire(Trap {
            after: "sent AGENT_FINISH 1",
            call: LOOK,
            passing: 1,
            side: Side::Request,
        }))
        .finds(Chain::Is("completed", 3), "over"),
];
