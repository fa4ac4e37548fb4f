//! MCP servers that behave, and servers that do not.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::server::{Pace, Server, StartError};
use crate::tools::sandbox::Wrapper;
use crate::tools::tests::support::{
    Reply, Request, Web, call, config, http, object, said, sandbox_program, surroundings, until,
};
use crate::tools::{Class, Code, Config, Grant, OpenError, Surroundings, Toolbox};

/// The server, which is a script.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tools/mcp/tests/server.py");

/// A folder, and surroundings in it that can confine servers.
fn place() -> (TempDir, Surroundings) {
    let folder = tempfile::tempdir().unwrap();
    let mut around = surroundings(folder.path());
    around.wrapper = Some(Wrapper { program: sandbox_program(), arguments: Vec::new() });
    (folder, around)
}

/// Settings with one server `t` in this mode, and `more` of them.
fn settings(mode: &str, more: &str) -> Config {
    config(&format!(
        "allow = []\n[[mcp]]\nname = 't'\ncommand = ['python3', '-B', {SCRIPT:?}, '{mode}']\n\
         sandbox.read = [{SCRIPT:?}]\n{more}"
    ))
}

/// A toolbox with one server `t`, which is connected.
async fn connected(config: &Config, around: &Surroundings) -> Toolbox {
    let toolbox = Toolbox::open(config, around).unwrap();
    until("the server is there", || toolbox.servers()[0].is_there()).await;
    toolbox
}

/// A connected server `t` in this mode, with `more` settings, and its folder.
async fn served(mode: &str, more: &str) -> (TempDir, Toolbox) {
    let (folder, around) = place();
    let toolbox = connected(&settings(mode, more), &around).await;
    (folder, toolbox)
}

/// Handshakes and pauses for those who have no time.
const HASTE: Pace = Pace {
    handshake: Duration::from_millis(1500),
    pause: Duration::from_millis(10),
    pause_max: Duration::from_millis(20),
    check: Duration::from_millis(50),
};

fn is_alive(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let is_zombie = status.is_ok_and(|status| status.contains(") Z "));
    !is_zombie && test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
}

