//! The commands parse as documented, and failures have their exit codes.

use std::fs;
use std::io;

use clap::{CommandFactory, Parser};

use super::CliError;
use super::command::{ClientCommand, run};

#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: ClientCommand,
}

/// Runs a command and gives its output.
async fn ombra(arguments: &[&str]) -> Result<String, CliError> {
    let all = ["ombra"].iter().chain(arguments);
    let cli = Cli::try_parse_from(all).map_err(|error| CliError::Usage(error.to_string()))?;
    let mut out = Vec::new();
    run(cli.command, &mut out).await?;
    Ok(String::from_utf8(out).unwrap())
}

/// A folder with a password file, and the arguments that name both.
struct Keys(tempfile::TempDir);

impl Keys {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("pw"), "secret\n").unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    async fn run(&self, arguments: &[&str]) -> Result<String, CliError> {
        let (store, password) = (self.path("keys"), self.path("pw"));
        let mut all = [&["keys"], arguments, &["--keys-dir", &store]].concat();
        if arguments.first() != Some(&"list") {
            all.extend(["--password-file", &password]);
        }
        ombra(&all).await
    }
}

#[test]
fn the_command_definitions_are_sound() {
    Cli::command().debug_assert();
}

/// A command is put together when it is asked for: here two arguments with one name are found.
#[test]
fn every_command_tells_what_it_takes_and_has_an_example() {
    let root = Cli::command();
    for group in root.get_subcommands() {
        let mut leaves: Vec<_> = group.get_subcommands().collect();
        let mut words = vec!["ombra", group.get_name()];
        if leaves.is_empty() {
            words.pop();
            leaves.push(group);
        }
        for leaf in leaves {
            let words = [&words[..], &[leaf.get_name(), "--help"]].concat();
            let told = Cli::command().try_get_matches_from(&words).unwrap_err();
            assert_eq!(clap::error::ErrorKind::DisplayHelp, told.kind(), "{words:?}: {told}");
            let help = leaf.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("ombra {}", group.get_name())), "{words:?}");
        }
    }
}

#[tokio::test]
async fn a_new_wallet_can_be_listed_shown_exported_and_imported() {
    let keys = Keys::new();
    let made = keys.run(&["new", "alice", "--json"]).await.unwrap();
    let made: serde_json::Value = serde_json::from_str(&made).unwrap();
    let address = made["address"].as_str().unwrap();
    assert!(keys.run(&["list"]).await.unwrap().contains(address));
    assert!(keys.run(&["show", "alice"]).await.unwrap().contains(address));

    let file = keys.path("copy.json");
    keys.run(&["export", "alice", "--out", &file]).await.unwrap();
    let copied = keys.run(&["import", "copy", "--file", &file]).await.unwrap();
    assert!(copied.contains(address));

    let words = keys.run(&["export", "alice", "--secret", "mnemonic", "--json"]).await.unwrap();
    let words: serde_json::Value = serde_json::from_str(&words).unwrap();
    assert_eq!((&made["mnemonic"], &0.into()), (&words["mnemonic"], &words["hdIndex"]));
    let words = keys.run(&["export", "alice", "--secret", "mnemonic"]).await.unwrap();
    assert_eq!(made["mnemonic"].as_str().unwrap(), words.trim());
    let words = keys.write("words", &words);
    let again = keys.run(&["import", "again", "--mnemonic-file", &words]).await.unwrap();
    assert!(again.contains(address));
}

#[tokio::test]
async fn the_golden_accounts_are_derived() {
    let development = ombra(&["keys", "derive", "--dev", "--count", "2"]).await.unwrap();
    assert!(development.contains("de133ca6f509c74f6e2e849403cc461d2d5b3e3c"));
    assert!(development.contains("69779141b27f1fb5062164ab88e27a4d00e34862"));

    let keys = Keys::new();
    let golden = format!("{} about", ["abandon"; 11].join(" "));
    let words = keys.write("words", &golden);
    let saved = ["derive", "--mnemonic-file", &words, "--index", "1", "--save", "second"];
    let saved = keys.run(&saved).await.unwrap();
    assert!(saved.contains("0412c31884ffd42ec7e31b02e36ecac168b0a59b"));
    let exported = keys.run(&["export", "second", "--secret", "mnemonic", "--json"]).await.unwrap();
    let exported: serde_json::Value = serde_json::from_str(&exported).unwrap();
    assert_eq!((&golden.into(), &1.into()), (&exported["mnemonic"], &exported["hdIndex"]));
}

