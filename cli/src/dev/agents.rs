//! The agents that a development chain with the agent market has from the start.

use genesis::FirstAgent;
use types::Address;

/// The metadata of `llm-inference`, with a word where the manifest of the model goes.
const LLM_INFERENCE: &str = include_str!("llm-inference.json");
const MANIFEST: &str = "MANIFEST";

/// `llm-inference`, the four methods of docs/agent-methods.md over the model that miners have inside the
/// process.
pub(super) fn llm_inference(owner: Address) -> FirstAgent {
    let metadata = LLM_INFERENCE.replace(MANIFEST, infer::SMOLLM2_135M_MANIFEST);
    FirstAgent { owner, metadata }
}

#[cfg(test)]
mod tests {
    //! The agent is one that the chain takes, with the methods that were published.

    use types::agent::Document;
    use types::{Address, Amount};

    use super::llm_inference;

    #[test]
    fn the_methods_have_the_published_selectors_and_answers() {
        let agent = llm_inference(Address::new([1; 20]));
        let document = Document::read(agent.metadata.as_bytes()).unwrap();
        let metadata = document.check(Amount::ZERO).outcome.unwrap();
        let executor = format!("model-1:{}", infer::SMOLLM2_135M_MANIFEST);
        assert_eq!(metadata.executor.to_string(), executor);
        let methods: Vec<_> = metadata
            .methods
            .iter()
            .map(|method| (method.name.as_str(), method.selector().to_string(), method.answers()))
            .collect();
        let published = [
            ("inferString", "0xfe7ca098", "(string)"),
            ("inferNumber", "0xc6833c3d", "(int256)"),
            ("inferChat", "0xbee8d139", "(string)"),
            ("inferToolsChat", "0xd0683905", "(string,string,string[],string[],string[],bytes[])"),
        ];
        let published: Vec<_> = published
            .iter()
            .map(|(name, selector, answers)| (*name, (*selector).to_owned(), (*answers).to_owned()))
            .collect();
        assert_eq!(methods, published);
    }

    #[test]
    fn the_model_inside_the_process_is_the_one_that_chains_trust_unasked() {
        let trusted = types::params::EMBEDDED_MODEL;
        assert_eq!(trusted.to_string(), infer::SMOLLM2_135M_MANIFEST);
        assert!(types::Params::default().slashable_models.contains(&trusted));
    }
}
