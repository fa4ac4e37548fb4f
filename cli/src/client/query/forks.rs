//! The forks that are to come: who votes for them, and when those begin whose heights are fixed.

use serde_json::Value;
use wallet::{Client, Page};

use super::answer::show;
use crate::client::options::NodeArgs;
use crate::client::output::{scalar, table};
use crate::client::{CliError, Out, Outcome};

/// So many of the last blocks tell how fast the chain is.
const PACE_BLOCKS: u64 = 100;

/// The height and the time of a block.
#[derive(Clone, Copy)]
struct Mark {
    height: u64,
    timestamp: u64,
}

pub(super) async fn forks(node: &NodeArgs, out: Out<'_>) -> Outcome {
    let client = node.client()?;
    let answer = client.forks().await?;
    show(node, answer.text(), out, votes)?;
    let answer = answer.into_value();
    if node.json || fixed(&answer).next().is_none() {
        return Ok(());
    }
    let Some(newest) = mark(&client, None).await? else { return Ok(()) };
    let earlier = mark(&client, Some(newest.height.saturating_sub(PACE_BLOCKS).max(1))).await?;
    for line in coming(&answer, newest, earlier) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// A block of the chain, the newest unless a height is given; none if the node has no such block.
async fn mark(client: &Client, height: Option<u64>) -> Result<Option<Mark>, CliError> {
    let page = Page { limit: Some(1), ..Page::default() };
    let blocks = client.blocks(height, height, &page).await?.into_value();
    let number = |key| blocks["items"][0][key].as_u64();
    let mark = number("index").zip(number("timestamp"));
    Ok(mark.map(|(height, timestamp)| Mark { height, timestamp }))
}

/// The forks whose heights are fixed, with these.
fn fixed(answer: &Value) -> impl Iterator<Item = (String, u64)> {
    let forks = answer["forks"].as_array().into_iter().flatten();
    forks.filter_map(|fork| Some((scalar(&fork["fork"]), fork["fixed"]["height"].as_u64()?)))
}

/// What is said of each fork that is fixed and has not begun: in how many blocks it does, and after about
/// what time if the chain goes on as it did since `earlier`.
fn coming(answer: &Value, newest: Mark, earlier: Option<Mark>) -> Vec<String> {
    let took = |since: Mark| {
        let blocks = newest.height.checked_sub(since.height).filter(|blocks| *blocks > 0)?;
        Some((newest.timestamp.saturating_sub(since.timestamp), blocks))
    };
    let pace = earlier.and_then(took);
    let lines = fixed(answer).filter_map(|(fork, height)| {
        let left = height.checked_sub(newest.height).filter(|left| *left > 0)?;
        let begins = format!("{fork} begins with block {height}, {left} from now");
        Some(match pace {
            Some((ms, blocks)) => {
                let wait = u128::from(ms) * u128::from(left) / u128::from(blocks);
                let wait = about(u64::try_from(wait).unwrap_or(u64::MAX));
                format!("{begins}: in about {wait}, as fast as the last {blocks} blocks came")
            }
            None => begins,
        })
    });
    lines.collect()
}

/// A time span in one unit, rounded to the nearest.
fn about(ms: u64) -> String {
    const SECOND: u64 = 1_000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let (unit, name) = match ms {
        0..=119_999 => (SECOND, "s"),
        120_000..=7_199_999 => (MINUTE, "min"),
        7_200_000..=172_799_999 => (HOUR, "h"),
        _ => (DAY, "days"),
    };
    format!("{} {name}", ms.saturating_add(unit / 2) / unit)
}

/// The votes for each fork, and what is fixed.
fn votes(answer: &Value) -> String {
    let mut rows = table(["FORK", "HEIGHT", "POWER", "VOTERS", "FIXED", "KNOWN TO THE NODE"]);
    let total = scalar(&answer["totalPower"]);
    for fork in answer["forks"].as_array().into_iter().flatten() {
        let known = if fork["known"] == Value::Bool(true) { "yes" } else { "no" };
        let (name, fixed) = (scalar(&fork["fork"]), &fork["fixed"]);
        let votes = fork["votes"].as_array().map(Vec::as_slice).unwrap_or_default();
        if votes.is_empty() {
            let (height, state) = match fixed {
                Value::Null => ("-".to_owned(), "no".to_owned()),
                fixed @ (Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_)) => (scalar(&fixed["height"]), in_block(&fixed["blockIndex"])),
            };
            let power = format!("0 of {total}");
            rows.add_row([name, height, power, "none".to_owned(), state, known.to_owned()]);
            continue;
        }
        for vote in votes {
            let voters = vote["voters"].as_array().into_iter().flatten();
            let voters: Vec<String> = voters.map(|voter| scalar(&voter["address"])).collect();
            let is_fixed = !fixed.is_null() && fixed["height"] == vote["height"];
            rows.add_row([
                name.clone(),
                scalar(&vote["height"]),
                format!("{} of {total}", scalar(&vote["power"])),
                voters.join("\n"),
                if is_fixed { in_block(&fixed["blockIndex"]) } else { "no".to_owned() },
                known.to_owned(),
            ]);
        }
    }
    let missing = &answer["missing"];
    let delay = scalar(&answer["delayBlocks"]);
    let mut text = format!("{rows}\n\na height must be {delay} blocks ahead when it is fixed");
    if !missing.is_null() {
        let [from, to] = ["from", "to"].map(|key| scalar(&missing[key]));
        text = format!("{text}\nthe votes in the blocks {from} to {to} are not counted yet");
    }
    text
}

fn in_block(height: &Value) -> String {
    format!("in block {}", scalar(height))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines(fixed: &[(&str, Option<u64>)], newest: Mark, earlier: Option<Mark>) -> Vec<String> {
        let forks = fixed.iter().map(|(fork, height)| match height {
            Some(height) => json!({"fork": fork, "fixed": {"height": height, "blockIndex": 3}}),
            None => json!({"fork": fork}),
        });
        coming(&json!({"forks": forks.collect::<Vec<_>>()}), newest, earlier)
    }

    #[test]
    fn a_fork_that_is_fixed_is_told_with_the_blocks_and_the_time_until_it_begins() {
        let newest = Mark { height: 1_100, timestamp: 900_000 };
        let earlier = Mark { height: 1_000, timestamp: 800_000 };
        let forks = [("v7", Some(1_100)), ("v8", Some(1_101)), ("v9", Some(5_000)), ("v10", None)];
        assert_eq!(
            lines(&forks, newest, Some(earlier)),
            [
                "v8 begins with block 1101, 1 from now: in about 1 s, as fast as the last 100 \
                 blocks came",
                "v9 begins with block 5000, 3900 from now: in about 65 min, as fast as the last \
                 100 blocks came",
            ]
        );
        // A node that has no other block yet.
        for only in [None, Some(newest)] {
            let expected = ["v8 begins with block 1101, 1 from now"];
            assert_eq!(lines(&forks[..2], newest, only), expected);
        }
    }

    #[test]
    fn a_time_span_is_told_in_one_unit() {
        for (ms, said) in [
            (0, "0 s"),
            (119_999, "120 s"),
            (120_000, "2 min"),
            (7_199_999, "120 min"),
            (7_200_000, "2 h"),
            (172_800_000, "2 days"),
            (864_000_000, "10 days"),
        ] {
            assert_eq!(about(ms), said);
        }
    }
}
