//! The names of the tools that come with the miner.

/// The tool that leaves the machine.
pub(super) const FETCH_URL: &str = "fetch_url";

/// Names of the tools that come with the miner.
pub const BUILT_IN: &[&str] = &[
    "chain_get_balance",
    "chain_get_height",
    "chain_get_block",
    "chain_get_tx",
    "chain_recent_blocks",
    "chain_list_validators",
    "now",
    "date_parse",
    "date_diff",
    "math_eval",
    "regex_match",
    FETCH_URL,
];

/// The tools that clients offer with every question in free text unless they are told otherwise: pure
/// ones that a model calls only where the question has something for them. A run that names them lets
/// its miner use them and asks for no miner that has them (docs/miner.md section Tools).
pub const OFFERED_BY_DEFAULT: &[&str] = &["date_diff", "date_parse", "math_eval"];
