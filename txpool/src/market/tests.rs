//! The orders of the market against the transactions that are in it.

use proptest::prelude::*;

use super::counts::Counts;
use super::line::{Keys, Part};
use super::orders::tipless;
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

impl Market {
    /// Counts everything from scratch.
    fn assert_counted(&self) {
        let (mut kept, mut offers) = (Volume::default(), 0_usize);
        let mut offering = Counts::new();
        let (mut holders, mut wanting, mut floors) = (0_usize, 0_usize, 0_usize);
        for (id, line) in self.lines.iter() {
            let counted @ Part { bytes, weight, .. } = line.counted(self.kept.least());
            assert_eq!(counted, line.kept);
            let Some(Keys { head, highest, is_closed, tail, floor, leads, since, is_kept, tenth }) =
                line.listed.filter(|listed| Some(*listed) == line.keys())
            else {
                unreachable!("no line is empty, and each is listed where it stands")
            };
            let head = (head.0, head.1, id, highest);
            assert!(self.orders.heads.contains(&head));
            assert_eq!(leads, self.orders.leads.contains(&tipless(head, since)));
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
        assert_eq!(self.orders.heads.len(), self.lines.iter().count());
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
        let open = |id: SenderId| 0..lists[id].len();
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
        prop_assert_eq!(best, chosen);

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
