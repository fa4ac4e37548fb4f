//! What is told, when it is an alarm, and what a policy would decide.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use types::{Hash, Keypair, Params, RunStatus};

use super::alarm::InForce;
use super::tell::{Wanted, runs, status, why};
use super::{
    Alarm, AlarmConfig, BackendFact, Counts, Facts, Idle, NodeAnswers, NodeFact, NodeState,
    SweepConfig, Tally, Trial, alarms,
};
use crate::chain::fake::{FakeChain, claim};
use crate::chain::{ChainError, Funds, Head, RunView};
use crate::engine::tests::support::{TestClock, TestCounters, key};
use crate::journal::call::Paused;
use crate::journal::entry::{Entry, Outcome, Parcel, Phase, Purpose, Swept, SweptLast};
use crate::journal::tests::{new_journal, open};
use crate::journal::{Journal, JournalError};
use crate::policy::{Decision, Policy, Reason};
use crate::ports::{Counters, Event};
use crate::settings::Settings;
use crate::testing::surroundings;

fn me() -> types::Address {
    key().address()
}

fn ready(balance_micro: u64) -> NodeFact {
    let head = Head {
        chain_id: "c".into(),
        genesis: Hash::ZERO,
        height: 7,
        syncing: false,
        step_tokens_max: 131_072,
        block_ms: 5,
    };
    let funds = Funds { balance_micro, nonce: 0 };
    NodeFact::default().after(Ok(NodeAnswers { head, funds, stake: None }))
}

/// What alarms follow from, an hour and a bit after the last work.
struct Scene {
    config: AlarmConfig,
    policy: Policy,
    node: NodeFact,
    backend: BackendFact,
    counts: Counts,
    paused: BTreeMap<String, Paused>,
    serves: bool,
    oldest_signed_ms: Option<u64>,
}

impl Scene {
    fn new() -> Self {
        Self {
            config: AlarmConfig::default(),
            policy: Policy::default(),
            node: ready(1_000),
            backend: BackendFact::Ready,
            counts: Counts { worked_ms: 1_000, ..Counts::default() },
            paused: BTreeMap::new(),
            serves: false,
            oldest_signed_ms: None,
        }
    }

    fn at(&self, now_ms: u64) -> Vec<Alarm> {
        let Self { config, policy, node, backend, counts, paused, .. } = self;
        let Self { serves, oldest_signed_ms, .. } = *self;
        alarms(&Facts {
            now_ms,
            config,
            policy,
            node,
            backend,
            counts,
            paused,
            serves,
            oldest_signed_ms,
        })
    }

