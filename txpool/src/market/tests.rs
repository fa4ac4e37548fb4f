//! The orders of the market against the transactions that are in it.

use proptest::prelude::*;

use super::counts::Counts;
use super::line::{Keys, Part};
use super::orders::{Head, Heads, tipless};
use super::*;

/// A tenth that few transactions fill.
const TENTH: Volume = Volume { count: 4, bytes: 2_000 };

fn market() -> Market {
    Market::at(0, Volume { count: TENTH.count * 10, bytes: TENTH.bytes * 10 })
}

impl Line {
    /// Counts its rates and what of it is favoured from scratch. Answers what has a place in the tenth.
    fn counted(&self, least: usize) -> Part {
        let of_lead = self.offers.iter().take_while(|offer| offer.is_favoured).count();
        assert_eq!(self.lead, of_lead);
        assert!(self.kept.count <= self.lead);
        let mut rates = Counts::new();
        for offer in &self.offers {
            rates.add(offer.rate, 1);
        }
        assert_eq!(rates, self.rates);
        let kept = || self.offers.iter().take(self.kept.count);
        let bytes = kept().map(|it| it.bytes).sum();
        let weight = kept().map(|it| it.bytes.max(least)).sum();
        Part { count: self.kept.count, bytes, weight }
    }
}

impl Heads {
    fn has(&self, refusals: u32, head: Head) -> bool {
        if refusals == 0 {
            self.fresh.contains(&head)
        } else {
            self.refused.contains(&(refusals, head))
        }
    }

    fn len(&self) -> usize {
        self.fresh.len().saturating_add(self.refused.len())
    }
}

impl Market {
    /// Counts everything from scratch.
    fn assert_counted(&self) {
        let (mut kept, mut offers) = (Volume::default(), 0_usize);
        let mut offering = Counts::new();
        let (mut holders, mut wanting, mut floors) = (0_usize, 0_usize, 0_usize);
        for (id, line) in self.lines.iter() {
            let counted @ Part { bytes, weight, .. } = line.counted(self.kept.least());
            assert_eq!(counted, line.kept);
            let Some(keys) = line.listed.filter(|listed| Some(*listed) == line.keys()) else {
                unreachable!("no line is empty, and each is listed where it stands")
            };
            let Keys { head, highest, is_closed, refusals, tail, floor, .. } = keys;
            let Keys { leads, since, is_kept, tenth, .. } = keys;
            let head = (head.0, head.1, id, highest);
            assert_eq!(!is_closed, self.orders.heads.has(refusals, head));
            assert_eq!(!is_closed && leads, self.orders.leads.has(refusals, tipless(head, since)));
            if !is_closed {
                offering.add(highest, 1);
            }
            assert_eq!(!is_kept, self.orders.tails.contains(&(tail.0, tail.1, id)));
            let lowest = line.offers.iter().map(|offer| offer.highest).min();
            assert_eq!(lowest, Some(floor));
            let in_floors = self.orders.floors.contains(&(floor, tail.0, tail.1, id));
            assert_eq!(!is_kept && floor < u64::MAX, in_floors);
            assert_eq!(weight > 0, self.kept.holders.contains(&(weight, id)));
            holders = holders.saturating_add(usize::from(weight > 0));
            assert_eq!(line.kept.count < line.lead, tenth.next.is_some());
            if let Some((bytes, arrival)) = tenth.next {
                let weight = weight.saturating_add(bytes.max(self.kept.least()));
                assert!(self.kept.wanting.contains(&(weight, arrival, id)));
                wanting = wanting.saturating_add(1);
            }
            let is_floor = is_kept && floor < u64::MAX;
            assert_eq!(is_floor, self.kept.floors.contains(&(floor, id)));
            floors = floors.saturating_add(usize::from(is_floor));
            kept.count = kept.count.saturating_add(line.kept.count);
            kept.bytes = kept.bytes.saturating_add(bytes);
            offers = offers.saturating_add(line.offers.len());
            assert!(line.offers.iter().all(|it| self.ages.get(&it.arrival) == Some(&it.slot)));
        }
        assert_eq!(self.kept(), kept);
        assert_eq!(self.orders.offering, offering);
        assert!(kept.count <= TENTH.count && kept.bytes <= TENTH.bytes);
        let sizes = [&self.kept.holders.len(), &self.kept.wanting.len(), &self.kept.floors.len()];
        assert_eq!([&holders, &wanting, &floors], sizes);
        let waits = |line: &Line| {
            let fee = self.lines.base_fee();
            let ready = line.offers.iter().take_while(|it| it.highest >= fee).count();
            let first = line.offers.get(ready);
            assert_eq!(first.map(|it| it.nonce), line.first_waiting(fee).map(|it| it.nonce));
            line.offers.len().saturating_sub(ready)
        };
        let lines = || self.lines.iter().map(|(_, line)| line);
        assert_eq!(lines().map(waits).sum::<usize>(), self.waiting());
        let is_offered = |line: &&Line| {
            let first = line.offers.front();
            first.is_some_and(|it| {
                it.highest >= self.lines.base_fee() && !line.is_closed_at(it.nonce)
            })
        };
        assert_eq!(lines().any(|line| is_offered(&line)), self.has_offers());
        assert_eq!(self.ages.len(), offers);
        let all_open =
            lines().filter(|line| line.keys().is_some_and(|keys| !keys.is_closed)).count();
        assert_eq!(self.orders.heads.len(), all_open);
        let all_kept = lines().filter(|line| line.is_kept()).count();
        assert_eq!(self.orders.tails.len().saturating_add(all_kept), self.lines.iter().count());
    }
}

