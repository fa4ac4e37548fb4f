//! How miners run an agent, and what a call of it costs in addition to the work: rules 6 and 7.

use super::fault::Spot;
use super::reference::{is_image, is_ipfs};
use super::{Executor, MetadataFault, Pending, Question, Tool};
use crate::json::{JsonPlace, Members, Value};
use crate::tx::value::{BLOB_ID, is_blob_id};
use crate::{Amount, Hash};

/// The most rounds of a model and its tools, and the most tokens of one answer of it.
const ITERATIONS_MAX: u64 = 64;
const OUTPUT_TOKENS_MAX: u64 = 4_096;

/// The most tools: each agent among them costs a read of the state.
const TOOLS_MAX: usize = 16;

/// What an image of a container is, for messages.
const IMAGE: &str = "an image with its digest, NAME@sha256:HEX, or an ipfs: URL";
/// What a manifest is, for messages.
const MANIFEST: &str = "a manifest of 64 lowercase hex characters";

/// How an agent is run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Container,
    Model,
    Wasm,
}

impl Mode {
    fn parse(value: Value<'_>) -> Option<Self> {
        match value.as_str()? {
            "container" => Some(Self::Container),
            "model" => Some(Self::Model),
            "wasm" => Some(Self::Wasm),
            _ => None,
        }
    }

    /// What must be there, in the order of the rule.
    const fn required(self) -> &'static [&'static str] {
        match self {
            Self::Container => &["kind"],
            Self::Model => {
                &["kind", "model", "basePrompt", "tools", "maxIterations", "maxOutputTokens"]
            }
            Self::Wasm => &["kind", "blobId", "runtime", "tools"],
        }
    }
}

/// Rule 6: what runs it and its tools. Rule 2 has seen that `container_image` is a string.
pub(super) fn executor(
    document: Spot<'_, '_>,
    pending: &mut Vec<Pending>,
) -> Result<(Executor, Vec<Tool>), MetadataFault> {
    let members = document.members(&[])?;
    let place = |wanted: &str| members.into_iter().position(|(key, _)| key == wanted);
    let value = document.members(&["container_image"])?.find("container_image");
    let image_place = JsonPlace::OUTERMOST.key("container_image");
    let image = Spot { place: &image_place, value: value.unwrap_or(document.value), rule: 6 };
    let executor_place = JsonPlace::OUTERMOST.key("executor");
    let Some(value) = members.find("executor") else {
        agrees(image, Mode::Container, None)?;
        return Ok((container(image), Vec::new()));
    };
    let spot = Spot { place: &executor_place, value, rule: 6 };
    // Whatever stands first in the text, what is missing is told before.
    let inner = value.members();
    let mode = inner.and_then(|it| it.find("kind")).and_then(Mode::parse);
    if inner.is_some() {
        spot.members(mode.map_or(&["kind"], Mode::required))?;
    }
    let agrees = || mode.map_or(Ok(()), |mode| agrees(image, mode, inner));
    if place("container_image") < place("executor") {
        agrees()?;
        read(spot, image, pending)
    } else {
        let read = read(spot, image, pending)?;
        agrees()?;
        Ok(read)
    }
}

/// Whether the image says what the executor says, as far as that is well-formed.
fn agrees(
    image: Spot<'_, '_>,
    mode: Mode,
    executor: Option<Members<'_>>,
) -> Result<(), MetadataFault> {
    let text = image.text()?;
    let of = |key| executor.and_then(|it| it.find(key)).and_then(Value::as_str);
    let wanted = match mode {
        Mode::Container if is_image(text) || is_ipfs(text) => return Ok(()),
        Mode::Container => return Err(image.fault(IMAGE)),
        Mode::Model => of("model").filter(|id| is_hash(id)).map(|id| format!("ombra-model:{id}")),
        Mode::Wasm => of("blobId").filter(|id| is_blob_id(id)).map(|id| format!("ombra-blob:{id}")),
    };
    match wanted {
        Some(wanted) if wanted != text => Err(image.fault(format!("\"{wanted}\""))),
        Some(_) | None => Ok(()),
    }
}

fn is_hash(text: &str) -> bool {
    Hash::parse(text).is_ok()
}