#[tokio::test]
async fn a_signed_transaction_can_be_printed_without_a_node() {
    let transfer = ["transfer", "dev:1", "1.5ombra", "--dev", "0", "--timestamp", "1715990000000"];
    let away = ["--nonce", "7", "--chain-id", "here", "--rpc", "http://127.0.0.1:1"];
    let parsed = transaction(&[&transfer[..], &away].concat()).await.unwrap();
    assert_eq!((7, Some("here")), (parsed.nonce(), parsed.chain_id()));
}

/// The transaction that `ombra tx` with these arguments signs.
async fn transaction(arguments: &[&str]) -> Result<types::Transaction, CliError> {
    let printed = ombra(&[&["tx"], arguments, &["--print"]].concat()).await?;
    let limits = types::SizeLimits::from(&types::Params::default());
    Ok(types::Transaction::parse(printed.trim().as_bytes(), &limits).unwrap())
}

/// Signs without a node and gives the transaction.
async fn signed_offline(command: &[&str]) -> Result<types::Transaction, CliError> {
    let offline = ["--dev", "0", "--nonce", "0", "--chain-id", "here"];
    transaction(&[command, &offline].concat()).await
}

#[tokio::test]
async fn any_transaction_says_what_it_offers_for_its_place() {
    let bid = ["--tip", "1.5ombra", "--max-base-fee", "50"];
    let run = "ab".repeat(32);
    for command in [
        &["chat", "hello"][..],
        &["cancel", &run],
        &["any", "agent-cancel", "--agent-run-id", &run],
    ] {
        let tx = signed_offline(&[command, &bid].concat()).await.unwrap();
        let offers = r#","maxBaseFee":"50","tip":"1500000","chainId""#;
        assert!(tx.payload().contains(offers), "{command:?}");
        let plain = signed_offline(command).await.unwrap();
        assert!(!plain.payload().contains("tip"), "{command:?}");
    }
    let refused = signed_offline(&["transfer", "dev:1", "1ombra", "--tip", "5"]).await.unwrap_err();
    assert_eq!(2, refused.exit_code());
    assert!(refused.to_string().contains("--tip is 5, expected none"), "{refused}");
}