    /// Why there is no work.
    fn idle(&self) -> Idle {
        match self.at(3_601_000).pop() {
            Some(Alarm::NoWork { idle_s: 3_600, why }) => why,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn an_account_below_the_threshold_is_an_alarm() {
    let mut scene = Scene::new();
    assert_eq!(Vec::<Alarm>::new(), scene.at(1_000));
    scene.node = ready(999);
    assert_eq!(vec![Alarm::BalanceLow { got_micro: 999, min_micro: 1_000 }], scene.at(1_000));
    scene.config.balance_micro_min = 0;
    assert_eq!(Vec::<Alarm>::new(), scene.at(1_000));
    // Below this the policy claims nothing.
    scene.policy.balance_micro_min = 2_000;
    assert_eq!(vec![Alarm::BalanceLow { got_micro: 999, min_micro: 2_000 }], scene.at(1_000));
    // A node that never told the balance says nothing about it.
    scene.node = NodeFact::default();
    assert_eq!(Vec::<Alarm>::new(), scene.at(1_000));
}

#[test]
fn a_dissent_is_an_alarm_until_all_is_resumed() {
    let mut scene = Scene::new();
    let call = Hash::digest(b"call");
    let paused = Paused { call, round: 0, since_ms: 5, until_ms: None };
    scene.paused.insert("wasm-1".to_owned(), paused);
    let expected = Alarm::Dissent { executors: vec!["wasm-1".to_owned()], call };
    assert_eq!(vec![expected], scene.at(1_000));
    scene.paused.clear();
    assert_eq!(Vec::<Alarm>::new(), scene.at(1_000));
}

#[test]
fn no_work_is_an_alarm_after_its_time_with_the_first_reason_that_holds() {
    let mut scene = Scene::new();
    assert_eq!(Vec::<Alarm>::new(), scene.at(3_600_999));
    assert_eq!(Idle::NoPendingRuns, scene.idle());
    scene.counts.idle_losses = 2;
    assert_eq!(Idle::ClaimsLost(2), scene.idle());
    scene.counts.idle_decisions = [("CLAIM", 9), ("FEE_TOO_LOW", 3), ("PAUSED", 1)].into();
    assert_eq!(Idle::NotClaimed { code: "FEE_TOO_LOW", times: 3, of: 4 }, scene.idle());
    scene.policy.claiming = false;
    scene.serves = true;
    assert_eq!(Idle::NoCalls, scene.idle());
    scene.backend = BackendFact::Down { why: "refused".into() };
    assert_eq!(Idle::BackendDown("refused".into()), scene.idle());
    scene.serves = false;
    assert_eq!(Idle::Paused, scene.idle());
    scene.node.state = NodeState::Syncing;
    assert_eq!(Idle::NodeSyncing, scene.idle());
    scene.node = scene.node.after(Err(ChainError::Away("gone".into())));
    let why = scene.idle();
    assert_eq!("the node is away: the node cannot answer now: gone", why.to_string());
    assert_eq!(Some(1_000), scene.node.balance_micro, "what it said last is kept");
    scene.config.no_work_s = 0;
    assert_eq!(Vec::<Alarm>::new(), scene.at(u64::MAX));
}

#[test]
fn a_transaction_that_no_block_takes_for_ten_minutes_of_the_chain_is_an_alarm() {
    let mut scene = Scene::new();
    scene.node.block_ms = Some(900_000);
    assert_eq!(Vec::<Alarm>::new(), scene.at(1_000));
    scene.oldest_signed_ms = Some(300_000);
    assert_eq!(vec![Alarm::OutboxStuck { waits_s: 600 }], scene.at(1_000));
    // The miner's clock does not matter.
    scene.config.no_work_s = 0;
    assert_eq!(vec![Alarm::OutboxStuck { waits_s: 600 }], scene.at(u64::MAX));
    // The next one; a miner that has much to do always has some.
    scene.oldest_signed_ms = Some(300_001);
    assert_eq!(Vec::<Alarm>::new(), scene.at(u64::MAX));
    // A node that does not know what the chain does.
    scene.oldest_signed_ms = Some(300_000);
    scene.node.state = NodeState::Syncing;
    assert_eq!(Vec::<Alarm>::new(), scene.at(1_000));
}

#[test]
fn a_signed_transaction_says_when_it_was_signed() {
    let parcel = |text: &str| Parcel {
        nonce: 4,
        hash: Hash::ZERO,
        text: text.into(),
        run: Hash::ZERO,
        purpose: Purpose::Sweep { to: me(), micro: 5 },
    };
    let nothing = types::tx::Transfer::new(me(), types::Amount::ZERO, types::Amount::ZERO);
    let envelope = wallet::Envelope::new(4, 1_790_000_000_000, None);
    let signed = wallet::Signed::new(&key(), &envelope, &types::Body::Transfer(nothing));
    assert_eq!(Some(1_790_000_000_000), parcel(signed.text()).signed_ms());
    assert_eq!(None, parcel("{}").signed_ms());
}

#[test]
fn an_alarm_keeps_its_beginning_until_it_is_over() {
    let low = |got_micro| vec![Alarm::BalanceLow { got_micro, min_micro: 5 }];
    let mut in_force = InForce::default();
    in_force.update(low(4), 10);
    in_force.update(low(3), 20);
    let facts = in_force.facts();
    assert_eq!(("balance_low", 10), (&*facts[0].name, facts[0].since_ms));
    assert_eq!("the account has 3 micro, less than balance_micro_min 5", facts[0].text);
    assert_eq!(None, in_force.idle());
    in_force.update(vec![Alarm::NoWork { idle_s: 1, why: Idle::Paused }], 30);
    let facts = in_force.facts();
    assert_eq!((1, "no_work", 30), (facts.len(), &*facts[0].name, facts[0].since_ms));
    assert_eq!(Some("paused"), in_force.idle());
    in_force.update(vec![], 40);
    assert!(in_force.facts().is_empty());
}

#[test]
fn a_tally_counts_what_was_decided_since_there_was_work_and_hands_all_on() {
    let (time_ms, heard) = (Arc::<AtomicU64>::default(), Arc::new(TestCounters::default()));
    let tally = Tally::new(Arc::new(TestClock(time_ms.clone())), heard.clone());
    time_ms.store(5, Ordering::SeqCst);
    tally.count(Event::Decided("PAUSED"));
    tally.count(Event::LostRace);
    let counts = tally.counts();
    assert_eq!((0, Some(5), 1), (counts.worked_ms, counts.run_seen_ms, counts.idle_losses));
    assert_eq!(Some(&1), counts.idle_decisions.get("PAUSED"));
    time_ms.store(9, Ordering::SeqCst);
    tally.count(Event::Claimed);
    let counts = tally.counts();
    assert_eq!((9, 0), (counts.worked_ms, counts.idle_losses));
    assert!(counts.idle_decisions.is_empty(), "{:?}", counts.idle_decisions);
    assert_eq!(Some(&1), counts.decisions.get("PAUSED"));
    let expected = vec![Event::Decided("PAUSED"), Event::LostRace, Event::Claimed];
    assert_eq!(expected, *heard.events.lock());
}

fn run(prompt: &str) -> RunView {
    let chain = FakeChain::new();
    chain.run_of(&chain.add_run(prompt, 10_000, 10))
}

#[tokio::test]
async fn runs_are_told_newest_first_and_the_open_ones_on_request() {
    let (_folder, journal) = new_journal();
    let over = Outcome::Ended { status: RunStatus::Completed, reward_micro: 33 };
    let (first, second) = (Entry::reserve(run("a"), 1), Entry::reserve(run("b"), 2));
    let third = Entry { steps: 3, tokens: 33, ..Entry::reserve(run("c"), 3) };
    journal.put(&second).await.unwrap();
    journal.put(&first.at(Phase::Working)).await.unwrap();
    journal.put(&third.at(Phase::Over(over))).await.unwrap();
    let told = |only_open, limit| {
        let lines = runs(&journal, Wanted { only_open, limit }).unwrap();
        lines.into_iter().map(|line| line.reserved_ms).collect::<Vec<_>>()
    };
    assert_eq!(vec![3, 2, 1], told(false, 9));
    assert_eq!(vec![3], told(false, 1));
    assert_eq!(vec![2, 1], told(true, 9));
    let line = &runs(&journal, Wanted { only_open: false, limit: 1 }).unwrap()[0];
    assert_eq!((Some(33), 3, 33, false), (line.reward_micro, line.steps, line.tokens, line.open));
    assert_eq!("ended as completed, reward 33 micro", line.state);
    let status = status(&journal, me(), 5, None, ready(7)).unwrap();
    let open: Vec<_> = status.open.iter().map(|line| line.reserved_ms).collect();
    assert_eq!((vec![1, 2], Some(7), None), (open, status.node.balance_micro, status.process));
}

#[tokio::test]
async fn a_journal_is_read_without_knowing_its_chain_but_only_by_its_wallet() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    assert!(Journal::open_existing(&path, me()).unwrap().is_none());
    assert!(!path.exists(), "reading makes no journal");
    let run = run("a");
    let paused = Decision::Wait(Reason::Paused);
    let written = open(&folder).unwrap();
    written.note(&run.id, &paused, 1).await.unwrap();
    let in_use = Journal::open_existing(&path, me()).unwrap_err();
    assert!(matches!(in_use, JournalError::InUse { .. }), "{in_use}");
    drop(written);
    let read = Journal::open_existing(&path, me()).unwrap().unwrap();
    let told = why(&read, &run.id).unwrap().unwrap();
    assert_eq!((paused, None), (told.decisions[0].decision.clone(), told.state));
    assert_eq!(None, why(&read, &Hash::ZERO).unwrap());
    drop(read);
    let other = Keypair::from_seed(&[7; 32]).address();
    let foreign = Journal::open_existing(&path, other).unwrap_err();
    assert!(matches!(foreign, JournalError::Foreign { .. }), "{foreign}");
    // A file that was made and never written.
    let empty = folder.path().join("empty");
    drop(redb::Database::create(&empty).unwrap());
    assert!(Journal::open_existing(&empty, me()).unwrap().is_none());
}

#[tokio::test]
async fn a_sweep_is_in_the_outbox_until_its_fate_is_known_and_counts_once() {
    let (_folder, journal) = new_journal();
    let purpose = Purpose::Sweep { to: me(), micro: 5 };
    let tx = Hash::digest(b"tx");
    let parcel = Parcel { nonce: 4, hash: tx, text: "{}".into(), run: Hash::ZERO, purpose };
    journal.sign_sweep(&parcel, 10).await.unwrap();
    assert_eq!(vec![parcel.clone()], journal.outbox().unwrap());
    let signed = Swept { signed_ms: 10, ..Swept::default() };
    assert_eq!(signed, journal.swept().unwrap());
    let included = SweptLast::Included { tx, micro: 5 };
    journal.resolve_sweep(4, included.clone()).await.unwrap();
    assert!(journal.outbox().unwrap().is_empty());
    let swept = Swept { times: 1, total_micro: 5, signed_ms: 10, last: Some(included) };
    assert_eq!(swept, journal.swept().unwrap());
    journal.sign_sweep(&Parcel { nonce: 5, ..parcel }, 20).await.unwrap();
    let refused = SweptLast::Refused { code: "NONCE_TAKEN".into() };
    journal.resolve_sweep(5, refused.clone()).await.unwrap();
    let swept = Swept { times: 1, total_micro: 5, signed_ms: 20, last: Some(refused) };
    assert_eq!(swept, journal.swept().unwrap());
}

#[tokio::test]
async fn writes_of_the_journal_are_counted() {
    let (_folder, journal) = new_journal();
    let heard = Arc::new(TestCounters::default());
    journal.count_writes(heard.clone());
    journal.put(&Entry::reserve(run("a"), 1)).await.unwrap();
    assert!(matches!(heard.events.lock()[..], [Event::Written { .. }]));
}

/// A file with this text and a model.
fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("miner.toml");
    let backend = "[backend]\nurl = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n";
    std::fs::write(&path, format!("{backend}{text}")).unwrap();
    (folder, path)
}

/// The settings of such a file.
fn settings(text: &str) -> Result<Settings, String> {
    let (_folder, path) = file(text);
    let name = format!("{}: ", path.display());
    Settings::read(&path).map_err(|error| error.to_string().replace(&name, ""))
}

#[test]
fn a_cold_address_that_cannot_be_right_is_refused_with_its_setting() {
    let cold = Keypair::from_seed(&[3; 32]).address();
    let sweep = |more: &str| settings(&format!("[sweep]\naddress = \"{cold}\"\n{more}"));
    let read = sweep("keep_micro = 1000").unwrap().sweep.unwrap();
    let expected =
        SweepConfig { address: cold, keep_micro: 1_000, min_micro: 1_000_000, pause_s: 3_600 };
    assert_eq!(expected, read);
    assert!(read.check_wallet(me()).is_ok());
    let own = SweepConfig { address: me(), ..read }.check_wallet(me()).unwrap_err();
    assert_eq!(
        format!("sweep.address is {0}, the wallet's own; expected another address", me()),
        own
    );
    let faults = [
        (
            "keep_micro = 999",
            "sweep.keep_micro is 999; expected at least alarms.balance_micro_min, which is 1000",
        ),
        ("keep_micro = 1000\nmin_micro = 0", "sweep.min_micro is 0; expected at least 1"),
        ("keep_micro = 1000\npause_s = 0", "sweep.pause_s is 0; expected 1 to 31622400"),
        (
            "keep_micro = 1000\n[policy]\nbalance_micro_min = 2000",
            "sweep.keep_micro is 1000; expected at least policy.balance_micro_min, which is 2000",
        ),
    ];
    for (text, fault) in faults {
        assert_eq!(fault, sweep(text).unwrap_err());
    }
    let zeros = format!("[sweep]\naddress = \"{}\"\nkeep_micro = 1000", "0".repeat(40));
    assert!(settings(&zeros).unwrap_err().contains("sweep.address is all zeros"));
    let short = settings("[sweep]\naddress = \"ox12\"\nkeep_micro = 1000").unwrap_err();
    assert!(short.contains("40 lowercase hex characters") && short.contains("ox12"), "{short}");
    let capital = cold.to_string().to_uppercase();
    assert!(settings(&format!("[sweep]\naddress = \"{capital}\"\nkeep_micro = 1000")).is_err());
    let late = settings("[alarms]\nno_work_s = 31622401").unwrap_err();
    assert_eq!("alarms.no_work_s is 31622401; expected 0 to 31622400", late);
}

#[tokio::test]
async fn a_trial_knows_the_listed_tools_of_a_server_that_a_request_names() {
    let chain = FakeChain::new();
    let prompt = r#"{"ombraAgent":1,"method":"inferToolsChat","deterministic":false,"args":{"roles":["user"],"messages":["x"],"mcpServerUrls":["https://mcp.example.org/mcp"],"onchainTools":[],"maxIterations":3,"chainOfThought":false}}"#;
    chain.add_run(prompt, 30_000, 10);
    let folder = tempfile::tempdir().unwrap();
    let around = surroundings(folder.path());
    let server = "[[tools.mcp]]\nname = 'docs'\nurl = 'https://mcp.example.org/mcp'\n";
    let cases = [
        ("tools_allow = ['now']", "tools = ['search']", "TOOLS_NOT_ALLOWED"),
        ("tools_allow = ['docs__search']", "tools = ['search']", "CLAIM"),
        ("tools_allow = ['docs__search']", "tools = ['search', 'write']", "TOOLS_NOT_ALLOWED"),
        ("", "tools = ['search', 'write']", "CLAIM"),
        // What it will offer is not known before it is asked.
        ("tools_allow = ['now']", "", "CLAIM"),
    ];
    for (policy, tools, code) in cases {
        let text = format!("[policy]\n{policy}\n{server}{tools}\n");
        let trial = Trial::new(settings(&text).unwrap(), &around).unwrap();
        let tried = trial.run(&chain, None, 1_000_000).await.unwrap();
        assert_eq!(code, tried[0].decision.code(), "{policy} {tools}");
    }
}

#[tokio::test]
async fn a_trial_says_of_each_pending_run_what_the_policy_would_decide() {
    let chain = FakeChain::new();
    let with_tool = |prompt: &str, fee, tool: &str| {
        chain.add_run_with(prompt, fee, 10, |request| request.tools_whitelist = vec![tool.into()])
    };
    let taken = with_tool("What is 1+1?", 30_000, "math_eval");
    let poor = chain.add_run("cheap", 500, 1);
    let foreign = with_tool("fly", 20_000, "fly");
    let served = with_tool("time", 10_000, "time__now");
    let excluded = chain.add_run("lapsed", 9_000, 10);
    chain.act(&key(), &claim(excluded, &key()));
    chain.pass(Params::default().claim_ttl_ms + 1_000);
    chain.state.lock().set_balance(&me(), 5);
    let text = "[[tools.mcp]]\nname = \"time\"\ncommand = [\"/nonexistent\"]\n\
                [tools.limits.time__convert_time]\ntimeout_ms = 5000\n\
                [tools.limits.math_eval]\ntimeout_ms = 5000\n";
    let folder = tempfile::tempdir().unwrap();
    let around = surroundings(folder.path());
    let trial = Trial::new(settings(text).unwrap(), &around).unwrap();
    let tried = trial.run(&chain, Some(me()), 1_000_000).await.unwrap();
    let told: Vec<_> = tried.iter().map(|it| (it.run, it.decision.code())).collect();
    let expected = vec![
        (taken, "CLAIM"),
        (foreign, "TOOLS_MISSING"),
        (served, "CLAIM"),
        (excluded, "EXCLUDED"),
        (poor, "FEE_TOO_LOW"),
    ];
    assert_eq!(expected, told);
    // Nobody's wallet has all money and let nothing lapse.
    let tried = trial.run(&chain, None, 1_000_000).await.unwrap();
    assert_eq!("CLAIM", tried[3].decision.code());
    let needy = settings("[policy]\nbalance_micro_min = 6").unwrap();
    let trial = Trial::new(needy, &around).unwrap();
    let tried = trial.run(&chain, Some(me()), 1_000_000).await.unwrap();
    assert_eq!("BALANCE_LOW", tried[0].decision.code());
}

#[test]
fn the_settings_of_the_document_hold_and_its_reasons_and_checks_are_all() {
    let document = include_str!("../../../docs/miner.md");
    let blocks = document.split("```toml\n").skip(1).filter_map(|it| it.split("```").next());
    let mut shown = 0;
    for text in blocks
        .filter(|text| ["[metrics]", "[sweep]", "[market]"].iter().any(|it| text.contains(it)))
    {
        settings(text).expect(text);
        shown += 1;
    }
    assert_eq!(4, shown);
    let idle = [
        Idle::NodeAway(String::new()),
        Idle::NodeSyncing,
        Idle::Paused,
        Idle::BackendDown(String::new()),
        Idle::NoCalls,
        Idle::NoPendingRuns,
        Idle::ClaimsLost(1),
    ];
    let words = idle.iter().map(Idle::word).chain(Alarm::NAMES);
    for word in words.chain(["node", "backend", "policy", "balance", "journal"]) {
        assert!(document.contains(&format!("`{word}`")), "{word}");
    }
    let defaults = AlarmConfig::default();
    assert_eq!((1_000, 3_600), (defaults.balance_micro_min, defaults.no_work_s));
}