fn container(image: Spot<'_, '_>) -> Executor {
    Executor::Container { image: Hash::digest(image.value.as_str().unwrap_or_default().as_bytes()) }
}

/// The members of `executor` in the order of the text; what is required is there.
fn read(
    executor: Spot<'_, '_>,
    image: Spot<'_, '_>,
    pending: &mut Vec<Pending>,
) -> Result<(Executor, Vec<Tool>), MetadataFault> {
    let members = executor.members(&["kind"])?;
    let mode = members.find("kind").and_then(Mode::parse);
    let (mut tools, mut manifest, mut blob_id) = (Vec::new(), None, None);
    for (key, value) in members {
        let place = executor.place.key(key);
        let spot = Spot { place: &place, value, rule: executor.rule };
        match (key, mode) {
            ("kind", None) => return Err(spot.fault("container, model or wasm")),
            ("model", Some(Mode::Model | Mode::Wasm)) => {
                let hash = value.as_str().and_then(|text| Hash::parse(text).ok());
                manifest = Some(hash.ok_or_else(|| spot.fault(MANIFEST))?);
            }
            ("basePrompt", Some(Mode::Model)) => {
                spot.text()?;
            }
            ("maxIterations", Some(Mode::Model)) => {
                spot.integer(1..=ITERATIONS_MAX)?;
            }
            ("maxOutputTokens", Some(Mode::Model)) => {
                spot.integer(1..=OUTPUT_TOKENS_MAX)?;
            }
            ("blobId", Some(Mode::Wasm)) => blob_id = Some(program(spot, pending)?),
            ("runtime", Some(Mode::Wasm)) if value.as_str() != Some("wasm-1") => {
                return Err(spot.fault("\"wasm-1\""));
            }
            ("tools", Some(Mode::Model | Mode::Wasm)) => tools = read_tools(spot, pending)?,
            _ => {}
        }
    }
    let read = match mode {
        None | Some(Mode::Container) => container(image),
        Some(Mode::Model) => {
            Executor::Model { manifest: manifest.ok_or_else(|| executor.missing("model"))? }
        }
        Some(Mode::Wasm) => {
            let blob_id = blob_id.ok_or_else(|| executor.missing("blobId"))?;
            Executor::Wasm { blob_id, manifest }
        }
    };
    Ok((read, tools))
}

fn program(spot: Spot<'_, '_>, pending: &mut Vec<Pending>) -> Result<String, MetadataFault> {
    let id = spot.value.as_str().filter(|id| is_blob_id(id));
    let blob_id = id.ok_or_else(|| spot.fault(BLOB_ID))?.to_owned();
    let question = Question::Program { blob_id: blob_id.clone() };
    pending.push(Pending { path: spot.place.pointer(), rule: spot.rule, question });
    Ok(blob_id)
}

fn read_tools(spot: Spot<'_, '_>, pending: &mut Vec<Pending>) -> Result<Vec<Tool>, MetadataFault> {
    let mut tools = Vec::new();
    for (index, value) in spot.items(0..=TOOLS_MAX)?.enumerate() {
        let place = spot.place.index(index);
        let spot = Spot { place: &place, value, rule: spot.rule };
        let tool = value.as_str().and_then(Tool::parse);
        let tool = tool.ok_or_else(|| spot.fault(Tool::EXPECTED))?;
        if let Tool::Agent { id, version } = &tool {
            let question = Question::Nested { id: *id, version: version.clone() };
            pending.push(Pending { path: place.pointer(), rule: spot.rule, question });
        }
        tools.push(tool);
    }
    Ok(tools)
}

/// Rule 7: what the owner gets for each successful call.
pub(super) fn royalty(members: Members<'_>, max: Amount) -> Result<Amount, MetadataFault> {
    let Some(value) = members.find("royalty") else { return Ok(Amount::ZERO) };
    let spot = Spot { place: &JsonPlace::OUTERMOST.key("royalty"), value, rule: 7 };
    let amount = value.as_str().and_then(|text| Amount::parse(text).ok());
    amount.filter(|amount| *amount <= max).ok_or_else(|| {
        spot.fault(format!("a decimal string of micro-OMBRA from \"0\" to \"{max}\""))
    })
}
