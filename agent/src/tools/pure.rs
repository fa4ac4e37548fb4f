//! The tools of agents of the market: built-in ones whose results depend on their arguments alone.
//!
//! Their results are part of the rules by which members of a committee agree (docs/market.md section 9): a
//! result that changes needs an executor of another name. They have no limit of time here, because whether
//! one is reached depends on the machine; bounds on the arguments see to it that each ends soon.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::arguments::Schema;
use super::hashes::canonical_json;
use super::math::MathEval;
use super::outcome::cut_result;
use super::pattern::RegexMatch;
use super::tool::{Code, Failure, Limits, Tool};
use super::{math, pattern, time};
use crate::messages::ToolSpec;

type Run = fn(&Map<String, Value>) -> Result<String, Failure>;

struct Pure {
    spec: ToolSpec,
    schema: Schema,
    run: Run,
}

static PURE: LazyLock<BTreeMap<String, Pure>> = LazyLock::new(|| {
    let tools: [(ToolSpec, Run); 4] = [
        (MathEval::new().spec().clone(), math::run),
        (RegexMatch::new().spec().clone(), pattern::run_bounded),
        (time::parse_spec(), time::parse_date),
        (time::diff_spec(), time::date_difference),
    ];
    let compiled = tools.into_iter().filter_map(|(spec, run)| {
        // A schema of our own; that each compiles is tested.
        let schema = Schema::compile(&spec.parameters).ok()?;
        Some((spec.name.clone(), Pure { spec, schema, run }))
    });
    compiled.collect()
});

/// How a model is told of a tool; none if agents cannot have it.
#[must_use]
pub fn pure_spec(name: &str) -> Option<&'static ToolSpec> {
    PURE.get(name).map(|tool| &tool.spec)
}

/// Calls a tool: the same result for the same arguments, everywhere.
///
/// # Errors
/// [`Failure`] where there is no result; what it says is the same everywhere, too.
pub fn call_pure(name: &str, arguments: &Map<String, Value>) -> Result<String, Failure> {
    let unknown = || Failure::new(Code::UnknownTool, "agents have no such tool");
    let tool = PURE.get(name).ok_or_else(unknown)?;
    let Limits { input_bytes_max, output_bytes_max, timeout: _ } = Limits::DEFAULT;
    let bytes = canonical_json(&Value::Object(arguments.clone())).len();
    if bytes > input_bytes_max {
        let message =
            format!("the arguments have {bytes} bytes: expected at most {input_bytes_max}");
        return Err(Failure::new(Code::BadArguments, message));
    }
    tool.schema.check(arguments)?;
    (tool.run)(arguments).map(|result| cut_result(result, output_bytes_max))
}

#[cfg(test)]
mod tests {
    //! Agents have the tools that metadata may name, with results that are rules.

    use serde_json::json;
    use types::agent::BUILT_IN_TOOLS;

    use super::*;

    fn called(name: &str, arguments: &Value) -> Result<String, String> {
        let arguments = arguments.as_object().expect("an object of arguments");
        call_pure(name, arguments).map_err(|failure| failure.to_string())
    }

    #[test]
    fn every_tool_that_metadata_may_name_is_here() {
        let names: Vec<&str> = PURE.keys().map(String::as_str).collect();
        let mut expected = BUILT_IN_TOOLS.to_vec();
        expected.sort_unstable();
        assert_eq!(names, expected);
        assert!(BUILT_IN_TOOLS.iter().all(|name| pure_spec(name).is_some()));
    }

    #[test]
    fn results_are_part_of_the_rules() {
        for (name, arguments, result) in [
            ("math_eval", json!({"expression": "17 * 23"}), "391"),
            (
                "date_diff",
                json!({"from": "2026-01-01", "to": "2026-02-01"}),
                r#"{"days":31,"monthDays":0,"months":1,"seconds":2678400,"years":0}"#,
            ),
            (
                "date_parse",
                json!({"text": "2026-11-22"}),
                r#"{"dayOfYear":326,"unixMs":1795305600000,"utc":"2026-11-22T00:00:00Z","weekday":"Sunday"}"#,
            ),
            (
                "regex_match",
                json!({"pattern": r"(\d+)-(\d+)", "text": "7-8"}),
                r#"{"matches":[{"groups":{"1":"7","2":"8"},"text":"7-8"}],"more":false}"#,
            ),
        ] {
            assert_eq!(called(name, &arguments).as_deref(), Ok(result), "{name}");
        }
        let refused = called("math_eval", &json!({"expresion": "1"})).expect_err("a wrong name");
        assert!(refused.starts_with("bad_arguments: "), "{refused}");
        let unknown = called("now", &json!({})).expect_err("what depends on the time");
        assert!(unknown.starts_with("unknown_tool: "), "{unknown}");
    }

    #[test]
    fn a_large_pattern_is_for_short_texts() {
        let pattern = "(?:a|aa|aaa|aaaa|aaaaa){1,900}b|a";
        let of = |bytes: usize| json!({"pattern": pattern, "text": "a".repeat(bytes)});
        assert!(called("regex_match", &of(100)).is_ok());
        let refused = called("regex_match", &of(15_000)).expect_err("seconds of work");
        assert!(
            refused.ends_with("a pattern with less repetition, or a shorter text"),
            "{refused}"
        );
    }
}
