//! Lists as tables; where a list goes on, its cursor stands below.

use serde_json::Value;

use super::single::names;
use crate::client::output::{Rows, ombra_of, one_line, printable, scalar, table, time_of};

const PROMPT_CHARS_MAX: usize = 50;
const CONTENT_CHARS_MAX: usize = 100;

pub(super) fn runs(answer: &Value) -> String {
    let header = ["RUN", "STATUS", "STEPS", "TOKENS", "ESCROW", "REQUESTED", "PROMPT"];
    paged(answer, table(header), |run| {
        vec![
            scalar(&run["agentRunId"]),
            scalar(&run["status"]),
            scalar(&run["stepCount"]),
            scalar(&run["totalTokensOut"]),
            ombra_of(&run["maxFee"]),
            time_of(&run["submittedAt"]),
            one_line(run["prompt"].as_str().unwrap_or_default(), PROMPT_CHARS_MAX),
        ]
    })
}

pub(super) fn calls(answer: &Value) -> String {
    let header =
        ["CALL", "STATUS", "AGENT", "VERSION", "REQUESTER", "AGREE", "ESCROW", "REQUESTED"];
    paged(answer, table(header), |call| {
        let agree = format!("{} of {}", scalar(&call["agreeing"]), scalar(&call["committeeSize"]));
        vec![
            scalar(&call["callId"]),
            scalar(&call["status"]),
            scalar(&call["agentId"]),
            scalar(&call["agentVersion"]),
            scalar(&call["requester"]),
            agree,
            ombra_of(&call["maxFee"]),
            time_of(&call["createdAt"]),
        ]
    })
}

pub(super) fn steps(answer: &Value) -> String {
    paged(answer, table(["STEP", "TOKENS", "BLOCK", "TX", "TOOLS"]), |step| {
        let calls = step["toolCalls"].as_array().into_iter().flatten();
        let tools: Vec<String> = calls.map(|call| scalar(&call["name"])).collect();
        vec![
            scalar(&step["stepIndex"]),
            scalar(&step["outputTokens"]),
            scalar(&step["blockIndex"]),
            scalar(&step["tx"]),
            tools.join(", "),
        ]
    })
}

pub(super) fn turns(answer: &Value) -> String {
    paged(answer, table(["TIME", "FROM", "ROLE", "TURN", "CONTENT"]), |turn| {
        vec![
            time_of(&turn["timestamp"]),
            scalar(&turn["from"]),
            scalar(&turn["role"]),
            scalar(&turn["hash"]),
            one_line(turn["content"].as_str().unwrap_or_default(), CONTENT_CHARS_MAX),
        ]
    })
}

pub(super) fn account_transactions(answer: &Value) -> String {
    paged(answer, table(["BLOCK", "TIME", "TYPE", "DIRECTION", "HASH"]), |item| {
        vec![
            scalar(&item["blockIndex"]),
            time_of(&item["timestamp"]),
            scalar(&item["type"]),
            scalar(&item["direction"]),
            scalar(&item["hash"]),
        ]
    })
}

pub(super) fn miners(answer: &Value) -> String {
    let header = ["NAME", "ADDRESS", "CAPABILITIES", "MODEL", "CLAIMED", "COMPLETED", "EARNED"];
    paged(answer, table(header), |miner| {
        vec![
            scalar(&miner["name"]),
            scalar(&miner["address"]),
            names(&miner["capabilities"]),
            one_line(miner["modelInfo"].as_str().unwrap_or_default(), PROMPT_CHARS_MAX),
            scalar(&miner["runsClaimed"]),
            scalar(&miner["runsCompleted"]),
            ombra_of(&miner["earnings"]),
        ]
    })
}

pub(super) fn offers(answer: &Value) -> String {
    let header = [
        "MINER",
        "EXECUTOR",
        "OPEN",
        "PER CALL",
        "PER M READ",
        "PER M WRITTEN",
        "PER G FUEL",
        "BOND",
        "FREE",
        "COUNTS",
    ];
    paged(answer, table(header), |offer| {
        let prices = ["perCall", "promptPerM", "completionPerM", "fuelPerG", "bonded", "free"];
        let counts = match offer["counts"].as_bool() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        let open = format!("{} of {}", scalar(&offer["open"]), scalar(&offer["capacity"]));
        let mut row = vec![scalar(&offer["miner"]), scalar(&offer["executor"]), open];
        row.extend(prices.map(|price| ombra_of(&offer[price])));
        row.push(counts.to_owned());
        row
    })
}

