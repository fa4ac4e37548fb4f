//! The tools of agents of the market: built-in ones whose results depend on their arguments alone.
//!
//! Their results are part of the rules by which members of a committee agree (docs/market.md section 9): a
//! result that changes needs an executor of another name. They have no limit of time here, because whether
//! one is reached depends on the machine; each ends soon for arguments within its bounds.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::arguments::Schema;
use super::hashes::canonical_json;
use super::math::MathEval;
use super::pattern::RegexMatch;
use super::tool::{Code, Failure, Limits, Tool};
use super::toolbox::cut;
use super::{math, pattern, time};
use crate::talk::ToolSpec;

type Run = fn(&Map<String, Value>) -> Result<String, Failure>;

struct Pure {
    spec: ToolSpec,
    schema: Schema,
    run: Run,
}

static PURE: LazyLock<BTreeMap<String, Pure>> = LazyLock::new(|| {
    let tools: [(ToolSpec, Run); 4] = [
        (MathEval::new().spec().clone(), math::run),
        (RegexMatch::new().spec().clone(), pattern::run),
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
    (tool.run)(arguments).map(|result| cut(result, output_bytes_max))
}
