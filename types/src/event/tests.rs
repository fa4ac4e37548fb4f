//! Golden bytes of events: they are stored, and a replay must reproduce them.

use super::{BlockEvents, Credit, EscrowChange, Event, TxEvent};
use crate::agent::ExecutorId;
use crate::call::CallChange;
use crate::codec::decode;
use crate::testing::{assert_bytes, number, numbers};
use crate::{Address, Amount, Hash, Offer, Prices, PublicKey, RunStatus, Settlement};

const RUN: Hash = Hash::new([0xa1; 32]);
const SUBMITTER: Address = Address::new([0xa2; 20]);
const MINER: Address = Address::new([0xa3; 20]);
const KEY: PublicKey = PublicKey::new([0xa4; 32]);
const SETTLEMENT: Settlement = Settlement {
    miner_reward: Amount::new(6),
    user_refund: Amount::new(7),
    network_fee: Amount::new(8),
};

/// One event of each variant, with its bytes after the variant's number.
fn every_event() -> Vec<(Event, String)> {
    [every_event_of_v6(), every_event_of_v7(), every_event_of_v8()].concat()
}

/// Those that every chain has.
fn every_event_of_v6() -> Vec<(Event, String)> {
    let (run, submitter, miner, key) =
        ("a1".repeat(32), "a2".repeat(20), "a3".repeat(20), "a4".repeat(32));
    let (parts, blob) = (numbers([6, 7, 8]), format!("{} 62", number(1)));
    let blob_id = || "b".to_owned();
    let (amount, fee) = (Amount::new(1), Amount::new(2));
    let (agent_run_id, settlement) = (RUN, SETTLEMENT);
    let finished = Event::RunFinished {
        agent_run_id,
        submitter: SUBMITTER,
        miner: MINER,
        status: RunStatus::Failed,
        settlement,
    };
    let stepped = Event::RunStepped { agent_run_id, miner: MINER, step_index: 3, output_tokens: 4 };
    let timed_out =
        |miner| Event::RunTimedOut { agent_run_id, submitter: SUBMITTER, miner, settlement };
    let stored =
        Event::BlobChunkStored { blob_id: blob_id(), index: 3, is_as_announced: Some(true) };
    vec![
        (
            Event::Transferred { to: SUBMITTER, amount, fee },
            format!("{submitter} {}", numbers([1, 2])),
        ),
        (Event::TurnAdded { conversation_id: RUN }, run.clone()),
        (
            Event::RunRequested { agent_run_id, submitter: SUBMITTER, escrow: amount },
            format!("{run} {submitter} {}", number(1)),
        ),
        (Event::RunClaimed { agent_run_id, miner: MINER }, format!("{run} {miner}")),
        (stepped, format!("{run} {miner} {}", numbers([3, 4]))),
        (finished, format!("{run} {submitter} {miner} 04000000 {parts}")),
        (
            Event::RunCancelled { agent_run_id, submitter: SUBMITTER, settlement },
            format!("{run} {submitter} {parts}"),
        ),
        (Event::RunReopened { agent_run_id, miner: MINER }, format!("{run} {miner}")),
        (timed_out(Some(MINER)), format!("{run} {submitter} 01 {miner} {parts}")),
        (Event::MinerRegistered { miner_id: RUN }, run),
        (Event::BlobAnnounced { blob_id: blob_id() }, blob.clone()),
        (stored, format!("{blob} 03000000 01 01")),
        (Event::BlobFinalized { blob_id: blob_id() }, blob.clone()),
        (Event::BlobDropped { blob_id: blob_id() }, blob),
        (Event::ValidatorVoted { public_key: KEY, power: 3 }, format!("{key} {}", number(3))),
        (
            Event::ValidatorChanged { public_key: KEY, power: 3, height: 4 },
            format!("{key} {}", numbers([3, 4])),
        ),
        (Event::ValidatorSetActivated { height: 4 }, number(4)),
        (Event::RewardMinted { amount }, number(1)),
    ]
}

/// The same of what fork v7 brought.
fn every_event_of_v7() -> Vec<(Event, String)> {
    let (run, submitter, miner) = ("a1".repeat(32), "a2".repeat(20), "a3".repeat(20));
    let (parts, blob) = (numbers([6, 7, 8]), format!("{} 62", number(1)));
    let blob_id = || "b".to_owned();
    let (amount, fee) = (Amount::new(1), Amount::new(2));
    let (agent_run_id, settlement) = (RUN, SETTLEMENT);
    let status = RunStatus::Failed;
    let held = Event::RunHeld {
        agent_run_id,
        submitter: SUBMITTER,
        miner: MINER,
        status: RunStatus::Completed,
        settlement,
        until: 9,
    };
    let paid =
        Event::RewardPaid { agent_run_id, submitter: SUBMITTER, miner: MINER, status, amount };
    let refused =
        Event::RewardRefused { agent_run_id, submitter: SUBMITTER, miner: MINER, status, amount };
    let reward = format!("{run} {submitter} {miner} 04000000 {}", number(1));
    vec![
        (Event::ForkVoted { fork: blob_id(), height: 3 }, format!("{blob} {}", number(3))),
        (Event::ForkFixed { fork: blob_id(), height: 3 }, format!("{blob} {}", number(3))),
        (
            Event::ParamVoted { name: blob_id(), value: 3, height: 4 },
            format!("{blob} {}", numbers([3, 4])),
        ),
        (
            Event::ParamFixed { name: blob_id(), value: 3, height: 4 },
            format!("{blob} {}", numbers([3, 4])),
        ),
        (
            Event::FeesCharged { base_fee: 3, burned: amount, tips: fee, next_base_fee: 4 },
            numbers([3, 1, 2, 4]),
        ),
        (Event::BondAdded { amount }, number(1)),
        (Event::UnbondingBegun { amount, due: 3 }, numbers([1, 3])),
        (Event::UnbondingPaid { miner: MINER, amount }, format!("{miner} {}", number(1))),
        (held, format!("{run} {submitter} {miner} 03000000 {parts} {}", number(9))),
        (paid, reward.clone()),
        (refused, reward),
        (
            Event::BondUnlocked { agent_run_id, miner: MINER, unlocked: amount, burned: fee },
            format!("{run} {miner} {}", numbers([1, 2])),
        ),
        (Event::EvidenceTaken { public_key: KEY, height: 3 }, format!("{KEY} {}", number(3))),
        (Event::RunGivenBack { agent_run_id, miner: MINER }, format!("{run} {miner}")),
    ]
}

