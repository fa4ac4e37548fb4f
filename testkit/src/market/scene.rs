//! An agent, its miners and a requester on a running chain. What a miner does when it is drawn is the
//! script's: each call is brought from its request to its settlement step by step.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use state::market::election::Candidate;
use types::ids::Committer;
use types::tx::AgentCall;
use types::{Address, Amount, Body, Hash, Keypair};

use super::{Head, Market, Saying};
use crate::actor::Actor;
use crate::node::{wait_for, wait_until};
use crate::senders::Senders;

/// Rejections of what comes before its time: the pool is a moment behind the chain, and phases end when they
/// end.
const TOO_EARLY: [&str; 4] = ["CALL_NOT_FOUND", "NOT_MEMBER", "CALL_PHASE", "APPEAL_CLOSED"];
/// How long a transaction may take into a block.
const INCLUDED_MAX: Duration = Duration::from_secs(30);

/// Who takes part.
#[derive(Debug)]
pub struct Cast {
    pub owner: Keypair,
    pub requester: Keypair,
    pub miners: Vec<Keypair>,
    /// What each miner has at stake.
    pub bond: u64,
    /// At how many calls at once each works.
    pub capacity: u64,
}

impl Cast {
    /// The last of these people own the agent and ask; the others are miners.
    pub fn of(mut people: Vec<Keypair>, bond: u64, capacity: u64) -> anyhow::Result<Self> {
        let (owner, requester) = people.pop().zip(people.pop()).context("two keys")?;
        Ok(Self { owner, requester, miners: people, bond, capacity })
    }
}

/// A market with its people.
#[derive(Debug)]
pub struct Scene {
    pub senders: Senders,
    pub market: Market,
    pub requester: Actor,
    pub miners: Vec<Actor>,
    validators: usize,
}

/// A round of a call whose members are known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Round {
    pub call_id: Hash,
    pub number: u8,
    /// In the order in which they were drawn.
    pub members: Vec<Address>,
    /// The block that drew them.
    pub drawn_in: u64,
}

impl Round {
    /// The name under which a member commits.
    #[must_use]
    pub fn by(&self, member: Address) -> Committer {
        Committer { call_id: self.call_id, round: self.number.into(), member }
    }

    /// All members say this.
    #[must_use]
    pub fn all_say(&self, saying: &Saying) -> Vec<(Address, Saying)> {
        self.members.iter().map(|member| (*member, saying.clone())).collect()
    }
}

impl Scene {
    /// Publishes an agent that needs this model, and has the miners offer to run it. Nobody has sent
    /// anything yet.
    pub fn open(node: SocketAddr, manifest: Hash, cast: Cast) -> anyhow::Result<Self> {
        let mut senders = Senders::open(node)?;
        let info = senders.call("ombra_chainInfo", &json!([]))?;
        let chain_id = info["chainId"].as_str().context("a chain without a name")?;
        let validators = usize::try_from(info["validators"].as_u64().context("no validators")?)?;
        let Cast { owner, requester, miners, bond, capacity } = cast;
        let (mut owner, requester) = (Actor::new(owner), Actor::new(requester));
        let market = Market::new(chain_id, &owner, manifest);
        let mut miners: Vec<Actor> = miners.into_iter().map(Actor::new).collect();
        let mut texts = vec![market.publish(&mut owner)];
        texts.extend(miners.iter_mut().flat_map(|miner| market.join(miner, bond, capacity)));
        let mut scene = Self { senders, market, requester, miners, validators };
        scene.deliver(&texts)?;
        Ok(scene)
    }

    /// What the requester would ask next.
    #[must_use]
    pub fn asked(&self, committee_size: u64) -> AgentCall {
        self.market.asked(&self.requester, committee_size)
    }

    /// Asks, and waits for the draw.
    pub fn ask(&mut self, call: AgentCall) -> anyhow::Result<Round> {
        let (call_id, size) = (call.call_id, call.committee_size);
        let mut candidates = self.candidates()?;
        candidates.retain(|it| it.miner != self.requester.address());
        let asked_in = self.request(call)?;
        let head = self.drawn(asked_in)?;
        let members = head.draw((call_id, 0), &candidates, usize::try_from(size)?);
        Ok(Round { call_id, number: 0, members, drawn_in: head.height })
    }

    /// Asks; answers in which block.
    pub fn request(&mut self, call: AgentCall) -> anyhow::Result<u64> {
        let text = self.requester.sign_on(&self.market.chain_id, &Body::AgentCall(call));
        self.deliver(&[text])
    }

    /// Doubts a decision as soon as there is one, and waits for the draw of so many.
    pub fn appeal(
        &mut self,
        appellant: &mut Actor,
        first: &Round,
        size: usize,
    ) -> anyhow::Result<Round> {
        let call_id = first.call_id;
        let mut candidates = self.candidates()?;
        let out = [self.requester.address(), appellant.address()];
        candidates.retain(|it| !out.contains(&it.miner) && !first.members.contains(&it.miner));
        let body = fixtures::appeal(call_id);
        let appealed_in = self.deliver(&[appellant.sign_on(&self.market.chain_id, &body)])?;
        let head = self.drawn(appealed_in)?;
        let members = head.draw((call_id, 1), &candidates, size);
        Ok(Round { call_id, number: 1, members, drawn_in: head.height })
    }

