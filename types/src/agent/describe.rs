//! What an agent is: rules 2 and 3.

use super::fault::{Spot, is_integer};
use super::reference::{URL, is_url};
use super::{MetadataFault, Pending, Question, Version};
use crate::json::{JsonPlace, Members};

/// What rule 2 wants to be there, in its order.
const REQUIRED: [&str; 5] = ["name", "description", "container_image", "version", "abi"];
/// The most methods.
const METHODS_MAX: usize = 64;
/// The most bytes of a URL, and of the name of an image.
const REFERENCE_BYTES_MAX: usize = 512;
const NAME_BYTES_MAX: usize = 64;
const DESCRIPTION_BYTES_MAX: usize = 4_096;
const AUTHOR_BYTES_MAX: usize = 128;
const TAGS_MAX: usize = 16;
const TAG_BYTES_MAX: usize = 32;
const ATTRIBUTES_MAX: usize = 32;

/// What is kept of rule 2.
pub(super) struct Required {
    pub(super) name: String,
    pub(super) version: Version,
}

/// Rule 2: what must be there.
pub(super) fn required(
    document: Spot<'_, '_>,
    pending: &mut Vec<Pending>,
) -> Result<Required, MetadataFault> {
    let (mut name, mut version) = (None, None);
    for (key, value) in document.members(&REQUIRED)? {
        let place = document.place.key(key);
        let spot = Spot { place: &place, value, rule: document.rule };
        match key {
            "name" => name = Some(read_name(spot)?),
            "description" => {
                spot.text_of(1..=DESCRIPTION_BYTES_MAX)?;
            }
            "container_image" => {
                spot.text_of(1..=REFERENCE_BYTES_MAX)?;
            }
            "version" => {
                let read = Version::parse(spot.text()?);
                let read = read.map_err(|error| spot.fault(error.to_string()))?;
                pending.push(Pending {
                    path: place.pointer(),
                    rule: document.rule,
                    question: Question::Newer(read.clone()),
                });
                version = Some(read);
            }
            "abi" => {
                spot.items(1..=METHODS_MAX)?;
            }
            _ => {}
        }
    }
    Ok(Required {
        name: name.ok_or_else(|| document.missing("name"))?,
        version: version.ok_or_else(|| document.missing("version"))?,
    })
}

fn read_name(spot: Spot<'_, '_>) -> Result<String, MetadataFault> {
    let name = spot.text_of(1..=NAME_BYTES_MAX)?;
    if name.contains(char::is_control) {
        return Err(spot.fault("a name without control characters"));
    }
    Ok(name.to_owned())
}

/// Rule 3: what may be there.
pub(super) fn optional(members: Members<'_>) -> Result<(), MetadataFault> {
    for (key, value) in members {
        let place = JsonPlace::OUTERMOST.key(key);
        let spot = Spot { place: &place, value, rule: 3 };
        match key {
            "image" | "homepage" | "repository" | "external_url" => {
                let is_good = is_url(spot.text_of(0..=REFERENCE_BYTES_MAX)?);
                is_good.then_some(()).ok_or_else(|| spot.fault(URL))?;
            }
            "author" => {
                spot.text_of(0..=AUTHOR_BYTES_MAX)?;
            }
            "tags" => {
                for (index, value) in spot.items(0..=TAGS_MAX)?.enumerate() {
                    let place = place.index(index);
                    Spot { place: &place, value, rule: 3 }.text_of(1..=TAG_BYTES_MAX)?;
                }
            }
            "attributes" => {
                for (index, value) in spot.items(0..=ATTRIBUTES_MAX)?.enumerate() {
                    attribute(Spot { place: &place.index(index), value, rule: 3 })?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn attribute(attribute: Spot<'_, '_>) -> Result<(), MetadataFault> {
    for (key, value) in attribute.members(&["trait_type", "value"])? {
        let place = attribute.place.key(key);
        let spot = Spot { place: &place, value, rule: attribute.rule };
        let is_scalar = || value.as_str().is_some() || value.as_number().is_some_and(is_integer);
        match key {
            "trait_type" => {
                spot.text()?;
            }
            "value" if !is_scalar() => return Err(spot.fault("a string or an integer")),
            _ => {}
        }
    }
    Ok(())
}
