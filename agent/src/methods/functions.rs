//! Tools that a requester runs, declared as signatures of Solidity functions
//! (docs/agent-methods.md section 7).

use std::collections::BTreeSet;

use alloy_dyn_abi::{DynSolType, DynSolValue, JsonAbiExt, Specifier};
use alloy_json_abi::Function as Abi;
use serde_json::{Map, Value, json};
use types::text::{Quoted, shorten};

use super::abi;
use super::refused::{Refused, bytes_at_most, entries_at_most};
use crate::messages::ToolSpec;

/// The most functions of a request.
pub const FUNCTIONS_MAX: usize = 64;
/// The most bytes of a signature.
pub const SIGNATURE_BYTES_MAX: usize = 1_024;
/// The most bytes of a description.
pub const DESCRIPTION_BYTES_MAX: usize = 4_096;
/// The most parameters of a function.
pub const PARAMETERS_MAX: usize = 32;
/// The most bytes of a function's name, as tools have it.
pub const NAME_BYTES_MAX: usize = 64;
/// The most bytes of an encoded call, its selector included.
pub const CALLDATA_BYTES_MAX: usize = 65_536;

const SHAPE: &str = "name(type name, …) and nothing else, the name 1 to 64 of [A-Za-z0-9_], not beginning with a digit";

/// A function as a requester declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// `swap(address token, uint256 amount)`.
    pub signature: String,
    /// What it does, for the model.
    pub description: String,
}

/// The functions of a request, each with a name and a selector of its own.
#[derive(Clone, Debug, Default)]
pub struct Functions(Vec<Function>);

/// One function.
#[derive(Clone, Debug)]
struct Function {
    abi: Abi,
    parameters: Vec<(String, DynSolType)>,
    description: String,
}

/// What a call turns out to be.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedCall {
    /// The function.
    pub name: String,
    /// Its arguments, in the form in which a model gives them.
    pub arguments: Map<String, Value>,
}

impl Functions {
    /// Reads declarations; `field` names their list in messages.
    ///
    /// # Errors
    /// A signature that is not one, a type that is not taken, a name that occurs twice, a limit.
    pub fn parse(field: &str, declarations: &[Declaration]) -> Result<Self, Refused> {
        entries_at_most(field, declarations.len(), FUNCTIONS_MAX)?;
        let mut functions: Vec<Function> = Vec::new();
        for (index, Declaration { signature, description }) in declarations.iter().enumerate() {
            let path = format!("{field}[{index}].signature");
            let function = Function::parse(&path, signature)?;
            bytes_at_most(
                &format!("{field}[{index}].description"),
                description,
                DESCRIPTION_BYTES_MAX,
            )?;
            let twin = functions.iter().find(|other| {
                other.abi.name == function.abi.name
                    || other.abi.selector() == function.abi.selector()
            });
            if let Some(twin) = twin {
                let expected =
                    format!("another name and another selector than {}", twin.abi.signature());
                return Err(Refused::new(path, signature, expected));
            }
            functions.push(Function { description: description.clone(), ..function });
        }
        Ok(Self(functions))
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is a function of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The functions as a model sees them, in the order of their declarations.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.0.iter().map(Function::spec).collect()
    }

    /// The calldata of a call: the selector and the encoded arguments.
    ///
    /// # Errors
    /// A sentence for the model: the argument, its value, and what was expected.
    pub fn encode(&self, name: &str, arguments: &Map<String, Value>) -> Result<Vec<u8>, String> {
        let function =
            self.find(name).ok_or_else(|| format!("there is no function {}", Quoted(name)))?;
        let names: BTreeSet<&str> =
            function.parameters.iter().map(|(name, _)| name.as_str()).collect();
        if let Some(unknown) = arguments.keys().find(|key| !names.contains(key.as_str())) {
            let known: Vec<_> = function.parameters.iter().map(|(name, _)| name.as_str()).collect();
            let known = if known.is_empty() { "no arguments".to_owned() } else { known.join(", ") };
            return Err(format!(
                "{name} has no argument {}; it has {known}",
                Quoted(&shorten(unknown))
            ));
        }
        let value = |(parameter, of_type): &(String, DynSolType)| {
            let given = arguments.get(parameter).ok_or_else(|| {
                format!("{parameter} is missing; expected {}", abi::expected(of_type))
            })?;
            abi::to_solidity(parameter, of_type, given)
        };
        let values: Vec<_> =
            function.parameters.iter().map(value).collect::<Result<_, String>>()?;
        let calldata = function.abi.abi_encode_input(&values).map_err(|e| e.to_string())?;
        if calldata.len() > CALLDATA_BYTES_MAX {
            let length = calldata.len();
            return Err(format!(
                "the call takes {length} bytes; expected at most {CALLDATA_BYTES_MAX}"
            ));
        }
        Ok(calldata)
    }

