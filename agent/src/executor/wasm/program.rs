//! A program that keeps the rules of `wasm-1`, compiled.

use std::panic::{AssertUnwindSafe, catch_unwind};

use wasmi::errors::ErrorKind;
use wasmi::{
    CompilationMode, Config, CustomFuelCosts, Engine, ExternType, FuncType, Linker, Module,
    OperatorCost, ValType,
};

use super::fuel::{CALL_FUEL, MEMORY_BYTES_PER_FUEL};
use super::limiter::Room;
use super::{bounds, imports};

/// The most functions that are within one another.
const DEPTH_MAX: usize = 1_024;
/// The most bytes of what they compute with.
const STACK_BYTES_MAX: usize = 1024 * 1024;

/// Why a program was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is none of `wasm-1`; for members that says it all, what is in the text is for its author.
    #[error("the program is no module of wasm-1: {0}")]
    Invalid(String),
    /// This machine has not enough memory for it; others may have.
    #[error("this machine has not enough memory for the program")]
    Short,
}

/// What the interpreter says when it has no more memory; the type of this error is not public.
const OUT_OF_MEMORY: &str = "ran out of system memory during translation";

/// A compiled program.
#[derive(Debug)]
pub(super) struct Program {
    /// Its own, so that nothing of it is left when it is dropped.
    pub(super) engine: Engine,
    pub(super) module: Module,
    pub(super) linker: Linker<Room>,
    /// What its memory burns at the start.
    pub(super) memory_fuel: u64,
}

/// Checks a program as an executor does before it runs it.
///
/// # Errors
/// [`Refused`].
pub fn check(bytes: &[u8]) -> Result<(), Refused> {
    Program::compile(bytes).map(|_| ())
}

impl Program {
    pub(super) fn compile(bytes: &[u8]) -> Result<Self, Refused> {
        bounds::check(bytes).map_err(Refused::Invalid)?;
        // The interpreter panics where it meets what its own checks should have refused.
        let compiled = catch_unwind(AssertUnwindSafe(|| Self::compile_checked(bytes)));
        compiled.unwrap_or_else(|_| Err(invalid("the interpreter cannot read it")))
    }

    fn compile_checked(bytes: &[u8]) -> Result<Self, Refused> {
        let engine = Engine::new(&config());
        let module = Module::new(&engine, bytes).map_err(|error| refused(&error))?;
        let mut linker = Linker::new(&engine);
        imports::define(&mut linker).map_err(|error| refused(&error))?;
        for import in module.imports() {
            let (space, name) = (import.module(), import.name());
            let offered = imports::signature(space, name)
                .ok_or_else(|| invalid(format!("nobody offers the import {space}.{name}")))?;
            let ExternType::Func(found) = import.ty() else {
                return Err(invalid(format!("the import {space}.{name} is no function")));
            };
            if *found != offered {
                let text = format!("the import {space}.{name} is {found:?}, expected {offered:?}");
                return Err(invalid(text));
            }
        }
        let (i32, i64) = (ValType::I32, ValType::I64);
        exports(&module, "alloc", &FuncType::new([i32], [i32]))?;
        exports(&module, "handle", &FuncType::new([i32, i32], [i64]))?;
        let Some(ExternType::Memory(memory)) = module.get_export("memory") else {
            return Err(invalid("it exports no memory with the name memory"));
        };
        let page_fuel = 65_536 / u64::from(MEMORY_BYTES_PER_FUEL);
        let memory_fuel = memory.minimum().saturating_mul(page_fuel);
        Ok(Self { engine, module, linker, memory_fuel })
    }
}

/// What the interpreter found, or that it ran out of memory.
fn refused(error: &wasmi::Error) -> Refused {
    let text = error.to_string();
    let is_short = matches!(error.kind(), ErrorKind::Translation(_)) && text == OUT_OF_MEMORY;
    if is_short { Refused::Short } else { Refused::Invalid(text) }
}

fn invalid(why: impl Into<String>) -> Refused {
    Refused::Invalid(why.into())
}

fn exports(module: &Module, name: &str, expected: &FuncType) -> Result<(), Refused> {
    match module.get_export(name) {
        Some(ExternType::Func(found)) if found == *expected => Ok(()),
        _ => Err(invalid(format!("it exports no function {name} of the type {expected:?}"))),
    }
}

fn config() -> Config {
    let mut config = Config::default();
    config
        .wasm_mutable_global(true)
        .wasm_sign_extension(true)
        .wasm_saturating_float_to_int(true)
        .wasm_multi_value(false)
        .wasm_bulk_memory(true)
        .wasm_multi_memory(false)
        .wasm_reference_types(false)
        .wasm_tail_call(false)
        .wasm_extended_const(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false)
        .floats(true)
        .allow_start_fn(false)
        .ignore_custom_sections(true)
        // Translating while it runs would burn fuel the first time only.
        .compilation_mode(CompilationMode::Eager)
        .consume_fuel(true)
        .operator_cost(OperatorCost {
            call: CALL_FUEL,
            call_indirect: CALL_FUEL,
            ..OperatorCost::default()
        })
        .fuel_cost(CustomFuelCosts {
            bytes_copied_per_fuel: MEMORY_BYTES_PER_FUEL,
            fuel_per_bytes_translated: 0,
            fuel_per_bytes_validated: 0,
        })
        .set_max_recursion_depth(DEPTH_MAX)
        .set_max_stack_height(STACK_BYTES_MAX)
        .set_max_cached_stacks(2);
    config
}
