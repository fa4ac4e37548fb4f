//! Golden bytes of what the state stores: changing one of these changes databases and roots.

use super::{
    Account, Agent, AgentVersion, Blob, KeyStanding, Miner, MinerFigures, OpenVote, Run, RunAgent,
    RunStatus, SetMember, Settlement, Step, Supply, TxLocation, ValidatorSets,
};
use crate::codec::{decode, encode};
use crate::testing::{assert_bytes, number, numbers};
use crate::{Address, Amount, Hash, PublicKey};

fn location(height: u8) -> String {
    format!("{} {height:02x}000000", number(height))
}

fn at(height: u32) -> TxLocation {
    TxLocation { height: height.into(), position: height }
}

fn run() -> Run {
    Run {
        agent_run_id: Hash::new([0xa1; 32]),
        conversation_id: Hash::new([0xa2; 32]),
        submitter: Address::new([0xa3; 20]),
        max_fee: Amount::new(1),
        max_steps: 2,
        status: RunStatus::Completed,
        miner: Some(Address::new([0xa4; 20])),
        step_count: 3,
        last_step_index: Some(4),
        tokens_out: 5,
        steps_digest: Hash::new([0xa5; 32]),
        settlement: Some(Settlement {
            miner_reward: Amount::new(6),
            user_refund: Amount::new(7),
            network_fee: Amount::new(8),
        }),
        submitted_at: 9,
        claimed_at: Some(10),
        finished_at: Some(11),
        deadline_at: Some(12),
        reopens: 13,
        excluded_miners: vec![Address::new([0xa6; 20])],
        request: at(14),
        claim: Some(at(15)),
        finish: Some(at(16)),
        protection: None,
        locked_bond: None,
        ended_by: None,
        is_refused: false,
        agent: None,
    }
}

#[test]
fn accounts_and_locations() {
    let account = Account { balance: Amount::new(258), nonce: 7 };
    assert_bytes(&account, "0201000000000000 0700000000000000");
    assert_bytes(&at(5), &location(5));
}

#[test]
fn runs() {
    let id = |byte: &str| byte.repeat(32);
    let address = |byte: &str| byte.repeat(20);
    let some = |value: u8| format!("01 {}", number(value));
    let expected = [
        id("a1"),
        id("a2"),
        address("a3"),
        number(1),
        number(2),
        "03000000".to_owned(),
        format!("01 {}", address("a4")),
        number(3),
        some(4),
        number(5),
        id("a5"),
        format!("01 {}", numbers([6, 7, 8])),
        number(9),
        some(10),
        some(11),
        some(12),
        "0d000000".to_owned(),
        format!("{} {}", number(1), address("a6")),
        location(14),
        format!("01 {}", location(15)),
        format!("01 {}", location(16)),
    ];
    // What v7 and v8 added is absent: rows of before are these bytes without the last five.
    assert_bytes(&run(), &format!("{} 00 00 00 00 00", expected.join(" ")));
    let agent = RunAgent { agent_id: Hash::new([0xa9; 32]), version: "1.0.0".to_owned() };
    let named = format!("01 {} {} 312e302e30", id("a9"), number(5));
    let of_agent = Run { agent: Some(agent), ..run() };
    assert_bytes(&of_agent, &format!("{} 00 00 00 00 {named}", expected.join(" ")));

    let pending = Run {
        miner: None,
        last_step_index: None,
        settlement: None,
        claimed_at: None,
        finished_at: None,
        deadline_at: None,
        excluded_miners: Vec::new(),
        claim: None,
        finish: None,
        ..run()
    };
    assert_eq!(decode::<Run>(&encode(&pending)).unwrap(), pending);
}

#[test]
fn statuses_are_numbers_in_the_order_of_a_runs_life_and_words_in_json() {
    let words = "pending claimed running completed failed timeout insufficient_funds cancelled";
    for ((number, status), word) in (0_u8..).zip(RunStatus::ALL).zip(words.split(' ')) {
        assert_bytes(&status, &format!("{number:02x}000000"));
        assert_eq!(status.as_str(), word);
        assert_eq!(RunStatus::parse(word), Some(status));
        assert_eq!(status.is_active(), ["claimed", "running"].contains(&word));
        assert_eq!(status.is_terminal(), number >= 3);
    }
    assert_eq!(RunStatus::parse("Pending"), None);
    assert!(decode::<RunStatus>(&[8, 0, 0, 0]).is_err());
}

#[test]
fn steps_miners_and_their_figures() {
    let step = Step { step_index: 1, output_tokens: 4, tx: at(2), timestamp: 3 };
    assert_bytes(&step, &[number(1), number(4), location(2), number(3)].join(" "));

    let miner = Miner {
        miner_id: Hash::new([0xa1; 32]),
        address: Address::new([0xa2; 20]),
        name: "ab".to_owned(),
        capabilities: vec!["c".to_owned(), String::new()],
        model_info: "d".to_owned(),
        registered_at: 9,
    };
    let (id, address) = ("a1".repeat(32), "a2".repeat(20));
    let texts = [
        format!("{} 6162", number(2)),
        format!("{} {} 63 {}", number(2), number(1), number(0)),
        format!("{} 64", number(1)),
    ];
    assert_bytes(&miner, &format!("{id} {address} {} {}", texts.join(" "), number(9)));

    let figures = MinerFigures {
        claimed: 1,
        completed: 2,
        failed: 3,
        timed_out: 4,
        tokens: 5,
        earnings: Amount::new(6),
        refused: 7,
    };
    assert_bytes(&figures, &numbers([1, 2, 3, 4, 5, 6, 7]));
}

