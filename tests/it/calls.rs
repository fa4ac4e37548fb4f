//! A call of an agent on a running node, made by a requester and three members who do as they are told, and
//! read back in every way that there is: methods, a subscription, REST, a stream of events, and a proof that
//! needs no node.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use anyhow::{Context, ensure};
use consensus::{Certificate, CommitSignature, ValidatorSet};
use fixtures::{MANIFEST, judge, judge_of, reveal, transfer};
use serde_json::{Value, json};
use state::table::{Key, Table, decode_value};
use state::tables::Calls;
use store::tree::{Proof, ProofLeaf};
use testkit::http::Connection;
use testkit::node::PATIENCE;
use testkit::parallel::joined;
use testkit::websocket::WebSocket;
use types::call::CallStatus;
use types::randomness::{Input, Randomness};
use types::sign_bytes::Domain;
use types::{Address, Amount, Body, Hash, Header, PublicKey};

use crate::support::{CHAIN, Market, include};

impl Market {
    fn agent(&self) -> Hash {
        judge_of(self.owner.address())
    }

    fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        self.connection.call(method, params)
    }

    /// The answer of an endpoint.
    fn rest(&mut self, path: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.connection.get(path)?)?)
    }

    /// Asks; answers the call's id.
    fn ask(&mut self) -> anyhow::Result<Hash> {
        let nonce = self.requester.nonce;
        let asked = self.requester.call(CHAIN, self.agent());
        let call_id = asked.call_id;
        let computed = json!({"from": self.requester.address(), "nonce": nonce});
        assert_eq!(self.call("ombra_computeCallId", &computed)?, json!(call_id));
        let text = self.requester.sign_on(CHAIN, &Body::AgentCall(asked));
        include(&mut self.connection, &[text])?;
        Ok(call_id)
    }
}

/// The events of a call of three members.
const LIFE: &str = "created elected committed committed committed \
                    revealing revealed revealed revealed decided settled";

#[test]
fn a_call_is_made_and_read_back_in_every_way() -> anyhow::Result<()> {
    let mut scene = Market::open(judge(MANIFEST, ""))?;
    let mut socket = WebSocket::open(scene.node.rpc)?;
    socket.subscribe("calls", &json!({"requester": scene.requester.address()}))?;
    let call_id = scene.ask()?;
    let waiting = waits(&scene, call_id);
    let mut stream = Events::open(&scene, call_id)?;
    scene.answer(call_id, ["yes", "yes", "no"].map(|it| reveal(call_id, it.as_bytes())))?;
    let settled = scene.call("ombra_waitForCall", &json!([call_id, {"until": "settled"}]))?;
    assert_eq!(joined(waiting.join(), "who waited")?, settled);

    assert_eq!((&settled["status"], &settled["agreeing"]), (&json!("success"), &json!(2)));
    assert_eq!((&settled["payload"], &settled["settled"]), (&json!("0x26121ff0"), &json!(true)));
    assert_eq!(settled["answer"]["result"], "0x796573");
    assert_eq!((&settled["wages"], &settled["bondBehind"]), (&json!("2000"), &json!("20000000")));
    assert_eq!((&settled["burned"], &settled["penalties"]), (&json!("2600"), &json!("2000")));
    assert_eq!(scene.call("ombra_getCall", &json!([call_id]))?, settled);
    assert_eq!(scene.rest(&format!("/api/calls/{call_id}"))?, settled);

    for expected in LIFE.split(' ') {
        let message = socket.next()?.context("an open socket")?;
        let event = &message["params"]["result"];
        assert_eq!((&event["event"], &event["callId"]), (&json!(expected), &json!(call_id)));
    }
    stream.tells(LIFE)?;
    is_listed(&mut scene, call_id)?;
    elected_by_proved_randomness(&mut scene, &settled)?;
    is_proved(&mut scene, call_id)?;
    scene.node.stop()
}

/// Blocks of about sixty transfers, so that a few make places dear.
const SMALL_BLOCKS: [&str; 4] =
    ["maxBlockBytes=20480", "maxBlobBytes=1000", "maxTxBytes=20480", "maxChunkTxBytes=20480"];