/// Those that chains have from v8 on.
fn every_event_of_v8() -> Vec<(Event, String)> {
    let (call, miner) = ("a1".repeat(32), "a3".repeat(20));
    let [per_call, prompt_per_m, completion_per_m, fuel_per_g] = [1, 2, 3, 5].map(Amount::new);
    let prices = Prices { per_call, prompt_per_m, completion_per_m, fuel_per_g };
    let executor = ExecutorId::Model { manifest: Hash::new([0xb7; 32]) };
    let (call_id, amount) = (RUN, Amount::new(1));
    let (agent, owner, version) = ("a1".repeat(32), "a2".repeat(20), "1.0.0".to_owned());
    let registered = Event::AgentRegistered { agent_id: RUN, owner: SUBMITTER, version };
    vec![
        (registered, format!("{agent} {owner} {} 312e302e30", number(5))),
        (Event::AgentRetired { agent_id: RUN }, agent),
        (
            Event::OfferSet { executor, offer: Some(Offer { capacity: 4, prices }) },
            format!("02 {} 01 {}", "b7".repeat(32), numbers([4, 1, 2, 3, 5])),
        ),
        (
            Event::CallBondLocked { call_id, miner: MINER, amount },
            format!("{call} {miner} {}", number(1)),
        ),
        (
            Event::CallBondUnlocked {
                call_id,
                miner: MINER,
                unlocked: amount,
                burned: Amount::new(2),
            },
            format!("{call} {miner} {}", numbers([1, 2])),
        ),
        (
            Event::CallChanged { call_id, change: CallChange::Revealing { until: 1 } },
            format!("{call} 04000000 {}", number(1)),
        ),
    ]
}

#[test]
fn every_event_has_the_bytes_that_databases_hold() {
    for (number, (event, fields)) in (0_u8..).zip(every_event()) {
        assert_bytes(&event, &format!("{number:02x}000000 {fields}"));
    }
    let past_the_last = u8::try_from(every_event().len()).unwrap();
    assert!(decode::<Event>(&[past_the_last, 0, 0, 0]).is_err());
}

#[test]
fn a_blocks_events_are_those_of_transactions_then_those_of_its_end_then_its_credits() {
    let event = Event::RewardMinted { amount: Amount::new(1) };
    let events = BlockEvents {
        transactions: vec![TxEvent { position: 5, event: event.clone() }],
        end: vec![event],
        credits: vec![Credit { address: MINER, amount: Amount::new(2) }],
    };
    let reward = format!("11000000 {}", number(1));
    let (one, miner) = (number(1), "a3".repeat(20));
    let fields = [&one, "05000000", &reward, &one, &reward, &one, &miner, &number(2)];
    assert_bytes(&events, &fields.join(" "));
    assert!(events.of_transaction(5).is_some() && events.of_transaction(0).is_none());
    assert_eq!(events.iter().map(|(position, _)| position).collect::<Vec<_>>(), [Some(5), None]);
}

#[test]
fn an_event_says_whom_it_concerns_and_what_it_does_to_an_escrow() {
    let concerned: Vec<_> =
        every_event().iter().filter_map(|(event, _)| event.counterparty()).collect();
    assert_eq!(
        concerned,
        [SUBMITTER, SUBMITTER, SUBMITTER, MINER],
        "a transfer, the end of a run, its end with a held reward, and a refused reward"
    );
    let changes: Vec<_> =
        every_event().iter().filter_map(|(event, _)| event.escrow_change()).collect();
    let released = EscrowChange::Released(SETTLEMENT);
    let part = |miner_reward, user_refund, network_fee| {
        let [miner_reward, user_refund, network_fee] =
            [miner_reward, user_refund, network_fee].map(Amount::new);
        EscrowChange::Released(Settlement { miner_reward, user_refund, network_fee })
    };
    let held = [part(0, 7, 8), part(1, 0, 0), part(0, 0, 1)];
    let ended = [EscrowChange::Held(Amount::new(1)), released, released, released];
    let changed = [ended.as_slice(), &held].concat();
    let expected: Vec<_> = changed.into_iter().map(|change| (SUBMITTER, change)).collect();
    assert_eq!(changes, expected);
    let of_runs = every_event().iter().filter_map(|(event, _)| event.agent_run_id()).count();
    assert_eq!(of_runs, 12);
    assert_eq!(SETTLEMENT.total(), Some(Amount::new(21)));
}
