//! What the model knows of agents. It reads only the metadata that the random acts write, and those by
//! the protocol, without a look at the ledger.

use std::collections::{BTreeMap, BTreeSet};

use types::json::{Json, parse};
use types::tx::{AgentRegister, AgentRetire};
use types::{Address, Hash};

/// The three numbers of a version.
pub type Numbers = [u64; 3];

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelVersion {
    pub text: String,
    pub executors: BTreeSet<String>,
    pub depth: u8,
    pub is_deterministic: bool,
    pub royalty: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelAgent {
    pub owner: Address,
    pub name: String,
    pub versions: BTreeMap<Numbers, ModelVersion>,
    pub is_retired: bool,
}

#[derive(Default)]
pub struct ModelAgents {
    pub all: BTreeMap<Hash, ModelAgent>,
}

/// The numbers of a version like `1.2.3`.
pub fn numbers(version: &str) -> Numbers {
    let mut parts = version.split('.').map(|part| part.parse().unwrap());
    [(); 3].map(|()| parts.next().unwrap())
}

/// A string within a JSON value, by the keys that lead to it.
fn text_at(value: &Json<'_>, keys: &[&str]) -> Option<String> {
    let Some((first, rest)) = keys.split_first() else {
        return value.as_str().map(str::to_owned);
    };
    let (_, inner) = value.as_object()?.iter().find(|(key, _)| key == first)?;
    text_at(inner, rest)
}

fn tools(value: &Json<'_>) -> Vec<String> {
    let executor = value.as_object().unwrap().iter().find(|(key, _)| key == "executor");
    let members = executor.and_then(|(_, executor)| executor.as_object()).unwrap_or_default();
    let tools = members.iter().find(|(key, _)| key == "tools");
    let tools = tools.and_then(|(_, tools)| tools.as_array()).unwrap_or_default();
    tools.iter().map(|tool| tool.as_str().unwrap().to_owned()).collect()
}

impl ModelAgents {
    /// What registering burns.
    pub fn fee(body: &AgentRegister) -> i128 {
        10_000 + 10 * i128::try_from(body.metadata.len()).unwrap()
    }

    /// How many agents are among the tools of a text.
    pub fn nested(body: &AgentRegister) -> i128 {
        let Ok(value) = parse(body.metadata.as_bytes(), 32) else { return 0 };
        let nested = tools(&value).iter().filter(|tool| tool.starts_with("agent:")).count();
        i128::try_from(nested).unwrap()
    }

    /// The rejection of a registration. `is_program` says whether a blob can be a program.
    pub fn obstacle(
        &self,
        who: Address,
        body: &AgentRegister,
        is_program: impl Fn(&str) -> bool,
    ) -> Option<&'static str> {
        let Ok(value) = parse(body.metadata.as_bytes(), 32) else { return Some("AGENT_METADATA") };
        let name = text_at(&value, &["name"]).unwrap();
        if body.agent_id != Hash::digest(format!("agent|{who}|{name}").as_bytes()) {
            return Some("AGENT_ID_MISMATCH");
        }
        let version = numbers(&text_at(&value, &["version"]).unwrap());
        let before = self.all.get(&body.agent_id);
        let is_newer = before.is_none_or(|agent| agent.versions.keys().all(|it| *it < version));
        let royalty = text_at(&value, &["royalty"]).unwrap().parse::<u64>().unwrap();
        let blob = text_at(&value, &["executor", "blobId"]);
        let has_program = blob.is_none_or(|blob| is_program(&blob));
        let is_good = is_newer
            && royalty <= 1_000_000
            && has_program
            && tools(&value).iter().all(|tool| self.is_tool(tool));
        (!is_good).then_some("AGENT_METADATA")
    }

    fn version(&self, tool: &str) -> Option<&ModelVersion> {
        let (id, version) = tool.strip_prefix("agent:")?.split_once('@')?;
        self.all.get(&Hash::parse(id).unwrap())?.versions.get(&numbers(version))
    }

    fn is_tool(&self, tool: &str) -> bool {
        let is_nested = |version: &ModelVersion| version.is_deterministic && version.depth < 3;
        tool == "math_eval" || self.version(tool).is_some_and(is_nested)
    }

    pub fn register(&mut self, who: Address, body: &AgentRegister) {
        let value = parse(body.metadata.as_bytes(), 32).unwrap();
        let image = text_at(&value, &["container_image"]).unwrap();
        let kind = text_at(&value, &["executor", "kind"]).unwrap();
        let own = match kind.as_str() {
            "container" => format!("container:{}", Hash::digest(image.as_bytes())),
            "wasm" => "wasm-1".to_owned(),
            _ => format!("model-1:{}", image.strip_prefix("ombra-model:").unwrap()),
        };
        let tools = tools(&value);
        let nested: Vec<_> = tools.iter().filter_map(|tool| self.version(tool)).collect();
        let executors = nested.iter().flat_map(|version| version.executors.iter().cloned());
        let version = ModelVersion {
            text: body.metadata.clone(),
            executors: executors.chain([own]).collect(),
            depth: 1 + nested.iter().map(|version| version.depth).max().unwrap_or(0),
            is_deterministic: kind != "container",
            royalty: text_at(&value, &["royalty"]).unwrap().parse().unwrap(),
        };
        let name = text_at(&value, &["name"]).unwrap();
        let (versions, is_retired) = (BTreeMap::new(), false);
        let new = ModelAgent { owner: who, name, versions, is_retired };
        let agent = self.all.entry(body.agent_id).or_insert(new);
        agent.versions.insert(numbers(&text_at(&value, &["version"]).unwrap()), version);
        agent.is_retired = false;
    }

    /// The rejection of a retirement.
    pub fn kept(&self, who: Address, body: &AgentRetire) -> Option<&'static str> {
        match self.all.get(&body.agent_id) {
            None => Some("AGENT_NOT_FOUND"),
            Some(agent) if agent.owner != who => Some("NOT_AGENT_OWNER"),
            Some(agent) => agent.is_retired.then_some("AGENT_RETIRED"),
        }
    }

    pub fn retire(&mut self, body: &AgentRetire) {
        self.all.get_mut(&body.agent_id).unwrap().is_retired = true;
    }
}
