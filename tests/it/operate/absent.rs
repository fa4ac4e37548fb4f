//! An MCP server that stays away after a restart of the miner.

use std::sync::Arc;

use serde_json::json;
use testkit::breakpoint::Breakpoint;
use testkit::miners::{MinerHome, Requester, Wish, text};
use testkit::node::{DevOptions, Node};
use testkit::script::{Model, Question, Reply};
use testkit::tool_server::ToolServer;

#[test]
fn a_run_goes_on_after_a_restart_without_its_server_and_the_model_is_told() -> anyhow::Result<()> {
    let node = Node::start(DevOptions::from_environment())?;
    let folder = tempfile::tempdir()?;
    let tools = ToolServer::start(|tool, _| format!("{tool} works"))?;
    let held = Arc::new(Breakpoint::default());
    let gate = Arc::clone(&held);
    let model = Model::start(move |question: &Question| {
        let call = |n| Reply::calls(&[("own__again", json!({ "n": n }))], &json!({}));
        match question.outputs {
            0 => call(1),
            1 => {
                gate.pass();
                call(2)
            }
            _ => Reply::said(&format!("It said: {}", question.told)),
        }
    })?;
    let settings = |server: &str| {
        let model = model.settings("");
        format!("{model}[engine]\npoll_ms = 500\n[policy]\nclaim_jitter_ms = 0\n{server}")
    };
    let home = MinerHome::new(folder.path(), 1, node.rpc, &settings(&tools.settings()))?;
    let mut requester = Requester::new(0, node.rpc)?;
    let mut miner = home.start()?;
    let run = requester.ask(&Wish::new("Go on.", &["own__again"]))?;
    held.reached("the model to be asked again").map_err(|fault| home.explain(&fault))?;
    miner.kill()?;
    let gone = tools.settings().replace(&tools.address.to_string(), "127.0.0.1:1");
    home.configure(&settings(&gone))?;
    let _again = home.start()?;
    held.open();
    let record = requester.settled(&run).map_err(|fault| home.explain(&fault))?;
    let end = (text(&record, "status"), text(&record, "finalAnswerInline"));
    let told = "It said: unknown_tool: there is no such tool now";
    assert_eq!(("completed", told), end, "{record}");
    assert_eq!(1, tools.calls().len());
    let offered = |question: &Question| question.body["tools"].clone();
    let offers: Vec<_> = model.asked().iter().map(|(_, question)| offered(question)).collect();
    assert_eq!("own__again", offers[0][0]["function"]["name"]);
    assert!(offers.iter().all(|offer| *offer == offers[0]), "{offers:?}");
    Ok(())
}
