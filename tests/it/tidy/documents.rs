//! The lists in the documents are the lists in the code.

use types::{Body, Code, Params};

use super::{code_spans, read, section, table_rows};

fn first_cells(text: &str) -> Vec<String> {
    let rows = table_rows(text);
    let cells = rows.iter().filter_map(|row| row.first());
    cells.flat_map(|cell| code_spans(cell)).map(str::to_owned).collect()
}

#[test]
fn the_protocol_lists_the_codes_of_refusals_in_their_order() {
    let protocol = read("docs/protocol.md");
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(codes, first_cells(section(&protocol, "## 9. ")));
}

#[test]
fn the_protocol_lists_the_transaction_types_in_their_order() {
    let protocol = read("docs/protocol.md");
    let table = section(&protocol, "## 5. ");
    let types: Vec<_> = first_cells(table)
        .into_iter()
        .filter(|word| word.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        .collect();
    assert_eq!(Body::TYPES.to_vec(), types);
}

#[test]
fn the_protocol_lists_the_parameters_with_their_defaults() {
    let protocol = read("docs/protocol.md");
    let mut documented = serde_json::Map::new();
    for row in table_rows(section(&protocol, "## 13. ")) {
        let [name, default, _] = row[..] else { continue };
        let default = serde_json::from_str(default.trim_matches('`'));
        documented.insert(name.trim_matches('`').to_owned(), default.expect("a JSON value"));
    }
    let defaults = serde_json::to_value(Params::default()).expect("parameters are plain data");
    assert_eq!(defaults, serde_json::Value::Object(documented));
}
