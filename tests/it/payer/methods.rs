//! The five methods with a real miner, from the command line, JavaScript and Python.

use std::process::Command;

use anyhow::ensure;
use serde_json::{Value, json};
use testkit::model::ANSWER_TOKENS;
use testkit::process::output;
use testkit::python::with_packages;

use crate::sdk::{MODULES, PACKAGES, counted};

use super::{PAYS, Scene, assert_has, errors, text, typed};

const TOOL: &str = "stock_of(string item)=How many of an item are there.";
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// What a run finished with, and its response.
fn said(run: &Value) -> [&str; 3] {
    let answer = &run["answer"];
    [text(run, "status"), text(answer, "finishReason"), text(answer, "response")]
}

#[test]
fn every_method_is_answered_and_the_answer_understood() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let _miner = scene.mine()?;
    // The model says "Hello." to everything that has no tools.
    let run = scene.run(&["Hi", "--method", "inferString", "--allowed", "Hello."])?;
    assert_eq!(["completed", "stop", "Hello."], said(&run));
    let run = scene.run(&["Hi", "--method", "inferNumber", "--min", "1"])?;
    assert_eq!(["failed", "error"], said(&run)[..2]);
    assert!(said(&run)[2].starts_with("there is no integer"), "{run}");
    let run = scene.run(&["Hi", "--method", "inferChat", "--message", "system:Be brief."])?;
    assert_eq!(["completed", "stop", "Hello."], said(&run));

    let tools = ["--method", "inferToolsChat", "--onchain-tool", TOOL];
    let first = scene.run(&[&["How many apples?"], &tools[..]].concat())?;
    assert_eq!(["completed", "tool_calls", ""], said(&first));
    let call = &first["answer"]["pendingCalls"][0];
    assert_eq!(("call_0", "stock_of"), (text(call, "id"), text(call, "name")));
    assert_eq!(json!({ "item": "apples" }), call["arguments"]);
    assert!(text(call, "calldata").starts_with("0x"), "{call}");

    let run = scene.run(&["--resume", text(&first, "agentRunId"), "--result", "call_0=twelve"])?;
    assert_eq!(["completed", "stop", "twelve"], said(&run));
    assert_eq!(first["conversationId"], run["conversationId"]);
    let paid = (ANSWER_TOKENS + 100).to_string();
    assert_eq!(paid, text(&run["bill"], "paid"));
    assert_eq!(1, run["steps"].as_array().map_or(0, Vec::len));
    Ok(())
}

#[test]
fn messages_are_answered_with_calls_of_functions_that_have_schemas() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let _miner = scene.mine()?;
    let function = |of: &str| {
        json!({ "name": "stock_of", "description": "How many of an item are there.",
            "parameters": { "type": "object", "properties": { "item": { "type": of } },
                "required": ["item"] } })
    };
    let asked = json!({ "messages": [{ "role": "user", "content": "How many apples?" }],
        "functions": [function("string")], "toolChoice": "required" });
    let file = scene.write("request.json", &asked.to_string())?;
    let ask = ["--method", "inferMessages", "--args", &file];
    let first = scene.run(&ask)?;
    assert_eq!(["completed", "tool_calls", ""], said(&first));
    let call = json!({ "id": "call_0", "name": "stock_of", "arguments": { "item": "apples" } });
    assert_eq!(json!([call]), first["answer"]["pendingCalls"]);
    let shown = scene.done_for_money(&[&["run"], &ask[..]].concat())?;
    let called = "stock_of({\"item\":\"apples\"})";
    assert_has(&shown, &["finish       tool_calls: 1 call", called, "--result call_0="]);
    assert!(!shown.contains("calldata"), "{shown}");

    // A call was made, and is not forced again.
    let run = scene.run(&["--resume", text(&first, "agentRunId"), "--result", "call_0=twelve"])?;
    assert_eq!(["completed", "stop", "twelve"], said(&run));
    let prompt: Value = serde_json::from_str(text(&run, "prompt"))?;
    assert_eq!("auto", prompt["args"]["toolChoice"]);

    // Arguments that do not fit are not handed back.
    let asked = json!({ "messages": asked["messages"], "functions": [function("integer")] });
    let file = scene.write("wrong.json", &asked.to_string())?;
    let run = scene.run(&["--method", "inferMessages", "--args", &file])?;
    let told = "error: argument item is \"apples\"";
    assert!(said(&run)[2].starts_with(told), "the model repeats what it was told: {run}");
    assert_eq!(2, run["steps"].as_array().map_or(0, Vec::len), "{run}");
    Ok(())
}

