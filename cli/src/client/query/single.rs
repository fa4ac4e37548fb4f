//! One thing as names and values.

use serde_json::Value;
use types::Amount;
use types::agent::Document;

use crate::client::output::{Rows, facts, ombra_of, one_line, printable, scalar, table, time_of};

/// Long texts of strangers are cut in tables; `--json` has them whole.
const TEXT_CHARS_MAX: usize = 200;

pub(super) fn chain(chain: &Value) -> Rows {
    facts([
        ("chain", scalar(&chain["chainId"])),
        ("genesis", scalar(&chain["genesisHash"])),
        ("height", scalar(&chain["height"])),
        ("newest block", scalar(&chain["latestBlockHash"])),
        ("its time", time_of(&chain["latestBlockTime"])),
        ("first block here", scalar(&chain["earliestBlock"])),
        ("syncing", scalar(&chain["syncing"])),
        ("validators", count(&chain["validators"])),
        ("peers", count(&chain["peers"])),
        ("fork v6 from", scalar(&chain["forks"]["v6"])),
        ("node version", scalar(&chain["version"])),
    ])
}

/// As it stands in `config.toml`.
pub(super) fn trusted(pair: &Value) -> String {
    let (height, hash) = (scalar(&pair["height"]), scalar(&pair["hash"]));
    format!("sync.trusted = {{ height = {height}, hash = \"{hash}\" }}")
}

pub(super) fn block(block: &Value) -> String {
    let always = [
        ("block", scalar(&block["index"])),
        ("hash", scalar(&block["hash"])),
        ("previous", scalar(&block["previousHash"])),
        ("time", time_of(&block["timestamp"])),
        ("proposer", scalar(&block["proposer"])),
        ("transactions root", scalar(&block["txRoot"])),
        ("state root", scalar(&block["stateRoot"])),
        ("burned", ombra_of(&block["tokensBurned"])),
        ("transactions", scalar(&block["txCount"])),
    ];
    let head = facts(always.into_iter().chain(fees_of(block)).chain(randomness_of(block)));
    let mut rows = table(["TYPE", "FROM", "NONCE", "HASH"]);
    let transactions = block["transactions"].as_array().into_iter().flatten();
    for tx in transactions {
        rows.add_row(["type", "from", "nonce", "hash"].map(|key| scalar(&tx[key])));
    }
    if rows.is_empty() { head.to_string() } else { format!("{head}\n\n{rows}") }
}

/// From fork v7 on.
fn randomness_of(block: &Value) -> Option<(&'static str, String)> {
    let randomness = &block["randomness"];
    (!randomness.is_null()).then(|| ("randomness", scalar(randomness)))
}

/// What the places in a block cost, from fork v7 on.
fn fees_of(block: &Value) -> Vec<(&'static str, String)> {
    if block["baseFee"].is_null() {
        return Vec::new();
    }
    vec![
        ("base fee", format!("{} micro per KiB", scalar(&block["baseFee"]))),
        ("burned for places", ombra_of(&block["inclusionFees"])),
        ("tips", ombra_of(&block["tips"])),
    ]
}

pub(super) fn transaction(status: &Value) -> String {
    let mut lines =
        vec![("transaction", scalar(&status["hash"])), ("status", scalar(&status["status"]))];
    if !status["blockIndex"].is_null() {
        lines.push(("block", scalar(&status["blockIndex"])));
        lines.push(("block hash", scalar(&status["blockHash"])));
        lines.push(("position", scalar(&status["position"])));
        lines.push(("block time", time_of(&status["timestamp"])));
        if !status["inclusionFee"].is_null() {
            lines.push(("burned for its place", ombra_of(&status["inclusionFee"])));
        }
    }
    if !status["dropped"].is_null() {
        lines.push(("dropped", scalar(&status["dropped"]["code"])));
        lines.push(("because", scalar(&status["dropped"]["message"])));
    }
    format!("{}\n\n{}", facts(lines), members(&status["tx"]))
}

pub(super) fn account(account: &Value) -> Rows {
    facts([
        ("address", scalar(&account["address"])),
        ("balance", ombra_of(&account["balance"])),
        ("nonce", scalar(&account["nonce"])),
        ("balance incl. pending", ombra_of(&account["pendingBalance"])),
        ("nonce incl. pending", scalar(&account["pendingNonce"])),
        ("miner", scalar(&account["isMiner"])),
    ])
}

