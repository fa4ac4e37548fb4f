//! Every reason, its precedence and its boundary; the settings and their faults.

use std::collections::BTreeSet;

use agent::messages::Constraint;
use serde_json::json;
use types::{Address, Hash, Keypair, RunStatus};

use super::{
    AskedWork, Bonded, Circumstances, Decision, Policy, PolicyError, PolicyFile, Reason, Refusals,
    Unit, decide, jitter_ms,
};
use crate::chain::fake::FakeChain;
use crate::chain::{Protection, RunView};
use crate::ports::Ask;

fn address(seed: u8) -> Address {
    Keypair::from_seed(&[seed; 32]).address()
}

fn run() -> RunView {
    let chain = FakeChain::new();
    let run = chain.run_of(&chain.add_run("hello", 10_000, 10));
    let tools = vec!["now".into()];
    RunView { submitter: address(1), tools, deadline_ms: Some(1_000_000), ..run }
}

fn standing() -> Circumstances {
    Circumstances {
        now_ms: 0,
        miner: address(9),
        balance_micro: 50,
        runs_busy: 0,
        claims_today: 0,
        spent_today_micro: 0,
        burned_today_micro: 0,
        model: "tiny".into(),
        node_syncing: false,
        backend_down: None,
        asked: None,
        too_long: None,
        tools_offered: vec!["now".into()],
        tools_missing: vec![],
        journal: None,
        rival: None,
        prompt_bytes: 5,
        unreadable: None,
        bonded: None,
        refusals: Refusals::default(),
    }
}

fn asked(prompt_tokens: u64, form_tokens: Option<u64>) -> AskedWork {
    AskedWork { prompt_tokens, form_tokens, has_tools: false }
}

type Change = fn(&mut Policy, &mut RunView, &mut Circumstances);

fn decision(change: Change) -> Decision {
    let (mut policy, mut run, mut standing) = (Policy::default(), run(), standing());
    change(&mut policy, &mut run, &mut standing);
    decide(&policy, &run, &standing)
}

#[test]
fn a_run_that_nothing_speaks_against_is_claimed() {
    let after_ms = jitter_ms(&address(9), &run().id, 300);
    assert_eq!(Decision::Claim { after_ms }, decision(|_, _, _| ()));
}

#[test]
fn every_reason_to_skip_has_its_code() {
    let cases: [(&str, Change); 18] = [
        ("NOT_PENDING", |_, r, _| r.status = RunStatus::Claimed),
        ("EXCLUDED", |_, r, s| r.excluded.push(s.miner)),
        ("KNOWN", |_, _, s| s.journal = Some("over".into())),
        ("REQUESTER_DENIED", |p, r, _| p.requesters_deny = [r.submitter].into()),
        ("REQUESTER_NOT_LISTED", |p, _, s| p.requesters_allow = [s.miner].into()),
        ("FEE_TOO_LOW", |_, r, _| r.max_fee_micro = 999),
        ("MARGIN_TOO_LOW", |p, r, _| (r.max_fee_micro, p.min_margin_micro) = (1_000, 301)),
        ("STEPS_TOO_MANY", |p, _, _| p.steps_max = 9),
        ("STEPS_TOO_FEW", |p, _, _| p.steps_min = 11),
        ("TOOLS_NOT_ALLOWED", |p, _, _| p.tools_allow = Some(BTreeSet::new())),
        ("TOOLS_MISSING", |_, _, s| s.tools_missing.push("fly".into())),
        ("MODEL_UNKNOWN", |_, r, _| r.model_hint = Some("huge".into())),
        ("MODEL_UNNAMED", |p, _, _| p.unnamed_models = false),
        ("PROMPT_TOO_LONG", |p, _, _| p.prompt_bytes_max = 4),
        ("PROMPT_TOO_LONG", |_, _, s| s.too_long = Some((3_001, 3_000))),
        ("PROMPT_UNPAID", |_, _, s| s.asked = Some(asked(400, Some(1)))),
        ("UNREADABLE", |_, _, s| s.unreadable = Some("bad".into())),
        ("TOO_LATE", |_, _, s| s.now_ms = 995_001),
    ];
    for (code, change) in cases {
        let decision = decision(change);
        assert!(matches!(decision, Decision::Skip(_)), "{code}: {decision:?}");
        assert_eq!(code, decision.code());
    }
}

