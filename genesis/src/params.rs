//! The parameters by name: how each is written, which values it may have, and rules between them.
//! One table, used to read a file, to write one and to set a parameter from the command line.

use state::{ChainRules, Forks};
use types::json::{Json, ObjectWriter};
use types::params::Models;
use types::params::{BLOB_CHUNK_BYTES, FORK_DELAY_BLOCKS_MAX};
use types::{Amount, Fork, Params};

use crate::fault::Faults;

/// One parameter.
pub(crate) struct Field {
    /// Its key under `params`.
    pub(crate) name: &'static str,
    access: Access,
    is_written: Written,
}

/// Where the canonical text has a parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    /// In every file.
    Always,
    /// Only with a value of its own: with its default a file has the text that it had before there was
    /// the parameter.
    UnlessDefault,
    /// In files that name the fork that has brought the parameter.
    With(Fork),
}

enum Access {
    /// A decimal string of micro-OMBRA.
    Amount { least: u64, most: u64, read: fn(&Params) -> Amount, write: fn(&mut Params, Amount) },
    /// A JSON integer.
    Integer { least: u64, most: u64, read: fn(&Params) -> u64, write: fn(&mut Params, u64) },
    /// `true` or `false`.
    Switch { read: fn(&Params) -> bool, write: fn(&mut Params, bool) },
    /// A string: `all`, `none`, or hashes with commas between them.
    Models { read: fn(&Params) -> &Models, write: fn(&mut Params, Models) },
}

/// Ten years, the longest time that a parameter may name.
const LONG_MS: u64 = 315_360_000_000;
const DAY_MS: u64 = 86_400_000;
/// More blocks than a chain makes in ten years at ten a second.
const EVIDENCE_AGE_MOST: u64 = 10_000_000_000;
const MINUTE_MS: u64 = 60_000;
const MIB: u64 = 1024 * 1024;
/// No block and no chunk may be limited to less.
const BYTES_LEAST: u64 = 4_096;
/// What a transaction has beside its one long text: members, keys, signature, and room for more.
const ENVELOPE_BYTES: u64 = 4_096;
/// No transaction may be limited to less, so that the longest prompt fits, if none of its characters
/// is escaped.
const TX_BYTES_LEAST: u64 = 16_384 + ENVELOPE_BYTES;

