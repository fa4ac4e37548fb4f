//! A call for people: what was answered and by whom, when, and what it cost.

use serde_json::{Value, json};
use types::abi::Method;

use super::agent::Agent;
use crate::client::output::{Rows, facts, ombra_of, one_line, printable, scalar, table, time_of};

/// Long values are cut in tables; `--json` has them whole.
const VALUE_CHARS_MAX: usize = 2_000;
const REASON_CHARS_MAX: usize = 120;

/// The bytes of a text of `0x` and hex.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    const_hex::decode(value.as_str()?.strip_prefix("0x")?).ok()
}

/// The method that a call asks for.
pub(in crate::client) fn method_of<'a>(call: &Value, agent: &'a Agent) -> Option<&'a Method> {
    agent.method_of(&bytes(&call["payload"])?)
}

/// What a result says, or why it says nothing; null if it is not there.
pub(in crate::client) fn decoded(result: &Value, method: Option<&Method>) -> Value {
    let (Some(bytes), Some(method)) = (bytes(result), method) else { return Value::Null };
    match method.decode_answer(&bytes) {
        Ok(text) => serde_json::from_str(&text).unwrap_or_default(),
        Err(error) => json!({ "fault": error.to_string() }),
    }
}

/// The record, with what its payload and its answers say.
pub(in crate::client) fn as_json(call: &Value, agent: Option<&Agent>) -> Value {
    let mut call = call.clone();
    let method = agent.and_then(|agent| method_of(&call, agent));
    if let (Some(method), Some(payload)) = (method, bytes(&call["payload"])) {
        let arguments = method.decode_arguments(&payload).ok();
        let arguments = arguments.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        call["decoded"] = json!({
            "method": method.signature(),
            "arguments": arguments,
            "answer": decoded(&call["answer"]["result"], Some(method)),
        });
        for answer in call["answers"].as_array_mut().into_iter().flatten() {
            answer["decoded"] = decoded(&answer["result"], Some(method));
        }
    }
    call
}

/// The whole of a call.
pub(in crate::client) fn whole(call: &Value, agent: Option<&Agent>) -> String {
    let method = agent.and_then(|agent| method_of(call, agent));
    let mut parts = vec![head(call, agent).to_string(), timeline(call).to_string()];
    parts.extend(answer(call, method));
    parts.extend(work(call).map(|rows| rows.to_string()));
    parts.extend(members(call));
    parts.extend(bill(call).map(|rows| rows.to_string()));
    let notes = call["notes"].as_array().into_iter().flatten();
    parts.extend(notes.map(|note| format!("note: {}", scalar(note))));
    parts.join("\n\n")
}

fn head(call: &Value, agent: Option<&Agent>) -> Rows {
    let agent_id = scalar(&call["agentId"]);
    let version = scalar(&call["agentVersion"]);
    let named = agent
        .map_or_else(String::new, |agent| format!("{} ", one_line(&agent.name, REASON_CHARS_MAX)));
    let mut rows = facts([
        ("call", scalar(&call["callId"])),
        ("status", status(call)),
        ("agent", format!("{named}{version} ({agent_id})")),
        ("requester", scalar(&call["requester"])),
        ("decides", consensus(call)),
        ("held at the start", ombra_of(&call["maxFee"])),
        ("a member at most", ombra_of(&call["budget"])),
    ]);
    let method = agent.and_then(|agent| method_of(call, agent));
    if let (Some(method), Some(payload)) = (method, bytes(&call["payload"])) {
        rows.add_row(["method", &method.signature()]);
        match method.decode_arguments(&payload) {
            Ok(text) => {
                let arguments: Value = serde_json::from_str(&text).unwrap_or_default();
                for argument in arguments.as_array().into_iter().flatten() {
                    rows.add_row(["argument".to_owned(), entry(argument)]);
                }
            }
            Err(error) => rows.add_row(["arguments", &error.to_string()]),
        }
    }
    for payment in call["onResult"].as_array().into_iter().flatten() {
        let [when, to] = ["when", "to"].map(|key| scalar(&payment[key]));
        let made = match payment["paid"].as_bool() {
            Some(true) => ", made",
            Some(false) => ", not made",
            None => "",
        };
        let text = format!("{} to {to} on {when}{made}", ombra_of(&payment["amount"]));
        rows.add_row(["pays".to_owned(), text]);
    }
    rows
}

/// `success, not settled yet`.
fn status(call: &Value) -> String {
    let status = scalar(&call["status"]);
    let is_decided = matches!(status.as_str(), "success" | "failed" | "timedOut" | "unassigned");
    if is_decided && call["settled"] == json!(false) {
        let until = time_of(&call["deadlineAt"]);
        return format!("{status}, can be appealed until {until}, settled then");
    }
    status
}

fn consensus(call: &Value) -> String {
    let size = scalar(&call["committeeSize"]);
    let appealable = if call["appealable"] == json!(true) { ", can be appealed" } else { "" };
    match call["threshold"].as_u64() {
        None => format!("the majority of {size}{appealable}"),
        Some(needed) => format!("{needed} of {size}"),
    }
}