#[derive(Clone, Debug)]
enum Change {
    Push {
        sender: SenderId,
        rate: Rate,
        highest: u64,
        is_favoured: bool,
    },
    /// The first, the last or another one of a sender.
    Remove {
        sender: SenderId,
        place: usize,
    },
    /// Many of the first ones of a sender, and perhaps a later one, as a block takes them.
    RemoveAll {
        sender: SenderId,
        first: usize,
        later: usize,
    },
    BaseFee(u64),
    /// Such a place of a sender and those after it.
    Close {
        sender: SenderId,
        place: usize,
    },
    Reopen,
    /// Places in the tenth are given away while there is so much room beside it.
    Share(Volume),
    /// Others make room for a step of a sender in the tenth.
    GiveWay(SenderId),
}

fn highest() -> impl Strategy<Value = u64> {
    prop_oneof![3 => 0..8_u64, 1 => Just(u64::MAX)]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        12 => (0..4_usize, 0..6_u64, highest(), any::<bool>()).prop_map(
            |(sender, rate, highest, is_favoured)| Change::Push { sender, rate, highest, is_favoured }
        ),
        8 => (0..4_usize, 0..5_usize).prop_map(|(sender, place)| Change::Remove { sender, place }),
        3 => (0..4_usize, 0..6_usize, 0..9_usize)
            .prop_map(|(sender, first, later)| Change::RemoveAll { sender, first, later }),
        2 => (0..8_u64).prop_map(Change::BaseFee),
        1 => (0..4_usize, 0..5_usize).prop_map(|(sender, place)| Change::Close { sender, place }),
        1 => Just(Change::Reopen),
        3 => (0..3_usize, 0..900_usize)
            .prop_map(|(count, bytes)| Change::Share(Volume { count, bytes })),
        2 => (0..4_usize).prop_map(Change::GiveWay),
    ]
}

fn change_market(market: &mut Market, lists: &mut [Vec<Offer>], change: &Change, arrival: u64) {
    match *change {
        Change::Push { sender, rate, highest, is_favoured } => {
            let nonce = lists[sender].last().map_or(0, |last| last.nonce.saturating_add(1));
            let slot = usize::try_from(arrival).unwrap();
            let bytes = slot.saturating_mul(97).wrapping_rem(500).saturating_add(300);
            let offer = Offer { slot, nonce, arrival, bytes, rate, highest, is_favoured };
            lists[sender].push(offer);
            market.push(sender, offer);
        }
        Change::Remove { sender, place } => {
            if place < lists[sender].len() {
                let Offer { nonce, arrival, .. } = lists[sender].remove(place);
                market.remove(sender, nonce, arrival);
            }
        }
        Change::RemoveAll { sender, first, later } => {
            let list = &mut lists[sender];
            let mut removed: Vec<Offer> = list.drain(..first.min(list.len())).collect();
            if later < list.len() {
                removed.push(list.remove(later));
            }
            if !removed.is_empty() {
                market.remove_all(sender, removed.iter().map(|it| (it.nonce, it.arrival)));
            }
        }
        Change::BaseFee(base_fee) => market.follow(base_fee),
        Change::Close { sender, place } => {
            if let Some(offer) = lists[sender].get(place) {
                market.close(sender, offer.nonce);
            }
        }
        Change::Reopen => market.reopen(),
        Change::Share(room) => {
            let before = market.kept();
            market.share(room, 8);
            let now = market.kept();
            assert!(before.count <= now.count.saturating_add(room.count));
            assert!(before.bytes <= now.bytes.saturating_add(room.bytes));
        }
        Change::GiveWay(sender) => {
            let bytes = 400;
            if let Some(givers) = market.givers(Some(sender), bytes) {
                let own = market.lines.get(sender).map_or(0, |line| line.kept.weight);
                let own = own.saturating_add(market.kept.least().max(bytes));
                market.give_way(&givers);
                assert!(market.kept().count < TENTH.count);
                assert!(market.kept().bytes.saturating_add(bytes) <= TENTH.bytes);
                for giver in givers {
                    let line = market.lines.get(giver).unwrap();
                    let waits = line.floor_of(line.kept.count.saturating_add(1));
                    assert!(line.kept.weight >= own || waits < market.lines.base_fee());
                }
            }
        }
    }
}

