//! `math_eval`: exact arithmetic on whole numbers and fractions.

mod exact;
mod expression;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::definition::{computed, spec, terms, text};
use super::tool::{Class, Code, Failure, Terms, Tool};
use crate::messages::ToolSpec;
use expression::MathFault;

/// Characters of an expression.
const CHARACTERS_MAX: usize = 1000;

/// The tool `math_eval`.
#[derive(Debug)]
pub(super) struct MathEval {
    spec: ToolSpec,
}

impl MathEval {
    pub(super) fn new() -> Self {
        let properties = json!({
            "expression": {
                "type": "string", "maxLength": CHARACTERS_MAX,
                "description": "for example (2^64 - 1) * 3 / 4",
            },
        });
        let what = "Calculates exactly: + - * / ^ parentheses, % (the remainder, with the sign of \
                    the left side), min(a, b, ...), max(a, b, ...), abs(x), floor(x), ceil(x), \
                    round(x), sqrt(x).";
        Self { spec: spec("math_eval", what, &properties, &["expression"]) }
    }
}

#[async_trait]
impl Tool for MathEval {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn terms(&self) -> Terms {
        terms(Class::Pure)
    }

    async fn call(&self, arguments: &Map<String, Value>) -> Result<String, Failure> {
        let arguments = arguments.clone();
        computed(move || run(&arguments)).await
    }
}

/// The result, which depends on the arguments alone.
pub(super) fn run(arguments: &Map<String, Value>) -> Result<String, Failure> {
    evaluate(text(arguments, "expression"))
}

fn evaluate(expression: &str) -> Result<String, Failure> {
    let evaluated = expression::evaluate(expression);
    let (value, is_exact) = evaluated.map_err(|fault| match fault {
        MathFault::Syntax { .. } | MathFault::TooDeep => {
            Failure::new(Code::BadArguments, format!("argument expression: {fault}"))
        }
        MathFault::TooLarge
        | MathFault::ZeroDivision
        | MathFault::Exponent
        | MathFault::NegativeRoot => Failure::failed(fault.to_string()),
    })?;
    Ok(exact::written(&value, is_exact))
}

#[cfg(test)]
mod tests;