#[test]
fn what_members_pay_for_their_places_adds_up_while_places_are_dear() -> anyhow::Result<()> {
    let mut scene = Market::open_with(judge(MANIFEST, ""), &SMALL_BLOCKS)?;
    let base_fee = |scene: &mut Market| -> anyhow::Result<u64> {
        Ok(scene.call("ombra_feeSchedule", &json!([]))?["baseFee"]
            .as_str()
            .context("baseFee")?
            .parse()?)
    };
    // Each full block raises the base fee by one.
    for _ in 0..20 {
        if base_fee(&mut scene)? >= 40 {
            break;
        }
        let to = scene.owner.address();
        let transfers: Vec<String> =
            (0..600).map(|_| scene.owner.sign_on(CHAIN, &transfer(to, 1))).collect();
        include(&mut scene.connection, &transfers)?;
    }
    ensure!(base_fee(&mut scene)? >= 40, "full blocks do not raise the base fee");
    let before = scene.node.height()?;
    let call_id = scene.ask()?;
    scene.answer(call_id, ["yes"; 3].map(|it| reveal(call_id, it.as_bytes())))?;
    let mut dear = 0;
    for height in before..=scene.node.height()? {
        let block = scene.call("ombra_getBlock", &json!([height]))?;
        let mut paid = 0;
        for tx in block["transactions"].as_array().context("transactions")? {
            let seen = scene.call("ombra_getTransaction", &json!([tx["hash"]]))?;
            paid += micro(&seen["inclusionFee"])?;
            let is_of_member =
                seen["tx"]["type"] == "CALL_COMMIT" || seen["tx"]["type"] == "CALL_REVEAL";
            dear += u64::from(is_of_member && micro(&block["baseFee"])? > 10);
        }
        assert_eq!(paid, micro(&block["inclusionFees"])?, "{block}");
    }
    assert!(dear > 0, "the base fee has fallen before a member sent something");
    scene.node.stop()
}

fn micro(amount: &Value) -> anyhow::Result<u64> {
    Ok(amount.as_str().with_context(|| format!("an amount, got {amount}"))?.parse()?)
}

/// Waits for the decision in a thread of its own.
fn waits(scene: &Market, call_id: Hash) -> std::thread::JoinHandle<anyhow::Result<Value>> {
    let host = scene.node.rpc;
    std::thread::spawn(move || {
        let params = json!([call_id, {"until": "decided", "timeoutMs": 60_000}]);
        Connection::open(host)?.call("ombra_waitForCall", &params)
    })
}

fn is_listed(scene: &mut Market, call_id: Hash) -> anyhow::Result<()> {
    let second = scene.ask()?;
    let (agent, requester) = (scene.agent(), scene.requester.address());
    let (owner, member) = (scene.owner.address(), scene.members[2].address());
    for (filter, expected) in [
        (json!({}), json!([second, call_id])),
        (json!({"agentId": agent}), json!([second, call_id])),
        (json!({"requester": requester}), json!([second, call_id])),
        (json!({"requester": owner}), json!([])),
        (json!({"status": "success"}), json!([call_id])),
        (json!({"status": "success", "member": member}), json!([call_id])),
        (json!({"status": "failed", "member": member}), json!([])),
    ] {
        let page = scene.call("ombra_listCalls", &json!([filter]))?;
        let items = page["items"].as_array().with_context(|| page.to_string())?;
        let ids: Value = items.iter().map(|item| item["callId"].clone()).collect();
        assert_eq!(ids, expected, "{filter}");
    }
    let listed = scene.rest(&format!("/api/calls?agentId={agent}&status=success"))?;
    assert_eq!(listed["items"][0]["callId"], json!(call_id));
    assert_eq!(scene.rest(&format!("/api/agents/{agent}"))?["latest"], "1.0.0");
    Ok(())
}

/// The randomness of the election's block is what the proposer's key gives for a text that everybody knows.
fn elected_by_proved_randomness(scene: &mut Market, call: &Value) -> anyhow::Result<()> {
    let height = call["rounds"][0]["electedIn"].as_u64().context("an election")?;
    let before = scene.call("ombra_getRandomness", &json!([height - 1]))?;
    let told = scene.call("ombra_getRandomness", &json!([height]))?;
    let input = Input { chain_id: CHAIN, previous: parsed(&before["value"])?, height };
    assert_eq!(told["input"], input.message());
    let key: PublicKey = told["publicKey"].as_str().unwrap_or_default().parse()?;
    let proof = told["proof"].as_str().unwrap_or_default().parse()?;
    assert_eq!(input.verify(&key, &proof), Some(parsed(&told["value"])?));
    Ok(())
}

