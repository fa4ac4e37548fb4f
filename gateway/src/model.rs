//! Names of models: who is to answer.

use types::Hash;

/// Who is to answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Model {
    /// `ombra`: any miner.
    Any,
    /// `ombra:NAME`: a miner with this model.
    Named(String),
    /// `agent:ID@VERSION`: a published agent.
    Agent {
        /// Which.
        id: Hash,
        /// Which version of it.
        version: String,
    },
}

/// The name of [`Model::Any`].
pub const ANY: &str = "ombra";
/// The longest name of a miner's model, bytes.
const NAME_BYTES_MAX: usize = 128;
/// The longest version of an agent, bytes.
const VERSION_BYTES_MAX: usize = 64;

impl Model {
    /// The model that a name means.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(name: &str) -> Result<Self, String> {
        let expected = || "expected ombra, ombra:NAME or agent:ID@VERSION".to_owned();
        if name == ANY {
            return Ok(Self::Any);
        }
        if let Some(model) = name.strip_prefix("ombra:") {
            let fits = !model.is_empty() && model.len() <= NAME_BYTES_MAX;
            return if fits { Ok(Self::Named(model.to_owned())) } else { Err(expected()) };
        }
        let agent = name.strip_prefix("agent:").and_then(|agent| agent.split_once('@'));
        let Some((id, version)) = agent else { return Err(expected()) };
        let id = Hash::parse(id).map_err(|_text| expected())?;
        if version.is_empty() || version.len() > VERSION_BYTES_MAX {
            return Err(expected());
        }
        Ok(Self::Agent { id, version: version.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    //! Names.

    use types::Hash;

    use super::Model;

    #[test]
    fn a_name_says_who_is_to_answer() {
        let agent = format!("agent:{}@1.0", Hash::ZERO);
        let expected = Model::Agent { id: Hash::ZERO, version: "1.0".to_owned() };
        assert_eq!(Ok(expected), Model::parse(&agent));
        assert_eq!(Ok(Model::Named("a:b".to_owned())), Model::parse("ombra:a:b"));
        for name in ["", "gpt-4o", "ombra:", "agent:1@1", "agent:@", &agent[..70]] {
            assert!(Model::parse(name).is_err(), "{name}");
        }
    }
}