/// Every parameter, in the order of the file.
pub(crate) const FIELDS: [Field; 44] = [
    amount("minMaxFee", 1, |p| p.min_max_fee, |p, v| p.min_max_fee = v),
    integer("pendingTtlMs", (1, LONG_MS), |p| p.pending_ttl_ms, |p, v| p.pending_ttl_ms = v),
    integer("claimTtlMs", (1, LONG_MS), |p| p.claim_ttl_ms, |p, v| p.claim_ttl_ms = v),
    integer("stepTtlMs", (1, LONG_MS), |p| p.step_ttl_ms, |p, v| p.step_ttl_ms = v),
    integer("maxReopens", (0, 1_000), |p| p.max_reopens.into(), |p, v| p.max_reopens = small(v)),
    integer(
        "maxExpiriesPerBlock",
        (1, 1_000_000),
        |p| p.max_expiries_per_block.into(),
        |p, v| p.max_expiries_per_block = small(v),
    ),
    integer(
        "maxOutputTokensPerStep",
        (1, 1 << 32),
        |p| p.max_output_tokens_per_step,
        |p, v| p.max_output_tokens_per_step = v,
    ),
    integer(
        "maxTxBytes",
        (TX_BYTES_LEAST, 4 * MIB),
        |p| p.max_tx_bytes.into(),
        |p, v| p.max_tx_bytes = small(v),
    ),
    integer(
        "maxChunkTxBytes",
        (BYTES_LEAST, 4 * MIB),
        |p| p.max_chunk_tx_bytes.into(),
        |p, v| p.max_chunk_tx_bytes = small(v),
    ),
    integer("maxBlobBytes", (1, 1_024 * MIB), |p| p.max_blob_bytes, |p, v| p.max_blob_bytes = v),
    amount("blobFeePerChunk", 0, |p| p.blob_fee_per_chunk, |p, v| p.blob_fee_per_chunk = v),
    integer("blobTtlMs", (1, LONG_MS), |p| p.blob_ttl_ms, |p, v| p.blob_ttl_ms = v),
    amount("blockReward", 0, |p| p.block_reward, |p, v| p.block_reward = v),
    integer("heartbeatMs", (1, DAY_MS), |p| p.heartbeat_ms, |p, v| p.heartbeat_ms = v),
    integer(
        "minBlockIntervalMs",
        (0, DAY_MS),
        |p| p.min_block_interval_ms,
        |p, v| p.min_block_interval_ms = v,
    ),
    integer(
        "maxBlockBytes",
        (BYTES_LEAST, 64 * MIB),
        |p| p.max_block_bytes.into(),
        |p, v| p.max_block_bytes = small(v),
    ),
    integer("maxClockSkewMs", (1, DAY_MS), |p| p.max_clock_skew_ms, |p, v| p.max_clock_skew_ms = v),
    Field {
        name: "requireChainId",
        access: Access::Switch {
            read: |p| p.require_chain_id,
            write: |p, v| p.require_chain_id = v,
        },
        is_written: Written::Always,
    },
    Field {
        // Chains that are older than this parameter keep their text, and so their hash.
        is_written: Written::UnlessDefault,
        ..integer(
            "forkDelayBlocks",
            (1, FORK_DELAY_BLOCKS_MAX),
            |p| p.fork_delay_blocks,
            |p, v| p.fork_delay_blocks = v,
        )
    },
    with_v7(integer(
        "baseFeeFloor",
        (1, 1_000_000),
        |p| p.base_fee_floor,
        |p, v| p.base_fee_floor = v,
    )),
    with_v7(integer(
        "maxBlockWork",
        (20_000, 2_000_000),
        |p| p.max_block_work,
        |p, v| p.max_block_work = v,
    )),
    with_v7(amount("registerFee", 0, |p| p.register_fee, |p, v| p.register_fee = v)),
    with_v7(amount("blobInitFee", 0, |p| p.blob_init_fee, |p, v| p.blob_init_fee = v)),
    with_v7(amount("refuseStake", 0, |p| p.refuse_stake, |p, v| p.refuse_stake = v)),
    with_v7(integer("unbondMs", (1, LONG_MS), |p| p.unbond_ms, |p, v| p.unbond_ms = v)),
    with_v7(integer(
        "evidenceAgeBlocks",
        (1, EVIDENCE_AGE_MOST),
        |p| p.evidence_age_blocks,
        |p, v| p.evidence_age_blocks = v,
    )),
    with_v7(integer("precisionMs", (1, MINUTE_MS), |p| p.precision_ms, |p, v| p.precision_ms = v)),
    with_v7(integer(
        "messageDelayMs",
        (1, MINUTE_MS),
        |p| p.message_delay_ms,
        |p, v| p.message_delay_ms = v,
    )),
    with_v8(amount_within("minBond", BOND, |p| p.min_bond, |p, v| p.min_bond = v)),
    with_v8(amount_within(
        "absencePenalty",
        PENALTY,
        |p| p.absence_penalty,
        |p, v| p.absence_penalty = v,
    )),
    with_v8(amount_within(
        "unrevealedPenalty",
        PENALTY,
        |p| p.unrevealed_penalty,
        |p, v| p.unrevealed_penalty = v,
    )),
    with_v8(amount_within(
        "dissentPenalty",
        PENALTY,
        |p| p.dissent_penalty,
        |p, v| p.dissent_penalty = v,
    )),
    with_v8(amount_within(
        "outsidePenalty",
        PENALTY,
        |p| p.outside_penalty,
        |p, v| p.outside_penalty = v,
    )),
    with_v8(amount_within("revealFee", (0, 1_000_000), |p| p.reveal_fee, |p, v| p.reveal_fee = v)),
    with_v8(integer("revealMs", (5_000, 600_000), |p| p.reveal_ms, |p, v| p.reveal_ms = v)),
    with_v8(integer("appealMs", (10_000, DAY_MS), |p| p.appeal_ms, |p, v| p.appeal_ms = v)),
    with_v8(integer(
        "offersPerExecutorMax",
        (16, 1_024),
        |p| p.offers_per_executor_max.into(),
        |p, v| p.offers_per_executor_max = small(v),
    )),
    with_v8(amount_within(
        "agentRegisterFee",
        PENALTY,
        |p| p.agent_register_fee,
        |p, v| p.agent_register_fee = v,
    )),
    with_v8(amount_within(
        "agentRegisterFeePerByte",
        (0, 1_000_000),
        |p| p.agent_register_fee_per_byte,
        |p, v| p.agent_register_fee_per_byte = v,
    )),
    with_v8(amount_within("royaltyMax", BOND, |p| p.royalty_max, |p, v| p.royalty_max = v)),
    with_v8(integer(
        "limitInputTokens",
        (1, 1 << 32),
        |p| p.limit_input_tokens,
        |p, v| p.limit_input_tokens = v,
    )),
    with_v8(integer(
        "limitOutputTokens",
        (1, 1 << 32),
        |p| p.limit_output_tokens,
        |p, v| p.limit_output_tokens = v,
    )),
    with_v8(integer("limitFuel", (1, FUEL_MOST), |p| p.limit_fuel, |p, v| p.limit_fuel = v)),
    with_v8(Field {
        name: "slashableModels",
        access: Access::Models {
            read: |p| &p.slashable_models,
            write: |p, v| p.slashable_models = v,
        },
        is_written: Written::Always,
    }),
];

