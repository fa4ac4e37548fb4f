//! What a run cost, and how it ended, for the person who pays.

use serde_json::{Value, json};
use types::{Amount, Hash};
use wallet::client::records::Run;

use crate::client::output::{ombra, printable, time};
use crate::client::{Out, Outcome};

/// The settlement of a run, and what was paid beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bill {
    pub(super) escrow: Amount,
    pub(super) to_miner: Amount,
    pub(super) burned: Amount,
    pub(super) back: Amount,
    pub(super) tokens: u64,
    pub(super) steps: u64,
    /// What the chunks of the prompt's blob burned; nothing unless this command stored it.
    pub(super) blob_fees: Amount,
    pub(super) reward: Reward,
}

/// What becomes of the miner's reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reward {
    /// It is paid.
    Paid,
    /// It is held, and the submitter may refuse it.
    Held {
        run: Hash,
        /// Unix milliseconds.
        until: u64,
        /// What is locked of the miner's bond as long.
        locked: Amount,
    },
    /// The submitter refused it.
    Refused,
}

impl Reward {
    fn of(run: &Run) -> Self {
        match run.held_until {
            _ if run.refused => Self::Refused,
            Some(until) => Self::Held {
                run: run.agent_run_id,
                until,
                locked: run.locked_bond.unwrap_or_default(),
            },
            None => Self::Paid,
        }
    }

    /// What the bill says of it, if it is not paid.
    fn line(self, reward: Amount) -> Option<String> {
        match self {
            Self::Paid => None,
            Self::Refused => Some("refused      the miner's reward is burned".to_owned()),
            Self::Held { run, until, locked } => {
                let bond = if locked.is_zero() {
                    String::new()
                } else {
                    format!(", and {} of the miner's bond", ombra(locked))
                };
                Some(format!(
                    "held         {}{bond} until {}; to refuse the answer: ombra tx refuse {run} \
                     --reason TEXT",
                    ombra(reward),
                    time(until)
                ))
            }
        }
    }
}

impl Bill {
    /// The bill of a settled run.
    pub(super) fn of(run: &Run, blob_fees: Amount) -> Self {
        Self {
            escrow: run.max_fee,
            to_miner: run.miner_reward.unwrap_or_default(),
            burned: run.network_fee.unwrap_or_default(),
            back: run.user_refund.unwrap_or_default(),
            tokens: run.total_tokens_out,
            steps: run.step_count,
            blob_fees,
            reward: Reward::of(run),
        }
    }

    /// All that did not come back.
    pub(super) fn paid(&self) -> Amount {
        let kept = self.escrow.checked_sub(self.back).unwrap_or_default();
        kept.checked_add(self.blob_fees).unwrap_or(kept)
    }

    /// The bill in lines.
    pub(super) fn print(&self, out: Out<'_>) -> Outcome {
        let Self { escrow, to_miner, burned, back, tokens, steps, blob_fees, reward } = *self;
        writeln!(out, "escrow       {}", ombra(escrow))?;
        writeln!(out, "  to miner   {} for {}", ombra(to_miner), counted(tokens, "token"))?;
        writeln!(out, "  burned     {} for {}", ombra(burned), counted(steps, "step"))?;
        writeln!(out, "  back       {}", ombra(back))?;
        if blob_fees != Amount::default() {
            writeln!(out, "prompt blob  {} burned", ombra(blob_fees))?;
        }
        writeln!(out, "paid         {}", ombra(self.paid()))?;
        if let Some(line) = reward.line(to_miner) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// The bill as JSON, amounts in micro-OMBRA.
    pub(super) fn json(&self) -> Value {
        let Self { escrow, to_miner, burned, back, tokens: _, steps: _, blob_fees, reward } = *self;
        let mut bill = json!({ "escrow": escrow, "toMiner": to_miner, "burned": burned,
            "back": back, "blobFees": blob_fees, "paid": self.paid() });
        match reward {
            Reward::Paid => {}
            Reward::Held { run: _, until, locked } => {
                bill["heldUntil"] = json!(until);
                bill["lockedBond"] = json!(locked);
            }
            Reward::Refused => bill["refused"] = json!(true),
        }
        bill
    }
}

/// `1 step`, `2 steps`.
pub(super) fn counted(count: u64, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}

/// How a settled run ended and who was paid for what, in a sentence.
pub(super) fn ending(run: &Run) -> String {
    let bill = Bill::of(run, Amount::default());
    let (paid, back, burned) = (ombra(bill.to_miner), ombra(bill.back), ombra(bill.burned));
    let steps = counted(run.step_count, "step");
    let paid_for = || format!("the miner gets {paid}, {burned} are burned for {steps}");
    let is_unpaid = bill.to_miner == Amount::default();
    let says = match run.status.as_str() {
        "completed" => "the miner answered".to_owned(),
        "failed" => format!("the miner gave up; {}, {back} come back", paid_for()),
        "insufficient_funds" => {
            format!("the escrow is used up; {}; a larger --max-fee pays for more", paid_for())
        }
        "timeout" if run.step_count == 0 && run.reopens > 0 => {
            let lapsed = counted(run.reopens.saturating_add(1), "time");
            format!("the run was open {lapsed} and nobody worked on it; all of {back} come back")
        }
        "timeout" if run.step_count == 0 && is_unpaid => {
            format!("no miner worked on the run in time; all of {back} come back")
        }
        "timeout" if is_unpaid => format!(
            "the miner went silent after {steps} and gets nothing; {burned} are burned for the \
             steps, {back} come back"
        ),
        "timeout" => format!("the miner ran out of time; {}, {back} come back", paid_for()),
        "cancelled" if run.miner_address.is_none() || run.step_count == 0 && is_unpaid => {
            format!("the run was taken back; all of {back} come back")
        }
        "cancelled" => format!("the miner called it off; {}, {back} come back", paid_for()),
        _ => format!("{}, {back} come back", paid_for()),
    };
    format!("{}: {says}", printable(&run.status))
}

#[cfg(test)]
mod tests {
    //! Each end in a sentence, and a bill that adds up.

