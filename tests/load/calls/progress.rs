//! How far each call is, as the blocks tell, and what is to be sent next.

use std::collections::VecDeque;

use anyhow::Context;
use state::market::election::Candidate;
use testkit::market::Head;
use types::{Address, Amount, Hash};

use super::member_connection::Job;
use super::{MEMBERS, Request};

/// A block holds so many elections (docs/protocol.md section 18.3).
const ELECTIONS_MAX: usize = 256;

/// A transaction of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Ask,
    Commit,
    Reveal,
}

/// A call under way.
#[derive(Clone, Debug)]
struct Call {
    id: Hash,
    /// Their places among the miners; none before the draw.
    members: Vec<usize>,
    committed: usize,
    revealed: usize,
    /// The block with the last commit.
    answered_in: u64,
}

/// All calls.
pub(super) struct Progress {
    calls: Vec<Call>,
    candidates: Vec<Candidate>,
    /// The miners' places in the order of the candidates.
    places: Vec<usize>,
    validators: usize,
    previous: Option<Head>,
    /// Calls that wait for their draw, with the block that they are in.
    electing: VecDeque<(usize, u64)>,
    settled: usize,
    /// Blocks from the last commit of each settled call to its decision.
    to_decision: Vec<u64>,
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let waiting = self.electing.len();
        let of = |test: fn(&&Call) -> bool| self.calls.iter().filter(test).count();
        let committing = of(|it| !it.members.is_empty() && it.committed < MEMBERS);
        let revealing = of(|it| it.committed == MEMBERS && it.revealed < MEMBERS);
        write!(f, "{waiting} wait for a draw, {committing} commit, {revealing} reveal")
    }
}

impl Progress {
    pub(super) fn new(
        miners: &[Address],
        bond: Amount,
        validators: usize,
        requests: &[Request],
    ) -> Self {
        let mut order: Vec<(Address, usize)> =
            miners.iter().enumerate().map(|(place, miner)| (*miner, place)).collect();
        order.sort_unstable();
        let candidate = |(miner, _): &(Address, usize)| Candidate {
            miner: *miner,
            weight: bond,
            is_full: false,
        };
        let call = |request: &Request| Call {
            id: request.call_id,
            members: Vec::new(),
            committed: 0,
            revealed: 0,
            answered_in: 0,
        };
        Self {
            calls: requests.iter().map(call).collect(),
            candidates: order.iter().map(candidate).collect(),
            places: order.iter().map(|(_, place)| *place).collect(),
            validators,
            previous: None,
            electing: VecDeque::new(),
            settled: 0,
            to_decision: Vec::new(),
        }
    }

    /// The block after which the calls begin.
    pub(super) fn begin(&mut self, head: Head) {
        self.previous = Some(head);
    }

    pub(super) const fn settled(&self) -> usize {
        self.settled
    }

    /// Blocks from the last commit to the decision, ascending.
    pub(super) fn to_decision(&self) -> Vec<u64> {
        let mut blocks = self.to_decision.clone();
        blocks.sort_unstable();
        blocks
    }

    /// A block has come with these steps. Answers what is to be sent now, and by which miner.
    pub(super) fn pass(
        &mut self,
        head: Head,
        seen: &[(usize, Step)],
    ) -> anyhow::Result<Vec<(usize, Job)>> {
        let mut jobs = self.draw(&head)?;
        for (number, step) in seen {
            let call = self.calls.get_mut(*number).context("a call")?;
            match step {
                Step::Ask => self.electing.push_back((*number, head.height)),
                Step::Commit => {
                    call.committed += 1;
                    if call.committed == MEMBERS {
                        call.answered_in = head.height;
                        let (id, number) = (call.id, *number);
                        jobs.extend(call.members.iter().map(|miner| {
                            let miner = *miner;
                            (miner, Job::Reveal { miner, id, number })
                        }));
                    }
                }
                Step::Reveal => {
                    call.revealed += 1;
                    if call.revealed == MEMBERS {
                        self.settled += 1;
                        self.to_decision.push(head.height - call.answered_in);
                    }
                }
            }
        }
        self.previous = Some(head);
        Ok(jobs)
    }

    /// The draws of a block, which come before its transactions.
    fn draw(&mut self, head: &Head) -> anyhow::Result<Vec<(usize, Job)>> {
        let previous = self.previous.as_ref().context("a block before")?;
        let mut jobs = Vec::new();
        for _ in 0..ELECTIONS_MAX {
            let Some((number, asked_in)) = self.electing.front().copied() else { break };
            if !head.draws(previous, asked_in, self.validators) {
                break;
            }
            self.electing.pop_front();
            let call = self.calls.get_mut(number).context("a call")?;
            for miner in head.draw((call.id, 0), &self.candidates, MEMBERS) {
                let at = self.candidates.binary_search_by_key(&miner, |it| it.miner);
                let miner = at.ok().and_then(|at| self.places.get(at)).context("a miner")?;
                call.members.push(*miner);
                jobs.push((*miner, Job::Commit { miner: *miner, id: call.id, number }));
            }
        }
        Ok(jobs)
    }
}
