//! Arguments of a method as people type them: by position or by name, JSON for arrays and tuples.

use serde_json::json;
use serde_json::value::RawValue;
use types::abi::{Base, Method, Parameter};

use crate::client::output::one_line;
use crate::client::{CliError, input};

const SHOWN_CHARS_MAX: usize = 80;

/// The arguments as JSON. Where every one is `NAME=…` with the name of an input, they are by name.
///
/// # Errors
/// When they are too few or too many, or one is no JSON where only JSON can say what is meant.
pub(in crate::client) fn as_json(method: &Method, given: &[String]) -> Result<String, CliError> {
    if given.len() != method.inputs.len() {
        let (takes, given) = (method.inputs.len(), given.len());
        let text = format!("{}: {given} arguments, expected {takes}", described(method));
        return Err(CliError::Usage(text));
    }
    let named: Option<Vec<_>> = given.iter().map(|text| split(method, text)).collect();
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        let member = |(input, text): (&Parameter, &str)| {
            Ok(format!("{}:{}", json!(input.name), value(input, &input.name, text)?))
        };
        let members: Result<Vec<String>, CliError> = named.into_iter().map(member).collect();
        return Ok(format!("{{{}}}", members?.join(",")));
    }
    let inputs = method.inputs.iter().zip(given).enumerate();
    let item = |(index, (input, text)): (usize, (&Parameter, &String))| {
        value(input, &format!("{}", index + 1), text)
    };
    let items: Result<Vec<String>, CliError> = inputs.map(item).collect();
    Ok(format!("[{}]", items?.join(",")))
}

/// The selector and the encoded arguments.
///
/// # Errors
/// As for [`as_json`], and when an argument is not of its type.
pub(in crate::client) fn payload(method: &Method, given: &[String]) -> Result<Vec<u8>, CliError> {
    let encoded = method.encode_arguments(&as_json(method, given)?);
    encoded.map_err(|error| CliError::Usage(format!("{}: argument {error}", described(method))))
}

/// `judge(string review, uint8 stars)`.
pub(in crate::client) fn described(method: &Method) -> String {
    let inputs = method.inputs.iter().map(|Parameter { name, of_type }| match name.as_str() {
        "" => of_type.to_string(),
        name => format!("{of_type} {name}"),
    });
    format!("{}({})", method.name, inputs.collect::<Vec<_>>().join(", "))
}

/// The input that is named before `=`, and what stands behind.
fn split<'m, 't>(method: &'m Method, text: &'t str) -> Option<(&'m Parameter, &'t str)> {
    let (name, text) = text.split_once('=')?;
    let input = method.inputs.iter().find(|it| !it.name.is_empty() && it.name == name)?;
    Some((input, text))
}

/// An argument as JSON.
fn value(input: &Parameter, place: &str, text: &str) -> Result<String, CliError> {
    let name = input.of_type.name();
    let is_plain = name.dimensions().is_empty();
    match name.base() {
        Base::String if is_plain => Ok(json!(text).to_string()),
        Base::Bool if is_plain && matches!(text, "true" | "false") => Ok(text.to_owned()),
        Base::Address if is_plain && text.starts_with("dev:") => {
            let address = input::address(text);
            let address =
                address.map_err(|why| CliError::Usage(format!("argument {place}: {why}")))?;
            Ok(json!(address).to_string())
        }
        Base::Bool
        | Base::Address
        | Base::Bytes
        | Base::Uint(_)
        | Base::Int(_)
        | Base::FixedBytes(_)
            if is_plain =>
        {
            Ok(json!(text).to_string())
        }
        Base::String
        | Base::Bool
        | Base::Address
        | Base::Bytes
        | Base::Uint(_)
        | Base::Int(_)
        | Base::FixedBytes(_)
        | Base::Tuple => {
            let read = serde_json::from_str::<&RawValue>(text);
            let read = read.map_err(|error| {
                let (shown, of_type) = (one_line(text, SHOWN_CHARS_MAX), &input.of_type);
                CliError::Usage(format!(
                    "argument {place}: {shown:?}, expected JSON for {of_type}: {error}"
                ))
            })?;
            Ok(read.get().to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    //! What is typed, and what it says.

    use types::abi::{Method, Parameter, Type, TypeName};

    use super::as_json;

    fn method(inputs: &[(&str, &str)]) -> Method {
        let input = |(name, of_type): &(&str, &str)| Parameter {
            name: (*name).to_owned(),
            of_type: Type::new(TypeName::parse(of_type).unwrap(), Vec::new()).unwrap(),
        };
        Method { name: "f".into(), inputs: inputs.iter().map(input).collect(), outputs: Vec::new() }
    }

    fn typed(method: &Method, given: &[&str]) -> Result<String, String> {
        let given: Vec<String> = given.iter().map(ToString::to_string).collect();
        as_json(method, &given).map_err(|error| error.to_string())
    }

    #[test]
    fn plain_values_are_typed_as_they_are_and_others_as_json() {
        let method = method(&[
            ("text", "string"),
            ("n", "int8"),
            ("ok", "bool"),
            ("who", "address"),
            ("list", "uint8[]"),
        ]);
        let dev = "de133ca6f509c74f6e2e849403cc461d2d5b3e3c";
        let by_position = typed(&method, &["a \"b\"", "-5", "true", "dev:0", "[1, 2]"]).unwrap();
        assert_eq!(by_position, format!("[\"a \\\"b\\\"\",\"-5\",true,\"{dev}\",[1, 2]]"));
        let by_name = typed(&method, &["n=-5", "text=x=y", "list=[]", "ok=false", "who=dev:0"]);
        let expected =
            format!("{{\"n\":\"-5\",\"text\":\"x=y\",\"list\":[],\"ok\":false,\"who\":\"{dev}\"}}");
        assert_eq!(by_name, Ok(expected));
    }

    #[test]
    fn a_text_with_an_equals_sign_is_by_name_only_if_all_are() {
        let one = method(&[("text", "string")]);
        assert_eq!(typed(&one, &["other=x"]), Ok("[\"other=x\"]".into()));
        assert_eq!(typed(&one, &["text=text=x"]), Ok("{\"text\":\"text=x\"}".into()));
        let two = method(&[("a", "string"), ("b", "string")]);
        assert_eq!(typed(&two, &["a=1", "2"]), Ok("[\"a=1\",\"2\"]".into()));
    }

    #[test]
    fn what_cannot_be_meant_is_told() {
        let method = method(&[("list", "uint8[]")]);
        let error = typed(&method, &["1 2"]).unwrap_err();
        assert!(error.starts_with("argument 1: \"1 2\", expected JSON for uint8[]"), "{error}");
        let error = typed(&method, &[]).unwrap_err();
        assert_eq!(error, "f(uint8[] list): 0 arguments, expected 1");
    }
}
