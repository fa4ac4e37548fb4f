//! The tools of the scenario: real questions to the node over JSON-RPC.

use std::time::Instant;

use serde_json::{Value, json};
use types::{Address, Amount};
use wallet::{Client, Page};

use crate::cli::client::CliError;
use crate::cli::client::output::{ombra, ombra_of, scalar};

/// A fact that the node can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tool {
    /// The asker's balance.
    Balance,
    /// The newest block.
    Height,
    /// The supply counters.
    Supply,
    /// The miner directory.
    Miners,
}

/// A tool call that took place.
pub(super) struct Call {
    pub(super) tool: Tool,
    /// The arguments as compact JSON.
    pub(super) arguments: String,
    /// The result as the node's JSON text or a value of it.
    pub(super) result: String,
    /// How long the node took to answer.
    pub(super) duration_ms: u64,
    /// The result in words.
    pub(super) sentence: String,
}

impl Tool {
    /// All tools, in the order in which they are used.
    pub(super) const ALL: [Self; 4] = [Self::Balance, Self::Height, Self::Supply, Self::Miners];

    /// The name on the run's whitelist.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Balance => "chain_get_balance",
            Self::Height => "chain_get_height",
            Self::Supply => "chain_get_supply",
            Self::Miners => "chain_list_miners",
        }
    }

    /// Words of a question that ask for this fact.
    const fn keywords(self) -> &'static [&'static str] {
        match self {
            Self::Balance => &["balance", "have", "own", "money", "funds"],
            Self::Height => &["height", "block", "how high", "how long"],
            Self::Supply => &["supply", "burn", "escrow", "circulat", "ombra exist"],
            Self::Miners => &["miner"],
        }
    }

    /// Asks the node.
    pub(super) async fn call(self, client: &Client, asker: Address) -> Result<Call, CliError> {
        let arguments = match self {
            Self::Balance => json!({ "address": asker }),
            Self::Height | Self::Supply | Self::Miners => json!({}),
        };
        let began = Instant::now();
        let (result, sentence) = self.ask(client, asker).await?;
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        Ok(Call { tool: self, arguments: arguments.to_string(), result, duration_ms, sentence })
    }

    /// The result and its sentence.
    async fn ask(self, client: &Client, asker: Address) -> Result<(String, String), CliError> {
        Ok(match self {
            Self::Balance => {
                let balance: Amount = client.account(&asker).await?.balance;
                let sentence = format!(
                    "Account {asker} has {} to spend while this run holds its escrow.",
                    ombra(balance)
                );
                (json!(balance).to_string(), sentence)
            }
            Self::Height => {
                let chain = client.chain_info().await?;
                let sentence = format!("Chain {} is at block {}.", chain.chain_id, chain.height);
                (chain.height.to_string(), sentence)
            }
            Self::Supply => {
                let supply = client.supply().await?;
                let [burned, escrowed, circulating] =
                    ["burned", "escrowed", "circulating"].map(|key| ombra_of(&supply[key]));
                let sentence = format!(
                    "{circulating} circulate, {escrowed} are in escrow, {burned} have been burned."
                );
                (supply.text().to_owned(), sentence)
            }
            Self::Miners => {
                let page = Page { cursor: None, limit: Some(500) };
                let miners = client.miners(&page).await?;
                let items = miners["items"].as_array().map_or(&[][..], Vec::as_slice);
                (json!(names(items)).to_string(), miners_sentence(items))
            }
        })
    }
}

/// The tools that a question asks for by its words.
pub(super) fn asked_for(question: &str) -> Vec<Tool> {
    let question = question.to_lowercase();
    let asks = |tool: &Tool| tool.keywords().iter().any(|word| question.contains(word));
    Tool::ALL.into_iter().filter(asks).collect()
}

fn names(miners: &[Value]) -> Vec<String> {
    miners.iter().map(|miner| scalar(&miner["name"])).collect()
}

fn miners_sentence(miners: &[Value]) -> String {
    match names(miners).as_slice() {
        [] => "No miner is in the directory.".to_owned(),
        [only] => format!("One miner is in the directory: {only}."),
        many => format!("{} miners are in the directory: {}.", many.len(), many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    //! Which tools a question leads to.

    use super::{Tool, asked_for};

    #[test]
    fn the_words_of_a_question_choose_its_tools() {
        assert_eq!(
            vec![Tool::Balance, Tool::Height],
            asked_for("What is my Balance, and how long is the chain?")
        );
        assert_eq!(vec![Tool::Miners], asked_for("Which miners are there?"));
        assert_eq!(Vec::<Tool>::new(), asked_for("Tell me something"));
    }
}
