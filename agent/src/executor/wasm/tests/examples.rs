//! The agents of examples/agents, as they are checked in.

use types::Address;

use super::*;
use crate::executor::Local;

const JURY: &[u8] = include_bytes!("../../../../../examples/agents/built/jury.wasm");
const KEYWORDS: &[u8] = include_bytes!("../../../../../examples/agents/built/keywords.wasm");
const TALLY: &[u8] = include_bytes!("../../../../../examples/agents/built/tally.wasm");

/// The first development account, for which the id of `Keywords` is written into `Tally`.
const OWNER: &str = "de133ca6f509c74f6e2e849403cc461d2d5b3e3c";

fn example(text: &str) -> Arc<Agent> {
    let named: Value = serde_json::from_str(text).expect("JSON");
    let name = named["name"].as_str().expect("a name");
    let owner = Address::parse(OWNER).expect("an address");
    let id = types::ids::compute_agent_id(&owner, name);
    Arc::new(Agent::read(id, text.as_bytes()).expect("metadata in order"))
}

fn keywords() -> Arc<Agent> {
    example(include_str!("../../../../../examples/agents/keywords/agent.json"))
}

#[expect(
    clippy::unwrap_in_result,
    reason = "the error is what the agent says, not a fault of the test"
)]
fn answered(local: &Local, agent: &Agent, arguments: &Value) -> Result<Vec<Value>, String> {
    let method = &agent.metadata.methods[0];
    let payload = method.encode_arguments(&arguments.to_string()).expect("arguments");
    let executed = local.run(agent, &payload, LIMITS, Address::new([1; 20]));
    if executed.answer.outcome != Outcome::Success {
        return Err(executed.reason.expect("why"));
    }
    let decoded = method.decode_answer(&executed.result).expect("outputs");
    let decoded: Vec<Value> = serde_json::from_str(&decoded).expect("JSON");
    Ok(decoded.into_iter().map(|it| it["value"].clone()).collect())
}

#[test]
fn keywords_classifies_by_words() {
    let agent = keywords();
    let mut local = Local::new(None);
    local.add_program(&agent, Arc::from(KEYWORDS));
    for (text, label, score) in [
        ("Works great, fast.", "positive", "3"),
        ("Worst. Broken, and never on time!", "negative", "-3"),
        ("It is a chair. Größe: 5 \u{1f9d1}", "neutral", "0"),
        ("", "neutral", "0"),
    ] {
        let answer = answered(&local, &agent, &json!([text]));
        assert_eq!(answer, Ok(vec![json!(label), json!(score)]), "{text}");
    }
}

#[test]
fn tally_has_keywords_classify_each_review() {
    let tally = example(include_str!("../../../../../examples/agents/tally/agent.json"));
    let mut local = Local::new(None);
    local.add_agent(keywords());
    local.add_program(&keywords(), Arc::from(KEYWORDS));
    local.add_program(&tally, Arc::from(TALLY));
    let reviews = json!([["good", "bad", "a chair", "works well", "good, bad"]]);
    let answer = answered(&local, &tally, &reviews);
    assert_eq!(answer, Ok(vec![json!("2"), json!("2"), json!("1")]));
    let none = answered(&local, &tally, &json!([[]]));
    assert_eq!(none, Ok(vec![json!("0"); 3]));
}

/// Says the choice with this number.
#[derive(Debug)]
struct Stubborn(usize);

impl Model for Stubborn {
    fn manifest(&self) -> Hash {
        let jury = example(include_str!("../../../../../examples/agents/jury/agent.json"));
        jury.metadata.executor.manifest().expect("a model")
    }

    fn infer(&self, ask: &ModelAsk<'_>, _: &Stop) -> Result<Inference, ModelFault> {
        let crate::executor::Form::Plain(crate::messages::Constraint::OneOf(choices)) = ask.form
        else {
            return Err(ModelFault::Question("no choices".to_owned()));
        };
        let readings = vec![Reading { prompt: vec![1], ..Reading::default() }];
        Ok(Inference { text: choices[self.0].clone(), readings, ..Inference::default() })
    }
}

#[test]
fn jury_goes_by_the_majority_and_writes_down_what_each_way_said() {
    let jury = example(include_str!("../../../../../examples/agents/jury/agent.json"));
    for (choice, verdict, votes) in [(0, true, "3"), (1, false, "0")] {
        let mut local = Local::new(Some(Arc::new(Stubborn(choice))));
        local.add_program(&jury, Arc::from(JURY));
        let answer = answered(&local, &jury, &json!(["Water is wet."]));
        assert_eq!(answer, Ok(vec![json!(verdict), json!(votes)]));
    }
    let mut local = Local::new(None);
    local.add_program(&jury, Arc::from(JURY));
    let manifest = jury.metadata.executor.manifest().expect("a model");
    let why = format!("the executor wasm-1:{manifest} is not here");
    assert_eq!(answered(&local, &jury, &json!(["Water is wet."])), Err(why));
}
