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
            let Some(Keys { head, tail, leads, is_spared }) = line.keys() else {
                unreachable!("an empty line is forgotten")
            };
            assert!(self.heads.contains(&(head.0, head.1, *id)));
            assert_eq!(leads, self.leads.contains(&(head.0, head.1, *id)));
            assert_eq!(is_spared, self.spared_tails.contains(&(tail.0, tail.1, *id)));
            assert_eq!(!is_spared, self.tails.contains(&(tail.0, tail.1, *id)));
            lead.count = lead.count.saturating_add(line.lead);
            lead.bytes = lead.bytes.saturating_add(line.lead_bytes);
            offers = offers.saturating_add(line.offers.len());
            assert!(line.offers.iter().all(|it| self.ages.get(&it.arrival) == Some(&it.slot)));
        }
        assert_eq!(self.lead, lead);
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
        is_favoured: bool,
    },
    /// The first, the last or another one of a sender.
    Remove {
        sender: SenderId,
        place: usize,
    },
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..4_usize, 0..6_u64, any::<bool>())
            .prop_map(|(sender, rate, is_favoured)| Change::Push { sender, rate, is_favoured }),
        2 => (0..4_usize, 0..5_usize).prop_map(|(sender, place)| Change::Remove { sender, place }),
    ]
}

fn change_market(market: &mut Market, lists: &mut [Vec<Offer>], change: &Change, arrival: u64) {
    match *change {
        Change::Push { sender, rate, is_favoured } => {
            let nonce = lists[sender].last().map_or(0, |last| last.nonce.saturating_add(1));
            let slot = usize::try_from(arrival).unwrap();
            let (bytes, highest) = (slot.saturating_add(300), u64::MAX);
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
        let wanted = Wanted { limits, base_fee: 0 };
        let open = |id: SenderId| 0..lists[id].len();
        let mut chosen = market.choose(wanted, &mut Offered::default(), &open);
        let mut best = all;
        best.sort_by_key(|(worth, arrival, _)| (Reverse(*worth), *arrival));
        let mut best: Vec<Slot> = best.into_iter().take(count).map(|(_, _, slot)| slot).collect();
        chosen.sort_unstable();
        best.sort_unstable();
        prop_assert_eq!(best, chosen);
    }
}