    /// Reads calldata back. What is accepted is exactly what [`Self::encode`] writes.
    ///
    /// # Errors
    /// No function has this selector, or the rest is not the encoding of its arguments.
    pub fn decode(&self, calldata: &[u8]) -> Result<DecodedCall, Refused> {
        let shown = || const_hex::encode_prefixed(calldata.get(..40).unwrap_or(calldata));
        let refused = |expected: &str| Refused::new("calldata", shown(), expected);
        if calldata.len() > CALLDATA_BYTES_MAX {
            return Err(refused("at most 65536 bytes"));
        }
        let (selector, rest) =
            calldata.split_at_checked(4).ok_or_else(|| refused("a selector of 4 bytes"))?;
        let mut all = self.0.iter();
        let function = all
            .find(|function| function.abi.selector().as_slice() == selector)
            .ok_or_else(|| refused("the selector of a declared function"))?;
        let not_arguments = || refused(&format!("the arguments of {}", function.abi.signature()));
        let values = function.abi.abi_decode_input(rest).ok().ok_or_else(not_arguments)?;
        let named = function.parameters.iter().zip(&values);
        let arguments = named
            .map(|((name, _), value): (&(String, DynSolType), &DynSolValue)| {
                abi::to_json(value).map(|value| (name.clone(), value))
            })
            .collect::<Option<_>>()
            .ok_or_else(not_arguments)?;
        // The decoder takes more than one encoding of a value, and a uint8 of two bytes.
        let name = function.abi.name.clone();
        if self.encode(&name, &arguments).ok().as_deref() != Some(calldata) {
            return Err(not_arguments());
        }
        Ok(DecodedCall { name, arguments })
    }

    fn find(&self, name: &str) -> Option<&Function> {
        self.0.iter().find(|function| function.abi.name == name)
    }
}

impl Function {
    fn parse(path: &str, signature: &str) -> Result<Self, Refused> {
        bytes_at_most(path, signature, SIGNATURE_BYTES_MAX)?;
        let refused = |expected: String| Refused::new(path, signature, expected);
        // Checked before the parser sees it: tuples, modifiers and results are not taken, and
        // nothing that nests reaches a parser that recurses.
        let (name, rest) = signature.split_once('(').ok_or_else(|| refused(SHAPE.to_owned()))?;
        let parameters = rest.strip_suffix(')').ok_or_else(|| refused(SHAPE.to_owned()))?;
        // The parser takes a comma behind the last parameter, and minds white space.
        let is_list = parameters.trim().is_empty()
            || parameters.split(',').all(|parameter| !parameter.trim().is_empty());
        if !is_name(name) || !is_list || parameters.contains(['(', ')']) {
            return Err(refused(SHAPE.to_owned()));
        }
        let words = |parameter: &str| parameter.split_whitespace().collect::<Vec<_>>().join(" ");
        let parameters = parameters.split(',').map(words).collect::<Vec<_>>().join(",");
        let abi = Abi::parse(&format!("{name}({parameters})"));
        let abi = abi.ok().ok_or_else(|| refused(SHAPE.to_owned()))?;
        entries_at_most(path, abi.inputs.len(), PARAMETERS_MAX)?;
        let mut parameters: Vec<(String, DynSolType)> = Vec::new();
        for (index, input) in abi.inputs.iter().enumerate() {
            let of_type = input.resolve().ok().filter(abi::is_taken);
            let of_type = of_type
                .ok_or_else(|| Refused::new(path, format_args!("type {}", input.ty), abi::TYPES))?;
            let name =
                if input.name.is_empty() { format!("arg{index}") } else { input.name.clone() };
            if parameters.iter().any(|(other, _)| *other == name) {
                return Err(Refused::new(
                    path,
                    format_args!("parameter {name} twice"),
                    "parameters with names of their own",
                ));
            }
            parameters.push((name, of_type));
        }
        Ok(Self { abi, parameters, description: String::new() })
    }

    fn spec(&self) -> ToolSpec {
        let properties: Map<String, Value> = self
            .parameters
            .iter()
            .map(|(name, of_type)| (name.clone(), abi::schema(of_type)))
            .collect();
        let required: Vec<_> = self.parameters.iter().map(|(name, _)| name).collect();
        ToolSpec {
            name: self.abi.name.clone(),
            description: self.description.clone(),
            parameters: json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            }),
        }
    }
}

fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len())
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests;
