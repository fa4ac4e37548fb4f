//! The forward pass: from tokens to the scores of what may come next.
//!
//! What a token gets depends on the tokens before it and on nothing else: not on how many are read
//! at once, not on threads, not on the processor.

mod cache;
mod math;
mod rotation;

use std::sync::Arc;

use fearless_simd::{Level, Simd, dispatch};

use self::cache::{Cache, LayerCache};
use self::rotation::Rotation;
use crate::activation::Activation;
use crate::model::Model;
use crate::shape::Shape;
use crate::threads::{Threads, for_each_chunk};
use crate::tokenizer::Token;
use crate::weights::{Layer, Matrix, multiply};

/// A pass through a model that remembers the tokens it has read.
#[derive(Debug)]
pub(crate) struct Forward {
    model: Arc<Model>,
    level: Level,
    threads: Threads,
    rotation: Rotation,
    cache: Cache,
    work: Work,
}

/// Working memory, kept between calls.
#[derive(Debug, Default)]
struct Work {
    /// The activation between layers, token by token.
    state: Vec<f32>,
    normal: Vec<f32>,
    activation: Activation,
    tiles: Vec<[f32; 8]>,
    queries: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    mixed: Vec<f32>,
    gates: Vec<f32>,
    ups: Vec<f32>,
    change: Vec<f32>,
    scores: Vec<f32>,
}

impl Forward {
    pub(crate) fn new(model: Arc<Model>, threads: Threads) -> Self {
        let shape = model.shape();
        let (rotation, cache) = (Rotation::new(shape), Cache::new(shape));
        Self { level: Level::new(), threads, rotation, cache, work: Work::default(), model }
    }

    /// Uses no more of the processor than every one has for which the program was compiled.
    pub(crate) const fn compute_plainly(&mut self) {
        self.level = Level::baseline();
    }