/// The least and the greatest bond, in micro-OMBRA.
const BOND: (u64, u64) = (1_000_000, 1_000_000_000_000);
/// The least and the greatest penalty, in micro-OMBRA.
const PENALTY: (u64, u64) = (0, 1_000_000_000);
/// More fuel than a program uses in an hour.
const FUEL_MOST: u64 = 10_000_000_000_000;

const fn with_v7(field: Field) -> Field {
    Field { is_written: Written::With(Fork::V7), ..field }
}

const fn with_v8(field: Field) -> Field {
    Field { is_written: Written::With(Fork::V8), ..field }
}

const fn amount(
    name: &'static str,
    least: u64,
    read: fn(&Params) -> Amount,
    write: fn(&mut Params, Amount),
) -> Field {
    amount_within(name, (least, u64::MAX), read, write)
}

const fn amount_within(
    name: &'static str,
    (least, most): (u64, u64),
    read: fn(&Params) -> Amount,
    write: fn(&mut Params, Amount),
) -> Field {
    let access = Access::Amount { least, most, read, write };
    Field { name, access, is_written: Written::Always }
}

const fn integer(
    name: &'static str,
    (least, most): (u64, u64),
    read: fn(&Params) -> u64,
    write: fn(&mut Params, u64),
) -> Field {
    let access = Access::Integer { least, most, read, write };
    Field { name, access, is_written: Written::Always }
}

/// For parameters whose range fits 32 bits.
fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

impl Field {
    /// What a value must be, for messages.
    fn expected(&self) -> String {
        match self.access {
            Access::Amount { least, most: u64::MAX, .. } => {
                format!("a decimal string of at least {least} micro-OMBRA")
            }
            Access::Amount { least, most, .. } => {
                format!("a decimal string from {least} to {most} micro-OMBRA")
            }
            Access::Integer { least, most, .. } => format!("an integer from {least} to {most}"),
            Access::Switch { .. } => "true or false".to_owned(),
            Access::Models { .. } => {
                let most = Models::LISTED_MAX;
                format!("a string: all, none, or at most {most} hashes with commas between them")
            }
        }
    }

    /// The value as a file writes it.
    fn text(&self, params: &Params) -> String {
        match self.access {
            Access::Amount { read, .. } => read(params).to_string(),
            Access::Integer { read, .. } => read(params).to_string(),
            Access::Switch { read, .. } => read(params).to_string(),
            Access::Models { read, .. } => read(params).to_string(),
        }
    }

    /// Whether the value is in its range.
    fn holds(&self, params: &Params) -> bool {
        match self.access {
            Access::Amount { least, most, read, .. } => {
                (least..=most).contains(&read(params).get())
            }
            Access::Integer { least, most, read, .. } => (least..=most).contains(&read(params)),
            Access::Switch { .. } | Access::Models { .. } => true,
        }
    }

    /// Sets the parameter to what the digits or the word say, if it may have that value.
    fn set(&self, params: &mut Params, text: &str) -> Result<(), String> {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match self.access {
            Access::Amount { least, most, write, .. } => {
                let value = Amount::parse(text).ok();
                let value = value.filter(|value| (least..=most).contains(&value.get()));
                write(params, value.ok_or_else(|| self.expected())?);
            }
            Access::Integer { least, most, write, .. } => {
                let value = text.parse().ok().filter(|value| (least..=most).contains(value));
                write(params, value.filter(|_| plain).ok_or_else(|| self.expected())?);
            }
            Access::Switch { write, .. } => {
                write(params, text.parse().map_err(|_not_one| self.expected())?);
            }
            Access::Models { write, .. } => {
                write(params, text.parse().map_err(|_not_some| self.expected())?);
            }
        }
        Ok(())
    }

    /// Sets the parameter to a value of a file, which must also have the right JSON type.
    pub(crate) fn read(&self, value: &Json<'_>, params: &mut Params, faults: &mut Faults) {
        let path = format!("params.{}", self.name);
        let text = match (&self.access, value) {
            (Access::Amount { .. } | Access::Models { .. }, Json::String(text)) => {
                Some(text.as_ref())
            }
            (Access::Integer { .. }, Json::Number(literal)) => Some(*literal),
            (Access::Switch { .. }, Json::Bool(true)) => Some("true"),
            (Access::Switch { .. }, Json::Bool(false)) => Some("false"),
            _ => None,
        };
        match text {
            None => faults.add(path, value.kind(), self.expected()),
            Some(text) => {
                if let Err(expected) = self.set(params, text) {
                    faults.add(path, text, expected);
                }
            }
        }
    }

    fn is_default(&self, params: &Params) -> bool {
        self.text(params) == self.text(&Params::default())
    }

