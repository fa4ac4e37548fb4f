//! The lists in the documents are the lists in the code.

use std::collections::{BTreeMap, BTreeSet};

use clap::CommandFactory;
use rpc::registry::{Method, Registry};
use types::{Code, Params};

use super::{all_table_rows, assert_none, code_spans, exists, read, section, table_rows};

fn first_cells(text: &str) -> Vec<String> {
    let rows = table_rows(text);
    let cells = rows.iter().filter_map(|row| row.first());
    cells.flat_map(|cell| code_spans(cell)).map(str::to_owned).collect()
}

#[test]
fn the_protocol_lists_the_codes_of_rejections_in_their_order() {
    let protocol = read("docs/protocol.md");
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(codes, first_cells(section(&protocol, "## 9. ")));
}

#[test]
fn the_protocol_lists_the_parameters_with_their_defaults() {
    let protocol = read("docs/protocol.md");
    let mut documented = serde_json::Map::new();
    for row in table_rows(section(&protocol, "## 13. ")) {
        let [name, default, _, _] = row[..] else { continue };
        let default = serde_json::from_str(default.trim_matches('`'));
        documented.insert(name.trim_matches('`').to_owned(), default.expect("a JSON value"));
    }
    let defaults = serde_json::to_value(Params::default()).expect("parameters are plain data");
    assert_eq!(defaults, serde_json::Value::Object(documented));
}

/// The names of the fields of a struct in a source file, in order.
fn fields_of(source: &str, name: &str) -> Vec<String> {
    let start = source.find(&format!("pub struct {name} {{")).expect("the record exists");
    let body = source[start..].split("\n}").next().unwrap_or_default();
    let fields = body.lines().filter_map(|line| line.strip_prefix("    pub "));
    fields.filter_map(|line| line.split(':').next()).map(str::to_owned).collect()
}

#[test]
fn the_protocol_lists_the_fields_of_authenticated_records() {
    let protocol = read("docs/protocol.md");
    let records = ["types/src/records.rs", "types/src/market.rs", "types/src/call/records.rs"]
        .map(read)
        .concat();
    let rows = table_rows(section(&protocol, "### 14.2 "));
    assert!(rows.len() >= 7, "section 14.2 lists the records");
    for row in rows {
        let [name, fields] = row[..] else { panic!("two cells: {row:?}") };
        let name = name.trim_matches('`');
        assert_eq!(fields_of(&records, name), code_spans(fields), "{name}");
    }
}

/// The methods that docs/rpc.md describes, each under a heading of its own. Builders have a table,
/// which `tidy::kinds` compares with the declarations.
fn described_methods(document: &str) -> BTreeSet<&str> {
    let headings = document.lines().filter_map(|line| line.strip_prefix("### `"));
    headings.filter_map(|rest| rest.strip_suffix('`')).collect()
}

fn is_builder(method: &Method) -> bool {
    method.name.starts_with("ombra_build")
}

/// What is served, without the builders.
fn described() -> Vec<Method> {
    let (public, admin) = (Registry::public(), Registry::admin());
    let all = public.methods().chain(admin.methods());
    all.filter(|method| !is_builder(method)).cloned().collect()
}

#[test]
fn every_method_is_described_and_nothing_else() {
    let served = described();
    let served: BTreeSet<_> = served.iter().map(|method| method.name).collect();
    let document = read("docs/rpc.md");
    assert_eq!(served, described_methods(&document));
}

#[test]
fn every_method_has_parameters_result_and_an_example() {
    let document = read("docs/rpc.md");
    for method in described() {
        let text = section(&document, &format!("### `{}`", method.name));
        for wanted in ["Parameters:", "Result:", "```sh"] {
            assert!(text.contains(wanted), "{} says {wanted}", method.name);
        }
        for param in &method.params {
            let is_named = text.contains(&format!("`{}`", param.name));
            let is_spread = param.members.iter().all(|member| text.contains(member.as_str()));
            assert!(is_named || is_spread, "{}: {}", method.name, param.name);
        }
    }
}

#[test]
fn the_fuzzer_begins_with_parameters_of_every_method() {
    for method in Registry::public().methods() {
        let seed = format!("fuzz/seeds/rpc_params/{}.txt", method.name);
        assert!(exists(&seed), "{seed} is missing");
    }
}

/// The error numbers that docs/rpc.md names once for all methods.
const OF_EVERY_METHOD: &[i32] = &[-32_602, -32_603, -32_052];

#[test]
fn every_method_names_its_errors() {
    let document = read("docs/rpc.md");
    let builders = section(&document, "## 8. ");
    for method in Registry::public().methods() {
        let heading = format!("### `{}`", method.name);
        let text = if is_builder(method) { builders } else { section(&document, &heading) };
        for number in method.errors.iter().filter(|number| !OF_EVERY_METHOD.contains(number)) {
            let written = format!("\u{2212}{}", number.unsigned_abs());
            assert!(text.contains(&written), "{} says {written}", method.name);
        }
    }
}

