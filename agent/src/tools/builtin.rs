//! The tools that come with the miner.

use std::sync::Arc;

use super::config::Config;
use super::fetch::FetchUrl;
use super::math::MathEval;
use super::names::FETCH_URL;
use super::pattern::RegexMatch;
use super::surroundings::Surroundings;
use super::tool::{Limits, Tool};
use super::{chain, time};

/// The built-in tools that the operator allows.
pub(super) fn tools(config: &Config, around: &Surroundings) -> Vec<Arc<dyn Tool>> {
    let mut all = chain::tools(&around.node);
    all.extend(time::tools(&around.clock));
    all.push(Arc::new(MathEval::new()));
    all.push(Arc::new(RegexMatch::new()));
    let limits = config.limits_of(FETCH_URL, Limits::DEFAULT);
    all.push(Arc::new(FetchUrl::new(&config.fetch, &around.names, limits)));
    all.retain(|tool| config.allow.contains(&tool.spec().name));
    all
}
