//! A chain that the program of release 0.1.0 made, with every kind of transaction, deadlines that passed
//! and votes that changed the set, is executed by this program to the same hashes and roots.
//!
//! The recording is what [`the_story_of_the_recording_can_be_told_again`] leaves in the folder that
//! `OMBRA_RECORD` names, when `OMBRA_BIN` is the program of that release.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use testkit::actor::{
    self, Actor, conversation, finish, people, plain_step, step, tool_call, transfer, turn,
};
use testkit::home::HomeNode;
use testkit::net::{Member, Net, NetOptions};
use testkit::node::wait_until;
use testkit::workload::{envelope, keys};
use types::build::{Envelope, build_tx};
use types::tx::{AgentFinish, AgentStep, Attachment, ChatTurn, ValidatorVote};
use types::{Body, Hash, Keypair, PublicKey};

use crate::support::chain;

/// What is left alone for longer than this is swept.
const TTL_MS: u64 = 6_000;
const MAX_FEE: u64 = 1_000;
const BLOB: &[u8] = b"the content of a blob";

/// The files of a recording.
struct Recording {
    folder: PathBuf,
}

impl Recording {
    fn genesis(&self) -> PathBuf {
        self.folder.join("genesis.json")
    }

    fn blocks(&self) -> PathBuf {
        self.folder.join("blocks.ombra")
    }

    fn facts(&self) -> PathBuf {
        self.folder.join("facts.json")
    }

    /// A node that executes the blocks, each of which states its hash and the root before it.
    fn imported(&self, home: PathBuf) -> anyhow::Result<HomeNode> {
        let node = HomeNode::with_keys(home, true)?;
        node.complete(&self.genesis())?;
        node.tell(&["db", "import", self.blocks().to_str().context("a path in UTF-8")?])?;
        Ok(node)
    }

    /// The same, which finds nothing wrong with its database afterwards, and runs.
    fn replay(&self, home: PathBuf) -> anyhow::Result<HomeNode> {
        let mut node = self.imported(home)?;
        node.db("verify")?;
        node.start(&[], &[])?;
        Ok(node)
    }
}

/// What a chain says of itself at its end, as the runs, accounts and validators of the story see it.
fn facts(call: impl Fn(&str, &Value) -> anyhow::Result<Value>) -> anyhow::Result<Value> {
    let height = call("ombra_chainInfo", &json!([]))?["height"].clone();
    let block = call("ombra_getBlock", &json!([height, false]))?;
    let runs = call("ombra_listAgentRuns", &json!({ "limit": 100 }))?["items"].clone();
    let validators = call("ombra_getValidators", &json!([]))?;
    let accounts: Vec<Value> = keys(3)?
        .iter()
        .map(|key| call("ombra_getAccount", &json!([key.address().to_string()])))
        .collect::<anyhow::Result<_>>()?;
    let of_run =
        "agentRunId status reopens totalTokensOut minerReward userRefund networkFee finishedAt";
    Ok(json!({
        "height": height,
        "hash": block["hash"],
        "stateRoot": block["stateRoot"],
        "supply": call("ombra_getSupply", &json!([]))?,
        "runs": kept(&runs, of_run),
        "accounts": kept(&json!(accounts), "address balance nonce"),
        "validators": kept(&validators, "address power"),
    }))
}

/// These members, with spaces between their names, of each object of a list: what later releases may add
/// is no part of the facts.
fn kept(list: &Value, members: &str) -> Value {
    let object = |item: &Value| -> Value {
        members.split(' ').map(|name| (name.to_owned(), item[name].clone())).collect()
    };
    list.as_array().into_iter().flatten().map(object).collect()
}

#[test]
fn a_chain_of_release_0_1_0_replays_to_the_same_state_and_a_new_node_gets_it() -> anyhow::Result<()>
{
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/recorded/0.1.0");
    let recording = Recording { folder };
    let expected: Value = serde_json::from_str(&fs::read_to_string(recording.facts())?)?;
    let folder = tempfile::tempdir()?;
    let replayed = recording.replay(folder.path().join("replayed"))?;
    assert_eq!(expected, facts(|method, params| replayed.call(method, params))?);

    let mut new = HomeNode::with_keys(folder.path().join("new"), true)?;
    new.complete(&recording.genesis())?;
    let (peers, gossip) = ([replayed.p2p.clone()], [replayed.gossip.clone()]);
    new.start(&peers, &gossip)?;
    new.reaches(expected["height"].as_u64().context("a height")?)?;
    assert_eq!(expected, facts(|method, params| new.call(method, params))?);
    Ok(())
}

