//! What an agent can be asked: rules 4 and 5.

use std::collections::{BTreeMap, BTreeSet};

use super::MetadataFault;
use super::fault::Spot;
use crate::abi::{
    Method, Parameter, TUPLES_MAX, Type, TypeName, TypeNameError, is_identifier, is_reserved,
};
use crate::json::{Items, JsonPlace, Members, Repeats, Value};

/// The most inputs of a method, and the most outputs.
const PARAMETERS_MAX: usize = 32;

/// Rules 4 and 5: the methods of `abi`, of which rule 2 has seen that it is an array.
pub(super) fn read(members: Members<'_>) -> Result<Vec<Method>, MetadataFault> {
    let entries = || members.find("abi").and_then(Value::items).into_iter().flatten().enumerate();
    let abi = JsonPlace::OUTERMOST.key("abi");
    let mut names = BTreeSet::new();
    for (index, value) in entries() {
        entry(Spot { place: &abi.index(index), value, rule: 4 }, &mut names)?;
    }
    let mut methods: Vec<Method> = Vec::new();
    for (index, value) in entries() {
        methods.push(method(Spot { place: &abi.index(index), value, rule: 5 })?);
    }
    let mut selectors = BTreeMap::new();
    for ((index, value), method) in entries().zip(&methods) {
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
fn entry<'t>(entry: Spot<'_, 't>, names: &mut BTreeSet<&'t str>) -> Result<(), MetadataFault> {
    for (key, value) in entry.members(&["type", "name", "inputs", "outputs"])? {
        let place = entry.place.key(key);
        let spot = Spot { place: &place, value, rule: entry.rule };
        match key {
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
fn method(entry: Spot<'_, '_>) -> Result<Method, MetadataFault> {
    let members = entry.members(&[])?;
    let name = members.find("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut method = Method { name, inputs: Vec::new(), outputs: Vec::new() };
    for (key, value) in members {
        let place = entry.place.key(key);
        let parameters =
            || value.items().map_or(Ok(Vec::new()), |it| list(&place, it, entry.rule, 0));
        match key {
            "inputs" => method.inputs = parameters()?,
            "outputs" => method.outputs = parameters()?,
            _ => {}
        }
    }
    Ok(method)
}

/// Inputs, outputs, or the components of the innermost of so many tuples.
fn list(
    place: &JsonPlace<'_>,
    items: Items<'_>,
    rule: u8,
    tuples: u8,
) -> Result<Vec<Parameter>, MetadataFault> {
    let repeated = first_repeated(items);
    let mut parameters = Vec::with_capacity(items.len());
    for (index, value) in items.enumerate() {
        let place = place.index(index);
        let spot = Spot { place: &place, value, rule };
        parameters.push(parameter(spot, repeated == Some(index), tuples)?);
    }
    Ok(parameters)
}

/// The first parameter whose name one before it has.
fn first_repeated(items: Items<'_>) -> Option<usize> {
    let names = items.map(|item| {
        let name = item.members().and_then(|it| it.find("name"));
        name.and_then(Value::as_str).unwrap_or_default()
    });
    let names: Vec<_> = names.collect();
    let mut repeats = Repeats::with_capacity(names.len());
    for (place, name) in (0..).zip(&names) {
        if !name.is_empty() {
            repeats.push(name, place);
        }
    }
    let name_at = |place| {
        let index = usize::try_from(place).unwrap_or(usize::MAX);
        names.get(index).copied().unwrap_or_default()
    };
    repeats.first(name_at).and_then(|place| usize::try_from(place).ok())
}

/// What a parameter has.
#[derive(Clone, Copy, Default)]
struct Parts<'t> {
    name: Option<Value<'t>>,
    of_type: Option<Value<'t>>,
    components: Option<Value<'t>>,
}

impl<'t> Parts<'t> {
    fn of(members: Members<'t>) -> Self {
        let mut parts = Self::default();
        for (key, value) in members {
            match key {
                "name" => parts.name = Some(value),
                "type" => parts.of_type = Some(value),
                "components" => parts.components = Some(value),
                _ => {}
            }
        }
        parts
    }
}

fn parameter(
    parameter: Spot<'_, '_>,
    is_repeated: bool,
    tuples: u8,
) -> Result<Parameter, MetadataFault> {
    let members = parameter.members(&[])?;
    let parts = Parts::of(members);
    parts.name.ok_or_else(|| parameter.missing("name"))?;
    let of_type = parts.of_type.ok_or_else(|| parameter.missing("type"))?;
    let type_name = of_type.as_str().map(TypeName::parse);
    // Unknown where the type is none.
    let is_tuple = type_name.as_ref().and_then(|name| name.as_ref().ok()).map(TypeName::is_tuple);
    if is_tuple == Some(true) && parts.components.is_none() {
        return Err(parameter.missing("components"));
    }
    let (mut name, mut components) = ("", Vec::new());
    for (key, value) in members {
        let place = parameter.place.key(key);
        let spot = Spot { place: &place, value, rule: parameter.rule };
        match (key, is_tuple) {
            ("name", _) => name = parameter_name(spot, is_repeated)?,
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
fn parameter_name<'t>(spot: Spot<'_, 't>, is_repeated: bool) -> Result<&'t str, MetadataFault> {
    let name = spot.value.as_str().filter(|name| name.is_empty() || is_identifier(name));
    let name = name.ok_or_else(|| spot.fault("an identifier of Solidity, or an empty string"))?;
    if is_repeated {
        return Err(spot.fault("a name that no parameter before it has"));
    }
    Ok(name)
}

fn check_type(
    spot: Spot<'_, '_>,
    type_name: Option<&Result<TypeName, TypeNameError>>,
) -> Result<(), MetadataFault> {
    match type_name {
        Some(Ok(_)) => Ok(()),
        Some(Err(error)) => Err(spot.fault(error.to_string())),
        None => Err(spot.fault("a string")),
    }
}
