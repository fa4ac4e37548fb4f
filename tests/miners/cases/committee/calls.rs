//! The calls: asked several at once, followed until they are settled, and asked again where too few
//! sound members were drawn to decide.

use std::collections::VecDeque;
use std::sync::Mutex;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use testkit::actor::Actor;
use testkit::node::wait_until;
use testkit::senders::Senders;
use testkit::suite::say;
use types::{Address, Body, Hash};

use super::killed::Deaths;
use super::question::{Asked, Expected, QUESTIONS, Question};
use super::stage::{ABSENT, COPIER, REQUESTER, Stage, WRONG, address, key, model_executor};

/// After all calls so many times more are asked at most until everybody has had a part.
const ENCORES_MAX: usize = 30;
/// A call without a decision is asked again at most so often.
const TRIES_MAX: usize = 20;
/// Progress is told after so many calls.
const TOLD_EVERY: usize = 50;

/// The node answers at once when a call is settled; after so long the others are looked at, too.
const WAIT_MS: u64 = 200;

/// A call that is to be asked, and how often it was asked before.
#[derive(Clone, Copy, Debug)]
struct Due {
    question: Question,
    members: u64,
    tries: usize,
}

/// A call that is under way.
#[derive(Debug)]
struct Open {
    call_id: Hash,
    due: Due,
}

/// A call that is settled.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) question: Question,
    /// As the chain has it.
    pub(super) record: Value,
}

/// All calls.
pub(super) struct Calls<'a> {
    stage: &'a Stage,
    pub(super) senders: Senders,
    requester: Actor,
    due: VecDeque<Due>,
    open: Vec<Open>,
    pub(super) settled: Vec<Settled>,
    /// How many calls had no decision and were asked again.
    pub(super) undecided: usize,
}

impl<'a> Calls<'a> {
    pub(super) fn new(stage: &'a Stage) -> anyhow::Result<Self> {
        Ok(Self {
            stage,
            senders: Senders::open(stage.rpc())?,
            requester: key(REQUESTER)?,
            due: VecDeque::new(),
            open: Vec::new(),
            settled: Vec::new(),
            undecided: 0,
        })
    }

    /// Asks so many calls, and then some more until the wrong, the copier and the absent were
    /// members and the killed has died in each phase.
    pub(super) fn run(&mut self, calls: usize, deaths: &Mutex<Deaths>) -> anyhow::Result<()> {
        let questions = QUESTIONS.iter().cycle().take(calls).enumerate();
        let due = |(number, question): (usize, &Question)| {
            // Each question comes with both sizes.
            let members = if (number + number / QUESTIONS.len()).is_multiple_of(2) { 3 } else { 5 };
            Due { question: *question, members, tries: 0 }
        };
        self.due = questions.map(due).collect();
        self.drain()?;
        for encore in 0..ENCORES_MAX {
            let Some((missing, asked)) = self.missing(deaths)? else { return Ok(()) };
            // Programs take little, so that several at once take no longer than one.
            let count = if asked == Asked::Program { asked.window() } else { 1 };
            say(&format!("{count} more: {missing}"));
            let is_right = |it: &&Question| it.asked == asked && it.expected != Expected::Failure;
            let mut fits = QUESTIONS.iter().filter(is_right).cycle();
            let question = *fits.nth(encore).context("a question")?;
            self.due.extend(vec![Due { question, members: 5, tries: 0 }; count]);
            self.drain()?;
        }
        let missing = self.missing(deaths)?;
        ensure!(missing.is_none(), "after {ENCORES_MAX} times more calls: {missing:?}");
        Ok(())
    }

