//! What a program may import. Each call stops the program; the host answers it and lets it go on.

use std::fmt;

use wasmi::errors::HostError;
use wasmi::{Error, FuncType, Linker, ValType};

use super::limiter::Room;

/// The module of all imports.
const SPACE: &str = "ombra";

/// A host function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Import {
    Fail,
    Infer,
    Tool,
    Agent,
    Context,
    Log,
}

impl Import {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Infer => "infer",
            Self::Tool => "tool",
            Self::Agent => "agent",
            Self::Context => "context",
            Self::Log => "log",
        }
    }
}

/// A call of a host function: whose bytes are where in the program's memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) import: Import,
    pub(super) pointer: u32,
    pub(super) length: u32,
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.import.as_str())
    }
}

impl HostError for Ask {}

/// The type of an import; none of what nobody offers.
pub(super) fn signature(space: &str, name: &str) -> Option<FuncType> {
    let (i32, i64) = (ValType::I32, ValType::I64);
    match (space, name) {
        (SPACE, "fail" | "log") => Some(FuncType::new([i32, i32], [])),
        (SPACE, "infer" | "tool" | "agent") => Some(FuncType::new([i32, i32], [i64])),
        (SPACE, "context") => Some(FuncType::new([], [i64])),
        _ => None,
    }
}

/// Defines all of them.
pub(super) fn define(linker: &mut Linker<Room>) -> Result<(), Error> {
    for import in [Import::Fail, Import::Log] {
        linker.func_wrap(SPACE, import.as_str(), move |pointer: u32, length: u32| {
            Err::<(), _>(Error::host(Ask { import, pointer, length }))
        })?;
    }
    for import in [Import::Infer, Import::Tool, Import::Agent] {
        linker.func_wrap(SPACE, import.as_str(), move |pointer: u32, length: u32| {
            Err::<u64, _>(Error::host(Ask { import, pointer, length }))
        })?;
    }
    linker.func_wrap(SPACE, Import::Context.as_str(), || {
        Err::<u64, _>(Error::host(Ask { import: Import::Context, pointer: 0, length: 0 }))
    })?;
    Ok(())
}
