//! Which peer is asked for what, with peers that answer as they like.

use libp2p::PeerId;

use super::*;

fn keys(count: usize) -> Vec<PeerKey> {
    let mut keys: Vec<PeerKey> = (0..count).map(|_| PeerKey(PeerId::random())).collect();
    keys.sort_unstable();
    keys
}

/// What named peers claim.
fn claims(keys: &[PeerKey], tip: u64) -> Vec<Claim> {
    let status = Status { earliest: 1, tip };
    keys.iter().map(|peer| Claim { peer: *peer, status, is_named: true }).collect()
}

/// What strangers claim.
fn strange(keys: &[PeerKey], tip: u64) -> Vec<Claim> {
    claims(keys, tip).into_iter().map(|claim| Claim { is_named: false, ..claim }).collect()
}

fn new(first: u64) -> Schedule {
    Schedule::new(first, PeerStandings::default())
}

/// A goal above all claims.
const ALL: u64 = u64::MAX;

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
    answer: impl FnMut(Ask) -> Result<Vec<EncodedBlock>, AskError>,
) -> Vec<u64> {
    run_on(schedule, Vec::new(), answer)
}

/// The same with questions that are under way.
fn run_on(
    schedule: &mut Schedule,
    asked: Vec<Ask>,
    mut answer: impl FnMut(Ask) -> Result<Vec<EncodedBlock>, AskError>,
) -> Vec<u64> {
    let (mut now, mut taken) = (Instant::now(), Vec::new());
    let mut under_way = std::collections::VecDeque::from(asked);
    let claim = |(peer, source): (&PeerKey, &Source)| Claim {
        peer: *peer,
        status: source.status,
        is_named: source.rank == Rank::Named,
    };
    for _ in 0..100_000 {
        let claims: Vec<Claim> = schedule.sources.iter().map(claim).collect();
        schedule.update(&claims, schedule.goal);
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
    let (mut schedule, peers) = (new(5), keys(3));
    schedule.update(&claims(&peers, 4_000), ALL);
    let mut asked: BTreeMap<PeerKey, usize> = BTreeMap::new();
    let taken = run(&mut schedule, |Ask { peer, first, count, .. }| {
        *asked.entry(peer).or_default() += 1;
        // Fewer than were asked for, now and then.
        Ok(blocks(first, if first % 3 == 0 { count.div_ceil(2) } else { count }, 9_000))
    });
    assert_eq!((5..=4_000).collect::<Vec<_>>(), taken, "{schedule:?}");
    assert_eq!(Outlook::Done, schedule.outlook());
    let (least, most) = (asked.values().min().unwrap(), asked.values().max().unwrap());
    assert!(asked.len() == 3 && *most <= least * 2, "{asked:?}");
}

#[test]
fn a_silent_peers_parts_go_to_others_and_it_is_asked_no_more() {
    let (mut schedule, peers) = (new(1), keys(3));
    schedule.update(&claims(&peers, 2_000), ALL);
    let mut silences = 0;
    let taken = run(&mut schedule, |Ask { peer, first, count, .. }| {
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
    let (mut schedule, peers) = (new(1), keys(2));
    let mut claimed = claims(&peers, 100);
    claimed[0].status.tip = u64::MAX;
    schedule.update(&claimed, ALL);
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
    let (mut schedule, peers) = (new(1), keys(1));
    schedule.update(&claims(&peers, 100), ALL);
    assert_eq!(Vec::<u64>::new(), run(&mut schedule, |_| Err(AskError::Busy)));
    assert_eq!(Outlook::Stuck, schedule.outlook());
}

#[test]
fn the_first_part_is_asked_of_a_second_peer_when_it_is_late() {
    let (mut schedule, peers) = (new(1), keys(2));
    schedule.update(&claims(&peers, FIRST_BLOCKS.try_into().unwrap()), ALL);
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
    let (mut schedule, peers) = (new(1), keys(20));
    schedule.update(&claims(&peers, 1_000_000), ALL);
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
    let standing = PeerStandings::default();
    standing.give_up(peers[0]);
    let mut schedule = Schedule::new(1, standing);
    let mut claimed = claims(&peers, 100);
    claimed[0].status.tip = u64::MAX;
    schedule.update(&claimed, ALL);
    assert_eq!(100, schedule.target());
    let taken = run(&mut schedule, |Ask { peer, first, count, .. }| {
        assert_eq!(peers[1], peer);
        Ok(blocks(first, count, 1_000))
    });
    assert_eq!(100, taken.len());
}

#[test]
fn nothing_above_the_goal_is_asked_for_whoever_claims_it() {
    let (mut schedule, peers) = (new(1), keys(4));
    let mut claimed = claims(&peers, 100);
    claimed[3].status.tip = 1_000_000_000;
    let mut asked = 0;
    schedule.update(&claimed, 100);
    let taken = run(&mut schedule, |Ask { first, count, .. }| {
        asked = asked.max(first + u64::from(count) - 1);
        Ok(blocks(first, count, 1_000))
    });
    assert_eq!(((1..=100).collect::<Vec<_>>(), 100), (taken, asked));
    assert_eq!((Outlook::Done, 100), (schedule.outlook(), schedule.target()));
    // It goes on when the goal rises, and no further.
    schedule.update(&claimed, 103);
    let more = run(&mut schedule, |Ask { first, count, .. }| Ok(blocks(first, count, 1_000)));
    assert_eq!(vec![101, 102, 103], more);
}

#[test]
fn what_was_given_out_above_all_claims_is_dropped_when_who_claimed_it_leaves() {
    let (mut schedule, peers) = (new(1), keys(2));
    let mut claimed = claims(&peers, 20);
    claimed[1].status.tip = 1_000_000_000;
    schedule.update(&claimed, ALL);
    let now = Instant::now();
    let asked = due(&mut schedule, now);
    assert!(asked.iter().any(|ask| ask.first > 20), "{asked:?}");
    // The liar leaves without a word.
    schedule.update(&claimed[..1], ALL);
    for ask in asked.iter().filter(|ask| ask.peer == peers[1]) {
        schedule.answered(*ask, Err(AskError::Silent), now);
    }
    assert!(schedule.parts.keys().all(|first| *first <= 20), "{:?}", schedule.parts);
    for ask in asked.iter().filter(|ask| ask.peer == peers[0]) {
        schedule.answered(*ask, Ok(blocks(ask.first, ask.count, 1_000)), now);
    }
    let mut taken = Vec::new();
    while let Some(Range { first, blocks, .. }) = schedule.take() {
        taken.extend((first..).take(blocks.len()));
    }
    taken.extend(run(&mut schedule, |Ask { first, count, .. }| Ok(blocks(first, count, 1_000))));
    assert_eq!((1..=20).collect::<Vec<_>>(), taken);
    assert_eq!(Outlook::Done, schedule.outlook(), "nobody waits for what nobody has");
}

#[test]
fn a_goal_that_falls_takes_back_what_was_given_out() {
    let (mut schedule, peers) = (new(1), keys(1));
    schedule.update(&claims(&peers, 1_000), ALL);
    let asked = due(&mut schedule, Instant::now());
    assert_eq!((2, 33), (asked.len(), schedule.next));
    schedule.update(&claims(&peers, 1_000), 10);
    assert_eq!((1, 17), (schedule.parts.len(), schedule.next), "what was asked for may come");
    schedule.answered(asked[0], Err(AskError::Busy), Instant::now());
    schedule.update(&claims(&peers, 1_000), 10);
    assert_eq!(11, schedule.next);
}

#[test]
fn few_strangers_are_asked_while_a_named_peer_has_the_blocks() {
    let (mut schedule, named, others) = (new(1), keys(1), keys(40));
    let mut claimed = claims(&named, 5_000);
    claimed.extend(strange(&others, 1_000_000_000));
    schedule.update(&claimed, 5_000);
    let asked = due(&mut schedule, Instant::now());
    assert_eq!(named[0], asked[0].peer, "the first part is asked of the one who is named");
    let of_strangers = asked.iter().filter(|ask| ask.peer != named[0]).count();
    assert_eq!((TRIALS_MAX, 2), (of_strangers, asked.len() - of_strangers));
    // All of them are silent; after some of them no further one is asked.
    let mut silent = std::collections::BTreeSet::new();
    let taken = run_on(&mut schedule, asked, |Ask { peer, first, count, .. }| {
        if peer == named[0] {
            return Ok(blocks(first, count, 20_000));
        }
        silent.insert(peer);
        Err(AskError::Offence { what: "rubbish".to_owned() })
    });
    assert_eq!((1..=5_000).collect::<Vec<_>>(), taken);
    let bound = DISAPPOINTED_MAX..DISAPPOINTED_MAX + TRIALS_MAX;
    assert!(bound.contains(&silent.len()), "{}", silent.len());
}

#[test]
fn strangers_are_asked_when_nobody_else_has_the_blocks() {
    let (mut schedule, named, others) = (new(1), keys(1), keys(12));
    let mut claimed = claims(&named, 0);
    claimed.extend(strange(&others, 500));
    schedule.update(&claimed, 500);
    let honest = others[11];
    let taken = run(&mut schedule, |Ask { peer, first, count, .. }| {
        if peer == honest { Ok(blocks(first, count, 1_000)) } else { Err(AskError::Silent) }
    });
    assert_eq!((1..=500).collect::<Vec<_>>(), taken);
}

#[test]
fn a_stranger_whose_block_was_good_is_asked_first() {
    let (mut schedule, named, others) = (new(1), keys(1), keys(3));
    let mut claimed = claims(&named, 500);
    claimed.extend(strange(&others, 500));
    schedule.standing.proved(others[1]);
    schedule.update(&claimed, 500);
    assert_eq!(Some(others[1]), schedule.next_ask(Instant::now()).map(|ask| ask.peer));
}

#[test]
fn who_comes_back_under_the_same_name_has_not_got_new_chances() {
    let (mut schedule, peers) = (new(1), keys(1));
    let claimed = claims(&peers, 1_000);
    let mut now = Instant::now();
    let mut asked = 0;
    for _ in 0..10 {
        schedule.update(&claimed, ALL);
        for ask in due(&mut schedule, now) {
            asked += 1;
            schedule.update(&[], ALL);
            now += Duration::from_secs(1);
            schedule.answered(ask, Err(AskError::Silent), now);
        }
        now += REST_AT_MOST;
    }
    assert!(asked <= 6, "{asked}");
    schedule.update(&claimed, ALL);
    assert_eq!((0, Outlook::Stuck), (schedule.sources(), schedule.outlook()));
}

/// Longer than anybody rests.
const REST_AT_MOST: Duration = Duration::from_secs(3);

#[test]
fn a_late_first_part_of_a_stranger_is_asked_of_another_soon() {
    let (mut schedule, others) = (new(1), keys(2));
    schedule.update(&strange(&others, FIRST_BLOCKS.try_into().unwrap()), ALL);
    let start = Instant::now();
    assert_eq!(1, due(&mut schedule, start).len());
    assert_eq!(1, due(&mut schedule, start + SECOND_ASK_STRANGER).len());
}
