//! Genesis from the outside: faults with their places, the canonical form, the first state.

use genesis::{Genesis, ParamError, param_names, set_param};
use state::tables::Accounts;
use state::{FirstAgent, Forks, Memory, invariants, validators, view};
use types::ids::compute_agent_id;
use types::params::Models;
use types::{Address, Amount, Hash, Keypair, Params, SetMember, ValidatorSets};

fn key(number: u8) -> Keypair {
    Keypair::from_seed(&[number; 32])
}

fn text(accounts: &str, rest: &str) -> String {
    let key = key(1).public_key();
    format!(
        r#"{{"chainId":"ombra-test","genesisTime":1700000000000,
            "validators":[{{"publicKey":"{key}","power":10,"name":"one"}}],
            "accounts":[{accounts}]{rest}}}"#
    )
}

fn account(number: u8, balance: &str) -> String {
    format!(r#"{{"address":"{}","balance":"{balance}"}}"#, key(number).address())
}

/// The genesis of a good text.
fn parsed(text: &str) -> Genesis {
    Genesis::parse(text.as_bytes()).expect("a good text")
}

/// Parameters as members of a genesis.
fn params(members: &str) -> String {
    format!(r#","params":{{{members}}}"#)
}

fn is_good(text: &str) -> bool {
    Genesis::parse(text.as_bytes()).is_ok()
}

/// The state of its height 0.
fn first_state(genesis: &Genesis) -> Memory {
    let memory = Memory::default();
    memory.apply(&genesis.state());
    memory
}

fn faults(text: &str) -> Vec<(String, String, String)> {
    let faults = Genesis::parse(text.as_bytes()).expect_err("it was accepted");
    let all = faults.as_slice().iter();
    all.map(|fault| (fault.path.clone(), fault.got.clone(), fault.expected.clone())).collect()
}

fn places(text: &str) -> Vec<String> {
    faults(text).into_iter().map(|(path, ..)| path).collect()
}

#[test]
fn a_small_file_takes_the_defaults_of_the_protocol() {
    let genesis = parsed(&text(&account(2, "5"), ""));
    assert_eq!(genesis.chain().params, Params::default());
    assert_eq!(genesis.chain().forks.v6, 0);
    assert_eq!((genesis.chain_id(), genesis.time()), ("ombra-test", 1_700_000_000_000));
    assert_eq!(genesis.supply(), Amount::new(5));
    assert_eq!(genesis.validators()[0].power, 10);
}

/// The exact text is the identity of every chain that was started with it.
#[test]
fn the_canonical_form_is_what_it_always_was() {
    let text = text(&account(2, "5"), r#","forks":{"v6":3},"params":{"claimTtlMs":5000}"#);
    let genesis = parsed(&text);
    let (validator, funded) = (key(1).public_key(), key(2).address());
    let expected = format!(
        concat!(
            r#"{{"chainId":"ombra-test","genesisTime":1700000000000,"#,
            r#""validators":[{{"publicKey":"{}","power":10,"name":"one"}}],"#,
            r#""accounts":[{{"address":"{}","balance":"5"}}],"forks":{{"v6":3}},"#,
            r#""params":{{"minMaxFee":"100","pendingTtlMs":900000,"claimTtlMs":5000,"#,
            r#""stepTtlMs":600000,"maxReopens":3,"maxExpiriesPerBlock":1000,"#,
            r#""maxOutputTokensPerStep":131072,"maxTxBytes":131072,"maxChunkTxBytes":786432,"#,
            r#""maxBlobBytes":16777216,"blobFeePerChunk":"100","blobTtlMs":3600000,"#,
            r#""blockReward":"0","heartbeatMs":10000,"minBlockIntervalMs":200,"#,
            r#""maxBlockBytes":4194304,"maxClockSkewMs":120000,"requireChainId":false}}}}"#,
        ),
        validator, funded,
    );
    assert_eq!(genesis.canonical(), expected);
    assert_eq!(genesis.hash(), Hash::digest(expected.as_bytes()));
}

#[test]
fn files_that_mean_the_same_have_the_same_hash() {
    let (two, three) = (account(2, "5"), account(3, "7"));
    let prefixed = format!(r#"{{"balance":"5","address":"ox{}"}}"#, key(2).address());
    let one = parsed(&text(&format!("{two},{three}"), ""));
    let other = text(&format!("{three},{prefixed}"), r#","params":{"maxReopens":3},"forks":{}"#);
    let other = parsed(&other);
    assert_eq!(one, other);
    assert_eq!(one.hash(), other.hash());
    assert_eq!(parsed(&one.to_file()), one);
    assert!(one.to_file().contains("\n  \"chainId\": \"ombra-test\",\n"));
    let changed = parsed(&text(&two, r#","forks":{"v6":1}"#));
    assert_ne!(changed.hash(), one.hash());
}

/// A chain that is older than the parameter keeps its hash, and only another value changes it.
#[test]
fn the_delay_of_forks_stands_in_the_canonical_form_only_with_a_value_of_its_own() {
    let with = |members: &str| parsed(&text(&account(2, "5"), &params(members)));
    let (silent, named) = (with(""), with(r#""forkDelayBlocks":100000"#));
    assert_eq!(silent, named);
    assert_eq!(silent.hash(), named.hash());
    assert!(!silent.canonical().contains("forkDelayBlocks"));
    let other = with(r#""forkDelayBlocks":20"#);
    assert!(other.canonical().ends_with(r#""requireChainId":false,"forkDelayBlocks":20}}"#));
    assert_ne!(other.hash(), silent.hash());
    assert_eq!(parsed(&other.to_file()), other);
    for bad in ["0", "500001", "-1", "\"20\"", "1.0"] {
        let file = text(&account(2, "5"), &params(&format!(r#""forkDelayBlocks":{bad}"#)));
        assert_eq!(places(&file), ["params.forkDelayBlocks"], "{bad}");
    }
}

#[test]
fn every_fault_is_told_at_once_with_its_place() {
    let (two, bad) = (account(2, "5"), r#"{"address":"zz","balance":"-1","extra":1}"#);
    let accounts = format!("{two},{bad},{two},7");
    let rest = r#","forks":{"v9":1},"params":{"claimTtlMs":"5","maxReopens":1001,"oops":1,
        "minMaxFee":100,"requireChainId":0,"maxBlockBytes":5000},"color":"red""#;
    let told = faults(&text(&accounts, rest));
    let places: Vec<&str> = told.iter().map(|(path, ..)| path.as_str()).collect();
    let expected = "color accounts[1].extra accounts[1].address accounts[1].balance accounts[3] \
                    accounts[3].address accounts[3].balance forks.v9 params.oops params.minMaxFee \
                    params.claimTtlMs params.maxReopens params.requireChainId accounts[2].address \
                    params.maxBlockBytes";
    assert_eq!(places, expected.split_whitespace().collect::<Vec<_>>());
    let ttl = told.iter().find(|(path, ..)| path == "params.claimTtlMs").unwrap();
    assert_eq!((ttl.1.as_str(), ttl.2.as_str()), ("a string", "an integer from 1 to 315360000000"));
}

#[test]
fn what_is_missing_is_told_once() {
    let expected = ["chainId", "genesisTime", "validators", "accounts"];
    assert_eq!(places("{}"), expected);
    assert_eq!(places("[]")[0], "");
    for rubbish in ["", "{", "nul", "{}{}", "{\"a\":1,\"a\":2}", "\u{1}"] {
        assert_eq!(places(rubbish), [""], "{rubbish:?}");
    }
    assert_eq!(Genesis::parse(&[0xff, 0xfe]).unwrap_err().as_slice().len(), 1);
    let deep = "[".repeat(100_000);
    assert_eq!(places(&deep), [""]);
}

#[test]
fn validators_are_checked() {
    let [one, two] = [1, 2].map(|number| key(number).public_key().to_string());
    let file = |validators: &str| {
        format!(r#"{{"chainId":"c","genesisTime":1,"accounts":[],"validators":[{validators}]}}"#)
    };
    let entry = |key: &str, power: &str| format!(r#"{{"publicKey":"{key}","power":{power}}}"#);
    assert_eq!(places(&file("")), ["validators"]);
    let twice = format!("{},{}", entry(&one, "1"), entry(&one, "1"));
    assert_eq!(places(&file(&twice)), ["validators[1].publicKey"]);
    for power in ["0", "281474976710657"] {
        assert_eq!(places(&file(&entry(&one, power))), ["validators[0].power"], "{power}");
    }
    for power in ["-1", "1.0", "\"1\"", "1e3", "null"] {
        let shifted = format!("{},{}", entry(&one, power), entry(&two, "0"));
        let expected = ["validators[0].power", "validators[1].power"];
        assert_eq!(places(&file(&shifted)), expected, "{power}");
    }
    // Nobody can sign with a point of small order, or with none at all.
    for first in ["01", "02"] {
        let unusable = entry(&format!("{first}{}", "0".repeat(62)), "1");
        assert_eq!(places(&file(&unusable)), ["validators[0].publicKey"], "{first}");
    }
    assert!(is_good(&file(&entry(&one, "281474976710656"))));
    let many: Vec<String> =
        (0..65).map(|number| entry(&key(number).public_key().to_string(), "1")).collect();
    assert_eq!(places(&file(&many.join(","))), ["validators"]);
}

#[test]
fn balances_may_not_overflow_together() {
    let max = u64::MAX.to_string();
    let text = text(&format!("{},{}", account(2, &max), account(3, "1")), "");
    assert_eq!(places(&text), ["accounts"]);
}

#[test]
fn chain_ids_need_no_escapes_anywhere() {
    for (id, is_right) in [("a", true), ("Ombra-1.0_x", true), ("", false), ("a b", false)] {
        let text = text("", "").replace("ombra-test", id);
        assert_eq!(is_good(&text), is_right, "{id:?}");
    }
    let long = text("", "").replace("ombra-test", &"x".repeat(65));
    assert_eq!(places(&long), ["chainId"]);
}

#[test]
fn the_first_state_holds_the_accounts_and_the_supply() {
    let accounts = format!("{},{}", account(2, "5"), account(3, "7"));
    let genesis = parsed(&text(&accounts, ""));
    let memory = first_state(&genesis);
    let funded = view::get::<Accounts>(&memory, &key(3).address()).unwrap().unwrap();
    assert_eq!((funded.balance, funded.nonce), (Amount::new(7), 0));
    assert_eq!(state::supply(&memory).unwrap().genesis, Amount::new(12));
    let report = invariants::verify(&memory, &genesis.chain().params).unwrap();
    assert_eq!((report.accounts, report.broken), (2, Vec::new()));
}

#[test]
fn a_file_that_does_not_name_a_fork_keeps_its_text_and_its_first_state() {
    let text = text(&account(2, "5"), r#","forks":{"v6":3}"#);
    let genesis = parsed(&text);
    assert!(genesis.canonical().contains(r#""forks":{"v6":3},"#));
    assert_eq!(genesis.chain().forks.validator_vote, None);
    let memory = first_state(&genesis);
    let tables: Vec<_> = memory.rows().into_iter().map(|(table, ..)| table).collect();
    assert_eq!(tables, ["accounts", "supply"]);
}

#[test]
fn a_chain_whose_validators_can_change_has_them_in_its_first_state() {
    let genesis = parsed(&text("", r#","forks":{"validatorVote":7}"#));
    assert!(genesis.canonical().contains(r#""forks":{"v6":0,"validatorVote":7},"#));
    assert_eq!(parsed(&genesis.to_file()), genesis);
    let memory = first_state(&genesis);
    let current = vec![SetMember { public_key: key(1).public_key(), power: 10 }];
    let expected = ValidatorSets { since: 1, current, next: None };
    assert_eq!(validators::sets(&memory).unwrap(), Some(expected));
    let report = invariants::verify(&memory, &genesis.chain().params).unwrap();
    assert_eq!(report.broken, []);
    let late = text("", r#","forks":{"validatorVote":9007199254740991}"#);
    assert_eq!(places(&late), ["forks.validatorVote"]);
}

#[test]
fn a_development_chain_is_a_genesis_like_any_other() {
    let validator = key(1).public_key();
    let accounts: Vec<(Address, Amount)> =
        (2..12).map(|number| (key(number).address(), Amount::new(1_000_000_000))).collect();
    let overrides = ["claimTtlMs=5000".to_owned(), "blockReward=7".to_owned()];
    let voting = Forks { validator_vote: Some(0), ..Forks::default() };
    let genesis = Genesis::dev("dev", 5, validator, accounts.clone(), &overrides, voting).unwrap();
    let params = genesis.chain().params;
    assert_eq!((params.claim_ttl_ms, params.block_reward), (5_000, Amount::new(7)));
    assert_eq!(params.min_block_interval_ms, 50);
    assert_eq!(parsed(&genesis.to_file()), genesis);
    let twice = [accounts.clone(), accounts].concat();
    let error = Genesis::dev("dev", 5, validator, twice, &[], voting).unwrap_err().to_string();
    assert!(error.starts_with("accounts[10].address: "), "{error}");
}

#[test]
fn parameters_are_set_by_name() {
    let mut params = Params::default();
    for text in ["minMaxFee=250", "requireChainId=true", "maxBlockBytes=1048576"] {
        set_param(&mut params, text).unwrap();
    }
    assert_eq!(params.min_max_fee, Amount::new(250));
    assert!(params.require_chain_id);
    assert_eq!(params.max_block_bytes, 1_048_576);
    let before = params.clone();
    let wrong = "maxReopens=-1 maxReopens=1001 maxReopens= maxReopens=+1 minMaxFee=0100 minMaxFee=0 \
                 requireChainId=yes claimTtlMs=0";
    for wrong in wrong.split_whitespace() {
        let error = set_param(&mut params, wrong).unwrap_err();
        assert!(matches!(error, ParamError::Value { .. }), "{wrong}: {error}");
    }
    let unknown = set_param(&mut params, "claimTTL=1").unwrap_err();
    assert!(unknown.to_string().contains("claimTtlMs"), "{unknown}");
    assert!(matches!(set_param(&mut params, "claimTtlMs").unwrap_err(), ParamError::Form { .. }));
    assert_eq!(params, before);
}

#[test]
fn a_prompt_and_a_chunk_of_the_longest_kind_fit_into_a_transaction() {
    let file = |members: &str| text("", &params(members));
    assert_eq!(places(&file(r#""maxTxBytes":20479"#)), ["params.maxTxBytes"]);
    assert!(is_good(&file(r#""maxTxBytes":20480"#)));
    // Base64 of 400,000 bytes, and 4,096.
    assert_eq!(places(&file(r#""maxChunkTxBytes":537431"#)), ["params.maxChunkTxBytes"]);
    assert!(is_good(&file(r#""maxChunkTxBytes":537432"#)));
    let small_blobs =
        |chunk: u32| file(&format!(r#""maxBlobBytes":300,"maxChunkTxBytes":{chunk}"#));
    assert_eq!(places(&small_blobs(4_495)), ["params.maxChunkTxBytes"]);
    assert!(is_good(&small_blobs(4_496)));
}

#[test]
fn from_v7_on_no_ttl_is_shorter_than_ten_times_what_a_proposer_can_move_time_by() {
    let file = |forks: &str, members: &str| text("", &format!("{forks}{}", params(members)));
    let v7 = r#","forks":{"v7":9}"#;
    let short = r#""pendingTtlMs":24999,"claimTtlMs":1,"stepTtlMs":24999,"blobTtlMs":24999"#;
    let ttls = ["pendingTtlMs", "claimTtlMs", "stepTtlMs", "blobTtlMs"];
    assert_eq!(places(&file(v7, short)), ttls.map(|name| format!("params.{name}")));
    assert!(is_good(&file("", short)), "before there was the rule");
    assert!(is_good(&file(v7, r#""claimTtlMs":25000"#)));
    // A chain whose messages are quick may have shorter ones.
    let quick = r#""claimTtlMs":1000,"precisionMs":20,"messageDelayMs""#;
    assert!(is_good(&file(v7, &format!("{quick}:80"))));
    assert_eq!(places(&file(v7, &format!("{quick}:81"))), ["params.claimTtlMs"]);
    let wrong = r#""precisionMs":0,"messageDelayMs":60001"#;
    assert_eq!(places(&file(v7, wrong))[..2], ["params.precisionMs", "params.messageDelayMs"]);
}

/// Whoever adds a parameter to `types` and not to the table here is told by this test.
#[test]
fn every_parameter_is_in_the_table_and_in_its_range() {
    let value = serde_json::to_value(Params::default()).unwrap();
    let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
    let mut listed: Vec<String> = param_names().into_iter().map(str::to_owned).collect();
    names.sort();
    listed.sort();
    assert_eq!(names, listed);
    let written = |rest: &str| {
        let genesis = parsed(&text("", rest));
        let canonical: serde_json::Value = serde_json::from_str(&genesis.canonical()).unwrap();
        canonical["params"].clone()
    };
    // That one is left out where it has its default, and those of a fork where the file does not name it.
    let mut expected = value;
    expected.as_object_mut().unwrap().remove("forkDelayBlocks");
    assert_eq!(written(r#","forks":{"v7":0,"v8":0}"#), expected);
    let mut without = |names: &str| {
        for name in names.split_whitespace() {
            assert!(expected.as_object_mut().unwrap().remove(name).is_some(), "{name}");
        }
        expected.clone()
    };
    let of_v8 = "minBond absencePenalty unrevealedPenalty dissentPenalty outsidePenalty revealFee \
                 revealMs appealMs offersPerExecutorMax agentRegisterFee agentRegisterFeePerByte \
                 royaltyMax limitInputTokens limitOutputTokens limitFuel slashableModels";
    assert_eq!(written(r#","forks":{"v7":0}"#), without(of_v8));
    let of_v7 = "unbondMs baseFeeFloor maxBlockWork registerFee blobInitFee refuseStake \
                 evidenceAgeBlocks precisionMs messageDelayMs";
    assert_eq!(written(""), without(of_v7));
}

proptest::proptest! {
    /// Rubbish costs a bounded amount of work and never a panic.
    #[test]
    fn random_bytes_are_no_genesis_and_their_faults_are_told(bytes: Vec<u8>) {
        let faults = Genesis::parse(&bytes).expect_err("it was accepted");
        proptest::prop_assert!(!faults.as_slice().is_empty());
    }
}

#[test]
fn v8_needs_v7_and_brings_parameters_of_its_own() {
    let of = |forks: &str, members: &str| {
        text("", &format!(r#","forks":{{{forks}}}{}"#, params(members)))
    };
    assert_eq!(places(&of(r#""v8":5"#, "")), ["forks.v8"]);
    assert_eq!(places(&of(r#""v7":6,"v8":5"#, "")), ["forks.v8"]);
    assert_eq!(places(&of(r#""v7":5"#, r#""minBond":"20000000""#)), ["params.minBond"]);
    let models =
        r#""slashableModels":"b179c9523d0e5f2f6bd18c9adbbf8e4c4fbb5d3a6f0c27d1e95c8a7b6d4f3e21""#;
    let genesis = parsed(&of(r#""v7":5,"v8":5"#, models));
    let written = genesis.to_file();
    assert!(written.contains("\"minBond\": \"10000000\""), "{written}");
    assert_eq!(parsed(&genesis.to_file()), genesis);
    for wrong in [r#""""#, r#""all,all""#, "[]"] {
        let file = of(r#""v7":5,"v8":5"#, &format!(r#""slashableModels":{wrong}"#));
        assert_eq!(places(&file), ["params.slashableModels"], "{wrong}");
    }
}

#[test]
fn a_chain_with_the_market_trusts_the_embedded_model_and_no_other_unless_it_says_so() {
    let genesis = parsed(&text("", r#","forks":{"v7":5,"v8":5}"#));
    let models = genesis.chain().params.slashable_models;
    assert_eq!(models, Models::Listed([types::params::EMBEDDED_MODEL].into()));
    assert!(!models.contains(&Hash::ZERO));
}

#[test]
fn a_development_chain_with_the_market_trusts_every_model() {
    let genesis = market_from(Some(3));
    assert_eq!(genesis.chain().params.slashable_models, Models::All);
    assert_eq!(parsed(&genesis.to_file()), genesis);
}

/// Metadata of an agent with this name, and these agents among its tools.
fn metadata(name: &str, tools: &[String]) -> String {
    let manifest = "b179c9523d0e5f2f6bd18c9adbbf8e4c4fbb5d3a6f0c27d1e95c8a7b6d4f3e21";
    let tools: Vec<String> = tools.iter().map(|tool| format!("\"{tool}\"")).collect();
    format!(
        "{{\"name\":\"{name}\",\"description\":\"d\",\"version\":\"1.0.0\",\
         \"container_image\":\"ombra-model:{manifest}\",\
         \"executor\":{{\"kind\":\"model\",\"model\":\"{manifest}\",\"basePrompt\":\"\",\
         \"tools\":[{}],\"maxIterations\":1,\"maxOutputTokens\":9}},\
         \"abi\":[{{\"type\":\"function\",\"name\":\"f\",\"inputs\":[],\"outputs\":[]}}]}}",
        tools.join(",")
    )
}

fn agent_of(owner: u8, name: &str, tools: &[String]) -> FirstAgent {
    FirstAgent { owner: key(owner).address(), metadata: metadata(name, tools) }
}

/// A development chain on which the market is there from this height on.
fn market_from(v8: Option<u64>) -> Genesis {
    let forks = Forks { v7: Some(0), v8, ..Forks::default() };
    Genesis::dev("dev", 5, key(1).public_key(), Vec::new(), &[], forks).expect("no parameters")
}

#[test]
fn agents_of_a_genesis_are_there_from_the_start_and_are_part_of_the_chain_s_identity() {
    let plain = market_from(Some(0));
    let id = compute_agent_id(&key(2).address(), "inner");
    let agents =
        vec![agent_of(2, "inner", &[]), agent_of(3, "outer", &[format!("agent:{id}@1.0.0")])];
    let genesis = plain.clone().with_agents(agents.clone()).unwrap();
    assert_ne!(genesis.hash(), plain.hash());
    assert_eq!(genesis.agents(), agents);
    assert_eq!(parsed(&genesis.to_file()), genesis);
    let state = first_state(&genesis);
    let found = state::agents::find(&state, &id, None).unwrap().unwrap();
    assert_eq!(found.text, metadata("inner", &[]));
    assert_eq!((found.agent.owner, found.agent.registered_at), (key(2).address(), 5));
    let outer = compute_agent_id(&key(3).address(), "outer");
    let outer = state::agents::find(&state, &outer, None).unwrap().unwrap();
    assert_eq!((outer.version.nesting, outer.version.tx.position), (2, 1));
    assert!(!plain.canonical().contains("agents"), "a genesis without agents keeps its text");
}

#[test]
fn a_genesis_says_which_of_its_agents_breaks_a_rule() {
    let good = || agent_of(2, "inner", &[]);
    let wrong = FirstAgent { metadata: "{}".to_owned(), ..good() };
    let unknown = agent_of(3, "outer", &[format!("agent:{}@1.0.0", Hash::ZERO)]);
    for (name, v8, agents, place) in [
        ("no metadata", Some(0), vec![good(), wrong], "agents[1].metadata"),
        ("an unknown tool", Some(0), vec![unknown, good()], "agents[0].metadata"),
        ("twice", Some(0), vec![good(), good()], "agents[1].metadata"),
        ("no market", None, vec![good()], "agents"),
        ("too many", Some(0), vec![good(); 65], "agents"),
    ] {
        let faults = market_from(v8).with_agents(agents).unwrap_err();
        let places: Vec<&str> = faults.as_slice().iter().map(|it| it.path.as_str()).collect();
        assert_eq!(places, [place], "{name}");
    }
}

#[test]
fn a_fault_of_an_agent_names_its_place_in_the_file_whatever_stands_before_it() {
    let good = agent_of(2, "inner", &[]);
    let file = market_from(Some(0)).with_agents(vec![good]).unwrap().to_file();
    let mut file: serde_json::Value = serde_json::from_str(&file).unwrap();
    let owner = file["agents"][0]["owner"].clone();
    let readable = |metadata: &str| serde_json::json!({ "owner": owner, "metadata": metadata });
    file["agents"] = serde_json::json!([{ "metadata": "{}" }, readable("{}"), readable("{}")]);
    let faults = Genesis::parse(file.to_string().as_bytes()).unwrap_err();
    let told: Vec<String> = faults.as_slice().iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "agents[0].owner: missing, expected a string",
            "agents[1].metadata: none, expected a member name at /name (rule 2)",
        ]
    );
}