#[test]
fn calls_are_shown_with_the_command_that_goes_on() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let _miner = scene.mine()?;
    let arguments = ["run", "How many?", "--method", "inferToolsChat", "--onchain-tool", TOOL];
    let shown = scene.done_for_money(&arguments)?;
    let parts = [
        "finish       tool_calls: 1 call for you to execute",
        "call_0       stock_of({\"item\":\"apples\"})",
        "             calldata 0xadd308da",
        "--result call_0=TEXT",
        "paid         0.000107 OMBRA",
    ];
    assert_has(&shown, &parts);
    let resumed = shown.lines().find_map(|line| line.strip_prefix("to go on: ombra "));
    let words: Vec<_> = resumed.unwrap_or_default().split(' ').collect();
    let words: Vec<_> = words.iter().map(|word| word.replace("TEXT", "12")).collect();
    let words: Vec<_> = words.iter().map(String::as_str).chain(["--dev", "0"]).collect();
    let shown = scene.done(&words)?;
    assert!(shown.contains("\n12\n") && shown.contains("finish       stop"), "{shown}");

    let run = words[2];
    for (result, expected) in
        [("call_1=x", "call \"call_0\" has no result"), ("call_0", "expected CALL=TEXT")]
    {
        let refused = scene.ombra(&["run", "--resume", run, "--result", result, "--dev", "0"])?;
        assert_eq!(Some(2), refused.status.code());
        assert!(errors(&refused).contains(expected), "{}", errors(&refused));
    }
    let file = scene.write("results.json", r#"{"call_0":"12","call_9":"x"}"#)?;
    let refused = scene.ombra(&["run", "--resume", run, "--results", &file, "--dev", "0"])?;
    let expected = "no call \"call_9\" is waiting for a result; waiting: call_0";
    assert_eq!(Some(2), refused.status.code());
    assert!(errors(&refused).contains(expected), "{}", errors(&refused));
    Ok(())
}

#[test]
fn a_long_request_goes_into_a_blob_that_is_paid_for_once() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let _miner = scene.mine()?;
    let file = scene.write("long.txt", &"word ".repeat(3_500))?;
    for (arguments, member) in [(&["--method", "inferChat"][..], "response"), (&[][..], "text")] {
        let ask = [&["--prompt-file", &file], arguments].concat();
        let bills: Vec<_> = (0..2)
            .map(|_| {
                let run = scene.run(&ask)?;
                let answered = (text(&run, "status"), text(&run["answer"], member));
                assert_eq!(("completed", "Hello."), answered, "{run}");
                assert!(text(&run, "promptBlobId").len() == 64, "{run}");
                Ok(text(&run["bill"], "blobFees").to_owned())
            })
            .collect::<anyhow::Result<_>>()?;
        assert_eq!(["100", "0"], *bills);
    }
    // An envelope that somebody wrote is asked as what it says, and not as text.
    let envelope = json!({ "ombraAgent": 1, "method": "inferString", "args": {
        "prompt": "word ".repeat(3_500), "system": "", "chainOfThought": false, "allowedValues": [],
    } });
    let file = scene.write("envelope.json", &envelope.to_string())?;
    let run = scene.run(&["--prompt-file", &file])?;
    assert_eq!("completed", text(&run, "status"), "{run}");
    let prompt: Value = serde_json::from_str(text(&run, "prompt"))?;
    assert_eq!(json!(["inferString", true]), json!([prompt["method"], prompt["blob"]]));
    Ok(())
}

