//! Any bytes are a block or refused, and a block has one binary form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use types::block::{Outline, OutlineEntry};
use types::{Block, CheckedTx, Header, Params, SizeLimits, UncheckedBlock};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = Header::parse(bytes) {
        assert_eq!(header.payload().as_bytes(), bytes);
    }
    let limits = SizeLimits::from(&Params::default());
    if let Ok(Outline { header, entries }) = Outline::decode(bytes, &limits) {
        let is_carried = |entry: &OutlineEntry| matches!(entry, OutlineEntry::Carried(_));
        if entries.iter().all(is_carried) {
            let carried = entries.into_iter().filter_map(|entry| match entry {
                OutlineEntry::Carried(tx) => Some(CheckedTx::trust(*tx)),
                OutlineEntry::Named(_) => None,
            });
            let block = Block { header, transactions: carried.collect() };
            assert_eq!(Outline::encode(&block, &[]), bytes);
        }
    }
    if let Ok(UncheckedBlock { header, transactions }) = UncheckedBlock::decode(bytes, &limits) {
        let transactions = transactions.into_iter().map(CheckedTx::trust).collect();
        assert_eq!(Block { header, transactions }.encode(), bytes);
    }
});
