//! What an agent can be asked: rules 4 and 5.

use std::collections::{BTreeMap, BTreeSet};

use super::Fault;
use super::fault::{Members, Spot, find};
use crate::abi::{
    Method, Parameter, TUPLES_MAX, Type, TypeName, TypeNameError, is_identifier, is_reserved,
};
use crate::json::{Json, Place};

/// The most inputs of a method, and the most outputs.
const PARAMETERS_MAX: usize = 32;

/// Rules 4 and 5: the methods of `abi`, of which rule 2 has seen that it is an array.
pub(super) fn read(members: &Members<'_>) -> Result<Vec<Method>, Fault> {
    let entries = find(members, "abi").and_then(Json::as_array).unwrap_or_default();
    let abi = Place::OUTERMOST.key("abi");
    let mut names = BTreeSet::new();
    for (index, value) in entries.iter().enumerate() {
        entry(Spot { place: &abi.index(index), value, rule: 4 }, &mut names)?;
    }
    let mut methods: Vec<Method> = Vec::new();
    for (index, value) in entries.iter().enumerate() {
        methods.push(method(Spot { place: &abi.index(index), value, rule: 5 })?);
    }
    let mut selectors = BTreeMap::new();
    for ((index, value), method) in entries.iter().enumerate().zip(&methods) {
        let (selector, place) = (method.selector(), abi.index(index));
        if let Some(earlier) = selectors.insert(selector, &method.name) {
            let spot = Spot { place: &place, value, rule: 4 };
            let found = format!("{selector}, that of {earlier}");
            return Err(spot.fault_of("a selector that no method before it has", found));
        }
    }
    Ok(methods)
}

/// Rule 4: an entry of `abi`.
fn entry<'m>(entry: Spot<'_, 'm, '_>, names: &mut BTreeSet<&'m str>) -> Result<(), Fault> {
    for (key, value) in entry.members(&["type", "name", "inputs", "outputs"])? {
        let place = entry.place.key(key);
        let spot = Spot { place: &place, value, rule: entry.rule };
        match key.as_ref() {
            "type" if value.as_str() != Some("function") => {
                return Err(spot.fault("\"function\""));
            }
            "name" => {
                let name = value.as_str().filter(|name| is_identifier(name) && !is_reserved(name));
                let name = name.ok_or_else(|| {
                    spot.fault("an identifier of Solidity that is no word of the language")
                })?;
                if !names.insert(name) {
                    return Err(spot.fault("a name that no method before it has"));
                }
            }
            "inputs" | "outputs" => {
                spot.items(0..=PARAMETERS_MAX)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Rule 5: an entry that keeps rule 4.
fn method(entry: Spot<'_, '_, '_>) -> Result<Method, Fault> {
    let members = entry.members(&[])?;
    let name = find(members, "name").and_then(Json::as_str).unwrap_or_default().to_owned();
    let mut method = Method { name, inputs: Vec::new(), outputs: Vec::new() };
    for (key, value) in members {
        let place = entry.place.key(key);
        let parameters = || list(&place, value.as_array().unwrap_or_default(), entry.rule, 0);
        match key.as_ref() {
            "inputs" => method.inputs = parameters()?,
            "outputs" => method.outputs = parameters()?,
            _ => {}
        }
    }
    Ok(method)
}

/// Inputs, outputs, or the components of the innermost of so many tuples.
fn list(
    place: &Place<'_>,
    items: &[Json<'_>],
    rule: u8,
    tuples: u8,
) -> Result<Vec<Parameter>, Fault> {
    let mut names = BTreeSet::new();
    let mut parameters = Vec::with_capacity(items.len());
    for (index, value) in items.iter().enumerate() {
        let place = place.index(index);
        parameters.push(parameter(Spot { place: &place, value, rule }, &mut names, tuples)?);
    }
    Ok(parameters)
}

fn parameter<'m>(
    parameter: Spot<'_, 'm, '_>,
    names: &mut BTreeSet<&'m str>,
    tuples: u8,
) -> Result<Parameter, Fault> {
    let members = parameter.members(&["name", "type"])?;
    let type_name = find(members, "type").and_then(Json::as_str).map(TypeName::parse);
    // Unknown where the type is none.
    let is_tuple = type_name.as_ref().and_then(|name| name.as_ref().ok()).map(TypeName::is_tuple);
    if is_tuple == Some(true) {
        parameter.members(&["components"])?;
    }
    let (mut name, mut components) = ("", Vec::new());
    for (key, value) in members {
        let place = parameter.place.key(key);
        let spot = Spot { place: &place, value, rule: parameter.rule };
        match (key.as_ref(), is_tuple) {
            ("name", _) => name = parameter_name(spot, names)?,
            ("type", Some(true)) if tuples >= TUPLES_MAX => {
                return Err(
                    spot.fault(format!("a type that is no tuple, {TUPLES_MAX} tuples deep"))
                );
            }
            ("type", _) => check_type(spot, type_name.as_ref())?,
            ("components", Some(true)) => {
                let items = spot.items(1..=usize::MAX)?;
                components = list(&place, items, spot.rule, tuples.saturating_add(1))?;
            }
            ("components", Some(false)) => return Err(spot.fault("no components but of tuples")),
            _ => {}
        }
    }
    let type_name = type_name.and_then(Result::ok).ok_or_else(|| parameter.missing("type"))?;
    let of_type = Type::new(type_name, components);
    let of_type = of_type.map_err(|error| parameter.fault(error.to_string()))?;
    Ok(Parameter { name: name.to_owned(), of_type })
}

/// A name of a parameter: an identifier, words of the language among them, or nothing.
fn parameter_name<'m>(
    spot: Spot<'_, 'm, '_>,
    names: &mut BTreeSet<&'m str>,
) -> Result<&'m str, Fault> {
    let name = spot.value.as_str().filter(|name| name.is_empty() || is_identifier(name));
    let name = name.ok_or_else(|| spot.fault("an identifier of Solidity, or an empty string"))?;
    if name.is_empty() || names.insert(name) {
        return Ok(name);
    }
    Err(spot.fault("a name that no parameter before it has"))
}

fn check_type(
    spot: Spot<'_, '_, '_>,
    type_name: Option<&Result<TypeName, TypeNameError>>,
) -> Result<(), Fault> {
    match type_name {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(spot.fault(error.to_string())),
        None => Err(spot.fault("a string")),
    }
}