/// A protected run, and a requester that refused so many of ten rewards.
fn protected(refused: u64, change: impl FnOnce(&mut Policy, &mut Protection)) -> Decision {
    let (mut policy, mut run, mut standing) = (Policy::default(), run(), standing());
    let mut protection =
        Protection { claim_bond_micro: 100_000, refuse_ms: 600_000, ..Protection::default() };
    change(&mut policy, &mut protection);
    run.protection = Some(protection);
    standing.refusals = Refusals { held: 10, refused };
    standing.bonded = Some(Bonded { bonded_micro: 150_000, free_micro: 100_000 });
    decide(&policy, &run, &standing)
}

#[test]
fn a_protected_run_has_reasons_of_its_own_to_skip_it() {
    assert_eq!("CLAIM", protected(1, |_, _| ()).code());
    type Change = fn(&mut Policy, &mut Protection);
    let cases: [(&str, Change); 8] = [
        ("MINER_NOT_LISTED", |_, it| it.miners = vec![address(3)]),
        ("CLAIM", |_, it| it.miners = vec![address(3), address(9)]),
        ("BOND_TOO_HIGH", |policy, _| policy.bond_micro_max = 99_999),
        ("CLAIM", |policy, _| policy.bond_micro_max = 100_000),
        ("BOND_TOO_HIGH", |policy, _| policy.claim_bond_micro_max = 99_999),
        ("CLAIM", |policy, _| policy.claim_bond_micro_max = 100_000),
        ("HELD_TOO_LONG", |policy, _| policy.hold_ms_max = 599_999),
        ("CLAIM", |policy, _| policy.hold_ms_max = 600_000),
    ];
    assert_eq!(cases.map(|(code, _)| code), cases.map(|(_, change)| protected(0, change).code()));
}

/// Whoever asks for all of a bond costs its miner all of it when the power goes off, and every other
/// protected run until then.
#[test]
fn no_run_locks_the_whole_bond_of_a_miner_without_a_policy_of_its_own() {
    let asking = |micro| protected(0, |_, it| it.claim_bond_micro = micro);
    let Policy { bond_micro_max, .. } = Policy::default();
    assert_eq!("BOND_TOO_HIGH", asking(bond_micro_max).code());
    // What `ombra run` asks for with the largest escrow that it puts in unasked.
    let expected = Decision::Wait(Reason::BondLow {
        needed_micro: 1_010_000,
        free_micro: 100_000,
        room_micro: 0,
    });
    assert_eq!(expected.code(), asking(1_010_000).code());
    assert_eq!("BOND_TOO_HIGH", asking(1_010_001).code());
}

#[test]
fn a_requester_who_refuses_often_is_declined_with_the_figures() {
    let reason = Reason::RequesterRefuses { refused: 3, held: 10, percent_max: 10 };
    let said = reason.to_string();
    assert_eq!("the requester refused 3 of 10 rewards, above refused_percent_max 10", said);
    assert_eq!(Decision::Skip(reason), protected(3, |_, _| ()));
    // A few say nothing, a share that the policy allows neither, and nothing is refused that is not held.
    assert_eq!("CLAIM", protected(2, |_, _| ()).code());
    assert_eq!("CLAIM", protected(3, |policy, _| policy.refused_ignored = 3).code());
    assert_eq!("CLAIM", protected(3, |policy, _| policy.refused_percent_max = 30).code());
    assert_eq!("CLAIM", protected(9, |_, it| it.refuse_ms = 0).code());
}

#[test]
fn a_bond_is_added_to_up_to_what_the_policy_and_the_balance_allow() {
    let rich = |policy: &Policy| policy.bond_room_micro(1_000_000, 50_000_000);
    assert_eq!(4_000_000, rich(&Policy::default()));
    assert_eq!(0, rich(&Policy { bond_automatically: false, ..Policy::default() }));
    assert_eq!(0, rich(&Policy { bond_micro_max: 999_999, ..Policy::default() }));
    let policy = Policy { balance_micro_min: 10_000, ..Policy::default() };
    let rooms = [12_000, 12_001, 112_000].map(|balance| policy.bond_room_micro(0, balance));
    assert_eq!([0, 1, 100_000], rooms);
}

