//! The parameters that validators may change by PARAM_VOTE, and their bounds (docs/protocol.md section
//! 5.13).

use types::{Amount, Fork, Forks, Params};

use crate::timely::least_ttl_ms;

/// A parameter that votes can change.
#[derive(Clone, Copy, Debug)]
pub struct Changeable {
    /// Its name in genesis and in votes.
    pub name: &'static str,
    /// The least value that may be voted for.
    pub min: u64,
    /// The greatest.
    pub max: u64,
    /// The fork that has brought it.
    pub fork: Fork,
    get: fn(&Params) -> u64,
    set: fn(&mut Params, u64),
}

impl Changeable {
    /// Its value.
    #[must_use]
    pub fn get(&self, params: &Params) -> u64 {
        (self.get)(params)
    }

    /// Gives it a value.
    pub(crate) fn set(&self, params: &mut Params, value: u64) {
        (self.set)(params, value);
    }

    /// The parameter of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        CHANGEABLE.iter().find(|param| param.name == name)
    }

    /// Whether votes in a block can change it.
    #[must_use]
    pub const fn is_votable(&self, forks: &Forks, height: u64) -> bool {
        height >= forks.height_of(self.fork)
    }
}

/// The name of the lowest base fee.
pub const BASE_FEE_FLOOR: &str = "baseFeeFloor";
/// The least and the greatest time that a run may be kept waiting.
const TTL: (u64, u64) = (30_000, 86_400_000);
/// The least and the greatest fee of a single record, in micro-OMBRA.
const FEE: (u64, u64) = (0, 10_000_000);

/// The least and the greatest penalty of a member, in micro-OMBRA.
const PENALTY: (u64, u64) = (0, 1_000_000_000);

/// Every parameter that votes can change.
pub const CHANGEABLE: [Changeable; 20] = [
    integer(BASE_FEE_FLOOR, (1, 1_000_000), |p| p.base_fee_floor, |p, v| p.base_fee_floor = v),
    integer("maxBlockWork", (20_000, 2_000_000), |p| p.max_block_work, |p, v| p.max_block_work = v),
    integer("registerFee", FEE, |p| p.register_fee.get(), |p, v| p.register_fee = Amount::new(v)),
    integer("blobInitFee", FEE, |p| p.blob_init_fee.get(), |p, v| p.blob_init_fee = Amount::new(v)),
    integer(
        "blobFeePerChunk",
        FEE,
        |p| p.blob_fee_per_chunk.get(),
        |p, v| p.blob_fee_per_chunk = Amount::new(v),
    ),
    integer("refuseStake", FEE, |p| p.refuse_stake.get(), |p, v| p.refuse_stake = Amount::new(v)),
    integer("unbondMs", (60_000, 2_592_000_000), |p| p.unbond_ms, |p, v| p.unbond_ms = v),
    integer("pendingTtlMs", TTL, |p| p.pending_ttl_ms, |p, v| p.pending_ttl_ms = v),
    integer("claimTtlMs", TTL, |p| p.claim_ttl_ms, |p, v| p.claim_ttl_ms = v),
    integer("stepTtlMs", TTL, |p| p.step_ttl_ms, |p, v| p.step_ttl_ms = v),
    integer(
        "minBlockIntervalMs",
        (20, 10_000),
        |p| p.min_block_interval_ms,
        |p, v| p.min_block_interval_ms = v,
    ),
    of_v8(integer(
        "minBond",
        (1_000_000, 1_000_000_000_000),
        |p| p.min_bond.get(),
        |p, v| p.min_bond = Amount::new(v),
    )),
    of_v8(integer(
        "absencePenalty",
        PENALTY,
        |p| p.absence_penalty.get(),
        |p, v| p.absence_penalty = Amount::new(v),
    )),
    of_v8(integer(
        "unrevealedPenalty",
        PENALTY,
        |p| p.unrevealed_penalty.get(),
        |p, v| p.unrevealed_penalty = Amount::new(v),
    )),
    of_v8(integer(
        "dissentPenalty",
        PENALTY,
        |p| p.dissent_penalty.get(),
        |p, v| p.dissent_penalty = Amount::new(v),
    )),
    of_v8(integer(
        "outsidePenalty",
        PENALTY,
        |p| p.outside_penalty.get(),
        |p, v| p.outside_penalty = Amount::new(v),
    )),
    of_v8(integer(
        "revealFee",
        (0, 1_000_000),
        |p| p.reveal_fee.get(),
        |p, v| p.reveal_fee = Amount::new(v),
    )),
    of_v8(integer("revealMs", (5_000, 600_000), |p| p.reveal_ms, |p, v| p.reveal_ms = v)),
    of_v8(integer("appealMs", (10_000, 86_400_000), |p| p.appeal_ms, |p, v| p.appeal_ms = v)),
    of_v8(integer(
        "offersPerExecutorMax",
        (16, 1_024),
        |p| p.offers_per_executor_max.into(),
        |p, v| p.offers_per_executor_max = u32::try_from(v).unwrap_or(u32::MAX),
    )),
];

const fn integer(
    name: &'static str,
    (min, max): (u64, u64),
    get: fn(&Params) -> u64,
    set: fn(&mut Params, u64),
) -> Changeable {
    Changeable { name, min, max, fork: Fork::V7, get, set }
}

const fn of_v8(param: Changeable) -> Changeable {
    Changeable { fork: Fork::V8, ..param }
}

/// What a whole set of parameters breaks in which one was changed, if anything: no single bound, but a
/// rule between several of them.
#[must_use]
pub fn conflict(params: &Params, changed: &str) -> Option<(&'static str, String)> {
    if params.min_block_interval_ms > params.heartbeat_ms {
        let expected = format!("at most {}, heartbeatMs", params.heartbeat_ms);
        return Some(("minBlockIntervalMs", expected));
    }
    let least = least_ttl_ms(params);
    let ttls = [
        ("pendingTtlMs", params.pending_ttl_ms),
        ("claimTtlMs", params.claim_ttl_ms),
        ("stepTtlMs", params.step_ttl_ms),
    ];
    // One that genesis set lower, in a chain that had no v7 then, is no matter for votes on others.
    let short = ttls.into_iter().find(|(name, ttl)| *name == changed && *ttl < least);
    short.map(|(name, _)| {
        (name, format!("at least {least}, ten times precisionMs and messageDelayMs"))
    })
}