    /// The name of the set of instructions in use.
    pub(crate) const fn instructions(&self) -> &'static str {
        match self.level {
            #[cfg(target_arch = "x86_64")]
            Level::Sse2(_) => "sse2",
            #[cfg(target_arch = "x86_64")]
            Level::Sse4_2(_) => "sse4.2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512(_) => "avx512",
            #[cfg(target_arch = "aarch64")]
            Level::Neon(_) => "neon",
            _ => "other",
        }
    }

    /// The threads that compute.
    pub(crate) const fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Forgets all but the first `tokens`.
    pub(crate) fn cut(&mut self, tokens: usize) {
        self.cache.cut(tokens);
    }

    /// Reads tokens; each is below the number of the vocabulary.
    pub(crate) fn read(&mut self, tokens: &[Token]) {
        let threads = self.threads.clone();
        threads.run(|| self.read_here(tokens));
    }

    fn read_here(&mut self, tokens: &[Token]) {
        let model = Arc::clone(&self.model);
        let shape = model.shape();
        let start = self.cache.tokens();
        self.rotation.extend(start + tokens.len());
        self.work.state.resize(tokens.len() * shape.width, 0.0);
        let rows = self.work.state.chunks_exact_mut(shape.width);
        for (token, row) in tokens.iter().zip(rows) {
            model.weights().embedding.row(token.index(), row);
        }
        for (number, layer) in model.weights().layers.iter().enumerate() {
            self.attend(shape, number, layer);
            self.feed(shape, layer);
        }
        self.cache.count(tokens.len());
    }

    /// The scores of every token of the vocabulary after each of the last `count` tokens of the
    /// last call of `read`.
    pub(crate) fn scores(&mut self, count: usize) -> Vec<f32> {
        let threads = self.threads.clone();
        threads.run(|| {
            let model = Arc::clone(&self.model);
            let shape = model.shape();
            let from = self.work.state.len() - count * shape.width;
            let state = &self.work.state[from..];
            let weights = model.weights();
            let normal = &mut self.work.normal;
            normalise(self.level, state, &weights.norm, shape.norm_epsilon, normal);
            self.work.activation.set(shape.width, &self.work.normal);
            self.product(weights.output(), |work| &mut work.scores);
            if count > 1 {
                // As much memory as the scores, which only a choice needs.
                self.work.tiles = Vec::new();
            }
            std::mem::take(&mut self.work.scores)
        })
    }

    /// The attention of a layer: what the tokens before have to say, added to the state.
    fn attend(&mut self, shape: &Shape, number: usize, layer: &Layer) {
        let work = &mut self.work;
        let norm = &layer.attention_norm;
        normalise(self.level, &work.state, norm, shape.norm_epsilon, &mut work.normal);
        work.activation.set(shape.width, &work.normal);
        self.product(&layer.query, |work| &mut work.queries);
        self.product(&layer.key, |work| &mut work.keys);
        self.product(&layer.value, |work| &mut work.values);
        let start = self.cache.tokens();
        let work = &mut self.work;
        let queries = work.queries.chunks_exact_mut(shape.width);
        let keys = work.keys.chunks_exact_mut(shape.kv_width());
        for (at, (query, key)) in queries.zip(keys).enumerate() {
            self.rotation.apply(start + at, query);
            self.rotation.apply(start + at, key);
        }
        let cache = self.cache.push(number, &work.keys, &work.values);
        work.mixed.clear();
        work.mixed.resize(work.queries.len(), 0.0);
        let (level, queries) = (self.level, &work.queries);
        for_each_chunk(&self.threads, &mut work.mixed, shape.head_width, |at, out| {
            let query = &queries[at * shape.head_width..][..shape.head_width];
            let head = Head {
                width: shape.head_width,
                kv_width: shape.kv_width(),
                first: at % shape.heads / (shape.heads / shape.kv_heads) * shape.head_width,
                tokens: start + at / shape.heads + 1,
            };
            dispatch!(level, simd => head.mix(simd, query, cache, out));
        });
        work.activation.set(shape.width, &work.mixed);
        self.product(&layer.attention_out, |work| &mut work.change);
        math::add(&mut self.work.state, &self.work.change);
    }

    /// The feed-forward block of a layer, added to the state.
    fn feed(&mut self, shape: &Shape, layer: &Layer) {
        let work = &mut self.work;
        let norm = &layer.feed_norm;
        normalise(self.level, &work.state, norm, shape.norm_epsilon, &mut work.normal);
        work.activation.set(shape.width, &work.normal);
        self.product(&layer.gate, |work| &mut work.gates);
        self.product(&layer.up, |work| &mut work.ups);
        let work = &mut self.work;
        math::gate(&mut work.gates, &work.ups);
        work.activation.set(shape.inner_width, &work.gates);
        self.product(&layer.down, |work| &mut work.change);
        math::add(&mut self.work.state, &self.work.change);
    }

    /// Puts the products of a matrix with the activation into the memory that `place` finds.
    fn product(&mut self, matrix: &Matrix, place: impl Fn(&mut Work) -> &mut Vec<f32>) {
        let mut out = std::mem::take(place(&mut self.work));
        out.resize(self.work.activation.tokens() * matrix.rows(), 0.0);
        let Work { activation, tiles, .. } = &mut self.work;
        multiply((self.level, &self.threads), matrix, activation, tiles, &mut out);
        *place(&mut self.work) = out;
    }
}

fn normalise(level: Level, numbers: &[f32], weights: &[f32], epsilon: f32, out: &mut Vec<f32>) {
    dispatch!(level, simd => math::normalise(simd, numbers, weights, epsilon, out));
}

/// One head of one token.
struct Head {
    width: usize,
    kv_width: usize,
    /// The first number of its keys and values within a token's.
    first: usize,
    /// The tokens that it sees: those before, and its own.
    tokens: usize,
}

impl Head {
    /// Writes the values of the tokens that it sees to `out`, in the shares that the keys get.
    #[inline(always)]
    fn mix<S: Simd>(&self, simd: S, query: &[f32], cache: &LayerCache, out: &mut [f32]) {
        // Plain loops: what is in a closure would be compiled for the oldest processor.
        let scale = 1.0 / (self.width as f32).sqrt();
        let mut shares = Vec::with_capacity(self.tokens);
        for key in cache.keys.chunks_exact(self.kv_width).take(self.tokens) {
            shares.push(math::dot(simd, query, &key[self.first..][..self.width]) * scale);
        }
        math::softmax(&mut shares);
        let values = cache.values.chunks_exact(self.kv_width);
        for (share, value) in shares.iter().zip(values) {
            let value = &value[self.first..][..self.width];
            math::add_scaled(simd, out, value, *share);
        }
    }
}
