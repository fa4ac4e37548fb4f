//! Every method by its name.

use std::collections::BTreeMap;

use super::list;
use super::method::Method;

/// A set of methods by name.
#[derive(Clone, Debug)]
pub struct Registry {
    methods: BTreeMap<&'static str, Method>,
}

impl Registry {
    /// What the network port serves.
    #[must_use]
    pub fn public() -> Self {
        Self::of(list::public())
    }

    /// What the operator's socket serves.
    #[must_use]
    pub fn admin() -> Self {
        Self::of(list::admin())
    }

    fn of(methods: Vec<Method>) -> Self {
        Self { methods: methods.into_iter().map(|method| (method.name, method)).collect() }
    }

    /// The method of that name.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<&Method> {
        self.methods.get(name)
    }

    /// Every method, by name.
    pub fn methods(&self) -> impl Iterator<Item = &Method> {
        self.methods.values()
    }
}