#[test]
fn what_a_miner_would_refuse_costs_nothing() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let before = scene.balance(0)?;
    let long = scene.write("long.txt", &"word ".repeat(3_500))?;
    let cases: [(&[&str], i32, &str); 6] = [
        (
            &["p", "--method", "inferChat", "--prompt-blob", "b"],
            2,
            "--prompt-blob cannot be used with a method",
        ),
        (&["p", "--timeout", "18446744073709551615"], 2, "is not in 0..=31536000"),
        (
            &["p", "--method", "inferNumber", "--min", "9", "--max", "5"],
            2,
            "expected at most maxValue, 5, got 9",
        ),
        (&[r#"{"ombraAgent":1,"method":"inferString","args":{}}"#], 2, "args.chainOfThought"),
        (&["--prompt-file", &long, "--max-fee", "99999ombra"], 4, "INSUFFICIENT_BALANCE"),
        (&["--resume", &"00".repeat(32), "--result", "call_0=x"], 1, "00000000"),
    ];
    for (arguments, code, expected) in cases {
        let refused = scene.ombra(&[&["run"], arguments, &["--dev", "0"]].concat())?;
        assert_eq!(Some(code), refused.status.code(), "{}", errors(&refused));
        assert!(errors(&refused).contains(expected), "{}", errors(&refused));
    }
    assert_eq!(before, scene.balance(0)?);
    Ok(())
}

#[test]
fn a_conversation_asks_and_remembers() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let _miner = scene.mine()?;
    let chat = |more: &[&str]| scene.command(&[&["chat"], &PAYS[..], more].concat());
    let shown = typed(
        chat(&[]),
        "good morning\n/ask Who are you?\n/ask And then?\n/nonsense\n/help\n/quit\n",
    )?;
    assert_eq!(1, shown.matches("you (user): good morning").count(), "{shown}");
    assert_eq!(2, shown.matches("\nHello.\n").count(), "{shown}");
    assert_eq!(2, shown.matches("paid         0.000107 OMBRA").count(), "{shown}");
    let unknown = "-- unknown command /nonsense; /help lists all commands";
    assert_has(&shown, &[unknown, "-- Each line becomes a turn (100 micro). /ask QUESTION"]);
    let conversation = shown.lines().next().and_then(|line| line.strip_prefix("conversation "));
    let filter = json!({ "conversationId": conversation });
    let runs = scene.node.call("ombra_listAgentRuns", &json!([filter]))?;
    assert_eq!("Who are you?", text(&runs["items"][1], "prompt"));
    // Both had the tools that every question has; only a conversation without them is a plain one.
    let defaults = json!(["date_diff", "date_parse", "math_eval"]);
    let second: Value = serde_json::from_str(text(&runs["items"][0], "prompt"))?;
    assert_eq!("inferToolsChat", second["method"]);
    assert_eq!(json!(["Who are you?", "Hello.", "And then?"]), second["args"]["messages"]);
    for place in [0, 1] {
        assert_eq!(defaults, runs["items"][place]["toolsWhitelist"], "{place}");
    }

    let shown = typed(chat(&["--ask", "--no-tools"]), "Who are you?\nAnd then?\n")?;
    assert_eq!(2, shown.matches("\nHello.\n").count(), "{shown}");
    let runs = scene.node.call("ombra_listAgentRuns", &json!([{ "limit": 1 }]))?;
    let second: Value = serde_json::from_str(text(&runs["items"][0], "prompt"))?;
    let tools = &runs["items"][0]["toolsWhitelist"];
    assert_eq!(json!(["inferChat", []]), json!([second["method"], tools]));

    let again = scene.done(&["chat", conversation.unwrap_or_default(), "--no-follow"])?;
    let alice = wallet::accounts::development_account(0)?.address().to_string();
    assert!(again.starts_with(&format!("-- de133ca6…3e3c is {alice}\n")), "{again}");
    assert!(again.contains("de133ca6…3e3c (user): good morning"), "{again}");

    let shown = typed(chat(&["--ask", "--json"]), "Hi\n")?;
    let run: Value = serde_json::from_str(shown.lines().last().unwrap_or_default())?;
    assert_eq!(("completed", "Hello."), (text(&run, "status"), text(&run["answer"], "text")));
    Ok(())
}

