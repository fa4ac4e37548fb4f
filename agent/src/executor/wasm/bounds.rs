//! How large the parts of a program may be: without bounds, a small program could make a member compile
//! for minutes, take a gigabyte once compiled, or clear a megabyte for each unit of fuel.
//!
//! The programs of 3.9 MB that take the most: 102 MiB (a conditional branch with a value after each call, 20
//! bytes for each byte of it, and one function of 87,000 blocks within one another), and 0.4 s of a processor
//! (calls with 32 parameters in code that is never reached).

use wasmparser::{CompositeInnerType, ElementItems, Parser, Payload, TypeRef};

/// The most bytes of a program.
pub(super) const PROGRAM_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The most bytes of its memory.
pub(super) const MEMORY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The most elements of its table.
pub(super) const TABLE_ELEMENTS_MAX: u64 = 16_384;

const FUNCTIONS_MAX: u64 = 16_384;
const TYPES_MAX: u64 = 4_096;
const IMPORTS_MAX: u64 = 64;
const EXPORTS_MAX: u64 = 1_024;
const GLOBALS_MAX: u64 = 1_024;
const SEGMENTS_MAX: u64 = 4_096;
/// The most elements of all element segments: each takes a byte before it is compiled, and 24 after.
const SEGMENT_ELEMENTS_MAX: u64 = 16_384;
const PARAMETERS_MAX: u64 = 32;
/// The most results of a function. Each branch copies what it takes along, so with more results a few bytes
/// of a program would become a kilobyte. A block has at most one result, too, and no parameters, because
/// the proposal multi-value is off.
const RESULTS_MAX: u64 = 1;
const LOCALS_MAX: u64 = 1_024;
const BODY_BYTES_MAX: u64 = 256 * 1024;

/// Checks the sizes of a module's parts. It may be no module all the same.
///
/// # Errors
/// Which part is too large, or where this is no module.
pub(super) fn check(module: &[u8]) -> Result<(), String> {
    if module.len() > PROGRAM_BYTES_MAX {
        return Err(above("bytes", module.len() as u64, PROGRAM_BYTES_MAX as u64));
    }
    for payload in Parser::new(0).parse_all(module) {
        part(payload.map_err(text)?)?;
    }
    Ok(())
}

fn part(payload: Payload<'_>) -> Result<(), String> {
    match payload {
        Payload::TypeSection(types) => {
            within("types", types.count().into(), TYPES_MAX)?;
            types
                .into_iter()
                .try_for_each(|group| group.map_err(text).and_then(|it| signatures(&it)))
        }
        Payload::ImportSection(imports) => {
            within("imports", imports.count().into(), IMPORTS_MAX)?;
            imports.into_iter().try_for_each(|import| match import.map_err(text)?.ty {
                TypeRef::Func(_) => Ok(()),
                TypeRef::Table(_) | TypeRef::Memory(_) | TypeRef::Global(_) | TypeRef::Tag(_) => {
                    Err("an import that is no function".to_owned())
                }
            })
        }
        Payload::FunctionSection(functions) => {
            within("functions", functions.count().into(), FUNCTIONS_MAX)
        }
        Payload::TableSection(tables) => tables.into_iter().try_for_each(|table| {
            within("elements of a table", table.map_err(text)?.ty.initial, TABLE_ELEMENTS_MAX)
        }),
        Payload::MemorySection(memories) => memories.into_iter().try_for_each(|memory| {
            let pages = memory.map_err(text)?.initial;
            let bytes = pages.saturating_mul(65_536);
            within("bytes of memory", bytes, MEMORY_BYTES_MAX as u64)
        }),
        Payload::GlobalSection(globals) => within("globals", globals.count().into(), GLOBALS_MAX),
        Payload::ExportSection(exports) => within("exports", exports.count().into(), EXPORTS_MAX),
        Payload::ElementSection(it) => {
            within("segments", it.count().into(), SEGMENTS_MAX)?;
            let mut elements = 0_u64;
            for segment in it {
                elements = elements.saturating_add(items(&segment.map_err(text)?.items));
            }
            within("elements of the segments", elements, SEGMENT_ELEMENTS_MAX)
        }
        Payload::DataSection(it) => within("segments", it.count().into(), SEGMENTS_MAX),
        Payload::StartSection { .. } => Err("a start function".to_owned()),
        Payload::CodeSectionEntry(body) => {
            let range = body.range();
            let bytes = range.end.saturating_sub(range.start) as u64;
            within("bytes of a function", bytes, BODY_BYTES_MAX)?;
            let mut locals = 0_u64;
            for group in body.get_locals_reader().map_err(text)? {
                locals = locals.saturating_add(group.map_err(text)?.0.into());
            }
            within("locals of a function", locals, LOCALS_MAX)
        }
        // What else there may be is either checked with the module or has no weight.
        Payload::Version { .. }
        | Payload::TagSection(_)
        | Payload::DataCountSection { .. }
        | Payload::CodeSectionStart { .. }
        | Payload::CustomSection(_)
        | Payload::UnknownSection { .. }
        | Payload::End(_)
        | _ => Ok(()),
    }
}

fn signatures(group: &wasmparser::RecGroup) -> Result<(), String> {
    group.types().try_for_each(|of_type| match &of_type.composite_type.inner {
        CompositeInnerType::Func(function) => {
            within("parameters of a type", function.params().len() as u64, PARAMETERS_MAX)?;
            within("results of a type", function.results().len() as u64, RESULTS_MAX)
        }
        CompositeInnerType::Array(_)
        | CompositeInnerType::Struct(_)
        | CompositeInnerType::Cont(_) => Err("a type that is no function".to_owned()),
    })
}

fn items(items: &ElementItems<'_>) -> u64 {
    match items {
        ElementItems::Functions(functions) => functions.count().into(),
        ElementItems::Expressions(_, expressions) => expressions.count().into(),
    }
}

fn within(what: &str, found: u64, most: u64) -> Result<(), String> {
    if found > most { Err(above(what, found, most)) } else { Ok(()) }
}

fn above(what: &str, found: u64, most: u64) -> String {
    format!("{found} {what}, expected at most {most}")
}

fn text(error: wasmparser::BinaryReaderError) -> String {
    error.to_string()
}
