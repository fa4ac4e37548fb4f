//! Where a value stands in a request.

use std::fmt;

use types::text::shorten;

/// Where a value stands, as messages say it: `args.functions[2].parameters`.
///
/// Readers make one for each value, and nearly all of them are thrown away. So it only refers to its parts,
/// and is written out when something is refused.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'p> {
    /// Given as text; the outermost object has none.
    Text(&'p str),
    /// A member of an object.
    Member(&'p Self, &'p str),
    /// An entry of a list.
    Entry(&'p Self, usize),
    /// The definition of this name, which the value at the path refers to.
    Definition(&'p Self, &'p str),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Text(text) => f.write_str(text),
            Self::Member(Self::Text(""), key) => f.write_str(&shorten(key)),
            Self::Member(object, key) => write!(f, "{object}.{}", shorten(key)),
            Self::Entry(list, index) => write!(f, "{list}[{index}]"),
            Self::Definition(reference, name) => write!(f, "{reference}({name})"),
        }
    }
}

impl<'p> From<&'p str> for Path<'p> {
    fn from(text: &'p str) -> Self {
        Self::Text(text)
    }
}

impl<'p> From<&'p String> for Path<'p> {
    fn from(text: &'p String) -> Self {
        Self::Text(text)
    }
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> Self {
        path.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_members_entries_and_definitions() {
        let (outermost, args) = (Path::Text(""), Path::Text("args"));
        assert_eq!("method", Path::Member(&outermost, "method").to_string());
        let list = Path::Member(&args, "functions");
        let entry = Path::Entry(&list, 2);
        let reference = Path::Member(&entry, "$ref");
        let path = Path::Definition(&reference, "#/$defs/a");
        assert_eq!("args.functions[2].$ref(#/$defs/a)", path.to_string());
    }

    #[test]
    fn a_long_key_with_line_ends_is_shortened_in_a_path() {
        let key = format!("a\n{}", "x".repeat(100));
        let shown = format!("args.a\u{fffd}{}…", "x".repeat(78));
        assert_eq!(shown, Path::Member(&Path::Text("args"), &key).to_string());
    }
}
