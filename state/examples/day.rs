//! The base fee over a day that is made up: a quiet night, a morning in which more and more people come,
//! an afternoon in which more is asked for than blocks are meant to have, somebody who fills the blocks
//! for ten minutes, and an evening. The rule is the chain's own (`state::fees`); people and what they
//! are willing to pay are invented, and the same each time. Prints the table of docs/performance.md.
//!
//! `./run cargo run --release -p state --example day`

#![expect(clippy::print_stdout, reason = "it prints a table")]

use state::fees::{Used, inclusion_fee, next_base_fee};
use types::Params;

const HOUR_MS: u64 = 3_600_000;
/// What is asked for in each hour, in thousandths of what half full blocks have room for.
const DEMAND: [u64; 24] = [
    20, 10, 10, 10, 10, 20, 60, 200, 450, 700, 850, 900, 800, 950, 1_150, 1_250, 1_150, 950, 800,
    700, 600, 400, 150, 50,
];
/// When somebody fills every block, whatever the base fee is, up to a price.
const SPIKE_FROM_MS: u64 = 19 * HOUR_MS + HOUR_MS / 4;
const SPIKE_TO_MS: u64 = SPIKE_FROM_MS + HOUR_MS / 6;
const SPIKE_HIGHEST: u64 = 10_000;

/// What is done on the chain together: its size with signatures, its work by docs/protocol.md section
/// 16, and the bytes and the work that it is charged for.
#[derive(Clone, Copy)]
struct Deed {
    bytes: u64,
    work: u64,
    charged: u64,
    charged_work: u64,
}

impl Deed {
    const fn used(self, times: u64) -> Used {
        Used { bytes: times * self.bytes, work: times * self.work }
    }

    /// What the base fee follows of it.
    const fn priced(self, times: u64) -> Used {
        Used { bytes: times * self.charged, work: times * self.charged_work }
    }
}

const fn sum(one: Used, other: Used) -> Used {
    Used { bytes: one.bytes + other.bytes, work: one.work + other.work }
}

const TRANSFER: Deed = Deed { bytes: 484, work: 30, charged: 484, charged_work: 30 };
/// A request, a claim, two steps and a settlement. Only the request is charged for its place.
const RUN: Deed = Deed {
    bytes: 700 + 574 + 2 * 584 + 612,
    work: 5 * 43,
    charged: 700 + 2_048,
    charged_work: 43 * (700 + 2_048) / 700,
};
/// Two transfers and a run are what one part of the demand is.
const PART: Deed = Deed {
    bytes: 2 * TRANSFER.bytes + RUN.bytes,
    work: 2 * TRANSFER.work + RUN.work,
    charged: 2 * TRANSFER.charged + RUN.charged,
    charged_work: 2 * TRANSFER.charged_work + RUN.charged_work,
};
/// A turn of 16,384 bytes, which fills a block's bytes before its work.
const TURN: Deed = Deed { bytes: 16_885, work: 81, charged: 16_885, charged_work: 81 };
const TURN_MICRO: u64 = 100;

/// Somebody who pays up to a base fee and stays away above it.
struct People {
    /// Of a hundred.
    share: u64,
    highest: u64,
    /// What of their demand is due and not sent yet, in millionths of a part.
    due: u64,
    /// Parts that wait for room in a block.
    waiting: u64,
}

/// What is counted of an hour.
#[derive(Default)]
struct Hour {
    /// Thousandths of what a block may have.
    fullness: Vec<u64>,
    base_fees: Vec<u64>,
    asked: u64,
    stayed_away: u64,
}

/// Numbers that look random (`SplitMix64`).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// The chain as far as its fees go.
struct Day {
    params: Params,
    base_fee: u64,
    since_block_ms: u64,
    people: [People; 3],
    dice: Dice,
    spent_micro: u64,
    blocks_of_spike: u64,
}

impl Day {
    fn new() -> Self {
        let params = Params::default();
        let people = |share, highest| People { share, highest, due: 0, waiting: 0 };
        Self {
            base_fee: params.base_fee_floor,
            since_block_ms: 0,
            // 2,000 is what holds for whoever says nothing.
            people: [people(15, 20_000), people(65, 2_000), people(20, 100)],
            dice: Dice(1),
            spent_micro: 0,
            blocks_of_spike: 0,
            params,
        }
    }

    /// What is asked for in thousandths of the target, between the values of two hours.
    fn demand(now_ms: u64) -> u64 {
        let hour = usize::try_from(now_ms / HOUR_MS).unwrap_or_default();
        let (from, to) = (DEMAND[hour % 24], DEMAND[(hour + 1) % 24]);
        let past = now_ms % HOUR_MS;
        (from * (HOUR_MS - past) + to * past) / HOUR_MS
    }