    /// What has not happened yet, and which agent to ask for it to happen.
    fn missing(&mut self, deaths: &Mutex<Deaths>) -> anyhow::Result<Option<(String, Asked)>> {
        let has = |member: &Address, is_so: fn(&Value) -> bool| {
            self.settled.iter().any(|it| member_of(&it.record, member).is_some_and(is_so))
        };
        let dissented = |member: &Value| member["agreed"] == false && is_answer(member);
        if self.stage.model.is_some() {
            let dissents = has(&address(WRONG)?, dissented);
            let filter = json!({ "executor": model_executor(), "miner": address(WRONG)? });
            let offers = self.senders.call("ombra_listOffers", &filter)?;
            if !dissents || offers["items"] != json!([]) {
                let why = "the wrong miner still offers the model".to_owned();
                return Ok(Some((why, Asked::Model)));
            }
        }
        for (account, who) in [(COPIER, "copier"), (ABSENT, "absent miner")] {
            if !has(&address(account)?, |_| true) {
                return Ok(Some((format!("the {who} was not drawn yet"), Asked::Program)));
            }
        }
        let deaths = deaths.lock().map_err(|_poison| anyhow::anyhow!("a killer panicked"))?;
        let phase = deaths.missing();
        Ok(phase
            .map(|phase| (format!("the killed miner has not died {phase} yet"), Asked::Program)))
    }

    /// Asks what is due and waits until nothing is open.
    fn drain(&mut self) -> anyhow::Result<()> {
        loop {
            self.ask()?;
            if self.open.is_empty() {
                return Ok(());
            }
            wait_until("a call to be settled", || self.look())
                .with_context(|| format!("under way: {:?}", self.open))?;
        }
    }

    /// Asks as many calls as may be under way.
    fn ask(&mut self) -> anyhow::Result<()> {
        let mut later = VecDeque::new();
        while let Some(due) = self.due.pop_front() {
            let Due { question, members, tries: _ } = due;
            if question.asked == Asked::Model && self.stage.model.is_none() {
                continue;
            }
            let under_way = self.open.iter().filter(|it| it.due.question.asked == question.asked);
            if under_way.count() >= question.asked.window() {
                later.push_back(due);
                continue;
            }
            let payload = question.payload(self.stage, &mut self.senders)?;
            let call = question.call(self.stage, &self.requester, payload, members);
            let call_id = call.call_id;
            let text = self.requester.sign_on(&self.stage.chain_id, &Body::AgentCall(call));
            self.senders.include(&[text])?;
            self.open.push(Open { call_id, due });
        }
        self.due = later;
        Ok(())
    }

    /// Whether calls were settled since the last look.
    fn look(&mut self) -> anyhow::Result<bool> {
        let before = self.settled.len();
        if let Some(Open { call_id, .. }) = self.open.first() {
            let wait = json!([call_id, { "until": "settled", "timeoutMs": WAIT_MS }]);
            self.senders.call("ombra_waitForCall", &wait)?;
        }
        for Open { call_id, due } in std::mem::take(&mut self.open) {
            let record = self.senders.call("ombra_getCall", &json!([call_id]))?;
            if record["settled"] != true {
                self.open.push(Open { call_id, due });
                continue;
            }
            if !is_decided(&record) {
                self.undecided += 1;
                ensure!(due.tries < TRIES_MAX, "never decided: {record}");
                self.due.push_back(Due { tries: due.tries + 1, ..due });
            }
            self.settled.push(Settled { question: due.question, record });
            if self.settled.len().is_multiple_of(TOLD_EVERY) {
                say(&format!("{} calls are settled", self.settled.len()));
            }
        }
        Ok(self.settled.len() > before)
    }
}

/// Whether a group of members decided a call.
pub(super) fn is_decided(record: &Value) -> bool {
    record["answer"].is_object()
}

/// The members of the only round of a call.
pub(super) fn members(record: &Value) -> &[Value] {
    let members = record.pointer("/rounds/0/members").and_then(Value::as_array);
    members.map_or(&[], Vec::as_slice)
}

/// What a call says of a member.
pub(super) fn member_of<'a>(record: &'a Value, member: &Address) -> Option<&'a Value> {
    let address = member.to_string();
    members(record).iter().find(|it| it["address"] == address.as_str())
}

/// Whether a member answered something that is compared.
pub(super) fn is_answer(member: &Value) -> bool {
    member["reveal"].is_object() && member["reveal"]["outcome"] != "unable"
}
