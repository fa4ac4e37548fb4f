//! What is under way when votes bring fork v7 to a running chain: runs, blobs, and what waits in the
//! pool. The same story is told on a chain that never comes to v7, and on chains that come to it at each
//! block of the story.

use std::collections::BTreeMap;

use state::forks::{FixedFork, FixedForks};
use state::tables::ForkRows;
use state::{Forks, PendingState, view};
use types::tx::Protection;
use types::{Amount, Bid, Body, CheckedTx, Ender, Event, Hash, Params, Run, RunStatus};

use crate::bodies::{protected, refuse};
use crate::fees::tx;
use crate::world::{
    ALICE, BOB, FUNDS, MINER, OTHER_MINER, PROPOSER, SECOND, START, STRANGER, Swept, Who, World,
    answer, blob_chunk, blob_finalize, blob_init, cancel, chat, claim, step, transfer,
};

/// The last block of the story.
const LAST: u64 = 20;

/// Deadlines that pass within the story.
fn params() -> Params {
    Params {
        pending_ttl_ms: 9_500,
        claim_ttl_ms: 3_500,
        step_ttl_ms: 4_500,
        blob_ttl_ms: 7_500,
        max_reopens: 1,
        ..Params::default()
    }
}

/// A chain whose genesis does not name v7. If there is a height, the validators have fixed it by votes.
fn chain(v7: Option<u64>) -> World {
    let mut world = World::with_forks(params(), Forks::default(), &[(PROPOSER, 1)]);
    if let Some(height) = v7 {
        let fixed = FixedFork { height, since: 0 };
        world.write(|draft| draft.put::<FixedForks>(&"v7".to_owned(), &fixed));
    }
    world
}

/// The runs of the story, by what becomes of them.
struct Story {
    /// Ended before anything else happens.
    early: Hash,
    /// Claimed in block 6, with steps in blocks 7 and 9, and ended by its miner in block 11.
    answered: Hash,
    /// Taken back in block 8.
    cancelled: Hash,
    /// Nobody claims it.
    unheard: Hash,
    /// Its claim lapses in block 6; claimed by another miner in block 8, and ended in block 10.
    reopened: Hash,
    /// Its claims lapse twice.
    given_up: Hash,
    /// Its miner does no more after a step in block 5.
    abandoned: Hash,
}

const CHUNK: usize = 400_000;
/// The bytes of a blob of two chunks.
static BLOB: [u8; CHUNK + 1] = [7; CHUNK + 1];

impl Story {
    /// Blocks 1 and 2: everything is requested, and one run is over.
    fn begin(world: &mut World) -> Self {
        let runs: Vec<Hash> = (0..7).map(|at| world.request(ALICE, 5_000 + at, 5)).collect();
        let [early, answered, cancelled, unheard, reopened, given_up, abandoned] = runs[..] else {
            panic!("seven runs")
        };
        world.must(MINER, &claim(MINER, early));
        world.must(MINER, &step(early, 0, 40));
        world.finish(MINER, early, "completed");
        for blob in ["finished", "left"] {
            world.must(BOB, &blob_init(blob, &BLOB));
            world.must(BOB, &blob_chunk(blob, 0, &BLOB[..CHUNK]));
        }
        Self { early, answered, cancelled, unheard, reopened, given_up, abandoned }
    }

    /// What is sent in a block.
    fn send(&self, world: &mut World, block: u64) {
        match block {
            2 => {
                world.must(MINER, &claim(MINER, self.reopened));
                world.must(OTHER_MINER, &claim(OTHER_MINER, self.given_up));
            }
            4 => drop(world.must(MINER, &claim(MINER, self.abandoned))),
            5 => {
                world.must(MINER, &step(self.abandoned, 0, 30));
                world.must(BOB, &blob_chunk("finished", 1, &BLOB[CHUNK..]));
            }
            6 => {
                world.must(MINER, &claim(MINER, self.answered));
                world.must(BOB, &blob_finalize("finished"));
            }
            7 => {
                world.must(MINER, &step(self.answered, 0, 500));
                world.must(MINER, &claim(MINER, self.given_up));
            }
            8 => {
                world.must(ALICE, &cancel(self.cancelled));
                world.must(OTHER_MINER, &claim(OTHER_MINER, self.reopened));
            }
            9 => {
                world.must(MINER, &step(self.answered, 1, 250));
                world.must(OTHER_MINER, &step(self.reopened, 0, 10));
            }
            10 => world.finish(OTHER_MINER, self.reopened, "failed"),
            11 => world.finish(MINER, self.answered, "completed"),
            _ => {}
        }
    }

    fn runs(&self) -> [Hash; 7] {
        let Self { early, answered, cancelled, unheard, reopened, given_up, abandoned } = self;
        [*early, *answered, *cancelled, *unheard, *reopened, *given_up, *abandoned]
    }
}

