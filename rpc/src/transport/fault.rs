//! What is wrong with a parameter, in serde's words.

/// What is wrong with a value.
#[derive(Clone, Debug)]
pub(crate) struct ParamFault {
    /// Where in the value, empty for the value itself.
    pub(crate) path: String,
    /// What was found, if it is not the value at the path.
    pub(crate) got: Option<&'static str>,
    /// What was expected.
    pub(crate) expected: String,
}

/// What serde's message says of the value at `path`.
pub(crate) fn describe(path: &serde_path_to_error::Path, message: &str) -> ParamFault {
    let path = path.to_string();
    let path = path.trim_matches('.');
    for (beginning, got) in [("missing field `", "missing"), ("unknown field `", "unknown")] {
        let name = message.strip_prefix(beginning).and_then(|rest| rest.split('`').next());
        if let Some(name) = name {
            let is_named = path == name || path.ends_with(&format!(".{name}"));
            let path = match (is_named, path) {
                (true, path) => path.to_owned(),
                (false, "") => name.to_owned(),
                (false, path) => format!("{path}.{name}"),
            };
            let expected = match got {
                "missing" => "a value".to_owned(),
                _ => expectation(message),
            };
            return ParamFault { path, got: Some(got), expected };
        }
    }
    ParamFault { path: path.to_owned(), got: None, expected: expectation(message) }
}

/// serde's message, reduced to what was expected.
fn expectation(message: &str) -> String {
    let message = message.rsplit_once(" at line ").map_or(message, |(text, _)| text);
    let wanted = message.split_once("expected ").map_or(message, |(_, wanted)| wanted);
    wanted.split_once(", got ").map_or(wanted, |(wanted, _)| wanted).to_owned()
}
