//! Published agents, as the chain has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::executor::{Agent, values};
use parking_lot::Mutex;
use serde_json::{Value, json};
use types::Hash;
use types::abi::Method;

/// How many versions are kept; each has at most some kilobytes of metadata.
const KEPT_MAX: usize = 64;

/// A version of a published agent. It never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// What its metadata say.
    pub agent: Agent,
    /// The version.
    pub version: String,
    /// Whether the answers of two miners can be compared.
    pub is_deterministic: bool,
    /// SHA-256 of its metadata.
    pub metadata: Hash,
}

impl Published {
    /// Reads what `ombra_getAgent` tells.
    ///
    /// # Errors
    /// When the metadata are not those that the chain has the hash of, or break a rule.
    pub fn read(id: Hash, told: &Value) -> Result<Self, String> {
        let text = wallet::calls::metadata(told).map_err(|other| other.to_string())?;
        let agent = Agent::read(id, text.as_bytes()).map_err(|error| error.to_string())?;
        let version = agent.metadata.version.to_string();
        let is_deterministic = told["version"]["deterministic"] == true;
        Ok(Self { agent, version, is_deterministic, metadata: Hash::digest(text.as_bytes()) })
    }

    /// The name by which keys allow it: `agent:ID@VERSION`.
    #[must_use]
    pub fn model(&self) -> String {
        format!("agent:{}@{}", self.agent.id, self.version)
    }

    /// The method of a name or a canonical signature.
    ///
    /// # Errors
    /// Which methods there are.
    pub fn method(&self, wanted: &str) -> Result<&Method, String> {
        let methods = &self.agent.metadata.methods;
        let found = methods.iter().find(|it| it.name == wanted || it.signature() == wanted);
        found.ok_or_else(|| {
            let known: Vec<String> = methods.iter().map(Method::signature).collect();
            format!("expected one of {}", known.join(", "))
        })
    }

    /// What its author says of it and of a method.
    #[must_use]
    pub fn words(&self, method: &Method) -> String {
        let said = [self.agent.description.as_str(), self.agent.describe(method)];
        let said: Vec<&str> = said.into_iter().filter(|it| !it.is_empty()).collect();
        said.join("\n")
    }

    /// What clients are told of it: who it is, and what its methods take and answer.
    #[must_use]
    pub fn described(&self) -> Value {
        let method = |method: &Method| {
            json!({
                "name": method.name,
                "signature": method.signature(),
                "description": self.agent.describe(method),
                "arguments": arguments_schema(method),
                "answer": answer_schema(method),
            })
        };
        let methods: Vec<Value> = self.agent.metadata.methods.iter().map(method).collect();
        json!({
            "object": "agent",
            "id": self.agent.id,
            "version": self.version,
            "model": self.model(),
            "name": self.agent.metadata.name,
            "description": self.agent.description,
            "deterministic": self.is_deterministic,
            "methods": methods,
        })
    }
}

/// The JSON schema of a method's arguments by name.
pub(crate) fn arguments_schema(method: &Method) -> Value {
    values::schema(&method.inputs, values::Detail::Told)
}

/// The JSON schema of a method's answer by name.
pub(crate) fn answer_schema(method: &Method) -> Value {
    values::schema(&method.outputs, values::Detail::Told)
}

/// Agents that were asked for.
#[derive(Debug, Default)]
pub(crate) struct Agents(Mutex<BTreeMap<(Hash, String), Arc<Published>>>);

impl Agents {
    /// A version, if it is known.
    pub(crate) fn get(&self, id: Hash, version: &str) -> Option<Arc<Published>> {
        self.0.lock().get(&(id, version.to_owned())).cloned()
    }

    /// Keeps a version; all others are forgotten when there are too many.
    pub(crate) fn keep(&self, published: Published) -> Arc<Published> {
        let published = Arc::new(published);
        let mut all = self.0.lock();
        if all.len() >= KEPT_MAX {
            all.clear();
        }
        all.insert((published.agent.id, published.version.clone()), Arc::clone(&published));
        published
    }
}

#[cfg(test)]
pub(super) mod tests {
    //! What is read of an agent.

    use serde_json::{Value, json};
    use types::Hash;

    use super::Published;

    /// An agent with the method `judge(string,uint8)`, which answers a verdict and a sum.
    pub(crate) fn published(is_deterministic: bool) -> Published {
        Published::read(Hash::digest(b"agent"), &told(is_deterministic)).unwrap()
    }

    fn told(is_deterministic: bool) -> Value {
        let manifest = Hash::digest(b"model");
        let parameter = |name: &str, of_type: &str| json!({ "name": name, "type": of_type });
        let metadata = json!({
            "name": "judge",
            "description": "Judges reviews.",
            "container_image": format!("ombra-model:{manifest}"),
            "version": "1.0.0",
            "abi": [{
                "type": "function",
                "name": "judge",
                "description": "Judges one review.",
                "inputs": [parameter("review", "string"), parameter("stars", "uint8")],
                "outputs": [parameter("verdict", "string"), parameter("", "int256")],
            }],
            "executor": {
                "kind": "model", "model": manifest, "basePrompt": "Judge.", "tools": [],
                "maxIterations": 1, "maxOutputTokens": 16,
            },
        })
        .to_string();
        let version = json!({
            "metadataHash": Hash::digest(metadata.as_bytes()), "deterministic": is_deterministic,
        });
        json!({ "metadata": metadata, "version": version })
    }

    #[test]
    fn an_agent_says_what_its_methods_take_and_answer() {
        let published = published(true);
        let described = published.described();
        assert_eq!("Judges reviews.", described["description"]);
        let method = &described["methods"][0];
        assert_eq!("judge(string,uint8)", method["signature"]);
        assert_eq!("Judges one review.", method["description"]);
        assert_eq!(json!(["review", "stars"]), method["arguments"]["required"]);
        assert_eq!(json!(["verdict", "arg1"]), method["answer"]["required"]);
        assert!(["judge", "judge(string,uint8)"].iter().all(|it| published.method(it).is_ok()));
        let why = published.method("jury").unwrap_err();
        assert_eq!("expected one of judge(string,uint8)", why);
    }

    #[test]
    fn metadata_that_the_chain_does_not_have_are_not_read() {
        let mut other = told(true);
        other["metadata"] = json!("{}");
        assert!(Published::read(Hash::ZERO, &other).unwrap_err().contains("do not have the hash"));
        let metadata = "{}";
        other = json!({ "metadata": metadata, "version": {
            "metadataHash": Hash::digest(metadata.as_bytes()) } });
        assert!(Published::read(Hash::ZERO, &other).unwrap_err().contains("name"));
    }
}