#[tokio::test]
async fn votes_for_the_first_fork_are_transfers_and_for_later_ones_a_kind() {
    let vote = async |fork: &str| {
        signed_offline(&["fork-vote", fork, "200000", "--for-another-program"]).await
    };
    assert_eq!("TRANSFER", vote("v7").await.unwrap().body().type_name());
    assert_eq!("FORK_VOTE", vote("v8").await.unwrap().body().type_name());
    assert_eq!(2, vote("v100").await.unwrap_err().exit_code());
    let unknown = signed_offline(&["fork-vote", "v99", "200000"]).await.unwrap_err();
    assert!(unknown.to_string().contains("does not know the fork v99"), "{unknown}");
    let param = signed_offline(&["param-vote", "baseFeeFloor", "20", "9"]).await.unwrap();
    assert!(param.payload().contains(r#""name":"baseFeeFloor","value":20,"height":9,"#));
}

#[tokio::test]
async fn without_a_node_a_transaction_is_for_the_named_chain_or_the_remembered_one_or_none() {
    let keys = Keys::new();
    keys.run(&["new", "alice"]).await.unwrap();
    let (store, password) = (keys.path("keys"), keys.path("pw"));
    let chain_of = async |more: &[&str]| {
        let to = "69779141b27f1fb5062164ab88e27a4d00e34862";
        let transfer = ["transfer", to, "1ombra", "--nonce", "0"];
        let parsed = transaction(&[&transfer, more].concat()).await?;
        Ok::<_, CliError>(parsed.chain_id().map(str::to_owned))
    };
    let alice = ["--wallet", "alice", "--keys-dir", &store, "--password-file", &password];
    for signer in [&alice[..], &["--dev", "0"]] {
        let refused = chain_of(signer).await.unwrap_err();
        assert_eq!((2, true), (refused.exit_code(), refused.to_string().contains("--chain-id")));
    }
    let stored = fs::read_dir(&store).unwrap().next().unwrap().unwrap().path();
    let here = wallet::ChainIdentity { chain_id: "here".into(), genesis_hash: types::Hash::ZERO };
    wallet::ChainMemory::beside(&stored).bind(&here, None).unwrap();
    assert_eq!(Some("here".to_owned()), chain_of(&alice).await.unwrap());
    let exactly = format!("there@{}", types::Hash::ZERO);
    for name in ["there", &exactly] {
        let named = [&alice[..], &["--chain-id", name]].concat();
        assert_eq!(Some("there".to_owned()), chain_of(&named).await.unwrap());
    }
    // Copies know it too, and the owner is told.
    let copy = keys.path("copy.json");
    keys.run(&["export", "alice", "--out", &copy]).await.unwrap();
    keys.run(&["import", "bob", "--file", &copy]).await.unwrap();
    for name in ["alice", "bob"] {
        let shown = keys.run(&["show", name]).await.unwrap();
        assert!(shown.contains(&here.to_string()), "{shown}");
    }
}

#[tokio::test]
async fn a_wallet_pays_no_development_account_by_its_number() {
    let keys = Keys::new();
    keys.run(&["new", "alice"]).await.unwrap();
    let (store, password) = (keys.path("keys"), keys.path("pw"));
    let alice = ["--wallet", "alice", "--keys-dir", &store, "--password-file", &password];
    let offline = ["--nonce", "0", "--chain-id", "here", "--rpc", "http://127.0.0.1:1"];
    let address = "135151701fb060be16c737a0803e1259bb247f1e";
    for to in ["dev:3", address] {
        for transfer in
            [&["transfer", to, "1ombra"][..], &["any", "transfer", "--to", to, "--amount", "1"]]
        {
            let signed = transaction(&[transfer, &alice, &offline].concat()).await;
            assert_eq!(to == address, signed.is_ok(), "{transfer:?}: {signed:?}");
            let said = signed.err().map(|error| (error.exit_code(), error.to_string()));
            assert!(said.is_none_or(|(code, said)| code == 2 && said.contains(address)));
        }
    }
    let call = ["call", "judge", "decide", "x", "--appealable", "--on", "success:dev:3:5ombra"];
    let refused = ombra(&[&call[..], &alice, &offline[4..]].concat()).await.unwrap_err();
    assert_eq!(
        (2, true),
        (refused.exit_code(), refused.to_string().contains("dev:3")),
        "{refused}"
    );
}

#[tokio::test]
async fn a_validator_votes_with_its_key_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("validator.key");
    let key = types::Keypair::from_seed(&node::keyfile::create(&path).unwrap());
    let candidate = key.public_key().to_string();
    let vote = async |days: &str| {
        let vote = ["validator-vote", &candidate, "--power", "3", "--days", days];
        let signer = ["--key-file", path.to_str().unwrap()];
        let offline = ["--nonce", "0", "--timestamp", "1715990000000", "--chain-id", "here"];
        transaction(&[&vote[..], &signer, &offline].concat()).await
    };
    let parsed = vote("30").await.unwrap();
    assert_eq!(key.address(), parsed.from());
    let expected = types::tx::ValidatorVote::new(key.public_key(), 3, 1_718_582_000_000);
    assert_eq!(&types::Body::ValidatorVote(expected), parsed.body());
    assert_eq!(2, vote("31").await.unwrap_err().exit_code());
}

#[tokio::test]
async fn a_vote_for_a_new_validator_has_what_its_key_signed_and_until_when() {
    let signature = types::Signature::new([7; 64]).to_string();
    let candidate = types::Keypair::from_seed(&[9; 32]).public_key();
    let key = candidate.to_string();
    let vote = async |more: &[&str]| {
        let vote = ["validator-vote", &key, "--power", "3", "--timestamp", "1715990000000"];
        signed_offline(&[&vote, more].concat()).await
    };
    let both = ["--acceptance", &signature, "--expires-at", "1716000000000"];
    let parsed = vote(&both).await.unwrap();
    let expected = types::tx::ValidatorVote::new(candidate, 3, 1_716_000_000_000);
    let expected = expected.with_acceptance(types::Signature::new([7; 64]));
    assert_eq!(&types::Body::ValidatorVote(expected), parsed.body());
    // The signature covers the time, so it has to be named.
    assert_eq!(2, vote(&both[..2]).await.unwrap_err().exit_code());
}

#[tokio::test]
async fn wrong_usage_is_2() {
    let cases: [&[&str]; 8] = [
        &["tx", "transfer", "nobody", "1", "--dev", "0"],
        &["tx", "transfer", "dev:1", "1.5", "--dev", "0"],
        &["tx", "transfer", "dev:1", "1"],
        &["tx", "chat", "--dev", "0"],
        &["query", "tx", "12"],
        &["query", "block", "newest"],
        &["run"],
        &["query", "chain", "--rpc", "127.0.0.1:8777"],
    ];
    for arguments in cases {
        let error = ombra(arguments).await.unwrap_err();
        assert_eq!(2, error.exit_code(), "{arguments:?}: {error}");
    }
}

#[tokio::test]
async fn a_node_that_is_not_there_is_3() {
    for arguments in [&["query", "chain"][..], &["tx", "cancel", &"0".repeat(64), "--dev", "0"]] {
        let all = [arguments, &["--rpc", "http://127.0.0.1:1"]].concat();
        let error = ombra(&all).await.unwrap_err();
        assert_eq!(3, error.exit_code(), "{error}");
    }
}

#[tokio::test]
async fn wrong_passwords_are_1_and_wrong_words_and_names_are_2() {
    let keys = Keys::new();
    keys.run(&["new", "alice"]).await.unwrap();
    let other = keys.write("other", "another\n");
    let store = keys.path("keys");
    let show = ["keys", "show", "alice", "--keys-dir", &store, "--password-file", &other];
    assert_eq!(1, ombra(&show).await.unwrap_err().exit_code());
    let words = keys.write("words", "abandon abandon");
    let import = keys.run(&["import", "bob", "--mnemonic-file", &words]).await;
    assert_eq!(2, import.unwrap_err().exit_code());
    assert_eq!(2, keys.run(&["show", "nobody"]).await.unwrap_err().exit_code());
}

#[test]
fn a_rejection_is_4_and_a_closed_pipe_is_quiet() {
    let refused = CliError::Rejected { code: "NONCE_STALE".into(), message: "m".into() };
    assert_eq!(4, refused.exit_code());
    assert!(refused.to_string().contains("NONCE_STALE: m"));
    let closed = CliError::from(io::Error::from(io::ErrorKind::BrokenPipe));
    assert_eq!((0, true), (closed.exit_code(), closed.is_quiet()));
    let full = CliError::from(io::Error::from(io::ErrorKind::StorageFull));
    assert_eq!((1, false), (full.exit_code(), full.is_quiet()));
}

#[test]
fn every_failure_after_signing_names_the_transaction() {
    let hash = types::Hash::digest(b"tx");
    let away = wallet::ClientError::NotServing { message: "restarting".into() };
    let failed = CliError::from(away).after_signing(&hash);
    assert_eq!(1, failed.exit_code());
    assert!(failed.to_string().ends_with(&format!("ask: ombra query tx {hash}")), "{failed}");
    let refused = CliError::Rejected { code: "NONCE_STALE".into(), message: "m".into() };
    let refused = refused.after_signing(&hash);
    assert_eq!(4, refused.exit_code());
    assert!(refused.to_string().contains(&hash.to_string()), "{refused}");
}

#[test]
fn no_two_options_of_a_transaction_have_the_same_name() {
    let command = Cli::command();
    let tx = command.find_subcommand("tx").unwrap();
    let any = tx.find_subcommand("any").unwrap();
    assert_eq!(any.get_subcommands().count(), types::Body::KINDS.len());
    for kind in tx.get_subcommands().chain(any.get_subcommands()) {
        let names: Vec<_> = kind.get_arguments().filter_map(clap::Arg::get_long).collect();
        let ids: Vec<_> = kind.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        for (what, all) in [("options", names), ("ids", ids)] {
            let distinct: std::collections::BTreeSet<_> = all.iter().collect();
            assert_eq!(distinct.len(), all.len(), "{what} of {}: {all:?}", kind.get_name());
        }
    }
}

/// The signed transaction that a command prints.
async fn printed(arguments: &[&str]) -> Result<serde_json::Value, CliError> {
    let common = ["--dev", "0", "--print", "--nonce", "3", "--timestamp", "5", "--chain-id", "c"];
    let text = ombra(&[arguments, &common].concat()).await?;
    Ok(serde_json::from_str(&text).unwrap())
}

/// A step, field by field, with the given tool calls.
async fn step_with(tool_calls: &str) -> Result<serde_json::Value, CliError> {
    let run = "ab".repeat(32);
    let hashes = ["--output-hash", &run, "--agent-run-id", &run];
    let counts = ["--step-index", "0", "--output-tokens", "7", "--tool-calls", tool_calls];
    printed(&[&["tx", "any", "agent-step"], &hashes[..], &counts].concat()).await
}

#[tokio::test]
async fn any_kind_is_sent_field_by_field() {
    let (info, capabilities) = (["--model-info", "x"], ["--capabilities", "a,b"]);
    let more = [&info[..], &capabilities].concat();
    let cases: [(&[&str], &[&str], &[&str]); 3] = [
        (
            &["transfer", "--to", "dev:1", "--amount", "1.5ombra"],
            &["transfer", "dev:1", "1.5ombra"],
            &[],
        ),
        (&["miner-register", "--name", "m"], &["register", "m"], &info),
        (&["miner-register", "--name", "m"], &["register", "m"], &more),
    ];
    for (any, own, more) in cases {
        let field_by_field = printed(&[&["tx", "any"], any, more].concat()).await.unwrap();
        let own = printed(&[&["tx"], own, more].concat()).await.unwrap();
        assert_eq!(field_by_field, own, "{any:?}");
    }
    let run = "ab".repeat(32);
    let calls = format!(
        r#"[{{"name":"t","argsHash":"{run}","resultHash":"{run}","durationMs":1,"ok":true}}]"#
    );
    let tx = step_with(&calls).await.unwrap();
    assert_eq!((&tx["outputTokens"], &tx["toolCalls"][0]["ok"]), (&7.into(), &true.into()));
    assert!(tx.get("thoughtBlobId").is_none());
}

#[tokio::test]
async fn a_field_that_is_missing_or_wrong_is_named() {
    let cases: &[(&[&str], &str)] = &[
        (&["tx", "any", "transfer", "--to", "dev:1"], "--amount"),
        (&["tx", "any", "transfer", "--to", "nobody", "--amount", "1"], "--to"),
        (&["tx", "any", "agent-cancel", "--agent-run-id", "12"], "--agent-run-id"),
        (&["tx", "any", "no-kind"], "no-kind"),
    ];
    let mut errors = Vec::new();
    for (arguments, named) in cases {
        errors.push((printed(arguments).await.unwrap_err(), *named));
    }
    errors.push((step_with("{}").await.unwrap_err(), "--tool-calls"));
    errors.push((step_with("[{}]").await.unwrap_err(), "toolCalls[0].name"));
    for (error, named) in errors {
        assert!(matches!(error, CliError::Usage(_)), "{error}");
        assert!(error.to_string().contains(named), "{named}: {error}");
    }
}

/// Metadata of an agent with this text as its name and this one as the type of an input.
fn agent(name: &str, of_type: &str) -> String {
    format!(
        r#"{{"name":"{name}","description":"x","container_image":"ipfs://x","version":"1.0.0",
            "royalty":"1000000","executor":{{"kind":"container"}},"abi":[{{"type":"function",
            "name":"transfer","inputs":[{{"name":"","type":"address"}},{{"name":"","type":"{of_type}"}}],
            "outputs":[{{"name":"","type":"bool"}}]}}]}}"#
    )
}

