//! Options become the envelope that miners read, and what miners refuse is refused here.

use agent::methods::Written;
use clap::Parser;

use super::{CliError, MethodArgs};

#[derive(Debug, Parser)]
struct Command {
    prompt: Option<String>,
    #[command(flatten)]
    method: MethodArgs,
    #[arg(long)]
    tools: Vec<String>,
}

/// The envelope of a command line.
fn envelope(arguments: &[&str]) -> Result<String, CliError> {
    let all = ["ombra"].iter().chain(arguments);
    let command =
        Command::try_parse_from(all).map_err(|error| CliError::Usage(error.to_string()))?;
    let request = command.method.request(command.prompt, &command.tools)?;
    match request.expect("a method").to_prompt() {
        Written::Inline(prompt) | Written::Blob { blob: prompt, .. } => Ok(prompt),
    }
}

/// Checks that a command line is refused with a text that contains this; answers the text.
fn is_refused(arguments: &[&str], expected: &str) -> String {
    let error = envelope(arguments).expect_err(expected);
    assert_eq!(2, error.exit_code(), "{arguments:?}: {error}");
    let told = error.to_string();
    assert!(told.contains(expected), "{told}\nhas not: {expected}");
    told
}

#[test]
fn every_option_has_its_place_in_the_envelope() {
    let cases: [(&[&str], &str); 6] = [
        (
            &["good?", "--method", "inferString", "--allowed", "yes", "--allowed", "no"],
            r#"{"ombraAgent":1,"method":"inferString","args":{"prompt":"good?","system":"","chainOfThought":false,"allowedValues":["yes","no"]}}"#,
        ),
        (
            &["p", "--method=inferString", "--system=s", "--chain-of-thought", "--deterministic"],
            r#"{"ombraAgent":1,"method":"inferString","deterministic":true,"args":{"prompt":"p","system":"s","chainOfThought":true,"allowedValues":[]}}"#,
        ),
        (
            &["p", "--method", "inferNumber", "--min", "-5", "--max", "007"],
            r#"{"ombraAgent":1,"method":"inferNumber","args":{"prompt":"p","system":"","minValue":"-5","maxValue":"7","chainOfThought":false}}"#,
        ),
        (
            &["p", "--method", "inferNumber", "--min", "0"],
            r#"{"ombraAgent":1,"method":"inferNumber","args":{"prompt":"p","system":"","minValue":"0","maxValue":"57896044618658097711785492504343953926634992332820282019728792003956564819967","chainOfThought":false}}"#,
        ),
        (
            &["and then?", "--method", "inferChat", "--message", "system:Be brief: very."],
            r#"{"ombraAgent":1,"method":"inferChat","args":{"roles":["system","user"],"messages":["Be brief: very.","and then?"],"chainOfThought":false}}"#,
        ),
        (
            &[
                "hi",
                "--method=inferToolsChat",
                "--onchain-tool=greet(string name)=a=b",
                "--mcp-server=https://a.example",
                "--max-iterations=3",
                "--tools=now",
            ],
            r#"{"ombraAgent":1,"method":"inferToolsChat","args":{"roles":["user"],"messages":["hi"],"mcpServerUrls":["https://a.example"],"onchainTools":[{"signature":"greet(string name)","description":"a=b"}],"maxIterations":3,"chainOfThought":false}}"#,
        ),
    ];
    for (arguments, expected) in cases {
        assert_eq!(expected, envelope(arguments).unwrap(), "{arguments:?}");
    }
}