fn parsed(value: &Value) -> anyhow::Result<Hash> {
    Ok(Hash::parse(value.as_str().with_context(|| format!("no hash: {value}"))?)?)
}

fn number(value: &Value) -> anyhow::Result<u64> {
    value.as_u64().with_context(|| format!("no number: {value}"))
}

/// Checks the call's record as somebody would who knows the chain's name, its genesis and its validators.
fn is_proved(scene: &mut Market, call_id: Hash) -> anyhow::Result<()> {
    let told = scene.call("ombra_getProof", &json!({"call": call_id}))?;
    let value = const_hex::decode(told["value"].as_str().context("it is there")?)?;
    let leaf = &told["leaf"];
    let leaf =
        ProofLeaf { key_hash: parsed(&leaf["key"])?, value_hash: parsed(&leaf["valueHash"])? };
    let siblings = told["siblings"].as_array().context("siblings")?.iter().map(parsed);
    let proof = Proof { leaf: Some(leaf), siblings: siblings.collect::<Result<_, _>>()? };
    let header = header(&told["header"])?;
    proof.verify(header.state_root, Calls::ID, &call_id.to_bytes(), Some(&value))?;
    let call = decode_value::<Calls>(&value)?;
    assert_eq!((call.call_id, call.status), (call_id, CallStatus::Success));

    let commit = &told["commit"];
    let signature = |entry: &Value| {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let address = Address::parse(&text("address"))?;
        anyhow::Ok(CommitSignature { address, signature: text("signature").parse()? })
    };
    let signatures = commit["signatures"].as_array().context("signatures")?.iter().map(signature);
    let certificate = Certificate {
        height: header.index,
        round: u32::try_from(number(&commit["round"])?)?,
        block_hash: header.hash(),
        signatures: signatures.collect::<Result<_, _>>()?,
    };
    let info = scene.call("ombra_chainInfo", &json!([]))?;
    let domain = Domain {
        chain_id: CHAIN.into(),
        genesis_hash: parsed(&info["genesisHash"])?,
        v7_from: Some(0),
    };
    let validators = scene.call("ombra_getValidators", &json!([header.index]))?;
    let key = validators[0]["publicKey"].as_str().context("a validator")?;
    let key: PublicKey = key.parse()?;
    let power = number(&validators[0]["power"])?;
    let set = ValidatorSet::new([(key, power)])?;
    certificate.verify(&domain, &set)?;
    Ok(())
}

fn header(told: &Value) -> anyhow::Result<Header> {
    let text = |name: &str| told[name].as_str().unwrap_or_default();
    let randomness =
        Randomness { value: parsed(&told["randomness"])?, proof: text("randomnessProof").parse()? };
    Ok(Header {
        chain_id: text("chainId").to_owned(),
        index: number(&told["index"])?,
        previous_hash: parsed(&told["previousHash"])?,
        timestamp: number(&told["timestamp"])?,
        proposer: Address::parse(text("proposer"))?,
        tx_root: parsed(&told["txRoot"])?,
        state_root: parsed(&told["stateRoot"])?,
        tokens_burned: Amount::new(text("tokensBurned").parse()?),
        tx_count: number(&told["txCount"])?,
        randomness: Some(randomness),
    })
}

/// The stream of a call's events.
struct Events(BufReader<TcpStream>);

impl Events {
    /// Begins with the first block.
    fn open(scene: &Market, call_id: Hash) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(scene.node.rpc)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "GET /api/calls/{call_id}/events HTTP/1.1\r\nhost: {}\r\nlast-event-id: 0\r\n\r\n",
            scene.node.rpc
        )?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Reads to the end, and compares.
    fn tells(&mut self, expected: &str) -> anyhow::Result<()> {
        let mut told = Vec::new();
        let mut line = String::new();
        while told.last().is_none_or(|last| last != "settled") {
            line.clear();
            ensure!(self.0.read_line(&mut line)? > 0, "the stream ended after {told:?}");
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let data: Value = serde_json::from_str(data)?;
            told.extend(data["event"].as_str().map(str::to_owned));
        }
        assert_eq!(told.join(" "), expected);
        Ok(())
    }
}