/// Runs the agent of an example until it ends; answers exit code and output.
fn agent(
    command: &mut Command,
    scene: &Scene,
    arguments: &[&str],
) -> anyhow::Result<(bool, String)> {
    let words = format!("{}junk", "test ".repeat(11));
    command.args(arguments).env("OMBRA_URL", scene.url());
    command.env("OMBRA_KEY", &words).env("OMBRA_MNEMONIC", &words);
    command.env("PYTHONUTF8", "1").env("PYTHONDONTWRITEBYTECODE", "1");
    let output = output(command)?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned() + &errors(&output);
    Ok((output.status.success(), printed))
}

/// What an agent of the examples must do, whatever its language.
fn check_agent(scene: &Scene, program: impl Fn() -> Command) -> anyhow::Result<()> {
    let question = "How many apples are there?";
    let (ended, printed) = agent(&mut program(), scene, &[question])?;
    ensure!(ended, "{printed}");
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!("round 1: tool_calls, 107 micro so far", lines[0]);
    assert!(lines[1].starts_with("  stock_of(") && lines[1].ends_with(": 12"), "{printed}");
    assert_eq!(["round 2: stop, 214 micro so far", "12"], lines[2..]);

    let (ended, printed) = agent(&mut program(), scene, &[question, "20100"])?;
    let expected = "107 micro are spent; another round could cost more than 20100";
    assert!(!ended && printed.contains(expected), "{printed}");
    let (ended, printed) = agent(&mut program(), scene, &[question, "100000", "1"])?;
    let expected = "no answer after 1 rounds; 107 micro are spent";
    assert!(!ended && printed.contains(expected), "{printed}");
    // Too long for a transaction: each round stores its request first.
    let (ended, printed) = agent(&mut program(), scene, &[&"apples? ".repeat(2_100)])?;
    assert!(ended && printed.ends_with("\n12\n"), "{printed}");
    let runs = scene.node.call("ombra_listAgentRuns", &json!([{ "limit": 1 }]))?;
    assert_eq!(64, text(&runs["items"][0], "promptBlobId").len(), "{runs}");
    Ok(())
}

#[test]
fn the_agent_in_javascript_runs_its_own_functions_within_its_limits() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let _miner = scene.mine()?;
    check_agent(&scene, || {
        let mut command = Command::new("node");
        // Node.js 18, which Debian 12 has, says that its Ed25519 is experimental.
        command.env("NODE_NO_WARNINGS", "1").arg(format!("{ROOT}/examples/js/agent-loop.js"));
        command
    })
}

#[test]
fn the_agent_in_python_runs_its_own_functions_within_its_limits() -> anyhow::Result<()> {
    let python = with_packages("python-sdk", &PACKAGES, MODULES)?;
    let scene = Scene::new()?;
    let _miner = scene.mine()?;
    check_agent(&scene, || {
        let mut command = Command::new(&python);
        command.arg(format!("{ROOT}/examples/python/agent_loop.py"));
        command
    })
}

#[test]
fn the_python_package_agrees_with_the_vectors() -> anyhow::Result<()> {
    let expected = json!({ "requests": 11, "answers": 11, "calls": 9, "refused": 238 });
    assert_eq!(expected, counted("methods.py")?);
    Ok(())
}
