//! Keys and values of the tokens that were read.

use crate::shape::Shape;

/// Keys and values, layer by layer, in each token by token. Grows with the tokens.
#[derive(Debug)]
pub(super) struct Cache {
    layers: Vec<LayerCache>,
    width: usize,
    tokens: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LayerCache {
    pub(super) keys: Vec<f32>,
    pub(super) values: Vec<f32>,
}

impl Cache {
    pub(super) fn new(shape: &Shape) -> Self {
        let layers = vec![LayerCache::default(); shape.layers];
        Self { layers, width: shape.kv_width(), tokens: 0 }
    }

    pub(super) const fn tokens(&self) -> usize {
        self.tokens
    }

    /// Forgets all but the first `tokens`.
    pub(super) fn cut(&mut self, tokens: usize) {
        self.tokens = self.tokens.min(tokens);
        for layer in &mut self.layers {
            layer.keys.truncate(tokens * self.width);
            layer.values.truncate(tokens * self.width);
        }
    }

    /// Adds what tokens have in a layer.
    pub(super) fn push(&mut self, layer: usize, keys: &[f32], values: &[f32]) -> &LayerCache {
        let layer = &mut self.layers[layer];
        layer.keys.extend_from_slice(keys);
        layer.values.extend_from_slice(values);
        layer
    }

    /// Counts tokens that every layer has.
    pub(super) const fn count(&mut self, tokens: usize) {
        self.tokens += tokens;
    }
}