#[test]
fn a_run_whose_bond_is_neither_free_nor_to_be_had_waits() {
    let decided = |balance_micro, free_micro| {
        let protection = Protection { claim_bond_micro: 100_000, ..Protection::default() };
        let run = RunView { protection: Some(protection), ..run() };
        let bonded = Some(Bonded { bonded_micro: 150_000, free_micro });
        decide(&Policy::default(), &run, &Circumstances { balance_micro, bonded, ..standing() })
    };
    let (needed_micro, free_micro) = (100_000, 40_000);
    let low = Reason::BondLow { needed_micro, free_micro, room_micro: 59_999 };
    assert_eq!(Decision::Wait(low), decided(61_999, 40_000));
    assert_eq!("CLAIM", decided(62_000, 40_000).code());
    assert_eq!("CLAIM", decided(0, 100_000).code());
}

#[test]
fn short_steps_make_a_prompt_cost_as_often_as_it_is_read() {
    let decided = |step_tokens_max| {
        let protection = Some(Protection { step_tokens_max, ..Protection::default() });
        let standing = Circumstances { asked: Some(asked(2_000, None)), ..standing() };
        decide(&Policy::default(), &RunView { protection, ..run() }, &standing)
    };
    assert_eq!("CLAIM", decided(None).code());
    assert_eq!("CLAIM", decided(Some(100)).code());
    // Ten steps of one token read twenty thousand tokens of prompt for ten micro.
    let unpaid = Reason::PromptUnpaid { tokens: 20_000, cost_micro: 100, income_micro: 10 };
    assert_eq!(Decision::Skip(unpaid), decided(Some(1)));
}

#[test]
fn tools_of_a_server_that_the_request_names_must_be_allowed_too() {
    let change: Change = |p, r, s| {
        p.tools_allow = Some(["now".into(), "docs__search".into()].into());
        r.tools.push("fly".into());
        s.tools_offered.extend(["docs__search", "docs__write", "fly"].map(str::to_owned));
    };
    let names = vec!["docs__write".into(), "fly".into()];
    assert_eq!(Decision::Skip(Reason::ToolsNotAllowed { names }), decision(change));
    let change: Change = |p, _, s| {
        p.tools_allow = Some(["now".into(), "docs__search".into()].into());
        s.tools_offered.push("docs__search".into());
    };
    assert!(matches!(decision(change), Decision::Claim { .. }));
}

#[test]
fn tools_that_clients_offer_with_every_question_keep_no_miner_from_it() {
    let tools = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let asked = RunView { tools: tools(&["date_diff", "fly", "math_eval", "now"]), ..run() };
    let any = Policy::default();
    assert_eq!(asked.tools, any.narrowed(asked.clone()).tools);
    let listed = Policy { tools_allow: Some(["math_eval".into()].into()), ..any };
    let narrowed = listed.narrowed(asked);
    assert_eq!(tools(&["fly", "math_eval", "now"]), narrowed.tools);
    let names = tools(&["fly", "now"]);
    let decision = decide(&listed, &narrowed, &standing());
    assert_eq!(Decision::Skip(Reason::ToolsNotAllowed { names }), decision);
}

#[test]
fn every_reason_to_wait_has_its_code() {
    let cases: [(&str, Change); 8] = [
        ("PAUSED", |p, _, _| p.claiming = false),
        ("RIVAL_CLAIM", |_, _, s| s.rival = Some(address(3))),
        ("NODE_SYNCING", |_, _, s| s.node_syncing = true),
        ("BACKEND_DOWN", |_, _, s| s.backend_down = Some("refused".into())),
        ("SLOTS_FULL", |_, _, s| s.runs_busy = 1),
        ("BALANCE_LOW", |p, _, _| p.balance_micro_min = 51),
        ("CLAIMS_TODAY", |p, _, s| (p.claims_per_day_max, s.claims_today) = (7, 7)),
        ("SPENT_TODAY", |p, _, s| (p.spend_micro_per_day_max, s.spent_today_micro) = (9, 9)),
    ];
    for (code, change) in cases {
        let decision = decision(change);
        assert!(matches!(decision, Decision::Wait(_)), "{code}: {decision:?}");
        assert_eq!(code, decision.code());
    }
}

#[test]
fn values_at_the_bounds_are_claimed() {
    let cases: [Change; 9] = [
        |_, r, _| r.max_fee_micro = 1_000,
        |p, r, _| (r.max_fee_micro, p.min_margin_micro) = (1_000, 300),
        |p, _, _| p.steps_max = 10,
        |p, _, _| p.steps_min = 10,
        |_, _, s| s.now_ms = 995_000,
        |p, _, _| p.balance_micro_min = 50,
        |p, _, s| (p.claims_per_day_max, s.claims_today) = (8, 7),
        |_, r, _| r.model_hint = Some(" TINY ".into()),
        // The margin counts no more steps than the run allows.
        |p, r, _| {
            (r.steps_max, r.max_fee_micro) = (1, 1_000);
            (p.steps_expected, p.tokens_expected, p.min_margin_micro) = (5, 900, 0);
        },
    ];
    for (place, change) in cases.into_iter().enumerate() {
        assert!(matches!(decision(change), Decision::Claim { .. }), "case {place}");
    }
}

