//! The orders of the market against the transactions that are in it.

use proptest::prelude::*;

use super::*;

impl Market {
    /// Counts everything from scratch.
    fn assert_counted(&self) {
        let (mut lead, mut offers) = (Volume::default(), 0_usize);
        for (id, line) in &self.lines {
            let of_lead = || line.offers.iter().take_while(|offer| offer.is_favoured);
            assert_eq!(
                (line.lead, line.lead_bytes),
                (of_lead().count(), of_lead().map(|it| it.bytes).sum())
            );
            let rates: BTreeSet<_> = line.offers.iter().map(|it| (it.rate, it.nonce)).collect();
            assert_eq!(rates, line.rates);
            let Some(Keys { head, highest, is_closed, tail, leads, since, is_spared }) =
                line.keys()
            else {
                unreachable!("an empty line is forgotten")
            };
            let head = (head.0, head.1, *id, highest);
            assert!(self.heads.contains(&head));
            assert_eq!(leads, self.leads.contains(&tipless(head, since)));
            assert_eq!(!is_closed, self.offering.contains(&(highest, *id)));
            assert_eq!(is_spared, self.spared_tails.contains(&(tail.0, tail.1, *id)));
            assert_eq!(!is_spared, self.tails.contains(&(tail.0, tail.1, *id)));
            lead.count = lead.count.saturating_add(line.lead);
            lead.bytes = lead.bytes.saturating_add(line.lead_bytes);
            offers = offers.saturating_add(line.offers.len());
            assert!(line.offers.iter().all(|it| self.ages.get(&it.arrival) == Some(&it.slot)));
        }
        assert_eq!(self.lead, lead);
        let waits = |line: &Line| {
            let fee = self.waits.base_fee();
            let ready = line.offers.iter().take_while(|it| it.highest >= fee).count();
            let first = line.offers.get(ready);
            assert_eq!(first.map(|it| it.nonce), line.first_waiting(fee).map(|it| it.nonce));
            line.offers.len().saturating_sub(ready)
        };
        assert_eq!(self.lines.values().map(waits).sum::<usize>(), self.waiting());
        let is_offered = |line: &&Line| {
            let first = line.offers.front();
            first.is_some_and(|it| {
                it.highest >= self.waits.base_fee() && !line.is_closed_at(it.nonce)
            })
        };
        assert_eq!(self.lines.values().any(|line| is_offered(&line)), self.has_offers());
        assert_eq!(self.ages.len(), offers);
        assert_eq!(self.heads.len(), self.lines.len());
        assert_eq!(self.tails.len().saturating_add(self.spared_tails.len()), self.lines.len());
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
    BaseFee(u64),
    /// Such a place of a sender and those after it.
    Close {
        sender: SenderId,
        place: usize,
    },
    Reopen,
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
        2 => (0..8_u64).prop_map(Change::BaseFee),
        1 => (0..4_usize, 0..5_usize).prop_map(|(sender, place)| Change::Close { sender, place }),
        1 => Just(Change::Reopen),
    ]
}

fn change_market(market: &mut Market, lists: &mut [Vec<Offer>], change: &Change, arrival: u64) {
    match *change {
        Change::Push { sender, rate, highest, is_favoured } => {
            let nonce = lists[sender].last().map_or(0, |last| last.nonce.saturating_add(1));
            let slot = usize::try_from(arrival).unwrap();
            let bytes = slot.saturating_add(300);
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
        Change::BaseFee(base_fee) => market.follow(base_fee),
        Change::Close { sender, place } => {
            if let Some(offer) = lists[sender].get(place) {
                market.close(sender, offer.nonce);
            }
        }
        Change::Reopen => market.reopen(),
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
        changes in prop::collection::vec(change(), 1..60),
        count in 1..9_usize,
    ) {
        let (mut market, mut lists) = (Market::default(), vec![Vec::new(); 4]);
        for (change, arrival) in changes.iter().zip(1..) {
            change_market(&mut market, &mut lists, change, arrival);
            market.assert_counted();
        }
        let all = worths(&lists);
        let lowest = all.iter().min_by_key(|(worth, arrival, _)| (*worth, Reverse(*arrival)));
        let found = market.lowest(true, &BTreeSet::new());
        // It is the last one of its sender.
        let last = found.and_then(|(_, id)| lists[id].last().map(|offer| offer.slot));
        prop_assert_eq!(lowest.map(|(worth, ..)| *worth), found.map(|(worth, _)| worth));
        prop_assert_eq!(lowest.map(|(_, _, slot)| *slot), last);

        // With fewer than ten places, a tenth is none.
        let limits = BlockLimits { bytes: usize::MAX, count };
        let wanted = Wanted { limits, shares: 1 };
        let open = |id: SenderId| 0..lists[id].len();
        let mut chosen = market.choose(wanted, &mut Offered::default(), &open);
        let is_ready = |(id, offer): &(SenderId, &Offer)| {
            offer.highest >= market.waits.base_fee()
                && !market.lines.get(id).is_some_and(|line| line.is_closed_at(offer.nonce))
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
    }
}