#[tokio::test]
async fn the_metadata_of_an_agent_is_checked_without_a_node() {
    let keys = Keys::new();
    let text = agent("a|b", "uint");
    let file = keys.write("agent.json", &text);
    let owner = "ae2f402b5bb9a32b5306f9ceb578f30e46ad5719";
    let id = "ab2ff399f18e324312b7d5d08986053920c015e1129fe46409758fba91f15061";

    let told = ombra(&["agents", "check", &file, "--owner", owner]).await.unwrap();
    let executor = format!("container:{}", types::Hash::digest(b"ipfs://x"));
    let fee = types::Amount::new(10_000 + 10 * text.len() as u64);
    for fact in [
        id,
        &executor,
        "transfer(address,uint256)",
        "0xa9059cbb",
        "(bool)",
        "1.000000 OMBRA",
        "1.0.0",
        "deterministic  no",
        &format!("{} OMBRA", fee.ombra()),
        "/version: 1.0.0 is greater than",
    ] {
        assert!(told.contains(fact), "{fact} in:\n{told}");
    }
    assert!(!ombra(&["agents", "check", &file]).await.unwrap().contains(id), "no owner, no id");

    let told = ombra(&["agents", "check", &file, "--owner", owner, "--json"]).await.unwrap();
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&told["ok"], &told["agentId"]), (&true.into(), &id.into()));
    assert_eq!(told["methods"][0]["selector"], "0xa9059cbb");
    assert_eq!(told["registerFee"], fee.to_string());
    assert_eq!((&told["executor"], &told["deterministic"]), (&executor.into(), &false.into()));
    assert_eq!(told["pending"][0]["path"], "/version");
}