fn timeline(call: &Value) -> Rows {
    let mut rows = table(["WHEN", "BLOCK", "WHAT"]);
    let mut add = |when: &Value, block: &Value, what: String| {
        rows.add_row([time_of(when), scalar(block), what]);
    };
    add(&call["createdAt"], &call["blockIndex"], "requested".to_owned());
    for (index, round) in call["rounds"].as_array().into_iter().flatten().enumerate() {
        let [size, elected, committed, revealed, agreeing] =
            ["size", "elected", "committed", "revealed", "agreeing"].map(|key| scalar(&round[key]));
        if index == 1 {
            let appeal = &call["appeal"];
            let who = scalar(&appeal["appellant"]);
            let at_stake = format!(
                "{} paid, {} deposited",
                ombra_of(&appeal["payment"]),
                ombra_of(&appeal["deposit"])
            );
            add(&Value::Null, &appeal["blockIndex"], format!("appealed by {who}: {at_stake}"));
        }
        let drawn = format!("round {index}: {elected} of {size} seats drawn");
        add(&round["electedAt"], &round["electedIn"], drawn);
        let progress = format!("{committed} committed, {revealed} revealed");
        if !round["decidedAt"].is_null() {
            let group = match round["group"]["outcome"].as_str() {
                None => "no group decided".to_owned(),
                Some(outcome) => format!("{agreeing} agree on {}", printable(outcome)),
            };
            add(&round["decidedAt"], &Value::Null, format!("{progress}: {group}"));
        } else if elected != "0" {
            add(&Value::Null, &Value::Null, progress);
        }
    }
    if !call["deadlineAt"].is_null() {
        let what = format!("{} ends, at the earliest", scalar(&call["status"]));
        add(&call["deadlineAt"], &call["deadlineBlock"], what);
    }
    rows
}

/// What was answered.
pub(super) fn answer(call: &Value, method: Option<&Method>) -> Option<String> {
    let stands = &call["answer"];
    let answers = call["answers"].as_array().filter(|it| !it.is_empty());
    if let Some(answers) = answers {
        let lines = answers
            .iter()
            .map(|it| format!("{} says\n{}", scalar(&it["member"]), result(&it["result"], method)));
        return Some(lines.collect::<Vec<_>>().join("\n"));
    }
    (stands["outcome"] == json!("success")).then(|| result(&stands["result"], method))
}

/// The work on which the members agreed; none if no answer stands.
pub(super) fn work(call: &Value) -> Option<Rows> {
    let answer = call["answer"].as_object()?;
    let [read, written, fuel] = ["inputTokens", "outputTokens", "fuel"]
        .map(|key| answer.get(key).map_or_else(String::new, scalar));
    let receipt = answer.get("receiptHash").map_or_else(String::new, scalar);
    Some(facts([
        ("work", format!("{read} tokens read, {written} written, {fuel} units of fuel")),
        ("receipt", format!("{receipt} (covers the digest of every score)")),
    ]))
}

/// A line for each output.
pub(in crate::client) fn result(result: &Value, method: Option<&Method>) -> String {
    if result.is_null() {
        return "the node does not have the result".to_owned();
    }
    let decoded = decoded(result, method);
    if let Some(fault) = decoded["fault"].as_str() {
        let raw = one_line(&scalar(result), VALUE_CHARS_MAX);
        return format!("{raw}\nWARNING: not an answer of the method: {fault}");
    }
    match decoded.as_array() {
        Some(entries) if entries.is_empty() => "(the method returns nothing)".to_owned(),
        Some(entries) => entries.iter().map(entry).collect::<Vec<_>>().join("\n"),
        None => one_line(&scalar(result), VALUE_CHARS_MAX),
    }
}

/// `verdict = "yes"`.
fn entry(entry: &Value) -> String {
    let value = one_line(&entry["value"].to_string(), VALUE_CHARS_MAX);
    match entry["name"].as_str() {
        None | Some("") => value,
        Some(name) => format!("{} = {value}", one_line(name, REASON_CHARS_MAX)),
    }
}

/// Who was drawn, and what became of each.
pub(super) fn members(call: &Value) -> Option<String> {
    let mut rows = table(["ROUND", "SEAT", "MEMBER", "BOND", "SAID", "AGREED", "PAID", "LOST"]);
    let rounds = call["rounds"].as_array().into_iter().flatten().enumerate();
    for (index, round) in rounds {
        for member in round["members"].as_array().into_iter().flatten() {
            let reveal = &member["reveal"];
            let said = match (reveal["outcome"].as_str(), member["commitment"].is_null()) {
                (None, true) => "nothing".to_owned(),
                (None, false) => "committed".to_owned(),
                (Some(outcome), _) => {
                    let outcome = printable(outcome);
                    let reason = reveal["reason"].as_str().map(|it| one_line(it, REASON_CHARS_MAX));
                    reason.map_or_else(|| outcome.clone(), |reason| format!("{outcome}: {reason}"))
                }
            };
            rows.add_row([
                index.to_string(),
                scalar(&member["seat"]),
                scalar(&member["address"]),
                ombra_of(&member["bond"]),
                said,
                scalar(&member["agreed"]),
                ombra_of(&member["paid"]),
                ombra_of(&member["penalty"]),
            ]);
        }
    }
    (!rows.is_empty()).then(|| rows.to_string())
}