#[test]
fn arguments_come_from_a_file_and_the_prompt_is_the_last_message() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let write = |text: &str| std::fs::write(file.path(), text).unwrap();
    write(r#"{"messages":[{"role":"system","content":"1"}],"maxOutputTokens":5}"#);
    let arguments = ["2", "--method", "inferMessages", "--args", path, "--tools", "now"];
    assert_eq!(
        r#"{"ombraAgent":1,"method":"inferMessages","args":{"messages":[{"role":"system","content":"1"},{"role":"user","content":"2"}],"functions":[],"toolChoice":"auto","maxOutputTokens":5}}"#,
        envelope(&arguments).unwrap()
    );
    assert!(envelope(&["hi", "--method", "inferMessages"]).is_ok());
    for (text, expected) in [
        ("[]", "expected {\"messages\":[…],\"functions\":[…],\"toolChoice\":\"auto\",…}"),
        (r#"{"tools":[]}"#, "args.tools: expected only messages"),
        (r#"{"toolChoice":"any"}"#, "(--args): args.toolChoice"),
        (
            r#"{"functions":[{"name":"now","description":"","parameters":{}}]}"#,
            "(--args): args.functions[0].name",
        ),
    ] {
        write(text);
        is_refused(&arguments, expected);
    }
    let chat = ["p", "--method", "inferChat", "--args", path];
    is_refused(&chat, "--args is not an argument of inferChat");
    let thinking = ["p", "--method", "inferMessages", "--chain-of-thought"];
    is_refused(&thinking, "--chain-of-thought is not an argument of inferMessages");
}

#[test]
fn messages_come_from_a_file_too() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = r#"[{"role":"user","content":"1"},{"role":"assistant","content":"2"}]"#;
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap();
    let more = ["--messages", path, "--message", "system:3"];
    let written = envelope(&[&["4", "--method", "inferChat"], &more[..]].concat()).unwrap();
    assert!(written.contains(r#""messages":["1","2","3","4"]"#), "{written}");
    std::fs::write(file.path(), r#"[{"role":"user"}]"#).unwrap();
    let words = ["3", "--method", "inferChat", "--messages", path];
    is_refused(&words, "expected [{\"role\":…,\"content\":…}, …]");
}

#[test]
fn what_a_miner_would_refuse_is_refused_with_the_option() {
    let tools = ["hi", "--method", "inferToolsChat"];
    let with = |more: &[&'static str]| [&tools[..], more].concat();
    let cases = [
        (
            vec!["p", "--method", "inferString", "--allowed", " a"],
            "(--allowed): args.allowedValues[0]",
        ),
        (
            vec!["p", "--method", "inferNumber", "--min", "9", "--max", "5"],
            "(--min): args.minValue: expected at most maxValue, 5, got 9",
        ),
        (vec!["p", "--method", "inferNumber", "--max", "1e3"], "(--max): args.maxValue"),
        (vec!["p", "--method", "inferChat", "--message", "tool:x"], "(--message): args.roles[0]"),
        (
            with(&["--onchain-tool", "f(uint257)"]),
            "(--onchain-tool): args.onchainTools[0].signature",
        ),
        (with(&["--max-iterations", "201"]), "(--max-iterations): args.maxIterations"),
        (with(&["--mcp-server", "ftp://x"]), "(--mcp-server): args.mcpServerUrls[0]"),
        (with(&["--onchain-tool", "now()", "--tools", "now"]), "args.onchainTools[0].signature"),
    ];
    for (arguments, expected) in cases {
        let refused = is_refused(&arguments, expected);
        assert!(refused.starts_with("no miner would take this request"), "{refused}");
    }
}

#[test]
fn an_option_of_another_method_is_refused() {
    let cases: [(&[&str], &str); 8] = [
        (
            &["p", "--method", "inferNumber", "--allowed", "a"],
            "--allowed is not an argument of inferNumber, only of inferString",
        ),
        (&["p", "--method", "inferChat", "--system", "s"], "give --message system:TEXT"),
        (
            &["p", "--method", "inferString", "--min", "1"],
            "--min is not an argument of inferString",
        ),
        (
            &["p", "--method", "inferString", "--tools", "now"],
            "--tools is not an argument of inferString",
        ),
        (
            &["p", "--method", "inferNumber", "--min", "0", "--max", "-0"],
            "two zeros mean no bounds",
        ),
        (&["--method", "inferString"], "PROMPT is missing: say what to ask"),
        // An option without a method.
        (&["p", "--system", "s"], "--method"),
        // A method that there is not.
        (&["p", "--method", "inferText"], "inferToolsChat"),
    ];
    for (arguments, expected) in cases {
        is_refused(arguments, expected);
    }
}
