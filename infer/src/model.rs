//! A model: its weights, its tokenizer, and what it says of itself.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::chat::{Prompt, Template, Turn};
use crate::error::{FileError, ModelError};
use crate::gguf::{Header, Source};
use crate::pinned::Pinned;
use crate::shape::Shape;
use crate::tokenizer::Tokenizer;
use crate::weights::Weights;

/// The name of the arithmetic in this crate. It changes whenever the same model would give other
/// scores, or the same text other tokens.
const ENGINE: &str = "ombra-infer-1";

/// How much of a file is read at a time.
const BUFFER_BYTES: usize = 256 * 1024;

/// What decides a model's answers. Two with equal manifests answer equally.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The sha256 of the file, in lower-case hexadecimal.
    pub sha256: String,
    /// The architecture, as the file calls it.
    pub architecture: String,
    /// The most tokens of a context: prompt and output together.
    pub context_tokens_max: usize,
    /// Which tokenizer: its kind, and how it splits text.
    pub tokenizer: String,
    /// How conversations are written.
    pub template: &'static str,
    /// The arithmetic.
    pub engine: &'static str,
}

impl Manifest {
    /// What tells it from others: the sha256, in lower-case hexadecimal, of its one written form. That is
    /// the JSON object of RFC 8785 with the members `architecture`, `contextTokensMax`, `engine`, `sha256`,
    /// `template` and `tokenizer`.
    #[must_use]
    pub fn hash(&self) -> String {
        let Self { sha256, architecture, context_tokens_max, tokenizer, template, engine } = self;
        // In the order of their names, however the library keeps them.
        let written = json!({
            "architecture": architecture,
            "contextTokensMax": context_tokens_max,
            "engine": engine,
            "sha256": sha256,
            "template": template,
            "tokenizer": tokenizer,
        });
        const_hex::encode(Sha256::digest(written.to_string()))
    }
}

/// A model in memory; sessions share it.
#[derive(Debug)]
pub struct Model {
    manifest: Manifest,
    shape: Shape,
    weights: Weights,
    tokenizer: Tokenizer,
    template: Template,
}

impl Model {
    /// Opens a model file.
    ///
    /// # Errors
    /// If the file cannot be read, or is no model that is computed here.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let open = |source| ModelError::Open { path: path.to_owned(), source };
        let file = File::open(path).map_err(open)?;
        let len = file.metadata().map_err(open)?.len();
        let model = Self::read(BufReader::with_capacity(BUFFER_BYTES, file), len);
        model.map_err(|source| ModelError::File { path: path.to_owned(), source })
    }

    /// Opens the file of a model that is known in advance.
    ///
    /// # Errors
    /// If the file is another one, or as [`Self::open`].
    pub fn open_pinned(path: &Path, pinned: &Pinned) -> Result<Self, ModelError> {
        // The hash first, so that a damaged file is called damaged and not, say, misaligned.
        pinned.check(path)?;
        let model = Self::open(path)?;
        pinned.compare(path, &model.manifest.sha256)?;
        Ok(model)
    }

    /// Reads a model of `len` bytes.
    ///
    /// # Errors
    /// If the bytes cannot be read, or are no model that is computed here.
    pub fn read(bytes: impl Read, len: u64) -> Result<Self, FileError> {
        let mut source = Source::new(bytes, len);
        let Header { metadata, tensors } = Header::read(&mut source)?;
        let shape = Shape::read(&metadata)?;
        let tokenizer = Tokenizer::read(&metadata)?;
        let template = Template::read(&metadata, &tokenizer)?;
        let weights = Weights::read(&mut source, tensors, &shape, tokenizer.vocabulary())?;
        let manifest = Manifest {
            sha256: const_hex::encode(source.finish()?),
            architecture: metadata.text("general.architecture")?.to_owned(),
            context_tokens_max: shape.context_tokens_max,
            tokenizer: format!(
                "{}/{}",
                metadata.text("tokenizer.ggml.model")?,
                metadata.text("tokenizer.ggml.pre")?
            ),
            template: template.name(),
            engine: ENGINE,
        };
        Ok(Self { manifest, shape, weights, tokenizer, template })
    }

    /// What decides its answers.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Its vocabulary.
    #[must_use]
    pub const fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// A conversation as the model reads it, up to where its own turn begins. Nothing in the texts
    /// can become a control token.
    #[must_use]
    pub fn prompt(&self, turns: &[Turn<'_>]) -> Prompt {
        self.template.prompt(&self.tokenizer, turns)
    }

    pub(crate) const fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) const fn weights(&self) -> &Weights {
        &self.weights
    }
}