/// What became of the money.
pub(super) fn bill(call: &Value) -> Option<Rows> {
    if call["settled"] != json!(true) {
        return None;
    }
    let wages = match call["agreeing"].as_u64() {
        Some(agreeing) => format!("{} to {agreeing} who agreed", ombra_of(&call["wages"])),
        None => ombra_of(&call["wages"]),
    };
    let mut rows = facts([
        ("escrow", ombra_of(&call["maxFee"])),
        ("  paid", wages),
        ("  royalty", ombra_of(&call["royaltyPaid"])),
        ("  conditional", ombra_of(&call["conditionalPaid"])),
        ("  back", ombra_of(&call["refund"])),
        ("burned", format!("{}, penalties included", ombra_of(&call["burned"]))),
        ("penalties", ombra_of(&call["penalties"])),
    ]);
    if !call["appeal"].is_null() {
        rows.add_row(["to the appellant".to_owned(), ombra_of(&call["appellantPaid"])]);
    }
    if !call["bondBehind"].is_null() {
        rows.add_row(["bonds behind it".to_owned(), ombra_of(&call["bondBehind"])]);
    }
    Some(rows)
}

#[cfg(test)]
mod tests {
    //! A settled call, and one under way.

    use serde_json::{Value, json};
    use types::abi::{Method, Parameter, Type, TypeName};

    use super::super::agent::Agent;
    use super::{as_json, whole};

    fn agent() -> Agent {
        let of_type = Type::new(TypeName::parse("string").unwrap(), Vec::new()).unwrap();
        let verdict = Parameter { name: "verdict".into(), of_type };
        let method = Method { name: "f".into(), inputs: Vec::new(), outputs: vec![verdict] };
        Agent {
            id: types::Hash::ZERO,
            name: "judge".into(),
            version: "1.0.0".into(),
            is_retired: false,
            is_deterministic: true,
            methods: vec![method],
        }
    }

    fn call() -> Value {
        let result = format!("0x{:064x}{:064x}796573{}", 32, 3, "0".repeat(58));
        let member = |address: &str, seat: u64, agreed: bool| {
            json!({"address": address, "seat": seat, "bond": "10000000", "agreed": agreed,
                "reveal": {"outcome": "success"}, "commitment": {"hash": "aa"},
                "paid": if agreed { "1010" } else { "0" }, "penalty": if agreed { "0" } else { "2000" }})
        };
        json!({
            "callId": "cc", "agentId": "aa", "agentVersion": "1.0.0", "requester": "11",
            "status": "success", "settled": true, "committeeSize": 3, "appealable": false,
            "maxFee": "5000", "budget": "1010", "payload": "0x26121ff0", "createdAt": 0,
            "blockIndex": 3, "agreeing": 2, "bondBehind": "20000000",
            "answer": {"outcome": "success", "result": result},
            "rounds": [{"size": 3, "elected": 3, "committed": 3, "revealed": 3, "agreeing": 2,
                "electedIn": 4, "electedAt": 1, "decidedAt": 2, "group": {"outcome": "success"},
                "members": [member("21", 0, true), member("22", 1, true), member("23", 2, false)]}],
            "wages": "2020", "royaltyPaid": "7", "conditionalPaid": "0", "refund": "2373",
            "burned": "2600", "penalties": "2000",
        })
    }

    #[test]
    fn a_settled_call_has_its_answer_its_members_and_its_bill() {
        let told = whole(&call(), Some(&agent()));
        for wanted in [
            "judge 1.0.0 (aa)",
            "the majority of 3",
            "3 committed, 3 revealed: 2 agree on success",
            "verdict = \"yes\"",
            "0.002020 OMBRA to 2 who agreed",
            "0.002373 OMBRA",
            "20.000000 OMBRA",
        ] {
            assert!(told.contains(wanted), "{told}\nhas not: {wanted}");
        }
        let decoded = as_json(&call(), Some(&agent()));
        assert_eq!(decoded["decoded"]["answer"][0]["value"], "yes");
        assert_eq!(decoded["decoded"]["method"], "f()");
    }

    #[test]
    fn what_is_no_answer_of_the_method_is_told_so_and_a_call_under_way_has_no_bill() {
        let mut call = call();
        call["answer"]["result"] = json!("0x00");
        assert!(whole(&call, Some(&agent())).contains("WARNING: not an answer of the method"));
        call["settled"] = json!(false);
        call["deadlineAt"] = json!(60_000);
        let told = whole(&call, None);
        assert!(told.contains("can be appealed until 1970-01-01 00:01:00"), "{told}");
        assert!(!told.contains("escrow"), "{told}");
    }
}