#[test]
fn a_reason_says_its_numbers() {
    let Decision::Skip(reason) = decision(|_, r, _| r.max_fee_micro = 999) else { panic!() };
    assert_eq!("maxFee 999 micro is below min_max_fee_micro 1000", reason.to_string());
    let text = serde_json::to_string(&reason).unwrap();
    assert_eq!(r#"{"code":"FEE_TOO_LOW","got_micro":999,"min_micro":1000}"#, text);
    assert_eq!(reason, serde_json::from_str::<Reason>(&text).unwrap());
    let Decision::Skip(reason) = decision(|_, _, s| s.too_long = Some((9, 7))) else { panic!() };
    let says = "the prompt takes 9 tokens, above the 7 that the model's context has beside the \
                output that the policy expects";
    assert_eq!(says, reason.to_string());
    // As journals have it that were written before there were units.
    let earlier = r#"{"code":"PROMPT_TOO_LONG","got":5,"max":4}"#;
    let expected = Reason::PromptTooLong { got: 5, max: 4, unit: Unit::Bytes };
    assert_eq!(expected, serde_json::from_str::<Reason>(earlier).unwrap());
}

#[test]
fn the_written_code_is_the_code() {
    let reasons = [
        Reason::Excluded,
        Reason::Paused,
        Reason::NodeSyncing,
        Reason::PromptTooLong { got: 2, max: 1, unit: Unit::Tokens },
        Reason::NotPending { status: RunStatus::Claimed },
        Reason::ToolsNotAllowed { names: vec![] },
        Reason::SpentToday { got_micro: 1, max_micro: 1 },
    ];
    for reason in reasons {
        let written = serde_json::to_value(&reason).unwrap();
        assert_eq!(reason.code(), written["code"]);
    }
}

#[test]
fn the_wait_before_a_claim_follows_from_miner_and_run() {
    let run = Hash::digest(b"run");
    assert_eq!(jitter_ms(&address(1), &run, 1_000), jitter_ms(&address(1), &run, 1_000));
    let waits: BTreeSet<u64> = (0..50).map(|n| jitter_ms(&address(n), &run, 1_000)).collect();
    assert!(waits.len() > 40 && waits.iter().all(|wait| *wait <= 1_000), "{waits:?}");
    assert_eq!(0, jitter_ms(&address(1), &run, 0));
}

#[test]
fn all_faults_of_a_policy_are_told_at_once() {
    let text = "[policy]\nruns_max = 0\nsteps_max = 201\nclaim_jitter_ms = 60001\nmin_max_fee_micro = 20\nmodels = [\" \"]\nprompt_bytes_max = 0\nsteps_min = 0";
    let Err(PolicyError::Faults(faults)) = Policy::parse(text) else { panic!() };
    let fields: Vec<_> = faults.iter().map(|fault| fault.field).collect();
    let expected = [
        "runs_max",
        "steps_max",
        "steps_min",
        "claim_jitter_ms",
        "min_max_fee_micro",
        "prompt_bytes_max",
        "models",
    ];
    assert_eq!(expected.as_slice(), fields);
    assert_eq!("policy.runs_max is 0; expected 1 to 256", faults[0].to_string());
}

#[test]
fn an_unknown_setting_is_refused_and_other_tables_are_not_read() {
    assert!(matches!(Policy::parse("[policy]\nrun_max = 1"), Err(PolicyError::Malformed(_))));
    let policy = Policy::parse("[policy]\nruns_max = 4\n[tools]\nx = 1").unwrap();
    assert_eq!(4, policy.runs_max);
    assert_eq!(Policy::default(), Policy::parse("").unwrap());
}

#[test]
fn an_address_that_is_allowed_and_denied_is_a_fault() {
    let one = address(1);
    let text = format!("[policy]\nrequesters_allow = [\"{one}\"]\nrequesters_deny = [\"{one}\"]");
    let Err(PolicyError::Faults(faults)) = Policy::parse(&text) else { panic!() };
    assert_eq!("requesters_deny", faults[0].field);
}

#[test]
fn a_changed_file_is_read_again_and_its_faults_are_told_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("miner.toml");
    let write = |text: &str| std::fs::write(&path, text).unwrap();
    write("[policy]\nruns_max = 2");
    let (mut file, policy) = PolicyFile::open(&path).unwrap();
    assert_eq!(2, policy.runs_max);
    assert!(file.changed().unwrap().is_none());
    write("[policy]\nruns_max = 0");
    assert!(file.changed().unwrap().is_none());
    assert!(matches!(file.changed(), Err(PolicyError::Faults(_))));
    assert!(file.changed().unwrap().is_none());
    // Whoever writes it is not done: an empty file would be a policy of its own.
    write("");
    assert!(file.changed().unwrap().is_none());
    write("[policy]\nruns_max = 3");
    assert!(file.changed().unwrap().is_none());
    assert_eq!(3, file.changed().unwrap().unwrap().runs_max);
}