    /// Whether a block may have so many more of a deed.
    fn room(&self, used: Used, deed: Deed) -> u64 {
        let bytes = u64::from(self.params.max_block_bytes).saturating_sub(used.bytes) / deed.bytes;
        bytes.min(self.params.max_block_work.saturating_sub(used.work) / deed.work)
    }

    /// What happens until a block may be made, and the block if one is.
    fn tick(&mut self, now_ms: u64, hour: &mut Hour) {
        let interval_ms = self.params.min_block_interval_ms;
        self.since_block_ms += interval_ms;
        // From three quarters to five quarters of what is usual at this time.
        let luck = 750 + self.dice.next() % 501;
        let target = self.room(Used::default(), PART) / 2;
        for people in &mut self.people {
            people.due += target * Self::demand(now_ms) * luck * people.share / 100;
            let parts = people.due / 1_000_000;
            people.due %= 1_000_000;
            hour.asked += parts;
            if self.base_fee > people.highest {
                hour.stayed_away += parts;
            } else {
                people.waiting += parts;
            }
        }
        let fills =
            (SPIKE_FROM_MS..SPIKE_TO_MS).contains(&now_ms) && self.base_fee <= SPIKE_HIGHEST;
        let is_idle = !fills && self.people.iter().all(|people| people.waiting == 0);
        if is_idle && self.since_block_ms < self.params.heartbeat_ms {
            return;
        }
        self.block(fills, hour);
    }

    /// Who pays more gets in first; the others wait for the next block.
    fn block(&mut self, fills: bool, hour: &mut Hour) {
        self.since_block_ms = 0;
        let (mut used, mut priced) = (Used::default(), Used::default());
        if fills {
            let turns = self.room(used, TURN);
            used = TURN.used(turns);
            priced = TURN.priced(turns);
            let place = inclusion_fee(TURN.charged, self.base_fee).get();
            self.spent_micro += turns * (place + TURN_MICRO);
            self.blocks_of_spike += 1;
        }
        for index in 0..self.people.len() {
            let room = self.room(used, PART);
            let people = &mut self.people[index];
            if self.base_fee > people.highest {
                continue;
            }
            let taken = people.waiting.min(room);
            people.waiting -= taken;
            used = sum(used, PART.used(taken));
            priced = sum(priced, PART.priced(taken));
        }
        let bytes = used.bytes * 1_000 / u64::from(self.params.max_block_bytes);
        hour.fullness.push(bytes.max(used.work * 1_000 / self.params.max_block_work));
        hour.base_fees.push(self.base_fee);
        self.base_fee = next_base_fee(self.base_fee, priced, &self.params);
    }
}

/// The least, the middle and the greatest.
fn spread(values: &mut [u64]) -> [u64; 3] {
    values.sort_unstable();
    [0, values.len() / 2, values.len().saturating_sub(1)]
        .map(|at| values.get(at).copied().unwrap_or_default())
}

fn percent(thousandths: u64) -> String {
    format!("{}.{}", thousandths / 10, thousandths % 10)
}

fn main() {
    let mut day = Day::new();
    println!(
        "| hour | blocks | full, median and most, % | base fee, least / median / most | a transfer | a run | stayed away, % |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut dear_until_ms = None;
    for number in 0..24 {
        let mut hour = Hour::default();
        let mut now_ms = number * HOUR_MS;
        while now_ms < (number + 1) * HOUR_MS {
            day.tick(now_ms, &mut hour);
            now_ms += day.params.min_block_interval_ms;
            if now_ms > SPIKE_TO_MS && day.base_fee > 2_000 {
                dear_until_ms = Some(now_ms - SPIKE_TO_MS);
            }
        }
        let blocks = hour.fullness.len();
        let [_, full, fullest] = spread(&mut hour.fullness);
        let [least, median, most] = spread(&mut hour.base_fees);
        let away = hour.stayed_away * 1_000 / hour.asked.max(1);
        let costs = |deed: Deed| inclusion_fee(deed.charged, median);
        println!(
            "| {number} | {blocks} | {} / {} | {least} / {median} / {most} | {} | {} | {} |",
            percent(full),
            percent(fullest),
            costs(TRANSFER),
            costs(RUN),
            percent(away)
        );
    }
    let (blocks, spent) = (day.blocks_of_spike, day.spent_micro / 1_000_000);
    println!("\nWho filled {blocks} blocks burned {spent} OMBRA for that.");
    if let Some(late_ms) = dear_until_ms {
        println!("The base fee was above 2,000 until {} s after the end.", late_ms / 1_000);
    }
}