pub(super) fn agents(answer: &Value) -> String {
    let header = ["AGENT", "NAME", "VERSION", "OWNER", "TAGS", "ROYALTY", "DESCRIPTION"];
    paged(answer, table(header), |agent| {
        let is_retired = agent["retired"].as_bool() == Some(true);
        let retired = if is_retired { " (retired)" } else { "" };
        vec![
            scalar(&agent["agentId"]),
            one_line(agent["name"].as_str().unwrap_or_default(), PROMPT_CHARS_MAX),
            format!("{}{retired}", scalar(&agent["latest"])),
            scalar(&agent["owner"]),
            names(&agent["tags"]),
            ombra_of(&agent["version"]["royalty"]),
            one_line(agent["description"].as_str().unwrap_or_default(), PROMPT_CHARS_MAX),
        ]
    })
}

pub(super) fn agent_versions(answer: &Value) -> String {
    let header = ["VERSION", "REGISTERED", "BLOCK", "EXECUTORS", "ROYALTY", "METADATA"];
    paged(answer, table(header), |version| {
        vec![
            scalar(&version["version"]),
            time_of(&version["registeredAt"]),
            scalar(&version["blockIndex"]),
            names(&version["executors"]),
            ombra_of(&version["royalty"]),
            scalar(&version["metadataHash"]),
        ]
    })
}

pub(super) fn validators(answer: &Value) -> String {
    let mut rows = table(["ADDRESS", "PUBLIC KEY", "POWER", "PROPOSED", "MISSED", "EQUIVOCATIONS"]);
    let mut votes = Vec::new();
    for item in answer.as_array().into_iter().flatten() {
        let keys = ["address", "publicKey", "power", "proposed", "missed", "equivocations"];
        rows.add_row(keys.map(|key| scalar(&item[key])));
        for vote in item["votes"].as_array().into_iter().flatten() {
            let [voter, candidate] = [&item["address"], &vote["candidateKey"]].map(scalar);
            votes.push(format!("{voter} votes for {candidate} to have power {}", vote["power"]));
        }
    }
    if votes.is_empty() { rows.to_string() } else { format!("{rows}\n\n{}", votes.join("\n")) }
}

pub(super) fn punished(answer: &Value) -> String {
    paged(answer, table(["ADDRESS", "PUBLIC KEY", "IN BLOCK"]), |item| {
        ["address", "publicKey", "punishedAt"].map(|key| scalar(&item[key])).to_vec()
    })
}

pub(super) fn params(answer: &Value) -> String {
    let mut rows = table(["PARAMETER", "VALUE", "BOUNDS", "NEXT", "VOTES FOR", "POWER", "VOTERS"]);
    let total = scalar(&answer["totalPower"]);
    let from =
        |what: &Value| format!("{} from block {}", scalar(&what["value"]), scalar(&what["height"]));
    for param in answer["params"].as_array().into_iter().flatten() {
        let [name, value, min, max] =
            ["name", "value", "min", "max"].map(|key| scalar(&param[key]));
        let next = &param["next"];
        let next = if next.is_null() { "-".to_owned() } else { from(next) };
        let votes = param["votes"].as_array().into_iter().flatten();
        let (mut wanted, mut powers, mut who) = (Vec::new(), Vec::new(), Vec::new());
        for vote in votes {
            let voters = vote["voters"].as_array().into_iter().flatten();
            let voters: Vec<String> = voters.map(|voter| scalar(&voter["address"])).collect();
            let more = "\n".repeat(voters.len().saturating_sub(1));
            wanted.push(format!("{}{more}", from(vote)));
            powers.push(format!("{} of {total}{more}", scalar(&vote["power"])));
            who.push(voters.join("\n"));
        }
        let bounds = format!("{min} to {max}");
        let [wanted, powers, who] = [wanted, powers, who].map(|lines| lines.join("\n"));
        rows.add_row([name, value, bounds, next, wanted, powers, who]);
    }
    if answer["active"] == Value::Bool(true) {
        return rows.to_string();
    }
    format!("{rows}\n\nfork v7 is not active: nobody can vote yet")
}

pub(super) fn peers(answer: &Value) -> String {
    let mut rows = table(["PEER", "ADDRESS", "DIRECTION", "HEIGHT", "LATENCY MS", "SCORE"]);
    for item in answer.as_array().into_iter().flatten() {
        let keys = ["peerId", "address", "direction", "height", "latencyMs", "score"];
        rows.add_row(keys.map(|key| scalar(&item[key])));
    }
    if rows.is_empty() { "no peers".to_owned() } else { rows.to_string() }
}

/// The items of a page, and how to ask for the next one.
fn paged(answer: &Value, mut rows: Rows, row: impl Fn(&Value) -> Vec<String>) -> String {
    for item in answer["items"].as_array().into_iter().flatten() {
        rows.add_row(row(item));
    }
    let cursor = answer["nextCursor"].as_str().map(printable);
    match (rows.is_empty(), cursor) {
        (true, None) => "none".to_owned(),
        (true, Some(cursor)) => format!("none yet\n\nmore: --cursor {cursor}"),
        (false, None) => rows.to_string(),
        (false, Some(cursor)) => format!("{rows}\n\nmore: --cursor {cursor}"),
    }
}