#[test]
fn the_story_of_the_recording_can_be_told_again() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let kept = std::env::var_os("OMBRA_RECORD").map(PathBuf::from);
    let recording = Recording { folder: kept.unwrap_or_else(|| folder.path().join("recording")) };
    fs::create_dir_all(&recording.folder)?;
    let told = record(&recording)?;
    for status in ["completed", "failed", "cancelled", "timeout"] {
        let mut runs = told["runs"].as_array().into_iter().flatten();
        assert!(runs.any(|run| run["status"] == status), "no run is {status}: {told}");
    }
    let replayed = recording.replay(folder.path().join("replayed"))?;
    assert_eq!(told, facts(|method, params| replayed.call(method, params))?);
    Ok(())
}

/// Tells the story on a chain of its own and keeps its files.
fn record(recording: &Recording) -> anyhow::Result<Value> {
    let times = ["pendingTtlMs", "claimTtlMs", "stepTtlMs", "blobTtlMs"];
    let params = times.map(|name| format!("{name}={TTL_MS}"));
    let more = ["minBlockIntervalMs=20", "heartbeatMs=1000", "blockReward=7"];
    let params = [params.each_ref().map(String::as_str).as_slice(), &more].concat();
    let mut net = Net::make_as(&NetOptions { accounts: 3, ..chain(1, 0, &params) })?;
    let member = &mut net.members[0];
    member.start()?;
    let mut story = Story::on(member)?;
    story.talk()?;
    story.work()?;
    story.vote()?;
    story.deadlines_pass()?;
    member.stop()?;
    let to = recording.blocks();
    member.tell(&["db", "export", to.to_str().context("a path in UTF-8")?])?;
    fs::copy(member.home().join("genesis.json"), recording.genesis())?;
    // The database is what was exported: nothing is decided while its own node is down.
    let mut follower = recording.imported(recording.folder.join("follower"))?;
    follower.start(&[], &[])?;
    let told = facts(|method, params| follower.call(method, params))?;
    drop(follower);
    fs::remove_dir_all(recording.folder.join("follower"))?;
    fs::write(recording.facts(), serde_json::to_string_pretty(&told)? + "\n")?;
    Ok(told)
}

/// Who does what, and the chain on which it happens.
struct Story<'chain> {
    chain: &'chain Member,
    user: Actor,
    miner: Actor,
    other: Actor,
    validator: Actor,
    /// Runs that nobody ends.
    left: Vec<Hash>,
}

impl<'chain> Story<'chain> {
    fn on(chain: &'chain Member) -> anyhow::Result<Self> {
        let [user, miner, other] = people()?;
        let validator = Actor::new(chain.validator_key()?);
        Ok(Self { chain, user, miner, other, validator, left: Vec::new() })
    }

    /// Sends texts and waits until all are in blocks.
    fn include(&self, texts: &[String]) -> anyhow::Result<()> {
        let hashes: Vec<String> =
            texts.iter().map(|text| self.chain.send(text)).collect::<anyhow::Result<_>>()?;
        hashes.iter().try_for_each(|hash| self.chain.includes(hash).map(drop))
    }

    /// Money, blobs, miners and a conversation.
    fn talk(&mut self) -> anyhow::Result<()> {
        let (whole, half) = ("whole", "half");
        let long = ChatTurn { content_blob_id: Some(whole.to_owned()), ..turn("") };
        let (kind, blob_id) = ("file".to_owned(), whole.to_owned());
        let attachments = Some(vec![Attachment { kind, blob_id }]);
        let attached = ChatTurn { attachments, ..turn("Read this.") };
        let texts = [
            transfer(self.other.address(), 5_000_000),
            transfer(self.validator.address(), 1_000),
            Body::BlobInit(actor::blob_init(whole, BLOB)),
            actor::blob_chunk(whole, 0, BLOB),
            actor::blob_finalize(whole),
            Body::ChatTurn(turn("Hello.")),
            Body::ChatTurn(long),
            Body::ChatTurn(attached),
            // Nobody finishes this one.
            Body::BlobInit(actor::blob_init(half, BLOB)),
            actor::blob_chunk(half, 0, BLOB),
        ];
        let texts: Vec<String> = texts.iter().map(|body| self.user.sign(body)).collect();
        self.include(&texts)?;
        let names = ["first", "second"].map(|name| self.miner.sign(&actor::register_miner(name)));
        self.include(&names)
    }

