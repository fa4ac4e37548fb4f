//! Random lives of calls. After every block the world executes it again and checks the invariants: money,
//! locks, assignments, and that each call waits for one thing.

use std::collections::BTreeMap;

use proptest::prelude::*;
use types::call::CallStatus;
use types::tx::AgentCall;
use types::{Body, Hash};

use crate::market_world::{Market, appeal, commit, fails, reveal, reveal_failure, says};
use crate::world::{ALICE, BOB, MINER, Who};

/// Dice for one action.
#[derive(Clone, Copy, Debug)]
struct Act {
    kind: u8,
    pick: u8,
    twist: u8,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = (0..26_u8, any::<u8>(), any::<u8>());
    let act = act.prop_map(|(kind, pick, twist)| Act { kind, pick, twist });
    prop::collection::vec(act, 1..120)
}

/// What members committed to: a result, or that the agent fails.
const RESULTS: [&[u8]; 3] = [b"yes", b"no", b"fails"];

#[derive(Default)]
struct Lives {
    calls: Vec<Hash>,
    committed: BTreeMap<(Hash, Who), usize>,
}

impl Lives {
    fn call(&self, pick: u8) -> Option<Hash> {
        let recent = self.calls.len().min(3);
        let from = self.calls.len() - recent;
        self.calls.get(from + usize::from(pick) % recent.max(1)).copied()
    }

    /// The members of the round that is open, and its number.
    fn members(market: &Market, id: Hash) -> (Vec<Who>, u8) {
        let rounds = market.call(id).rounds.len();
        let round = u8::try_from(rounds.max(1) - 1).unwrap();
        (market.members(id, round), round)
    }

    fn act(&mut self, market: &mut Market, act: Act) {
        let Act { kind, pick, twist } = act;
        match kind {
            0..=3 => {
                let who = if twist % 2 == 0 { ALICE } else { BOB };
                let size = [1, 3, 3, 5][usize::from(pick % 4)];
                let appealable = Some(pick % 3 != 0);
                let body = AgentCall { appealable, ..market.body(who, size) };
                let id = body.call_id;
                if market.world.send(who, &Body::AgentCall(body)).is_ok() {
                    self.calls.push(id);
                }
            }
            4..=12 => {
                let Some(id) = self.call(pick) else { return };
                let (members, round) = Self::members(market, id);
                for (nth, who) in members.into_iter().enumerate() {
                    // Most say the same, and some say nothing.
                    let dice = (usize::from(twist) >> (nth % 4)) % 8;
                    let result = if dice < 5 { usize::from(pick % 2) } else { dice % 3 };
                    let answer = if result == 2 { fails() } else { says(RESULTS[result]) };
                    let is_silent = (usize::from(pick) + nth) % 7 == 0;
                    let sent = !is_silent
                        && market.world.send(who, &commit(id, round, who, answer)).is_ok();
                    if sent {
                        self.committed.insert((id, who), result);
                    }
                }
            }
            13..=18 => {
                let Some(id) = self.call(pick) else { return };
                let (members, round) = Self::members(market, id);
                for (nth, who) in members.into_iter().enumerate() {
                    let Some(result) = self.committed.get(&(id, who)) else { continue };
                    if (usize::from(twist) + nth) % 6 == 0 {
                        continue;
                    }
                    let body = match result {
                        2 => reveal_failure(id),
                        _ => reveal(id, round, RESULTS[*result]),
                    };
                    drop(market.world.send(who, &body));
                }
            }
            19 => {
                let who = if twist % 2 == 0 { BOB } else { MINER };
                if let Some(id) = self.call(pick) {
                    drop(market.world.send(who, &appeal(id)));
                }
            }
            _ => {
                let waits = [500, 1_000, 2_000, 20_000, 130_000];
                market.world.next_block_after(waits[usize::from(twist) % waits.len()]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_call_ends_settled_and_nothing_is_left_locked(acts in acts()) {
        let mut market = Market::of(14);
        let mut lives = Lives::default();
        for act in acts {
            lives.act(&mut market, act);
        }
        for _ in 0..60 {
            market.world.next_block_after(30_000);
        }
        for id in &lives.calls {
            let call = market.call(*id);
            prop_assert!(call.is_settled(), "{:?}", call);
            prop_assert!(call.status != CallStatus::Electing);
        }
        for miner in &market.miners {
            prop_assert!(market.bond(*miner).locked.is_zero());
        }
    }
}