#[tokio::test]
async fn the_first_fault_of_metadata_is_told_with_its_place_and_its_rule() {
    let keys = Keys::new();
    let file = keys.write("agent.json", &agent("a", "uint7"));
    let error = ombra(&["agents", "check", &file]).await.unwrap_err();
    assert_eq!(error.exit_code(), 2);
    let told = error.to_string();
    for part in [&file, "/abi/0/inputs/1/type", "\"uint7\"", "uint8 to uint256", "(rule 5)"] {
        assert!(told.contains(part), "{part} in {told}");
    }
    let mut out = Vec::new();
    let cli = Cli::try_parse_from(["ombra", "agents", "check", &file, "--json"]).unwrap();
    assert_eq!(run(cli.command, &mut out).await.unwrap_err().exit_code(), 2);
    let told: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!((&told["ok"], &told["rule"]), (&false.into(), &5.into()));
    assert_eq!(told["path"], "/abi/0/inputs/1/type");

    let large = keys.write("large.json", &" ".repeat(65_537));
    let error = ombra(&["agents", "check", &large]).await.unwrap_err();
    assert!(error.to_string().contains("65537 bytes (rule 1)"), "{error}");
    let missing = ombra(&["agents", "check", &keys.path("none.json")]).await.unwrap_err();
    assert_eq!(missing.exit_code(), 1, "a file that cannot be read is no usage");
}

