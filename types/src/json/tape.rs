//! A JSON text as one list of nodes, for texts from strangers: reading takes a bounded time per
//! byte, whatever the text contains, and needs no memory except the list.

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Null,
    Bool,
    Number,
    /// A string as it stands in the text.
    Plain,
    /// A string that had escapes.
    Unescaped,
    Array,
    Object,
}

/// A value, or a key, whose value is the next node. What is in an array or object follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    /// Numbers and strings: the offset. Objects: the first member whose key is known, or 0.
    pub(super) from: u32,
    /// Numbers and strings: bytes. Arrays: items.
    pub(super) length: u32,
    /// Values: the node behind the value and all that is in it. Keys that are known: the next of
    /// their object, or 0.
    pub(super) next: u32,
}

/// A JSON text that has been read.
///
/// It shows only members with known keys. The others were read too, but have no meaning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tape<'a> {
    pub(super) text: &'a str,
    /// Strings that had escapes, one after the other.
    pub(super) unescaped: String,
    pub(super) nodes: Vec<Node>,
}

impl<'a> Tape<'a> {
    /// An empty tape for a text.
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, unescaped: String::new(), nodes: Vec::new() }
    }

    /// The outermost value.
    #[must_use]
    pub const fn value(&self) -> Value<'_> {
        Value { tape: self, at: 0 }
    }

    /// The number of nodes, which is the place of the next one.
    pub(super) fn end(&self) -> u32 {
        u32::try_from(self.nodes.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn node_mut(&mut self, at: u32) -> Option<&mut Node> {
        self.nodes.get_mut(index(at))
    }

    pub(super) fn node(&self, at: u32) -> Node {
        const NOTHING: Node = Node { kind: Kind::Null, from: 0, length: 0, next: 0 };
        self.nodes.get(index(at)).copied().unwrap_or(NOTHING)
    }

    pub(super) fn string(&self, node: Node) -> &str {
        let source = match node.kind {
            Kind::Unescaped => self.unescaped.as_str(),
            Kind::Null | Kind::Bool | Kind::Number | Kind::Plain | Kind::Array | Kind::Object => {
                self.text
            }
        };
        let from = index(node.from);
        source.get(from..from.saturating_add(index(node.length))).unwrap_or_default()
    }
}

/// The place of a node in its list.
pub(super) fn index(at: u32) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// A value of a tape.
#[derive(Clone, Copy, Debug)]
pub struct Value<'t> {
    tape: &'t Tape<'t>,
    at: u32,
}

impl<'t> Value<'t> {
    fn node(self) -> Node {
        self.tape.node(self.at)
    }

    /// The text of a string.
    #[must_use]
    pub fn as_str(self) -> Option<&'t str> {
        let node = self.node();
        matches!(node.kind, Kind::Plain | Kind::Unescaped).then(|| self.tape.string(node))
    }

    /// The literal text of a number.
    #[must_use]
    pub fn as_number(self) -> Option<&'t str> {
        let node = self.node();
        (node.kind == Kind::Number).then(|| self.tape.string(node))
    }

    /// The items of an array.
    #[must_use]
    pub fn items(self) -> Option<Items<'t>> {
        let node = self.node();
        let next = self.at.saturating_add(1);
        let items = Items { tape: self.tape, next, left: node.length };
        (node.kind == Kind::Array).then_some(items)
    }

    /// The members of an object with known keys, in the order of the text.
    #[must_use]
    pub fn members(self) -> Option<Members<'t>> {
        let node = self.node();
        let members = Members { tape: self.tape, next: node.from };
        (node.kind == Kind::Object).then_some(members)
    }

    /// The name of the JSON type, for messages.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self.node().kind {
            Kind::Null => "null",
            Kind::Bool => "a boolean",
            Kind::Number => "a number",
            Kind::Plain | Kind::Unescaped => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object",
        }
    }
}

/// The remaining items of an array.
#[derive(Clone, Copy, Debug)]
pub struct Items<'t> {
    tape: &'t Tape<'t>,
    next: u32,
    left: u32,
}

impl<'t> Iterator for Items<'t> {
    type Item = Value<'t>;

    fn next(&mut self) -> Option<Value<'t>> {
        self.left = self.left.checked_sub(1)?;
        let value = Value { tape: self.tape, at: self.next };
        self.next = value.node().next;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (index(self.left), Some(index(self.left)))
    }
}

impl ExactSizeIterator for Items<'_> {}

/// The remaining members of an object with known keys.
#[derive(Clone, Copy, Debug)]
pub struct Members<'t> {
    tape: &'t Tape<'t>,
    /// The next key, or 0.
    next: u32,
}

impl<'t> Members<'t> {
    /// The value of a member.
    #[must_use]
    pub fn find(mut self, key: &str) -> Option<Value<'t>> {
        self.find_map(|(name, value)| (name == key).then_some(value))
    }
}

impl<'t> Iterator for Members<'t> {
    type Item = (&'t str, Value<'t>);

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.next;
        if at == 0 {
            return None;
        }
        let key = self.tape.node(at);
        self.next = key.next;
        Some((self.tape.string(key), Value { tape: self.tape, at: at.saturating_add(1) }))
    }
}