#[test]
fn a_pipe_is_no_configuration_and_nobody_waits_for_its_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("miner.toml");
    std::fs::write(&path, "").unwrap();
    let (mut file, _) = PolicyFile::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mode = rustix::fs::Mode::RUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let told = file.changed().unwrap_err().to_string();
    assert!(told.contains("this is not a regular file"), "{told}");
    let told = PolicyFile::open(&path).unwrap_err().to_string();
    assert!(told.contains("this is not a regular file"), "{told}");
}

#[test]
fn a_prompt_is_read_only_if_the_answer_is_expected_to_pay_for_it() {
    let decided = |asked: AskedWork, change: fn(&mut Policy, &mut RunView)| {
        let (mut policy, mut run) = (Policy::default(), run());
        change(&mut policy, &mut run);
        let standing = Circumstances { asked: Some(asked), ..standing() };
        decide(&policy, &run, &standing).code() == "CLAIM"
    };
    let plain: fn(&mut Policy, &mut RunView) = |_, _| ();
    // 5 micro for 1,000 tokens: one token of yes or no pays for 399.
    assert!(decided(asked(399, Some(1)), plain));
    assert!(!decided(asked(400, Some(1)), plain));
    // 500 tokens of free text for 100,199.
    assert!(decided(asked(100_199, None), plain));
    assert!(!decided(asked(100_200, None), plain));
    // What is expected is no more than what the escrow pays for: 9,900, and 300 of 400.
    assert!(!decided(asked(60_200, None), |p, r| {
        (r.max_fee_micro, p.min_max_fee_micro, p.min_margin_micro) = (400, 100, -9_999);
    }));
    // With tools it is read once for each step that is expected.
    let tools = |prompt_tokens| AskedWork { has_tools: true, ..asked(prompt_tokens, None) };
    assert!(decided(tools(50_099), plain));
    assert!(!decided(tools(50_100), plain));
    assert!(decided(tools(50_100), |_, r| r.steps_max = 1));
    // An operator for whom reading costs nothing says so.
    assert!(decided(asked(u64::MAX, Some(1)), |p, _| p.prompt_micro_per_1000_tokens = 0));
}

#[test]
fn what_a_form_allows_bounds_what_is_earned_unless_the_model_thinks() {
    let of = |constraint: &Constraint, thinks| AskedWork::of(&asks(constraint, thinks, None), 7);
    let texts = Constraint::OneOf(vec!["certainly".into(), "no".into()]);
    assert_eq!(asked(7, Some(1)), of(&texts, false));
    assert_eq!(asked(7, None), of(&texts, true));
    assert_eq!(asked(7, Some(1)), of(&Constraint::Integer { min: None, max: None }, false));
    assert_eq!(asked(7, None), of(&Constraint::Free, false));
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } },
        "required": ["city"], "additionalProperties": false });
    let of_schema = Constraint::Json { schema, alone: true };
    assert_eq!(asked(7, Some(3)), of(&of_schema, false), "{}", r#"{"city":""}"#);
    let bounded = |left| AskedWork::of(&asks(&of_schema, false, Some(left)), 7).form_tokens;
    assert_eq!((Some(1), Some(3)), (bounded(1), bounded(100)));
    assert_eq!(Some(5), AskedWork::of(&asks(&Constraint::Free, false, Some(5)), 7).form_tokens);
}

fn asks(constraint: &Constraint, thinks: bool, output_tokens_left: Option<u32>) -> Ask<'_> {
    let (messages, tools, so_far, stops) = (&[][..], &[][..], "", &[][..]);
    Ask { messages, tools, constraint, thinks, so_far, stops, output_tokens_left, unasked: None }
}