pub(super) fn run(run: &Value) -> String {
    let optional = |name, key: &str, value: fn(&Value) -> String| {
        (!run[key].is_null()).then(|| (name, value(&run[key])))
    };
    let text = |value: &Value| one_line(value.as_str().unwrap_or_default(), TEXT_CHARS_MAX);
    let always = [
        ("run", scalar(&run["agentRunId"])),
        ("status", scalar(&run["status"])),
        ("conversation", scalar(&run["conversationId"])),
        ("submitter", scalar(&run["submitter"])),
        ("prompt", text(&run["prompt"])),
        ("tools", names(&run["toolsWhitelist"])),
        ("escrow", ombra_of(&run["maxFee"])),
        ("steps", format!("{} of {}", scalar(&run["stepCount"]), scalar(&run["maxSteps"]))),
        ("tokens", scalar(&run["totalTokensOut"])),
        ("requested", time_of(&run["submittedAt"])),
    ];
    let sometimes = [
        optional("model requested", "modelHint", scalar),
        optional("miner", "minerAddress", scalar),
        optional("model", "modelInfo", scalar),
        optional("machine", "hardwareTier", scalar),
        optional("claimed", "claimedAt", time_of),
        optional("finished", "finishedAt", time_of),
        optional("deadline", "deadlineAt", time_of),
        optional("to miner", "minerReward", ombra_of),
        optional("burned", "networkFee", ombra_of),
        optional("back", "userRefund", ombra_of),
        optional("answer in blob", "finalAnswerBlobId", scalar),
        optional("protected", "protection", protection),
        optional("locked of the bond", "lockedBond", ombra_of),
        optional("reward held until", "heldUntil", time_of),
        optional("reward refused", "refused", scalar),
        optional("ended by", "endedBy", scalar),
    ];
    let head = facts(always.into_iter().chain(sometimes.into_iter().flatten()));
    match run["finalAnswerInline"].as_str() {
        Some(answer) => format!("{head}\n\n{}", printable(answer)),
        None => head.to_string(),
    }
}

/// How a run is protected.
fn protection(protection: &Value) -> String {
    let mut parts = vec![
        format!("claim bond {}", ombra_of(&protection["claimBond"])),
        format!("reward held for {} ms", scalar(&protection["refuseMs"])),
    ];
    if !protection["maxTokensPerStep"].is_null() {
        parts.push(format!("{} tokens a step", scalar(&protection["maxTokensPerStep"])));
    }
    let miners = names(&protection["miners"]);
    if miners != "-" {
        parts.push(format!("miners {miners}"));
    }
    parts.join(", ")
}

pub(super) fn supply(supply: &Value) -> Rows {
    let at_stake = |key: &str| {
        let amount = supply.get(key);
        amount.map_or_else(|| "0.000000 OMBRA".to_owned(), ombra_of)
    };
    facts([
        ("genesis", ombra_of(&supply["genesis"])),
        ("minted", ombra_of(&supply["minted"])),
        ("burned", ombra_of(&supply["burned"])),
        ("in escrow", ombra_of(&supply["escrowed"])),
        ("bonded", at_stake("bonded")),
        ("unbonding", at_stake("unbonding")),
        ("circulating", ombra_of(&supply["circulating"])),
    ])
}

/// The randomness of a block.
pub(super) fn randomness(randomness: &Value) -> Rows {
    facts([
        ("block", scalar(&randomness["height"])),
        ("hash", scalar(&randomness["blockHash"])),
        ("randomness", scalar(&randomness["value"])),
        ("proof", scalar(&randomness["proof"])),
        ("proposer", scalar(&randomness["proposer"])),
        ("its key", scalar(&randomness["publicKey"])),
        ("what was proved", scalar(&randomness["input"])),
    ])
}

/// What an account has at stake.
pub(super) fn bond(bond: &Value) -> Rows {
    let waiting = bond["unbonding"].as_array().into_iter().flatten();
    let waiting: Vec<String> = waiting
        .map(|it| format!("{} at {}", ombra_of(&it["amount"]), time_of(&it["due"])))
        .collect();
    facts([
        ("address", scalar(&bond["address"])),
        ("bonded", ombra_of(&bond["bonded"])),
        ("locked", ombra_of(&bond["locked"])),
        ("free", ombra_of(&bond["free"])),
        ("unbonding", if waiting.is_empty() { "nothing".to_owned() } else { waiting.join("\n") }),
        ("rewards held", scalar(&bond["rewardsHeld"])),
        ("rewards refused", scalar(&bond["rewardsRefused"])),
    ])
}