#[test]
fn blobs_and_supply() {
    let blob = Blob {
        blob_id: "b".to_owned(),
        owner: Address::new([0xa1; 20]),
        content_type: "c".to_owned(),
        total_bytes: 1,
        total_chunks: 2,
        received: 3,
        content_hash: Hash::new([0xa2; 32]),
        received_hash: Some(Hash::new([0xa3; 32])),
        is_final: true,
        created_at: 4,
    };
    let (owner, hash, received) = ("a1".repeat(20), "a2".repeat(32), "a3".repeat(32));
    let head = format!("{} 62 {owner} {} 63", number(1), number(1));
    let sizes = numbers([1, 2, 3]);
    assert_bytes(&blob, &format!("{head} {sizes} {hash} 01 {received} 01 {}", number(4)));

    let [genesis, minted, burned, escrowed] = [10, 5, 3, 2].map(Amount::new);
    let [bonded, unbonding] = [4, 1].map(Amount::new);
    let supply = Supply { genesis, minted, burned, escrowed, bonded, unbonding };
    assert_bytes(&supply, &numbers([10, 5, 3, 2, 4, 1]));
    assert_eq!(supply.circulating(), Some(Amount::new(5)));
    assert_eq!(Supply { burned: Amount::new(16), ..supply }.circulating(), None);
    assert_eq!(Supply { genesis: Amount::MAX, ..supply }.circulating(), None);
}

#[test]
fn validators() {
    let member = |byte: u8, power| SetMember { public_key: PublicKey::new([byte; 32]), power };
    let sets =
        ValidatorSets { since: 5, current: vec![member(0xa1, 6), member(0xa2, 7)], next: None };
    let (one, two) = ("a1".repeat(32), "a2".repeat(32));
    let current = format!("{} {one} {} {two} {}", numbers([5, 2]), number(6), number(7));
    assert_bytes(&sets, &format!("{current} 00"));
    let changed = ValidatorSets { next: Some(vec![member(0xa1, 8)]), ..sets };
    assert_bytes(&changed, &format!("{current} 01 {} {one} {}", number(1), number(8)));
    let vote = OpenVote { power: 1, expires_at: 2 };
    assert_bytes(&vote, &numbers([1, 2]));
    let punished = KeyStanding { alone_until: None, punished_at: Some(2) };
    assert_bytes(&punished, &format!("00 01 {}", number(2)));
    let was_alone = KeyStanding { alone_until: Some(1), punished_at: None };
    assert_bytes(&was_alone, &format!("01 {} 00", number(1)));
}

#[test]
fn agents_and_their_versions() {
    let (id, owner) = (Hash::new([0xa1; 32]), Address::new([0xa2; 20]));
    let agent = Agent {
        agent_id: id,
        owner,
        name: "ab".to_owned(),
        latest: "1.0.0".to_owned(),
        versions: 3,
        is_retired: true,
        registered_at: 4,
        changed_at: 5,
    };
    let (agent_hex, owner_hex) = ("a1".repeat(32), "a2".repeat(20));
    let name = format!("{} 6162", number(2));
    let version_hex = format!("{} 312e302e30", number(5));
    let times = numbers([4, 5]);
    let expected = format!("{agent_hex} {owner_hex} {name} {version_hex} {} 01 {times}", number(3));
    assert_bytes(&agent, &expected);

    let version = AgentVersion {
        agent_id: id,
        version: "1.0.0".to_owned(),
        previous: Some("c".to_owned()),
        owner,
        executors: vec!["d".to_owned()],
        manifests: vec![Hash::new([0xa3; 32])],
        selectors: vec![[1, 2, 3, 4]],
        tools: vec!["e".to_owned()],
        royalty: Amount::new(6),
        is_deterministic: true,
        nesting: 2,
        metadata_hash: Hash::new([0xa4; 32]),
        metadata_bytes: 7,
        registered_at: 8,
        tx: TxLocation { height: 9, position: 10 },
    };
    let list = |text: &str| format!("{} {text}", numbers([1, 1]));
    let expected = [
        agent_hex,
        version_hex,
        format!("01 {} 63", number(1)),
        owner_hex,
        list("64"),
        format!("{} {}", number(1), "a3".repeat(32)),
        format!("{} 01020304", number(1)),
        list("65"),
        format!("{} 01 02 {}", number(6), "a4".repeat(32)),
        format!("{} 0a000000", numbers([7, 8, 9])),
    ];
    assert_bytes(&version, &expected.join(" "));
}