    /// The miners with their bonds as they are now, in the order of addresses.
    pub fn candidates(&mut self) -> anyhow::Result<Vec<Candidate>> {
        let filter = json!({ "executor": self.market.executor().to_string(), "limit": 100 });
        let listed = self.senders.call("ombra_listOffers", &filter)?;
        let offers = listed["items"].as_array().context("no list of offers")?;
        let read = |offer: &Value| {
            let miner = Address::parse(offer["miner"].as_str()?).ok()?;
            let weight = Amount::parse(offer["bonded"].as_str()?).ok()?;
            Some(Candidate { miner, weight, is_full: false })
        };
        let candidates: Option<Vec<Candidate>> = offers.iter().map(read).collect();
        let mut candidates = candidates.with_context(|| format!("odd offers: {listed}"))?;
        candidates.sort_by_key(|candidate| candidate.miner);
        Ok(candidates)
    }

    /// Waits for the block that draws what was asked for in a block.
    pub fn drawn(&mut self, asked_in: u64) -> anyhow::Result<Head> {
        let mut previous = self.head(asked_in)?;
        loop {
            let height = previous.height + 1;
            let senders = &mut self.senders;
            wait_for("the next block", || {
                let info = senders.call("ombra_chainInfo", &json!([]))?;
                Ok(info["height"].as_u64().filter(|tip| *tip >= height))
            })?;
            let head = self.head(height)?;
            if head.draws(&previous, asked_in, self.validators) {
                return Ok(head);
            }
            previous = head;
        }
    }

    /// What of a block decides a draw.
    pub fn head(&mut self, height: u64) -> anyhow::Result<Head> {
        let block = self.senders.call("ombra_getBlock", &json!([height, false]))?;
        Head::read(&block).with_context(|| format!("no block with randomness: {block}"))
    }

    /// The miner of that address.
    pub fn miner(&mut self, address: Address) -> anyhow::Result<&mut Actor> {
        let found = self.miners.iter_mut().find(|miner| miner.address() == address);
        found.with_context(|| format!("{address} is no miner"))
    }

    /// Miners send something, as soon as they may.
    pub fn send_all(
        &mut self,
        bodies: impl IntoIterator<Item = (Address, Body)>,
    ) -> anyhow::Result<()> {
        let chain_id = self.market.chain_id.clone();
        let sign =
            |(miner, body): (Address, Body)| Ok(self.miner(miner)?.sign_on(&chain_id, &body));
        let texts = bodies.into_iter().map(sign).collect::<anyhow::Result<Vec<_>>>()?;
        self.deliver(&texts).map(drop)
    }

    /// Members commit to what they say.
    pub fn commit(&mut self, round: &Round, said: &[(Address, Saying)]) -> anyhow::Result<()> {
        let bodies = said.iter().map(|(member, it)| (*member, it.commit(&round.by(*member))));
        self.send_all(bodies)
    }

    /// Members show what they committed to, as soon as they may.
    pub fn reveal(&mut self, round: &Round, said: &[(Address, Saying)]) -> anyhow::Result<()> {
        let bodies = said.iter().map(|(member, it)| (*member, it.reveal(&round.by(*member))));
        self.send_all(bodies)
    }

    /// Members commit to what they say and show it.
    pub fn answer(&mut self, round: &Round, said: &[(Address, Saying)]) -> anyhow::Result<()> {
        self.commit(round, said)?;
        self.reveal(round, said)
    }

    /// What a miner sends is refused with this code, once its time has come.
    pub fn refused_as(&mut self, miner: Address, body: &Body, code: &str) -> anyhow::Result<()> {
        let chain_id = self.market.chain_id.clone();
        let text = self.miner(miner)?.draft_on(&chain_id, body);
        let senders = &mut self.senders;
        wait_for(code, || {
            let answer = senders.send(std::slice::from_ref(&text))?;
            let told = code_of(answer.first().context("no answer")?);
            ensure!(told == Some(code) || is_early(told), "{code} was expected: {answer:?}");
            Ok((told == Some(code)).then_some(()))
        })
    }

    /// Waits until no miner has anything locked: every call with members is settled.
    pub fn settled(&mut self) -> anyhow::Result<()> {
        let Self { miners, senders, .. } = self;
        for address in miners.iter().map(Actor::address) {
            wait_until("a miner's bond to be free", || {
                let bond = senders.call("ombra_getBond", &json!([address]))?;
                Ok(bond["locked"] == "0")
            })?;
        }
        Ok(())
    }

    /// What these have, balance and bond.
    pub fn wealth(&mut self, people: &[Address]) -> anyhow::Result<Vec<i128>> {
        people.iter().map(|address| self.senders.wealth_of(*address)).collect()
    }

    /// Sends texts until all are taken, again and again those whose time has not come, and waits until they
    /// are in blocks; answers the block of the last one.
    pub fn deliver(&mut self, texts: &[String]) -> anyhow::Result<u64> {
        let mut left: Vec<String> = texts.to_vec();
        let (senders, mut hashes) = (&mut self.senders, Vec::new());
        wait_for("the pool to take what is sent", || {
            let answers = senders.send(&left)?;
            let mut early = Vec::new();
            for (text, answer) in left.drain(..).zip(&answers) {
                match answer.get("hash") {
                    Some(hash) => hashes.push(hash.clone()),
                    None => {
                        ensure!(is_early(code_of(answer)), "not taken: {answer}");
                        early.push(text);
                    }
                }
            }
            left = early;
            Ok(left.is_empty().then_some(()))
        })?;
        let mut last = 0;
        for hash in hashes {
            let seen = senders.seen(&hash, INCLUDED_MAX)?;
            let height = seen["blockIndex"].as_u64();
            last = last.max(height.with_context(|| format!("in no block: {seen}"))?);
        }
        Ok(last)
    }
}

fn code_of(answer: &Value) -> Option<&str> {
    answer.pointer("/error/data/code").and_then(Value::as_str)
}

fn is_early(code: Option<&str>) -> bool {
    code.is_some_and(|code| TOO_EARLY.contains(&code))
}
