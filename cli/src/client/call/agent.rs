//! The agent that is called, and its method: found by id or name, read from the metadata.

use serde_json::{Map, Value, json};
use types::abi::Method;
use types::agent::{Document, Version};
use types::{Amount, Hash};
use wallet::{Client, Page, calls};

use crate::client::CliError;
use crate::client::output::one_line;

/// The most pages of agents that are looked through for a name.
const PAGES_MAX: usize = 200;
/// What the longest names of agents are cut to in messages.
const NAME_CHARS_MAX: usize = 80;

/// A version of an agent.
#[derive(Debug)]
pub(in crate::client) struct Agent {
    pub(in crate::client) id: Hash,
    pub(in crate::client) name: String,
    pub(in crate::client) version: String,
    pub(in crate::client) is_retired: bool,
    /// Whether the answers of two miners can be compared.
    pub(in crate::client) is_deterministic: bool,
    pub(in crate::client) methods: Vec<Method>,
}

impl Agent {
    /// The agent of an id, in one of its versions, or the latest.
    ///
    /// # Errors
    /// When the node does not tell it, or tells other metadata than it says the hash of.
    pub(in crate::client) async fn of(
        client: &Client,
        id: Hash,
        version: Option<&str>,
    ) -> Result<Self, CliError> {
        let told = client.agent(&id, version).await?;
        let text = calls::metadata(&told)
            .map_err(|other| CliError::Failed(format!("the agent {id}: {other}")))?;
        let read = Document::read(text.as_bytes());
        let checked = read.and_then(|document| document.check(Amount::MAX).outcome);
        let metadata = checked.map_err(|fault| {
            CliError::Failed(format!("the metadata of {id} breaks a rule: {fault}"))
        })?;
        Ok(Self {
            id,
            name: metadata.name,
            version: metadata.version.to_string(),
            is_retired: told["retired"] == json!(true),
            is_deterministic: told["version"]["deterministic"] == json!(true),
            methods: metadata.methods,
        })
    }

    /// The agent that somebody names: `ID`, `NAME`, or one of these with `@VERSION`.
    ///
    /// # Errors
    /// When there is none, or several have the name.
    async fn find(client: &Client, named: &str) -> Result<Self, CliError> {
        let (name, version) = match named.rsplit_once('@') {
            Some((name, version)) if Version::parse(version).is_ok() => (name, Some(version)),
            Some(_) | None => (named, None),
        };
        let id = match Hash::parse(name) {
            Ok(id) => id,
            Err(_name) => by_name(client, name).await?,
        };
        Self::of(client, id, version).await
    }

    /// The same, if it is not retired.
    ///
    /// # Errors
    /// As for [`Self::find`], and when it is retired.
    pub(in crate::client) async fn find_active(
        client: &Client,
        named: &str,
    ) -> Result<Self, CliError> {
        let agent = Self::find(client, named).await?;
        if agent.is_retired {
            let text = format!("the agent {} is retired: it takes no calls and no runs", agent.id);
            return Err(CliError::Usage(text));
        }
        Ok(agent)
    }

    /// The method of a name or a canonical signature.
    ///
    /// # Errors
    /// Says which methods there are.
    pub(in crate::client) fn method(&self, wanted: &str) -> Result<&Method, CliError> {
        method_named(&self.methods, wanted, &self.id.to_string())
    }

    /// The method of a payload.
    pub(in crate::client) fn method_of(&self, payload: &[u8]) -> Option<&Method> {
        let selector = payload.first_chunk::<4>()?;
        self.methods.iter().find(|it| it.selector().0 == *selector)
    }
}

/// The method of a name or a canonical signature.
///
/// # Errors
/// Says which methods `whose` agent has.
pub(in crate::client) fn method_named<'m>(
    methods: &'m [Method],
    wanted: &str,
    whose: &str,
) -> Result<&'m Method, CliError> {
    let found = methods.iter().find(|it| it.name == wanted || it.signature() == wanted);
    found.ok_or_else(|| {
        let known: Vec<String> = methods.iter().map(Method::signature).collect();
        let (wanted, whose) = (one_line(wanted, NAME_CHARS_MAX), one_line(whose, NAME_CHARS_MAX));
        CliError::Usage(format!(
            "{wanted:?} is not a method of {whose}: expected {}",
            known.join(", ")
        ))
    })
}

/// The one agent of a name that takes calls.
async fn by_name(client: &Client, name: &str) -> Result<Hash, CliError> {
    let filter = Map::from_iter([("text".to_owned(), json!(name))]);
    let (mut found, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let page = client.agents(&filter, &Page { cursor, limit: Some(50) }).await?;
        let items = page["items"].as_array().into_iter().flatten();
        found.extend(items.filter(|it| it["name"] == json!(name)).cloned());
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return the_one(name, &found);
        }
    }
    let text =
        "there are too many agents to search by name: give the agent's id from `ombra agents list`";
    Err(CliError::Usage(text.to_owned()))
}

fn the_one(name: &str, found: &[Value]) -> Result<Hash, CliError> {
    let callable: Vec<&Value> = found.iter().filter(|it| it["retired"] != json!(true)).collect();
    let shown = one_line(name, NAME_CHARS_MAX);
    match (callable.as_slice(), found) {
        ([one], _) => {
            let id = one["agentId"].as_str().and_then(|id| id.parse().ok());
            id.ok_or_else(|| CliError::Failed("the node names an agent without an id".to_owned()))
        }
        ([], []) => Err(CliError::Usage(format!(
            "{shown:?} is neither the id nor the name of an agent: see ombra agents list"
        ))),
        ([], _) => Err(CliError::Usage(format!("the agents named {shown:?} are retired"))),
        (several, _) => {
            let text = |value: &Value| one_line(value.as_str().unwrap_or_default(), NAME_CHARS_MAX);
            let lines: Vec<String> = several
                .iter()
                .map(|it| {
                    let [id, owner, latest] =
                        ["agentId", "owner", "latest"].map(|key| text(&it[key]));
                    format!("\n  {id} {latest} of {owner}")
                })
                .collect();
            let text = format!("several agents are named {shown:?}, give an id:{}", lines.concat());
            Err(CliError::Usage(text))
        }
    }
}

#[cfg(test)]
mod tests {
    //! Which agent a name means.

    use serde_json::{Value, json};
    use types::Hash;

    use super::the_one;

    fn agent(byte: u8, is_retired: bool) -> Value {
        json!({"agentId": Hash::new([byte; 32]), "owner": "o", "latest": "1.0.0", "retired": is_retired})
    }

    #[test]
    fn a_name_means_the_one_agent_that_takes_calls() {
        let found = [agent(1, true), agent(2, false)];
        assert_eq!(Hash::new([2; 32]), the_one("judge", &found).unwrap());
        let said = |found: &[Value]| {
            let error = the_one("judge", found).unwrap_err();
            assert_eq!(2, error.exit_code());
            error.to_string()
        };
        assert!(said(&[]).contains("neither the id nor the name"));
        assert!(said(&[agent(1, true)]).contains("are retired"));
        let several = said(&[agent(1, false), agent(2, false)]);
        assert!(several.contains(&"01".repeat(32)) && several.contains(&"02".repeat(32)));
    }
}
