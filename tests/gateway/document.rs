//! The pieces of code in docs/gateway.md.

use anyhow::{Context as _, ensure};

/// A piece of code in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) language: String,
    pub(crate) code: String,
}

/// All of docs/gateway.md, in their order.
pub(crate) fn pieces() -> anyhow::Result<Vec<Piece>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/gateway.md");
    let text = std::fs::read_to_string(path).context("docs/gateway.md")?;
    let (mut pieces, mut rest) = (Vec::new(), text.as_str());
    while let Some((_, after)) = rest.split_once("\n```") {
        let (language, after) = after.split_once('\n').context("a piece of code")?;
        let (code, after) = after.split_once("```\n").context("its end")?;
        pieces.push(Piece { language: language.to_owned(), code: code.to_owned() });
        rest = after;
    }
    Ok(pieces)
}

/// The one in this language that has a text.
pub(crate) fn piece(language: &str, has: &str) -> anyhow::Result<String> {
    let is_meant = |it: &Piece| it.language == language && it.code.contains(has);
    let mut found: Vec<_> = pieces()?.into_iter().filter(is_meant).collect();
    ensure!(
        found.len() == 1,
        "docs/gateway.md has {} pieces of {language} with {has:?}",
        found.len()
    );
    Ok(found.remove(0).code)
}
