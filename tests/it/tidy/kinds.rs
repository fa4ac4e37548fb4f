//! What documents say of the kinds of transactions is what their declarations say, and a kind is
//! declared in few places.

use std::collections::BTreeSet;

use rpc::registry::builder_signatures;
use types::Body;
use types::tx::spec::{FieldSpec, Form, KindSpec, ListLimit, Presence};

use super::{code_spans, files, read, section, table_rows};

fn names(kind: &KindSpec, presence: Presence) -> Vec<&'static str> {
    kind.all_fields().filter(|field| field.presence == presence).map(|field| field.name).collect()
}

#[test]
fn the_protocol_lists_the_fields_of_each_type_in_their_order() {
    let protocol = read("docs/protocol.md");
    let rows = table_rows(section(&protocol, "## 5. "));
    let documented: Vec<_> = rows
        .iter()
        .filter(|row| row.len() == 3)
        .map(|row| [code_spans(row[0])[0], row[1], row[2]].map(str::to_owned))
        .filter(|[name, ..]| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        .collect();
    let declared: Vec<_> = Body::KINDS
        .iter()
        .map(|kind| {
            let required = [names(kind, Presence::Required), vec!["nonce", "timestamp"]].concat();
            let optional = names(kind, Presence::Optional);
            [kind.type_name.to_owned(), required.join(", "), optional.join(", ")]
        })
        .collect();
    assert_eq!(declared, documented);
}

/// Every declared field, those of objects within fields too.
fn fields() -> Vec<FieldSpec> {
    let own = Body::KINDS.iter().flat_map(KindSpec::all_fields);
    let inner = |field: &FieldSpec| match field.form {
        Form::Object(members) | Form::Objects(ListLimit { members, .. }) => members.to_vec(),
        Form::Address
        | Form::Addresses(_)
        | Form::Amount(_)
        | Form::Base64
        | Form::Boolean
        | Form::Hash
        | Form::Hex(_)
        | Form::Integer(_)
        | Form::Key
        | Form::Names(_)
        | Form::Signature
        | Form::Text(_) => Vec::new(),
    };
    own.flat_map(|field| [vec![*field], inner(field)].concat()).collect()
}

/// What docs/protocol.md calls a form; none for strings and arrays of objects.
fn written_form(form: Form) -> Option<&'static str> {
    match form {
        Form::Address => Some("address"),
        Form::Addresses(_) => Some("array of addresses"),
        Form::Amount(_) => Some("amount string (section 1)"),
        Form::Boolean => Some("boolean"),
        Form::Hash => Some("64 lowercase hex characters"),
        Form::Integer(_) => Some("integer 0 … 2^53−1"),
        Form::Key => Some("64 lowercase hex characters, a key"),
        Form::Names(_) => Some("array of strings"),
        Form::Signature => Some("128 lowercase hex characters"),
        Form::Hex(_) => Some("lowercase hex with 0x"),
        Form::Base64 | Form::Object(_) | Form::Objects(_) | Form::Text(_) => None,
    }
}

#[test]
fn the_protocol_lists_the_form_of_each_field() {
    let protocol = read("docs/protocol.md");
    let lines = section(&protocol, "## 5. ").lines().filter_map(|line| line.strip_prefix("| "));
    let rows = lines.filter_map(|line| line.trim_end_matches([' ', '|']).split_once(" | "));
    let documented: BTreeSet<(&str, &str)> = rows
        .flat_map(|(form, fields)| fields.split(", ").map(move |field| (field, form)))
        .collect();
    for field in fields() {
        let Some(written) = written_form(field.form) else { continue };
        assert!(documented.contains(&(field.name, written)), "{} is {written}", field.name);
    }
}

#[test]
fn each_kind_names_the_section_with_its_rules() {
    let protocol = read("docs/protocol.md");
    for kind in Body::KINDS {
        let text = section(&protocol, &format!("### {} ", kind.section));
        let heading = text.lines().next().unwrap_or_default();
        let stem = kind.type_name.trim_end_matches("_INIT").trim_end_matches("_CHUNK");
        let stem = stem.trim_end_matches("_FINALIZE");
        assert!(heading.contains(stem), "{} is in section {heading}", kind.type_name);
    }
}

#[test]
fn the_builders_are_listed_with_their_fields() {
    let document = read("docs/rpc.md");
    let rows = table_rows(section(&document, "## 8. "));
    let builders = rows.iter().filter(|row| row[0].starts_with("`ombra_build"));
    let documented: Vec<(String, String)> =
        builders.map(|row| (row[0].trim_matches('`').to_owned(), row[1].to_owned())).collect();
    let declared = builder_signatures().into_iter();
    let declared: Vec<_> = declared.map(|(name, fields)| (name.into_owned(), fields)).collect();
    assert_eq!(declared, documented);
}

/// Written by `OMBRA_RENEW=1 ./run test in_the_repository`, not by hand.
const MADE: &[&str] = &["examples/js/kinds.js"];

/// Source files that are written by hand and are no tests, without their comments.
fn sources() -> Vec<(String, String)> {
    let is_test = |path: &str| {
        path.ends_with("tests.rs")
            || path.ends_with("testing.rs")
            || path.split('/').any(|part| {
                matches!(part, "tests" | "testing" | "fixtures" | "testkit" | "benches" | "fuzz")
            })
    };
    let is_comment = |line: &str| {
        let line = line.trim_start();
        line.starts_with("//") || line.starts_with("* ") || line.starts_with("/*")
    };
    let code = |text: &str| -> String {
        text.lines().filter(|line| !is_comment(line)).flat_map(|line| [line, "\n"]).collect()
    };
    files(&[".rs", ".js", ".toml", ".py"])
        .into_iter()
        .filter(|file| !is_test(&file.path) && !MADE.contains(&file.path.as_str()))
        .map(|file| (file.path.clone(), code(&file.text)))
        .collect()
}

/// The paths of those whose code is so.
fn paths(is_so: impl Fn(&str) -> bool) -> Vec<String> {
    sources().into_iter().filter(|(_, code)| is_so(code)).map(|(path, _)| path).collect()
}

/// Whether a text names a kind: by its type, its name, or that of its files.
fn names_kind(code: &str, kind: &KindSpec) -> bool {
    let is_of_a_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let module = module_of(kind.name);
    let wanted = [kind.type_name, kind.name, &module];
    code.split(|c| !is_of_a_name(c)).any(|word| wanted.contains(&word))
}

/// `BlobInit` as `blob_init`.
fn module_of(name: &str) -> String {
    let mut module = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !module.is_empty() {
            module.push('_');
        }
        module.push(character.to_ascii_lowercase());
    }
    module
}

/// A file that names most kinds is a list of kinds, in which a new one has to be registered.
#[test]
fn there_are_at_most_five_lists_of_kinds() {
    let most = Body::KINDS.len() * 5 / 6;
    let count = |code: &str| Body::KINDS.iter().filter(|kind| names_kind(code, kind)).count();
    let lists = paths(|code| count(code) >= most);
    for needed in ["types/src/tx/mod.rs", "state/src/tx/mod.rs"] {
        assert!(lists.iter().any(|path| path == needed), "{needed} is a list: {lists:?}");
    }
    assert!(lists.len() <= 5, "{lists:?}");
}

/// A kind that nothing in the program sends by itself shows what a kind costs.
#[test]
fn a_kind_is_named_in_at_most_ten_files_beside_two_documents() {
    let kind = Body::KINDS.iter().find(|kind| kind.name == "MinerRegister").expect("it is a kind");
    let named = paths(|code| names_kind(code, kind));
    assert!((4..=10).contains(&named.len()), "{named:?}");
}
