//! Which peer is asked for what, with peers that answer as they like.

use libp2p::PeerId;

use super::*;

fn keys(count: usize) -> Vec<PeerKey> {
    let mut keys: Vec<PeerKey> = (0..count).map(|_| PeerKey(PeerId::random())).collect();
    keys.sort_unstable();
    keys
}

fn claims(keys: &[PeerKey], tip: u64) -> Vec<(PeerKey, Status)> {
    keys.iter().map(|key| (*key, Status { earliest: 1, tip })).collect()
}

fn blocks(first: u64, count: u32, bytes: usize) -> Vec<EncodedBlock> {
    let block = |height: u64| EncodedBlock {
        bytes: vec![0; bytes],
        certificate: height.to_le_bytes().to_vec(),
    };
    (first..first + u64::from(count)).map(block).collect()
}

/// All questions that are due.
fn due(schedule: &mut Schedule, now: Instant) -> Vec<Ask> {
    std::iter::from_fn(|| schedule.next_ask(now)).collect()
}

/// Runs to the end, the peers answering as `answer` says; answers the taken heights.
fn run(
    schedule: &mut Schedule,
    mut answer: impl FnMut(Ask) -> Result<Vec<EncodedBlock>, AskError>,
) -> Vec<u64> {
    let (mut now, mut taken) = (Instant::now(), Vec::new());
    let mut under_way = std::collections::VecDeque::new();
    for _ in 0..100_000 {
        if schedule.outlook() != Outlook::More {
            return taken;
        }
        under_way.extend(due(schedule, now));
        now += Duration::from_millis(100);
        if let Some(ask) = under_way.pop_front() {
            schedule.answered(ask, answer(ask), now);
        }
        while let Some(Range { first, blocks, .. }) = schedule.take() {
            taken.extend((first..).take(blocks.len()));
        }
    }
    panic!("it does not end: {schedule:?}")
}

#[test]
fn all_heights_come_once_and_in_order_from_all_peers() {
    let (mut schedule, peers) = (Schedule::new(5, BTreeSet::new()), keys(3));
    schedule.update(&claims(&peers, 4_000));
    let mut asked: BTreeMap<PeerKey, usize> = BTreeMap::new();
    let taken = run(&mut schedule, |Ask { peer, first, count }| {
        *asked.entry(peer).or_default() += 1;
        // Fewer than were asked for, now and then.
        Ok(blocks(first, if first % 3 == 0 { count.div_ceil(2) } else { count }, 9_000))
    });
    assert_eq!((5..=4_000).collect::<Vec<_>>(), taken);
    assert_eq!(Outlook::Done, schedule.outlook());
    let (least, most) = (asked.values().min().unwrap(), asked.values().max().unwrap());
    assert!(asked.len() == 3 && most - least <= 3, "{asked:?}");
}

#[test]
fn a_silent_peers_parts_go_to_others_and_it_is_asked_no_more() {
    let (mut schedule, peers) = (Schedule::new(1, BTreeSet::new()), keys(3));
    schedule.update(&claims(&peers, 2_000));
    let mut silences = 0;
    let taken = run(&mut schedule, |Ask { peer, first, count }| {
        if peer == peers[1] {
            silences += 1;
            return Err(AskError::Silent);
        }
        Ok(blocks(first, count, 50_000))
    });
    assert_eq!((1..=2_000).collect::<Vec<_>>(), taken);
    assert!(silences <= 4, "{silences}");
}

#[test]
fn a_claim_that_nobody_can_meet_holds_nobody_up() {
    let (mut schedule, peers) = (Schedule::new(1, BTreeSet::new()), keys(2));
    let mut claimed = claims(&peers, 100);
    claimed[0].1.tip = u64::MAX;
    schedule.update(&claimed);
    let mut beyond = 0;
    let taken = run(&mut schedule, |Ask { first, count, .. }| {
        let there = 101_u64.saturating_sub(first).min(u64::from(count));
        beyond += usize::from(there == 0);
        Ok(blocks(first, u32::try_from(there).unwrap(), 1_000))
    });
    assert_eq!((1..=100).collect::<Vec<_>>(), taken);
    assert!((1..=6).contains(&beyond), "{beyond}");
}

#[test]
fn who_never_has_time_is_given_up_in_the_end() {
    let (mut schedule, peers) = (Schedule::new(1, BTreeSet::new()), keys(1));
    schedule.update(&claims(&peers, 100));
    assert_eq!(Vec::<u64>::new(), run(&mut schedule, |_| Err(AskError::Busy)));
    assert_eq!(Outlook::Stuck, schedule.outlook());
}

#[test]
fn the_first_part_is_asked_of_a_second_peer_when_it_is_late() {
    let (mut schedule, peers) = (Schedule::new(1, BTreeSet::new()), keys(2));
    schedule.update(&claims(&peers, FIRST_BLOCKS.try_into().unwrap()));
    let start = Instant::now();
    let asked = due(&mut schedule, start);
    assert_eq!(1, asked.len());
    assert_eq!(Vec::<Ask>::new(), due(&mut schedule, start + SECOND_ASK / 2));
    let again = due(&mut schedule, start + SECOND_ASK);
    assert_eq!(1, again.len());
    assert_ne!(asked[0].peer, again[0].peer);
    assert_eq!(asked[0].first, again[0].first);
    let Ask { first, count, .. } = again[0];
    schedule.answered(again[0], Ok(blocks(first, count, 10)), start);
    schedule.answered(asked[0], Ok(blocks(first, count, 10)), start);
    assert_eq!(Some(again[0].peer), schedule.take().map(|range| range.from));
    assert_eq!(None, schedule.take(), "the slower answer is not taken too");
    assert_eq!(Outlook::Done, schedule.outlook());
}

#[test]
fn what_waits_for_the_first_part_has_a_bound_in_bytes() {
    let (mut schedule, peers) = (Schedule::new(1, BTreeSet::new()), keys(20));
    schedule.update(&claims(&peers, 1_000_000));
    let now = Instant::now();
    let mut waiting = due(&mut schedule, now);
    let late = waiting.remove(0);
    let mut asked = 0;
    while let Some(ask) = waiting.pop() {
        asked += 1;
        assert!(asked < 1_000, "it asks for ever");
        schedule.answered(ask, Ok(blocks(ask.first, ask.count, 20_000)), now);
        waiting.extend(due(&mut schedule, now));
    }
    assert!(schedule.held <= WINDOW_BYTES && schedule.held > WINDOW_BYTES / 2, "{}", schedule.held);
    assert!(!schedule.has_range());
    schedule.answered(late, Ok(blocks(late.first, late.count, 20_000)), now);
    assert!(schedule.take().is_some());
}

#[test]
fn who_was_given_up_in_an_earlier_download_is_not_asked_again() {
    let peers = keys(2);
    let mut schedule = Schedule::new(1, std::iter::once(peers[0]).collect());
    let mut claimed = claims(&peers, 100);
    claimed[0].1.tip = u64::MAX;
    schedule.update(&claimed);
    assert_eq!(100, schedule.target());
    let taken = run(&mut schedule, |Ask { peer, first, count }| {
        assert_eq!(peers[1], peer);
        Ok(blocks(first, count, 1_000))
    });
    assert_eq!(100, taken.len());
}
