//! Any bytes are a block or refused, and a block has one binary form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use types::block::{CompactBlock, CompactBlockEntry};
use types::{Block, CheckedTx, Header, Params, SizeLimits, UncheckedBlock};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(header) = Header::parse(bytes) {
        assert_eq!(header.payload().as_bytes(), bytes);
    }
    let limits = SizeLimits::from(&Params::default());
    if let Ok(CompactBlock { header, entries }) = CompactBlock::decode(bytes, &limits) {
        let is_carried = |entry: &CompactBlockEntry| matches!(entry, CompactBlockEntry::Carried(_));
        if entries.iter().all(is_carried) {
            let carried = entries.into_iter().filter_map(|entry| match entry {
                CompactBlockEntry::Carried(tx) => Some(CheckedTx::trust(*tx)),
                CompactBlockEntry::Named(_) => None,
            });
            let block = Block { header, transactions: carried.collect() };
            assert_eq!(CompactBlock::encode(&block, &[]), bytes);
        }
    }
    if let Ok(UncheckedBlock { header, transactions }) = UncheckedBlock::decode(bytes, &limits) {
        let transactions = transactions.into_iter().map(CheckedTx::trust).collect();
        assert_eq!(Block { header, transactions }.encode(), bytes);
    }
});