    /// Writes the parameter as a member.
    pub(crate) fn write(&self, chain: &ChainRules, object: &mut ObjectWriter<'_>) {
        let params = &chain.params;
        let is_left_out = match self.is_written {
            Written::Always => false,
            Written::UnlessDefault => self.is_default(params),
            Written::With(fork) => chain.forks.height_of(fork) == Forks::NEVER,
        };
        if is_left_out {
            return;
        }
        match self.access {
            Access::Amount { read, .. } => object.display(self.name, &read(params)),
            Access::Integer { read, .. } => object.integer(self.name, read(params)),
            Access::Switch { read, .. } => object.boolean(self.name, read(params)),
            Access::Models { read, .. } => object.display(self.name, read(params)),
        }
    }
}

/// Checks each value's range and the rules between values.
pub(crate) fn check(params: &Params, forks: Forks, faults: &mut Faults) {
    for field in FIELDS.iter().filter(|field| !field.is_default(params)) {
        let Written::With(fork) = field.is_written else { continue };
        if forks.height_of(fork) == Forks::NEVER {
            let path = format!("params.{}", field.name);
            let name = fork.name();
            let expected =
                format!("no such parameter in a genesis that does not name forks.{name}");
            faults.add(path, field.text(params), expected);
        }
    }
    for field in FIELDS.iter().filter(|field| !field.holds(params)) {
        let path = format!("params.{}", field.name);
        faults.add(path, field.text(params), field.expected());
    }
    let chunk = BLOB_CHUNK_BYTES.min(params.max_blob_bytes);
    let least = chunk.div_ceil(3).saturating_mul(4).saturating_add(ENVELOPE_BYTES);
    if u64::from(params.max_chunk_tx_bytes) < least {
        let expected = format!("at least {least}, so that a chunk of {chunk} bytes fits");
        faults.add("params.maxChunkTxBytes", params.max_chunk_tx_bytes, expected);
    }
    let largest = params.max_tx_bytes.max(params.max_chunk_tx_bytes);
    if params.max_block_bytes < largest {
        let expected = format!("at least {largest}, the largest transaction");
        faults.add("params.maxBlockBytes", params.max_block_bytes, expected);
    }
    if params.heartbeat_ms < params.min_block_interval_ms {
        let expected = format!("at least {}, minBlockIntervalMs", params.min_block_interval_ms);
        faults.add("params.heartbeatMs", params.heartbeat_ms, expected);
    }
    if forks.v7.is_some() {
        check_ttls(params, faults);
    }
}

/// From v7 on a proposer moves time by `precisionMs` and `messageDelayMs` at most: no deadline may be so
/// near that this makes a tenth of it.
fn check_ttls(params: &Params, faults: &mut Faults) {
    let least = state::timely::least_ttl_ms(params);
    let ttls = [
        ("params.pendingTtlMs", params.pending_ttl_ms),
        ("params.claimTtlMs", params.claim_ttl_ms),
        ("params.stepTtlMs", params.step_ttl_ms),
        ("params.blobTtlMs", params.blob_ttl_ms),
    ];
    for (path, ttl) in ttls.into_iter().filter(|(_, ttl)| *ttl < least) {
        let expected = format!("at least {least}, ten times precisionMs and messageDelayMs");
        faults.add(path, ttl, expected);
    }
}

/// Why a parameter cannot be set.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParamError {
    /// There is no parameter of that name.
    #[error("there is no parameter {name:?}; the parameters are {}", param_names().join(", "))]
    Unknown {
        /// The name.
        name: String,
    },
    /// The parameter cannot have that value.
    #[error("{name} is {got:?}, expected {expected}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The value.
        got: String,
        /// What would be right.
        expected: String,
    },
    /// The text is not `name=value`.
    #[error("{text:?} is not NAME=VALUE")]
    Form {
        /// The text.
        text: String,
    },
}

/// The names of all parameters, in the order of the file.
#[must_use]
pub fn param_names() -> Vec<&'static str> {
    FIELDS.iter().map(|field| field.name).collect()
}

/// Sets the parameter that a text `name=value` names: `claimTtlMs=5000`, `requireChainId=true`.
///
/// # Errors
/// [`ParamError`] says what is wrong; the parameters are then what they were.
pub fn set_param(params: &mut Params, text: &str) -> Result<(), ParamError> {
    let form = || ParamError::Form { text: text.to_owned() };
    let (name, value) = text.split_once('=').ok_or_else(form)?;
    let field = FIELDS.iter().find(|field| field.name == name);
    let field = field.ok_or_else(|| ParamError::Unknown { name: name.to_owned() })?;
    field.set(params, value).map_err(|expected| ParamError::Value {
        name: field.name,
        got: value.to_owned(),
        expected,
    })
}