/// What `ombra tx offer` with these arguments signs.
async fn offered(arguments: &[&str]) -> Result<types::tx::MinerOffer, CliError> {
    let offline = ["--dev", "1", "--nonce", "7", "--chain-id", "here"];
    let all = [&["offer"], arguments, &offline, &["--rpc", "http://127.0.0.1:1"]].concat();
    let parsed = transaction(&all).await?;
    assert_eq!(parsed.chain_id(), Some("here"));
    let types::Body::MinerOffer(offer) = parsed.body() else {
        panic!("not an offer: {}", parsed.body().type_name())
    };
    Ok(offer.clone())
}

#[tokio::test]
async fn an_offer_says_what_was_given_and_nothing_costs_nothing() {
    let executor = format!("model-1:{}", "ab".repeat(32));
    let offer = offered(&[&executor, "--per-call", "0.001ombra", "--prompt-per-m", "7"]).await;
    let offer = offer.unwrap();
    assert_eq!((offer.executor.as_str(), offer.capacity), (executor.as_str(), 1));
    let prices = [offer.per_call, offer.prompt_per_m, offer.completion_per_m, offer.fuel_per_g];
    assert_eq!(prices.map(types::Amount::get), [1_000, 7, 0, 0]);
    let removed = offered(&[&executor, "--remove"]).await.unwrap();
    assert_eq!((removed.capacity, removed.offer()), (0, None));
    let wrong: [&[&str]; 3] = [
        &["wasm-2"],
        &[&executor, "--capacity", "65"],
        &[&executor, "--remove", "--capacity", "2"],
    ];
    for arguments in wrong {
        assert!(matches!(offered(arguments).await, Err(CliError::Usage(_))), "{arguments:?}");
    }
}
