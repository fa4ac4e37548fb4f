//! The overview of a chain on which people ask and miners answer: the picture of the README.

use testkit::actor::{self, Actor};
use types::{Body, Hash};

use crate::market::{self, Said};
use crate::scene::Scene;

/// What each requester asks, and what the miner answers; nobody has answered the last one yet.
const ASKED: [(&str, Option<&str>); 6] = [
    ("What is 17 * 23?", Some("391")),
    ("How many days are there until the end of the year?", Some("34")),
    ("Summarize this thread in one sentence.", Some("They agree to ship on Friday.")),
    ("Is this review positive?", Some("Yes, it is enthusiastic.")),
    ("Translate into French: the fee is in escrow.", Some("Les frais sont sous séquestre.")),
    ("Which block was the latest?", None),
];
const ESCROW: u64 = 100_000;
const TOKENS: u64 = 2_500;
/// What a run of one step pays the miner, gives back and burns.
const SETTLED: [u64; 3] = [TOKENS, ESCROW - TOKENS - 100, 100];
const MINER: usize = 1;
/// The people who offer for the agent.
const MEMBERS: std::ops::Range<usize> = 2..5;
const VERDICT: Said = ("splendid", true);

pub(super) fn shows_the_latest_runs_and_calls(scene: &mut Scene) -> anyhow::Result<()> {
    let agent = market::open(scene, "review-judge", MEMBERS)?;
    for (prompt, answer) in ASKED {
        let request = scene.people[5].request(prompt, ESCROW, 4);
        let run = request.agent_run_id;
        scene.act(5, &Body::AgentRequest(request))?;
        if let Some(answer) = answer {
            let texts = work(&mut scene.people[MINER], run, answer);
            scene.include(&texts)?;
        }
    }
    let call = market::call(scene, 6, &agent)?;
    let members = market::members(scene, &call, 0)?;
    let said: Vec<_> = members.into_iter().map(|member| (member, VERDICT)).collect();
    market::answer(scene, &call, 0, &said)?;
    market::settled(scene, &call)?;
    scene.load("")?;
    for shown in ["Latest agent runs", "What is 17 * 23?", "Latest calls of agents", "Live"] {
        scene.browser.shows(shown)?;
    }
    scene.picture("overview")
}

/// The miner claims the run, takes one step and answers.
fn work(miner: &mut Actor, run: Hash, answer: &str) -> Vec<String> {
    let mut claim = miner.claim(run);
    claim.model_info = "llama-server:Qwen2.5-7B-Q4_K_M".to_owned();
    let mut finish = actor::finish(run, TOKENS, SETTLED);
    finish.final_answer_inline = Some(answer.to_owned());
    let bodies = [Body::AgentClaim(claim), actor::step(run, 0, TOKENS), Body::AgentFinish(finish)];
    bodies.map(|body| miner.sign(&body)).to_vec()
}
