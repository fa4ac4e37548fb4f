//! The metadata of agents, as AGENT_REGISTER has it.

use types::tx::AgentRegister;
use types::{Body, Hash, ids};

use crate::world::Who;

/// Metadata of one method, member by member.
#[derive(Clone)]
pub struct Sheet {
    name: String,
    version: String,
    image: String,
    executor: String,
    more: String,
}

impl Sheet {
    /// An agent that asks a language model, with these tools.
    pub fn model(name: &str, manifest: u8, tools: &[String]) -> Self {
        let manifest = Hash::new([manifest; 32]);
        let executor = format!(
            "{{\"kind\":\"model\",\"model\":\"{manifest}\",\"basePrompt\":\"\",\"tools\":[{}],\
             \"maxIterations\":1,\"maxOutputTokens\":1}}",
            quoted(tools)
        );
        let (name, version) = (name.to_owned(), "1.0.0".to_owned());
        let image = format!("ombra-model:{manifest}");
        Self { name, version, image, executor, more: String::new() }
    }

    /// An agent that is the program in a blob, with these tools.
    pub fn program(name: &str, blob: &str, tools: &[String]) -> Self {
        let executor = format!(
            "{{\"kind\":\"wasm\",\"blobId\":\"{blob}\",\"runtime\":\"wasm-1\",\"tools\":[{}]}}",
            quoted(tools)
        );
        let image = format!("ombra-blob:{blob}");
        Self { image, executor, ..Self::model(name, 0, &[]) }
    }

    pub fn container(name: &str) -> Self {
        let (image, executor) = ("ipfs://x".to_owned(), "{\"kind\":\"container\"}".to_owned());
        Self { image, executor, ..Self::model(name, 0, &[]) }
    }

    pub fn version(self, version: &str) -> Self {
        Self { version: version.to_owned(), ..self }
    }

    pub fn more(self, more: &str) -> Self {
        Self { more: format!("{},{more}", self.more), ..self }
    }

    pub fn royalty(self, royalty: u64) -> Self {
        self.more(&format!("\"royalty\":\"{royalty}\""))
    }

    pub fn text(&self) -> String {
        let Self { name, version, image, executor, more } = self;
        format!(
            "{{\"name\":\"{name}\",\"description\":\"d\",\"version\":\"{version}\",\
             \"container_image\":\"{image}\",\"executor\":{executor},\
             \"abi\":[{{\"type\":\"function\",\"name\":\"f\",\"inputs\":[],\"outputs\":[]}}]{more}}}"
        )
    }

    pub fn by(&self, who: Who) -> Body {
        Body::AgentRegister(AgentRegister { agent_id: self.id(who), metadata: self.text() })
    }

    pub fn id(&self, who: Who) -> Hash {
        ids::compute_agent_id(&who.address(), &self.name)
    }

    /// How other agents name it among their tools.
    pub fn tool(&self, who: Who) -> String {
        format!("agent:{}@{}", self.id(who), self.version)
    }
}

fn quoted(tools: &[String]) -> String {
    let tools: Vec<_> = tools.iter().map(|tool| format!("\"{tool}\"")).collect();
    tools.join(",")
}