    use serde_json::{Value, json};
    use types::Amount;
    use wallet::client::records::Run;

    use super::{Bill, ending};

    /// A settled run with these members beside the ordinary ones.
    fn run(members: &Value) -> Run {
        let mut run = json!({
            "agentRunId": "00".repeat(32), "conversationId": "11".repeat(32),
            "submitter": "22".repeat(20), "prompt": "?", "maxFee": "1000", "maxSteps": 20,
            "status": "completed", "stepCount": 2, "totalTokensOut": 14, "minerReward": "14",
            "userRefund": "786", "networkFee": "200", "submittedAt": 1,
            "minerAddress": "33".repeat(20),
        });
        for (key, value) in members.as_object().unwrap() {
            run[key] = value.clone();
        }
        serde_json::from_value(run).unwrap()
    }

    #[test]
    fn a_bill_has_every_part_and_what_was_paid_in_all() {
        let mut printed = Vec::new();
        Bill::of(&run(&json!({})), Amount::new(300)).print(&mut printed).unwrap();
        let expected = "escrow       0.001000 OMBRA\n  \
                          to miner   0.000014 OMBRA for 14 tokens\n  \
                          burned     0.000200 OMBRA for 2 steps\n  \
                          back       0.000786 OMBRA\n\
                        prompt blob  0.000300 OMBRA burned\n\
                        paid         0.000514 OMBRA\n";
        assert_eq!(expected, String::from_utf8(printed).unwrap());
        let json = Bill::of(&run(&json!({})), Amount::new(300)).json();
        assert_eq!((json!("514"), json!("300")), (json["paid"].clone(), json["blobFees"].clone()));
    }

    #[test]
    fn a_bill_says_what_is_held_and_until_when_and_what_was_refused() {
        let printed = |members: &Value| {
            let mut printed = Vec::new();
            Bill::of(&run(members), Amount::ZERO).print(&mut printed).unwrap();
            String::from_utf8(printed).unwrap()
        };
        let held = json!({ "heldUntil": 600_000, "lockedBond": "100000" });
        let told = printed(&held);
        let id = "00".repeat(32);
        let line = format!(
            "held         0.000014 OMBRA, and 0.100000 OMBRA of the miner's bond until 1970-01-01 \
             00:10:00.000 UTC; to refuse the answer: ombra tx refuse {id} --reason TEXT\n"
        );
        assert!(told.ends_with(&line), "{told}");
        let bill = Bill::of(&run(&held), Amount::ZERO).json();
        assert_eq!((&json!(600_000), &json!("100000")), (&bill["heldUntil"], &bill["lockedBond"]));
        let told = printed(&json!({ "refused": true }));
        assert!(told.ends_with("refused      the miner's reward is burned\n"), "{told}");
        let paid = Bill::of(&run(&json!({})), Amount::ZERO).json();
        assert!(paid.get("heldUntil").is_none() && paid.get("refused").is_none(), "{paid}");
    }

    #[test]
    fn every_end_is_told_with_what_was_paid() {
        let nothing = json!({ "minerReward": "0", "userRefund": "1000", "networkFee": "0",
            "stepCount": 0, "totalTokensOut": 0 });
        let with = |status: &str, more: &Value| {
            let mut members = more.clone();
            members["status"] = json!(status);
            ending(&run(&members))
        };
        let silent = json!({ "minerReward": "0", "userRefund": "800" });
        let reopened = json!({ "minerReward": "0", "userRefund": "1000", "networkFee": "0",
            "stepCount": 0, "reopens": 3, "minerAddress": null });
        let cases = [
            (with("completed", &json!({})), "completed: the miner answered"),
            (
                with("failed", &json!({})),
                "failed: the miner gave up; the miner gets 0.000014 OMBRA",
            ),
            (with("insufficient_funds", &json!({})), "a larger --max-fee pays for more"),
            (
                with("timeout", &nothing),
                "timeout: no miner worked on the run in time; all of 0.001",
            ),
            (
                with("timeout", &reopened),
                "timeout: the run was open 4 times and nobody worked on it",
            ),
            (
                with("timeout", &silent),
                "went silent after 2 steps and gets nothing; 0.000200 OMBRA",
            ),
            (with("timeout", &json!({})), "timeout: the miner ran out of time; the miner gets 0.0"),
            (
                with("cancelled", &nothing),
                "cancelled: the run was taken back; all of 0.001000 OMBRA",
            ),
            (with("cancelled", &json!({})), "cancelled: the miner called it off; the miner gets"),
        ];
        for (told, expected) in cases {
            assert!(told.contains(expected), "{told}\nhas not: {expected}");
        }
    }
}
