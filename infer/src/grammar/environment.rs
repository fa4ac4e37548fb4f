//! A model's vocabulary as the grammar library wants it.

use std::sync::Arc;

use llguidance::ParserFactory;
use toktrie::{TokEnv, TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use crate::model::Model;
use crate::tokenizer::Token;

struct Environment {
    model: Arc<Model>,
    trie: TokTrie,
}

impl TokenizerEnv for Environment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        let tokens = self.model.tokenizer().encode_bytes(bytes);
        tokens.into_iter().map(Token::number).collect()
    }
}

pub(super) fn factory(model: &Arc<Model>) -> Result<ParserFactory, impl std::fmt::Display> {
    let tokenizer = model.tokenizer();
    let count = tokenizer.vocabulary() as u32;
    let words: Vec<Vec<u8>> = (0..count)
        .map(Token::new)
        .map(|token| {
            let name = tokenizer.name(token);
            // The library tells control tokens by a byte that text cannot have.
            let mark = tokenizer.is_control(token).then_some(TokTrie::SPECIAL_TOKEN_MARKER);
            mark.into_iter().chain(name.iter().copied()).collect()
        })
        .collect();
    let trie = TokTrie::from(&TokRxInfo::new(count, tokenizer.end().number()), &words);
    let environment: TokEnv = Arc::new(Environment { model: Arc::clone(model), trie });
    ParserFactory::new_simple(&environment)
}