    /// Runs that end in each way that somebody can choose, and runs that are left alone.
    fn work(&mut self) -> anyhow::Result<()> {
        let mut asked = Vec::new();
        let mut ask = |user: &mut Actor, prompt: &str| {
            let request = user.request(prompt, MAX_FEE, 5);
            let id = request.agent_run_id;
            asked.push(user.sign(&Body::AgentRequest(request)));
            id
        };
        let user = &mut self.user;
        let [done, failed, withdrawn] = ["done", "failed", "withdrawn"].map(|it| ask(user, it));
        let [waits, claimed, begun] = ["waits", "claimed", "begun"].map(|it| ask(user, it));
        asked.push(user.sign(&actor::cancel(withdrawn)));
        self.include(&asked)?;

        let role = "assistant".to_owned();
        let answer = ChatTurn { role, agent_run_id: Some(done), ..turn("Hello back.") };
        let tool_calls = Some(vec![tool_call("math_eval")]);
        let with_tools = AgentStep { tool_calls, ..plain_step(done, 1, 20) };
        let final_answer_inline = Some("42".to_owned());
        let end = finish(done, 30, [30, MAX_FEE - 230, 200]);
        let end = AgentFinish { final_answer_inline, ..end };
        let status = "failed".to_owned();
        let gave_up = AgentFinish { status, ..finish(failed, 0, [0, MAX_FEE, 0]) };
        let work = [
            Body::AgentClaim(self.miner.claim(done)),
            step(done, 0, 10),
            Body::AgentStep(with_tools),
            Body::AgentFinish(end),
            Body::ChatTurn(answer),
            Body::AgentClaim(self.miner.claim(failed)),
            Body::AgentFinish(gave_up),
            Body::AgentClaim(self.miner.claim(claimed)),
            Body::AgentClaim(self.miner.claim(begun)),
            step(begun, 0, 10),
        ];
        let work: Vec<String> = work.iter().map(|body| self.miner.sign(body)).collect();
        self.left = vec![waits, claimed, begun];
        self.include(&work)
    }

    /// The validator gives itself more power, takes another one in, and removes it.
    fn vote(&mut self) -> anyhow::Result<()> {
        let own = self.validator.key.public_key();
        let candidate = Keypair::from_seed(&[7; 32]).public_key();
        for (key, power) in [(own, 9), (candidate, 1), (candidate, 0)] {
            let text = self.vote_for(key, power)?;
            self.include(&[text])?;
            wait_until("the set to change", || {
                let set = self.chain.call("ombra_getValidators", &json!([]))?;
                let mut members = set.as_array().into_iter().flatten();
                let own = members.find(|member| member["address"] == json!(key.address()));
                let has = own.and_then(|member| member["power"].as_u64()).unwrap_or(0);
                Ok(has == power)
            })?;
        }
        Ok(())
    }

    fn vote_for(&mut self, candidate_key: PublicKey, power: u64) -> anyhow::Result<String> {
        let last = self.chain.call("ombra_getBlock", &json!([self.chain.height()?, false]))?;
        let timestamp = last["timestamp"].as_u64().context("a block has a timestamp")?;
        let expires_at = timestamp + 600_000;
        let vote = Body::ValidatorVote(ValidatorVote::new(candidate_key, power, expires_at));
        let envelope = Envelope { timestamp, ..envelope(self.validator.nonce) };
        self.validator.nonce += 1;
        Ok(build_tx(&self.validator.key, &vote, &envelope))
    }

    /// What was left alone is swept: runs that wait, are claimed and have begun, and the half blob.
    fn deadlines_pass(&self) -> anyhow::Result<()> {
        for run in &self.left {
            wait_until("the end of a run that nobody ends", || {
                let run = self.chain.call("ombra_getAgentRun", &json!([run]))?;
                Ok(run["status"] == "timeout")
            })?;
        }
        wait_until("the half blob to be dropped", || {
            let gone = self.chain.call("ombra_getBlob", &json!(["half"])).err();
            Ok(gone.is_some_and(|error| format!("{error:#}").contains("-32051")))
        })?;
        // The conversation is as it was.
        let turns = json!([conversation(), { "limit": 10 }]);
        let turns = self.chain.call("ombra_getConversation", &turns)?;
        ensure!(turns["items"].as_array().map(Vec::len) == Some(4), "four turns: {turns}");
        Ok(())
    }
}