#[test]
fn the_tags_of_signed_messages_are_described() {
    let document = read("docs/consensus.md");
    let source = read("types/src/sign_bytes.rs");
    let tags: Vec<_> = source
        .lines()
        .filter(|line| line.starts_with("const "))
        .flat_map(|line| line.split("b\"").skip(1))
        .filter_map(|tag| tag.split('"').next())
        .collect();
    assert!(tags.len() >= 6, "the tags are constants: {tags:?}");
    for tag in tags {
        assert!(document.contains(tag), "docs/consensus.md has {tag}");
    }
}

#[test]
fn every_table_is_described_in_the_order_of_the_schema() {
    let document = read("docs/storage.md");
    let described = ["## 2. ", "## 3. "].map(|heading| first_cells(section(&document, heading)));
    let described = described.concat();
    let tables: Vec<_> = store::tables::all().map(|table| table.name).collect();
    assert_eq!(tables, described);
}

#[test]
fn the_readme_lists_every_command() {
    let readme = read("README.md");
    let program = cli::Cli::command();
    for command in program.get_subcommands().map(clap::Command::get_name) {
        assert!(readme.contains(&format!("`ombra {command}`")), "README.md has ombra {command}");
    }
}

/// Every setting with its default, its sections joined with dots.
fn settings(prefix: &str, value: &serde_json::Value, out: &mut BTreeMap<String, String>) {
    let Some(members) = value.as_object() else {
        out.insert(prefix.to_owned(), value.to_string());
        return;
    };
    for (key, value) in members {
        let name = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        settings(&name, value, out);
    }
}

#[test]
fn the_rejections_that_waiting_can_cure_are_listed() {
    let document = read("docs/protocol.md");
    let list = document.lines().find(|line| line.starts_with("Waiting can make"));
    let list = list.expect("docs/protocol.md section 9 lists them");
    for code in Code::ALL {
        assert_eq!(list.contains(&format!("`{code}`")), code.is_transient(), "{code}");
    }
}

#[test]
fn every_setting_is_described_with_its_default() {
    let config = serde_json::to_value(node::config::Config::default()).expect("plain data");
    let mut known = BTreeMap::new();
    settings("", &config, &mut known);
    let (limits, known): (BTreeMap<_, _>, BTreeMap<_, _>) =
        known.into_iter().partition(|(name, _)| name.starts_with("rpc.limits."));

    let document = read("docs/operations.md");
    let rows = table_rows(section(&document, "## 12. ")).into_iter();
    let rows = rows.map(|row| [row[0], row[1]].map(|cell| cell.trim_matches('`').to_owned()));
    let described: BTreeMap<_, _> = rows.map(<(String, String)>::from).collect();
    assert_eq!(known, described);

    let document = read("docs/rpc.md");
    let described = first_cells(section(&document, "### 2.4 "));
    for name in limits.keys().filter_map(|name| name.strip_prefix("rpc.limits.")) {
        assert!(described.iter().any(|described| described == name), "docs/rpc.md lists {name}");
    }
}

#[test]
fn the_meanings_in_new_settings_files_are_those_of_the_documents() {
    let (operations, rpc) = (read("docs/operations.md"), read("docs/rpc.md"));
    let listed =
        [("", section(&operations, "## 12. ")), ("rpc.limits.", section(&rpc, "### 2.4 "))];
    let mut described = BTreeMap::new();
    for (prefix, text) in listed {
        for row in table_rows(text) {
            let key = format!("{prefix}{}", row[0].trim_matches('`'));
            described.insert(key, row[2].replace('*', ""));
        }
    }
    let other = node::config::MEANINGS.iter().filter(|(key, meaning)| {
        !described.get(*key).is_some_and(|described| described.starts_with(meaning))
    });
    let other: Vec<_> = other.map(|(key, meaning)| format!("{key}: {meaning}")).collect();
    assert_none(&other, "the documents' rows on these settings begin with other words");
}

#[test]
fn the_gateway_lists_its_settings() {
    let document = read("docs/gateway.md");
    let rows = table_rows(section(&document, "### 2.2 "));
    // A row that describes the members of a table begins with the table: `[tools.NAME]`.
    let listed = rows.iter().filter_map(|row| code_spans(row[0]).into_iter().next());
    let listed = listed.map(|it| it.trim_matches(['[', ']']));
    let listed: Vec<_> = listed.filter_map(|it| it.split('.').next()).collect();
    assert_eq!(fields_of(&read("gateway/src/settings.rs"), "Settings"), listed);
}

#[test]
fn the_gateway_lists_the_codes_of_its_errors() {
    let document = read("docs/gateway.md");
    let rows = all_table_rows(section(&document, "## 4. "));
    let listed: BTreeSet<_> = rows.iter().flat_map(|row| code_spans(row[0])).collect();
    let source = read("gateway/src/openai/fault.rs");
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let is_code = |text: &&str| {
        let is_word = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        is_word && text.contains('_') && !text.ends_with("_error")
    };
    let mut coded: BTreeSet<_> = source.split('"').skip(1).step_by(2).filter(is_code).collect();
    // It is told of what is asked, in another file.
    coded.insert("context_length_exceeded");
    let listed: BTreeSet<_> = listed.into_iter().filter(is_code).collect();
    assert_eq!(coded, listed);
}