pub(super) fn agent(agent: &Value) -> String {
    let version = &agent["version"];
    let text = |value: &Value| one_line(value.as_str().unwrap_or_default(), TEXT_CHARS_MAX);
    let rows = facts([
        ("agent", scalar(&agent["agentId"])),
        ("name", text(&agent["name"])),
        ("description", text(&agent["description"])),
        ("tags", names(&agent["tags"])),
        ("owner", scalar(&agent["owner"])),
        ("retired", scalar(&agent["retired"])),
        ("versions", scalar(&agent["versions"])),
        ("latest", scalar(&agent["latest"])),
        ("version", scalar(&version["version"])),
        ("registered", time_of(&version["registeredAt"])),
        ("executors", names(&version["executors"])),
        ("tools", names(&version["tools"])),
        ("deterministic", scalar(&version["deterministic"])),
        ("royalty", ombra_of(&version["royalty"])),
        ("metadata", scalar(&version["metadataHash"])),
    ]);
    let metadata = agent["metadata"].as_str().unwrap_or_default();
    let read = Document::read(metadata.as_bytes());
    let checked = read.and_then(|document| document.check(Amount::MAX).outcome);
    let mut methods = table(["SELECTOR", "METHOD", "OUTPUTS"]);
    for method in checked.iter().flat_map(|metadata| &metadata.methods) {
        methods.add_row([method.selector().to_string(), method.signature(), method.answers()]);
    }
    format!("{rows}\n\n{methods}")
}

/// What places in blocks cost, and what kinds burn beside that.
pub(super) fn fees(answer: &Value) -> Rows {
    let (estimate, schedule) = (&answer["estimate"], &answer["schedule"]);
    let micro = |value: &Value| format!("{} micro", scalar(value));
    let tips = ["p10", "p50", "p90"].map(|key| scalar(&estimate["tips"][key])).join(", ");
    let tips = format!(
        "{tips} micro at the 10th, 50th and 90th percentile ({} transactions)",
        scalar(&estimate["tips"]["sample"])
    );
    let kinds = [
        ("a turn", ombra_of(&schedule["chatTurnFee"])),
        ("a step of a run", ombra_of(&schedule["agentNetworkFeePerStep"])),
        ("a chunk of a blob", ombra_of(&schedule["blobFeePerChunk"])),
    ];
    if estimate["active"] != Value::Bool(true) {
        let from = &estimate["activeFrom"];
        let until = if from.is_null() {
            "nothing: fork v7 is not active".to_owned()
        } else {
            format!("nothing until fork v7 begins with block {}", scalar(from))
        };
        let place = ("a place in a block", until);
        return facts([place, ("recent tips", tips)].into_iter().chain(kinds));
    }
    let of_v7 = [
        ("next block", scalar(&estimate["blockIndex"])),
        ("base fee", format!("{} per KiB", micro(&estimate["baseFee"]))),
        ("its floor", format!("{} per KiB", micro(&schedule["baseFeeFloor"]))),
        (
            "a place",
            format!("{} for {} bytes", micro(&estimate["inclusionFee"]), scalar(&estimate["size"])),
        ),
        ("--max-base-fee to give", scalar(&estimate["suggestedMaxBaseFee"])),
        ("recent tips", tips),
        ("a first registration", ombra_of(&schedule["registerFee"])),
        ("a new blob", ombra_of(&schedule["blobInitFee"])),
    ];
    facts(of_v7.into_iter().chain(kinds))
}

/// The members of a transaction, long texts cut.
fn members(object: &Value) -> Rows {
    let mut rows = table(["FIELD", "VALUE"]);
    for (key, value) in object.as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        rows.add_row([printable(key), one_line(&text, TEXT_CHARS_MAX)]);
    }
    rows
}

/// A number, or the length of a list.
fn count(value: &Value) -> String {
    value.as_array().map_or_else(|| scalar(value), |items| items.len().to_string())
}

/// A list of names, separated by commas; `-` when it is empty.
pub(super) fn names(value: &Value) -> String {
    let names: Vec<String> = value.as_array().into_iter().flatten().map(scalar).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(", ") }
}