/// (worth, arrival, slot) of everything.
fn worths(lists: &[Vec<Offer>]) -> Vec<(Rate, u64, Slot)> {
    let worth = |list: &Vec<Offer>| {
        let mut lowest = Rate::MAX;
        let worth = |offer: &Offer| {
            lowest = lowest.min(offer.rate);
            (lowest, offer.arrival, offer.slot)
        };
        list.iter().map(worth).collect::<Vec<_>>()
    };
    lists.iter().flat_map(worth).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_orders_are_those_of_a_count_from_scratch(
        changes in prop::collection::vec(change(), 1..80),
        count in 1..9_usize,
    ) {
        let (mut market, mut lists) = (market(), vec![Vec::new(); 4]);
        for (change, arrival) in changes.iter().zip(1..) {
            change_market(&mut market, &mut lists, change, arrival);
            market.assert_counted();
        }
        // What leaves is the last one of its sender, without what has its place in the tenth.
        let leaving = |(id, list): (SenderId, &Vec<Offer>)| {
            let last = list.last()?;
            let is_kept = market.lines.get(id).is_some_and(|line| line.is_kept());
            let floor = list.iter().map(|offer| offer.highest).min()?;
            let lowest = list.iter().map(|offer| offer.rate).min()?;
            let waits = floor < market.lines.base_fee();
            let least = if waits { Least::Waits } else { Least::Pays(lowest) };
            let order = if waits { floor } else { 0 };
            (!is_kept).then_some((least, order, lowest, Reverse(last.arrival), id))
        };
        let lowest = lists.iter().enumerate().filter_map(leaving).min();
        let lowest = lowest.map(|(least, _, _, _, id)| (least, id));
        prop_assert_eq!(lowest, market.lowest(&BTreeSet::new()));

        // With fewer than ten places, a tenth is none.
        let limits = BlockLimits { bytes: usize::MAX, count };
        let wanted = Wanted { limits, shares: 1 };
        let open = |id: SenderId| Some(0..lists[id].len());
        let mut chosen = market.choose(wanted, &mut Offered::default(), &open);
        let is_ready = |(id, offer): &(SenderId, &Offer)| {
            offer.highest >= market.lines.base_fee()
                && !market.lines.get(*id).is_some_and(|line| line.is_closed_at(offer.nonce))
        };
        let ready = |(id, list): (SenderId, &Vec<Offer>)| -> Vec<Offer> {
            let offers = list.iter().map(|offer| (id, offer));
            offers.take_while(is_ready).map(|(_, offer)| *offer).collect()
        };
        let ready: Vec<Vec<Offer>> = lists.iter().enumerate().map(ready).collect();
        let mut best = worths(&ready);
        best.sort_by_key(|(worth, arrival, _)| (Reverse(*worth), *arrival));
        let mut best: Vec<Slot> = best.into_iter().take(count).map(|(_, _, slot)| slot).collect();
        chosen.sort_unstable();
        best.sort_unstable();
        // Of those that blocks refused, the least often refused comes first.
        let refusals = market.orders.heads.refused.iter().map(|(refusals, _)| *refusals);
        if refusals.collect::<BTreeSet<_>>().len() > 1 {
            prop_assert_eq!(best.len(), chosen.len());
        } else {
            prop_assert_eq!(best, chosen);
        }

        // Once all places are given away, nobody who could have more has less than others.
        let room = Volume { count: usize::MAX, bytes: usize::MAX };
        market.share(room, usize::MAX);
        market.assert_counted();
        let wanting = market.kept.wanting.iter().find(|(_, _, id)| {
            let place = market.lines.get(*id).unwrap().kept.count.saturating_add(1);
            market.lines.get(*id).unwrap().floor_of(place) >= market.lines.base_fee()
        });
        if let Some((weight, _, id)) = wanting {
            let bytes = market.lines.get(*id).unwrap().next_kept().unwrap().bytes;
            prop_assert_eq!(None, market.givers(Some(*id), bytes), "{}", weight);
        }
    }
}