type Rows = Vec<(&'static str, Vec<u8>, Vec<u8>)>;

/// What the story leaves after a block.
struct Page {
    runs: BTreeMap<Hash, Run>,
    /// The rows that no rule of v7 writes otherwise.
    rows: Rows,
    /// What the transactions and the deadlines did.
    events: Vec<Event>,
    escrowed: Amount,
}

/// Tables in which v7 changes nothing of what the story does.
const SAME: [&str; 13] = [
    "steps",
    "miners",
    "miner_figures",
    "submitter_figures",
    "blobs",
    "blob_chunks",
    "blob_pieces",
    "blob_remains",
    "deadlines",
    "runs_by_status",
    "runs_by_submitter",
    "runs_by_miner",
    "runs_by_conversation",
];

/// Tells the story on a chain, and answers what each block left, from block 1 on.
fn tell(v7: Option<u64>) -> (World, Story, Vec<Page>) {
    let mut world = chain(v7);
    let story = Story::begin(&mut world);
    let mut pages = Vec::new();
    for block in 1..=LAST {
        story.send(&mut world, block);
        let executed = world.next_block();
        let mut events: Vec<Event> =
            executed.events.transactions.iter().map(|it| it.event.clone()).collect();
        events.extend(executed.swept());
        let runs = story.runs().map(|id| (id, world.run(id))).into();
        let rows = world.memory.rows().into_iter().filter(|(table, ..)| SAME.contains(table));
        let escrowed = world.supply_before_the_block().escrowed;
        pages.push(Page { runs, rows: rows.collect(), events, escrowed });
    }
    (world, story, pages)
}

/// The run without what only v7 tells of it.
fn as_of_v6(run: &Run) -> Run {
    Run { ended_by: None, ..run.clone() }
}

/// Who has to stand in the record of a run as the one who ended it.
fn ender(run: &Run, v7: u64) -> Option<Ender> {
    let ended = run.finished_at.map(|at| (at - START) / SECOND)?;
    let by = match (run.status, run.finish) {
        (RunStatus::Cancelled, _) => Ender::Submitter,
        (_, Some(_)) => Ender::Miner,
        (_, None) => Ender::Sweep,
    };
    (ended >= v7).then_some(by)
}

#[test]
fn whatever_a_run_or_a_blob_has_come_to_at_the_height_it_goes_on_as_if_there_were_no_fork() {
    let (plain, story, pages) = tell(None);
    assert_eq!(story_ends(&plain, &story), ENDS);
    for v7 in 1..=LAST + 1 {
        let (world, story, crossed) = tell(Some(v7));
        let active = view::get::<ForkRows>(&*world.memory, &"v7".to_owned()).unwrap();
        assert_eq!(active.map(|fixed| fixed.since), Some(v7).filter(|v7| *v7 <= LAST));
        assert_eq!(story_ends(&world, &story), ENDS, "v7 from {v7}");
        for ((block, page), other) in (1..).zip(&pages).zip(&crossed) {
            assert!(
                page.rows == other.rows,
                "v7 from {v7}, block {block}: {}",
                first_other(page, other)
            );
            assert_eq!(page.events, other.events, "v7 from {v7}, block {block}");
            assert_eq!(page.escrowed, other.escrowed, "v7 from {v7}, block {block}");
            for (id, run) in &other.runs {
                assert_eq!(as_of_v6(run), page.runs[id], "v7 from {v7}, block {block}");
                assert_eq!(run.ended_by, ender(run, v7), "v7 from {v7}, block {block}: {run:?}");
                assert_eq!(run.protection, None);
            }
        }
        // Records that were written before are the same bytes for ever.
        for (id, run) in &crossed[usize::try_from(LAST).unwrap() - 1].runs {
            let is_old = ender(run, v7).is_none();
            let same = raw(&world, *id) == raw(&plain, *id);
            assert_eq!(same, is_old, "v7 from {v7}: {run:?}");
        }
        pays_only_inclusion(&plain, &world);
    }
}

/// How the runs end, whatever the chain's rules are.
const ENDS: [(RunStatus, u64); 7] = [
    (RunStatus::Completed, 1),
    (RunStatus::Completed, 2),
    (RunStatus::Cancelled, 0),
    (RunStatus::Timeout, 0),
    (RunStatus::Failed, 1),
    (RunStatus::Timeout, 0),
    (RunStatus::Timeout, 1),
];

fn story_ends(world: &World, story: &Story) -> [(RunStatus, u64); 7] {
    story.runs().map(|id| {
        let run = world.run(id);
        (run.status, run.step_count)
    })
}

fn raw(world: &World, run: Hash) -> Vec<u8> {
    let rows = world.memory.rows().into_iter();
    let mut found = rows.filter(|(table, key, _)| *table == "runs" && key == run.as_bytes());
    found.next().expect("a run").2
}

fn first_other(page: &Page, other: &Page) -> String {
    let of = |ours: &Rows, theirs: &Rows| {
        ours.iter().find(|row| !theirs.contains(row)).map(|(table, key, _)| (*table, key.clone()))
    };
    format!("{:?} {:?}", of(&page.rows, &other.rows), of(&other.rows, &page.rows))
}

/// Miners have what they have on a chain without v7, to the micro; the others have paid for places,
/// and that was burned.
fn pays_only_inclusion(plain: &World, world: &World) {
    for miner in [MINER, OTHER_MINER] {
        assert_eq!(world.balance(miner), plain.balance(miner), "claims, steps and ends are free");
    }
    let paid = |who: Who| plain.balance(who) - world.balance(who);
    let burned = world.supply().burned.get() - plain.supply().burned.get();
    assert_eq!(paid(ALICE) + paid(BOB), burned);
}

/// What a request of a wallet of later rules says, which means nothing before v7.
fn protected_body(world: &World) -> Body {
    let protection = Protection {
        miners: Some(vec![OTHER_MINER.address().into()]),
        claim_bond: Some(Amount::new(100_000)),
        max_tokens_per_step: Some(10),
        refuse_ms: Some(600_000),
    };
    protected(world.request_body(ALICE, 5_000, 5), protection)
}

#[test]
fn a_run_that_was_requested_before_v7_is_not_protected_whatever_its_request_says() {
    let mut world = chain(Some(3));
    let body = protected_body(&world);
    world.must(ALICE, &body);
    let run = body.agent_run_id().unwrap();
    world.next_blocks(2);
    // Block 3, the first one of v7: a miner that is not named, without a bond, and with long steps.
    world.must(MINER, &claim(MINER, run));
    world.must(MINER, &step(run, 0, 300));
    let before = world.balance(MINER);
    world.finish(MINER, run, "completed");
    assert_eq!(world.balance(MINER), before + 300, "nothing is held");
    world.next_block();
    assert_eq!(world.run(run).locked_bond, None);
    assert_eq!(world.code(ALICE, &refuse(run)), "REFUSE_CLOSED");
    // The same request of now is.
    let body = protected_body(&world);
    world.must(ALICE, &body);
    world.next_block();
    let run = body.agent_run_id().unwrap();
    assert_eq!(world.code(MINER, &claim(MINER, run)), "MINER_NOT_ALLOWED");
    assert_eq!(world.code(OTHER_MINER, &claim(OTHER_MINER, run)), "BOND_TOO_SMALL");
}

/// What wallets of before v7 sent while its rules were not there: nothing of it says what its place may
/// cost.
fn waiting(world: &World) -> [(CheckedTx, &'static str); 6] {
    let memo = format!(r#","memo":"{}""#, "x".repeat(300));
    let plain = |who, body: &Body| tx(world, who, body, Bid::default(), "");
    let request = world.request_body(ALICE, 5_000, 5);
    let run = request.agent_run_id().unwrap();
    [
        (plain(ALICE, &request), "ok"),
        (plain(MINER, &claim(MINER, run)), "ok"),
        (plain(BOB, &transfer(ALICE, FUNDS, 0)), "INSUFFICIENT_BALANCE"),
        (tx(world, OTHER_MINER, &chat("a"), Bid::default(), &memo), "INVALID_FIELD"),
        (tx(world, PROPOSER, &chat("a"), Bid::default(), r#","tip":7"#), "MALFORMED"),
        (plain(STRANGER, &transfer(ALICE, 0, 0)), "INSUFFICIENT_BALANCE"),
    ]
}

/// Admits all, and answers what became of each.
fn admitted(pending: &mut PendingState, txs: &[(CheckedTx, &'static str)]) -> Vec<&'static str> {
    txs.iter().map(|(tx, _)| answer(pending.admit(tx))).collect()
}

#[test]
fn what_waits_across_the_height_is_admitted_anew_by_the_rules_of_v7() {
    let mut world = chain(Some(3));
    let txs = waiting(&world);
    let mut pending = world.pool();
    assert_eq!(admitted(&mut pending, &txs), ["ok"; 6]);
    let advance = |world: &mut World, pending: &mut PendingState| {
        let executed = world.next_block();
        world.tell(pending, &[], &executed)
    };
    assert!(advance(&mut world, &mut pending), "block 2 has the rules of before");
    assert!(!advance(&mut world, &mut pending), "block 3 has those of v7");
    drop(pending.reset(world.still()).unwrap());
    let expected = txs.each_ref().map(|(_, code)| *code);
    assert_eq!(admitted(&mut pending, &txs), expected);
    // The block is of the same opinion as the pool.
    for (tx, code) in &txs {
        assert_eq!(answer(world.builder().push(tx)), *code);
    }
    assert_eq!(world.next_block().block.transactions.len(), 2);
}