#[tokio::test]
async fn a_servers_tools_are_offered_and_called_like_any_other() {
    let (_folder, toolbox) = served("good", "").await;
    let cases = [
        ("t__echo", r#"{"text": "é"}"#, "é"),
        ("t__fail", "{}", "failed: it did not work"),
        ("t__refuse", "{}", "failed: the server answers with error -32602: no such thing"),
        ("t__structured", "{}", r#"{"a":[2],"b":1}"#),
        ("t__picture", "{}", "see\n[image/png, not shown]"),
        (
            "t__echo",
            r#"{"text": 5}"#,
            "bad_arguments: argument text is 5: the value is not of type \"string\"",
        ),
        ("t__dotted.name", "{}", "unknown_tool: there is no such tool now"),
        ("t__lookahead", "{}", "unknown_tool: there is no such tool now"),
    ];
    for (tool, arguments, result) in cases {
        assert_eq!(said(&toolbox, tool, arguments).await, result, "{tool}");
    }
    let names: Vec<_> = toolbox.servers()[0].tools().into_keys().collect();
    assert_eq!(names.len(), 12, "names that no whitelist can have are left out: {names:?}");
    toolbox.close().await;
    assert!(!toolbox.servers()[0].is_there());
}

#[tokio::test]
async fn the_operator_says_which_tools_are_offered_and_what_they_are() {
    let more = "tools = ['echo', 'fail', 'none']\npure = ['echo']\nidempotent = ['fail']\n\
                [limits.t__echo]\ntimeout_ms = 5\n";
    let (_folder, toolbox) = served("good", more).await;
    let names: Vec<_> = toolbox.servers()[0].tools().into_keys().collect();
    assert_eq!(names, ["t__echo", "t__fail"]);
    let (echo, fail) = (toolbox.terms("t__echo").unwrap(), toolbox.terms("t__fail").unwrap());
    assert_eq!((echo.class, echo.is_idempotent), (Class::Pure, true));
    assert_eq!((fail.class, fail.is_idempotent), (Class::Volatile, true));
    assert_eq!(echo.limits.timeout, Duration::from_millis(5));
    let grant = Grant { tools: ["t__echo".into(), "t__die".into()].into(), ..Grant::default() };
    assert_eq!(toolbox.missing(&grant), ["t__die"]);
    assert_eq!(toolbox.specs(&grant)[0].name, "t__echo");
    toolbox.close().await;
}

#[tokio::test]
async fn a_servers_environment_has_nothing_of_the_miners() {
    let (folder, toolbox) = served("good", "environment = { A = 'b' }").await;
    let own = folder.path().join("t");
    let expected = json!({
        "A": "b", "HOME": own, "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin",
        "TMPDIR": own,
    });
    let said = said(&toolbox, "t__environment", "{}").await;
    let mut found: Value = serde_json::from_str(&said).unwrap();
    // Python's own.
    found.as_object_mut().unwrap().remove("LC_CTYPE");
    assert_eq!(found, expected);
    toolbox.close().await;
}

#[tokio::test]
async fn a_server_is_confined_unless_the_operator_says_otherwise() {
    let (folder, around) = place();
    let secret = folder.path().join("wallet");
    std::fs::write(&secret, "key").unwrap();
    let web = Web::start("127.0.0.1:0", |_| Reply::Bytes(String::new())).await;
    let read = format!(r#"{{"path": {secret:?}}}"#);
    let connect = format!(r#"{{"port": {}}}"#, web.port());
    let cases = [
        ("", "failed: PermissionError", "failed: PermissionError"),
        ("sandbox.enabled = false", "key", "connected"),
        ("sandbox.network = true", "failed: PermissionError", "connected"),
    ];
    for (more, reads, connects) in cases {
        let toolbox = connected(&settings("good", more), &around).await;
        assert_eq!(said(&toolbox, "t__read", &read).await, reads, "{more}");
        assert_eq!(said(&toolbox, "t__connect", &connect).await, connects, "{more}");
        toolbox.close().await;
    }
}

#[tokio::test]
async fn a_toolbox_tells_when_every_server_was_tried() {
    let (_folder, around) = place();
    let more = "[[mcp]]\nname = 'none'\ncommand = ['false']\n";
    let toolbox = Toolbox::open(&settings("good", more), &around).unwrap();
    tokio::time::timeout(Duration::from_secs(60), toolbox.tried()).await.unwrap();
    let there: Vec<_> = toolbox.servers().iter().map(Server::is_there).collect();
    assert_eq!(there, [true, false]);
    toolbox.close().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_confined_is_not_started() {
    let (_folder, mut around) = place();
    around.wrapper = None;
    let opened = Toolbox::open(&settings("good", ""), &around);
    let expected = matches!(opened, Err(OpenError::Server { source: StartError::NoWrapper, .. }));
    assert!(expected, "{opened:?}");
}

#[tokio::test]
async fn a_server_that_knows_only_the_newest_version_is_used_as_well() {
    let (_folder, toolbox) = served("newest", "").await;
    assert_eq!(said(&toolbox, "t__echo", r#"{"text": "a"}"#).await, "a");
    assert_eq!(said(&toolbox, "t__fail", "{}").await, "failed: it did not work");
    toolbox.close().await;
}

#[tokio::test]
async fn two_servers_have_their_own_tools_folders_and_ends() {
    let (folder, around) = place();
    let second = format!(
        "[[mcp]]\nname = 'u'\ncommand = ['python3', '-B', {SCRIPT:?}, 'good']\n\
         tools = ['echo', 'environment', 'die']\nsandbox.read = [{SCRIPT:?}]"
    );
    let toolbox = Toolbox::open(&settings("good", &second), &around).unwrap();
    until("both are there", || toolbox.servers().iter().all(Server::is_there)).await;
    assert_eq!(said(&toolbox, "t__echo", r#"{"text": "a"}"#).await, "a");
    assert_eq!(said(&toolbox, "u__echo", r#"{"text": "b"}"#).await, "b");
    let home = said(&toolbox, "u__environment", "{}").await;
    let own = folder.path().join("u").display().to_string();
    assert!(home.contains(&own), "{home}");
    // A grant of one server's tool is none of the other's.
    let grant = Grant { tools: ["t__echo".into()].into(), ..Grant::default() };
    let outcome = toolbox.call("u__echo", &object(r#"{"text": "c"}"#), &grant, &around.stop).await;
    assert_eq!(outcome.code, Some(Code::NotGranted));
    // The end of one is not the end of the other.
    assert_eq!(call(&toolbox, "u__die", "{}").await.code, Some(Code::Transport));
    assert_eq!(said(&toolbox, "t__echo", r#"{"text": "d"}"#).await, "d");
    until("the other is back", || toolbox.terms("u__echo").is_some()).await;
    toolbox.close().await;
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_is_started_again() {
    let (_folder, toolbox) = served("good", "").await;
    let began = Instant::now();
    let died = call(&toolbox, "t__die", "{}").await;
    assert_eq!(died.result, "transport: the tool's server could not be asked");
    assert_eq!((died.code, died.class), (Some(Code::Transport), Class::Volatile));
    assert!(began.elapsed() < Duration::from_secs(9), "the end is noticed before the time limit");
    let grant = Grant { tools: ["t__echo".into()].into(), ..Grant::default() };
    until("the tool is off the list", || !toolbox.missing(&grant).is_empty()).await;
    assert!(toolbox.terms("t__echo").is_some(), "what may be relied on is known meanwhile");
    until("the tool is back", || toolbox.missing(&grant).is_empty()).await;
    assert_eq!(said(&toolbox, "t__echo", r#"{"text": "a"}"#).await, "a");
    toolbox.close().await;
}

#[tokio::test]
async fn what_a_server_leaves_behind_is_ended_with_it() {
    for way in ["close", "die"] {
        let (_folder, toolbox) = served("good", "").await;
        let pids = said(&toolbox, "t__grandchild", "{}").await;
        let pids: Vec<i32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
        assert!(pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
        if way == "die" {
            assert_eq!(call(&toolbox, "t__die", "{}").await.code, Some(Code::Transport));
        } else {
            toolbox.close().await;
        }
        until("all are gone", || !pids.iter().any(|pid| is_alive(*pid))).await;
        toolbox.close().await;
    }
}

#[tokio::test]
async fn a_server_that_ignores_every_hint_is_killed() {
    let (folder, toolbox) = served("stubborn", "").await;
    let pid = std::fs::read_to_string(folder.path().join("t/pid")).unwrap();
    let pid = pid.trim().parse().unwrap();
    assert!(is_alive(pid));
    let began = Instant::now();
    toolbox.close().await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "it is not reaped");
}

#[tokio::test]
async fn a_call_that_hangs_or_has_too_large_a_result_does_not_take_the_server_with_it() {
    for (tool, timeout_ms) in [("t__hang", 300), ("t__large", 2000)] {
        let more = format!("[limits.{tool}]\ntimeout_ms = {timeout_ms}");
        let (_folder, toolbox) = served("good", &more).await;
        let timeout = format!("timeout: no result within {timeout_ms} ms");
        assert_eq!(said(&toolbox, tool, "{}").await, timeout, "{tool}");
        assert_eq!(said(&toolbox, "t__echo", r#"{"text": "a"}"#).await, "a", "{tool}");
        toolbox.close().await;
    }
}

#[tokio::test]
async fn noise_does_not_keep_a_server_from_being_used() {
    for mode in ["flood", "garbage"] {
        let (_folder, toolbox) = served(mode, "").await;
        assert_eq!(said(&toolbox, "t__echo", r#"{"text": "a"}"#).await, "a", "{mode}");
        toolbox.close().await;
    }
}

#[tokio::test]
async fn a_server_that_never_gets_ready_is_never_offered_and_leaves_nothing() {
    let (folder, around) = place();
    for mode in ["mute", "endless-list"] {
        let config = settings(mode, "");
        let server = Server::start_at(&config.mcp[0], &config, &around, HASTE).unwrap();
        let children = || children_of(&folder.path().join("t"));
        until("it runs", || !children().is_empty()).await;
        let first = children()[0];
        until("it was tried again", || children().first().is_some_and(|pid| *pid != first)).await;
        assert!(!server.is_there(), "{mode}");
        server.close().await;
        until("nothing is left", || children().is_empty()).await;
    }
}

/// Processes whose folder is this one.
fn children_of(folder: &Path) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let at = |path: PathBuf| std::fs::read_link(path.join("cwd")).is_ok_and(|it| it == folder);
    processes
        .filter(|process| at(process.path()))
        .filter_map(|process| process.file_name().to_str()?.parse().ok())
        .filter(|pid| is_alive(*pid))
        .collect()
}

#[tokio::test]
async fn a_program_that_ends_at_once_is_tried_again_and_again() {
    let (folder, around) = place();
    let config = config("[[mcp]]\nname = 't'\ncommand = ['sh', '-c', 'echo >> tries']");
    let server = Server::start_at(&config.mcp[0], &config, &around, HASTE).unwrap();
    let tries = || std::fs::read(folder.path().join("t/tries")).map_or(0, |tries| tries.len());
    until("it was tried three times", || tries() >= 3).await;
    assert!(!server.is_there());
    server.close().await;
}

/// A server over HTTP with one tool, which wants a token.
fn on_the_network(request: &Request) -> Reply {
    if !request.head.contains("authorization: bearer word\r\n") {
        return http("401 Unauthorized", "", "");
    }
    if !request.line.starts_with("POST") {
        return http("405 Method Not Allowed", "", "");
    }
    tells(request, &json!([{"name": "hi", "inputSchema": {"type": "object"}}]))
}

/// What a server over HTTP with these tools says to a POST.
fn tells(request: &Request, tools: &Value) -> Reply {
    let message: Value = serde_json::from_str(&request.body).unwrap();
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "test", "version": "1"},
        }),
        "tools/list" => json!({ "tools": tools }),
        "tools/call" => json!({"content": [{"type": "text", "text": "hello"}]}),
        _ => return http("202 Accepted", "", ""),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    http("200 OK", "content-type: application/json\r\n", &answer)
}

#[tokio::test]
async fn a_server_on_the_network_is_used_by_runs_that_name_it() {
    let (folder, around) = place();
    let token = folder.path().join("token");
    std::fs::write(&token, "word\n").unwrap();
    let web = Web::start("127.0.0.1:0", on_the_network).await;
    let url = format!("http://{}/mcp", web.address);
    let settings =
        format!("allow = []\n[[mcp]]\nname = 'far'\nurl = '{url}'\ntoken_file = {token:?}");
    let toolbox = connected(&config(&settings), &around).await;
    let grant = |url: &str| Grant { servers: [url.to_owned()].into(), ..Grant::default() };
    let stop = around.stop.clone();
    let outcome = toolbox.call("far__hi", &object("{}"), &grant(&url), &stop).await;
    assert_eq!(outcome.result, "hello");
    assert_eq!(toolbox.missing(&grant(&url)), Vec::<String>::new());
    let offered: Vec<_> = toolbox.specs(&grant(&url)).into_iter().map(|spec| spec.name).collect();
    assert_eq!(offered, ["far__hi"]);
    let other = format!("{url}/");
    assert_eq!(toolbox.missing(&grant(&other)), std::slice::from_ref(&other));
    let outcome = toolbox.call("far__hi", &object("{}"), &grant(&other), &stop).await;
    assert_eq!(outcome.code, Some(Code::NotGranted));

    drop(web);
    let outcome = toolbox.call("far__hi", &object("{}"), &grant(&url), &stop).await;
    assert_eq!(outcome.result, "transport: the tool's server could not be asked");
    until("it is missing", || toolbox.missing(&grant(&url)) == [url.clone()]).await;
    // A run that has begun is shown the same tools as before.
    assert_eq!(toolbox.specs(&grant(&url))[0].name, "far__hi");
    assert!(toolbox.terms("far__hi").is_some());
    toolbox.close().await;
}

#[tokio::test]
async fn tools_whose_schemas_are_too_much_together_are_not_offered() {
    let (_folder, around) = place();
    let long = json!({"type": "object", "$comment": "x".repeat(30_000)});
    let pattern = |it: usize| (format!("a{it}"), json!({"pattern": "^a"}));
    let patterns: serde_json::Map<String, Value> = (0..30).map(pattern).collect();
    let patterns = json!({"type": "object", "properties": patterns});
    // 17 times 30 kB are 512 KiB, and 8 times 30 patterns 256.
    for (schema, offered) in [(long, 17), (patterns, 8)] {
        let tool = |it: usize| json!({ "name": format!("t{it:02}"), "inputSchema": &schema });
        let tools = Value::Array((0..20).map(tool).collect());
        let web = Web::start("127.0.0.1:0", move |request| {
            let is_call = request.line.starts_with("POST");
            if is_call { tells(request, &tools) } else { http("405 Method Not Allowed", "", "") }
        })
        .await;
        let url = format!("http://{}/mcp", web.address);
        let settings = format!("allow = []\n[[mcp]]\nname = 'far'\nurl = '{url}'");
        let toolbox = connected(&config(&settings), &around).await;
        let names: Vec<_> = toolbox.servers()[0].tools().into_keys().collect();
        let expected: Vec<_> = (0..offered).map(|it| format!("far__t{it:02}")).collect();
        assert_eq!(names, expected);
        toolbox.close().await;
    }
}