/// A sender's only transaction, which came when `id` others had come.
fn single(id: SenderId, rate: Rate) -> Offer {
    let arrival = u64::try_from(id).unwrap();
    Offer { slot: id, nonce: 0, arrival, bytes: 300, rate, highest: u64::MAX, is_favoured: false }
}

/// A market in which so many senders have one transaction each that offers a little, and one more sender has
/// one that offers nothing.
fn crowded(count: usize) -> Market {
    let mut market = market();
    (0..count).for_each(|id| market.push(id, single(id, 1)));
    market.push(count, single(count, 0));
    market
}

fn chosen(market: &Market, count: usize, is_left_out: &dyn Fn(SenderId) -> bool) -> Vec<Slot> {
    let wanted = Wanted { limits: BlockLimits { bytes: usize::MAX, count }, shares: 1 };
    let open = |id: SenderId| (!is_left_out(id)).then_some(0..1);
    market.choose(wanted, &mut Offered::default(), &open)
}

/// More than are passed over for one choice.
const MANY: usize = 33_000;

#[test]
fn whoever_has_nothing_for_a_block_keeps_nobody_out_of_it() {
    let mut market = crowded(MANY);
    assert_eq!(vec![MANY], chosen(&market, 10, &|id| id < MANY), "the others were offered before");
    (0..MANY).for_each(|id| market.close(id, 0));
    assert_eq!(vec![MANY], chosen(&market, 10, &|_| false));
    market.assert_counted();
}

#[test]
fn those_that_were_offered_and_left_out_are_looked_at_once() {
    let market = crowded(MANY);
    let wanted = Wanted { limits: BlockLimits { bytes: usize::MAX, count: 5_000 }, shares: 1 };
    let (mut offered, mut left_out) = (Offered::default(), BTreeSet::new());
    let looks = std::cell::Cell::new(0_usize);
    for _ in 0..=MANY / 5_000 {
        let open = |id: SenderId| {
            looks.set(looks.get() + 1);
            (!left_out.contains(&id)).then_some(0..1)
        };
        let some = market.choose(wanted, &mut offered, &open);
        assert!(!some.is_empty());
        left_out.extend(some);
    }
    assert!(left_out.contains(&MANY));
    assert!(looks.get() < 5 * MANY, "{} looks", looks.get());
}

#[test]
fn of_those_that_blocks_refused_only_some_are_tried_in_a_block() {
    let mut market = crowded(MANY);
    (0..MANY).for_each(|id| market.close(id, 0));
    market.reopen();
    let chosen = chosen(&market, MANY, &|_| false);
    assert_eq!(1_025, chosen.len());
    assert!(chosen.contains(&MANY), "who was never refused");
}

#[test]
fn what_blocks_refuse_again_and_again_rests_ever_longer() {
    let mut market = crowded(1);
    let mut rests = Vec::new();
    for _ in 0..9 {
        market.close(0, 0);
        let rest = (1..).find(|_| {
            market.reopen();
            chosen(&market, 2, &|_| false).contains(&0)
        });
        rests.extend(rest);
        market.assert_counted();
    }
    assert_eq!(vec![1, 2, 4, 8, 16, 32, 64, 64, 64], rests);
    // Once it has another first transaction, nothing is known of that.
    market.push(0, Offer { nonce: 1, arrival: 9, ..single(0, 1) });
    market.remove(0, 0, 0);
    market.close(0, 1);
    market.reopen();
    assert!(!chosen(&market, 2, &|_| false).is_empty());
    market.close(1, 0);
    market.close(1, 0);
    market.open(1);
    assert!(chosen(&market, 2, &|_| false).contains(&1), "what it needs has come");
}
