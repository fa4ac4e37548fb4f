//! Has another agent classify each of many reviews, and counts.
#![no_std]

use guest::abi::{Arguments, Outputs};
use guest::host::agent;

/// The agent `Keywords` of the first development account; among the tools of this agent's metadata, too.
const KEYWORDS: &str = "83d0d4cb36db27a78729cb9657387c8d4abbce66ffb021f67088ba5bc8be58a9";
const VERSION: &str = "1.0.0";
/// The selector of `classify(string)`.
const CLASSIFY: [u8; 4] = [0x67, 0xdf, 0x39, 0x5d];

/// `count(string[] reviews)` answers `(uint256 positive, uint256 neutral, uint256 negative)`.
#[unsafe(no_mangle)]
extern "C" fn handle(pointer: usize, length: usize) -> u64 {
    guest::answer(pointer, length, |payload| {
        let (mut positive, mut neutral, mut negative) = (0, 0, 0);
        for review in Arguments::of(payload)?.strings(0)? {
            let payload = Outputs::new().string(review).payload(CLASSIFY);
            let result = agent(KEYWORDS, VERSION, &payload)?;
            match Arguments::outputs(&result).string(0)? {
                "positive" => positive += 1,
                "negative" => negative += 1,
                _ => neutral += 1,
            }
        }
        Ok(Outputs::new().uint(positive).uint(neutral).uint(negative).finish())
    })
}
