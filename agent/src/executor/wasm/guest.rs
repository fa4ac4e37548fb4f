//! A program at work: its memory, its fuel, and the host functions that it waits for.

use std::panic::{AssertUnwindSafe, catch_unwind};

use wasmi::{
    Error, Func, Instance, Memory, ResumableCall, ResumableCallHostTrap, ResumableCallOutOfFuel,
    Store, TrapCode, Val,
};

use super::asks;
use super::cache::Cache;
use super::end::End;
use super::fuel::{ASK_FUEL, FUEL_PER_BYTE_PASSED, FUEL_PER_PROGRAM_BYTE};
use super::imports::Ask;
use super::limiter::Room;
use super::program::Refused;
use crate::executor::{Agent, Halt, Limit, Scope};

/// After how much fuel a program is asked whether it is time to stop: some hundredths of a second.
pub(super) const SLICE_FUEL: u64 = 10_000_000;
/// The most bytes that a program passes to the host at once.
const ASK_BYTES_MAX: u32 = 1024 * 1024;

/// A program at work.
#[derive(Debug)]
pub(super) struct Guest<'g, 's> {
    scope: &'g mut Scope<'s>,
    agent: &'g Agent,
    store: Store<Room>,
    memory: Memory,
    alloc: Func,
    handle: Func,
    slice: u64,
    counts: asks::Counts,
}

/// What the program does next.
enum Step<'a> {
    Call(Func, &'a [Val]),
    Refuel(ResumableCallOutOfFuel),
    Answer(ResumableCallHostTrap, &'a [Val]),
}

/// Where the program has come to.
enum Stand {
    Done,
    Asks(ResumableCallHostTrap),
}

impl<'g, 's> Guest<'g, 's> {
    /// Compiles the program unless that was done before, and gives it its memory. What its bytes burn comes
    /// first: no program that a call cannot pay for keeps a member busy.
    pub(super) fn begin(
        cache: &Cache,
        bytes: &[u8],
        agent: &'g Agent,
        scope: &'g mut Scope<'s>,
    ) -> Result<Self, End> {
        scope.burn(FUEL_PER_PROGRAM_BYTE.saturating_mul(bytes.len() as u64))?;
        let program = cache.program(bytes).map_err(|refused| match refused {
            Refused::Invalid(_) => "the program is no module of wasm-1".into(),
            Refused::Short => short(),
        })?;
        scope.burn(program.memory_fuel)?;
        let mut store = Store::new(&program.engine, Room::default());
        store.limiter(|room| room);
        let begun = guarded(|| program.linker.instantiate_and_start(&mut store, &program.module))?;
        let instance = begun.map_err(|_error| match store.data().is_short {
            true => short(),
            false => "the program cannot begin: a segment is outside of its memory or table".into(),
        })?;
        let (memory, alloc, handle) = exports(&instance, &store)
            .ok_or_else(|| End::from("the program is no module of wasm-1"))?;
        let counts = asks::Counts::default();
        Ok(Self { scope, agent, store, memory, alloc, handle, slice: SLICE_FUEL, counts })
    }

    /// Has it answer a payload.
    pub(super) fn handle(&mut self, payload: &[u8]) -> Result<Vec<u8>, End> {
        let (pointer, length) = self.give(payload)?;
        let inputs = [Val::I32(pointer.cast_signed()), Val::I32(length.cast_signed())];
        let mut outputs = [Val::I64(0)];
        let mut stand = self.go(Step::Call(self.handle, &inputs), &mut outputs)?;
        while let Stand::Asks(waiting) = stand {
            let ask = ask_of(waiting.host_error())?;
            let answer = match self.answer(ask)? {
                Some(answer) => {
                    let (pointer, length) = self.give(&answer)?;
                    let packed = u64::from(pointer) << 32 | u64::from(length);
                    vec![Val::I64(packed.cast_signed())]
                }
                None => Vec::new(),
            };
            stand = self.go(Step::Answer(waiting, &answer), &mut outputs)?;
        }
        let [Val::I64(packed)] = outputs else {
            return Err("the program is no module of wasm-1".into());
        };
        let packed = packed.cast_unsigned();
        let (pointer, length) = (high(packed), low(packed));
        // More than any call may return is not copied for nothing.
        self.burn_bytes(u64::from(length))?;
        self.read(pointer, length, "the result")
    }

    /// Answers what it asks; nothing for a function without a result.
    fn answer(&mut self, ask: Ask) -> Result<Option<Vec<u8>>, End> {
        self.scope.burn(ASK_FUEL)?;
        let name = ask.import.as_str();
        if ask.length > ASK_BYTES_MAX {
            let text = format!("{name}: more than {ASK_BYTES_MAX} bytes are asked at once");
            return Err(End::Failure(text));
        }
        self.burn_bytes(u64::from(ask.length))?;
        let text = self.read(ask.pointer, ask.length, name)?;
        asks::answer(ask.import, &text, self.agent, self.scope, &mut self.counts)
    }

    /// Puts bytes where the program wants them.
    fn give(&mut self, bytes: &[u8]) -> Result<(u32, u32), End> {
        let Ok(length) = i32::try_from(bytes.len()) else {
            return Err("more bytes than a program can take".into());
        };
        self.burn_bytes(u64::from(length.unsigned_abs()))?;
        let mut outputs = [Val::I32(0)];
        let stand = self.go(Step::Call(self.alloc, &[Val::I32(length)]), &mut outputs)?;
        let (Stand::Done, [Val::I32(pointer)]) = (stand, outputs) else {
            return Err("alloc asks the host".into());
        };
        let pointer = pointer.cast_unsigned();
        let outside = "alloc gives a place outside of the memory";
        let start = usize::try_from(pointer).map_err(|_error| End::from(outside))?;
        self.memory.write(&mut self.store, start, bytes).map_err(|_error| End::from(outside))?;
        Ok((pointer, length.unsigned_abs()))
    }

    fn read(&self, pointer: u32, length: u32, whose: &str) -> Result<Vec<u8>, End> {
        let range = usize::try_from(pointer).ok().zip(usize::try_from(length).ok());
        let bytes = range.and_then(|(start, length)| {
            self.memory.data(&self.store).get(start..start.checked_add(length)?)
        });
        let outside = || End::Failure(format!("{whose} is outside of the memory"));
        bytes.map(<[u8]>::to_vec).ok_or_else(outside)
    }

    fn burn_bytes(&mut self, bytes: u64) -> Result<(), End> {
        Ok(self.scope.burn(bytes.saturating_mul(FUEL_PER_BYTE_PASSED))?)
    }

    /// Runs the program until it is done or asks, with fuel in slices so that it can be stopped.
    fn go(&mut self, first: Step<'_>, outputs: &mut [Val]) -> Result<Stand, End> {
        let (mut step, mut least) = (first, 0);
        loop {
            self.scope.stop().check()?;
            let given = self.scope.left().fuel.min(self.slice.max(least));
            let result = self.step(step, given, outputs)?;
            let kept = self.store.get_fuel().unwrap_or_default();
            self.scope.burn(given.saturating_sub(kept))?;
            match result {
                Ok(ResumableCall::Finished) => return Ok(Stand::Done),
                Ok(ResumableCall::HostTrap(waiting)) => return Ok(Stand::Asks(waiting)),
                Ok(ResumableCall::OutOfFuel(waiting)) => {
                    least = waiting.required_fuel();
                    if least > self.scope.left().fuel {
                        return Err(Halt::Exhausted(Limit::Fuel).into());
                    }
                    step = Step::Refuel(waiting);
                }
                Err(_) if self.store.data().is_short => return Err(short()),
                Err(error) => return Err(trapped(&error)),
            }
        }
    }

    fn step(
        &mut self,
        step: Step<'_>,
        fuel: u64,
        outputs: &mut [Val],
    ) -> Result<Result<ResumableCall, Error>, End> {
        let store = &mut self.store;
        guarded(|| {
            store.set_fuel(fuel)?;
            match step {
                Step::Call(function, inputs) => function.call_resumable(store, inputs, outputs),
                Step::Refuel(waiting) => waiting.resume(store, outputs),
                Step::Answer(waiting, inputs) => waiting.resume(store, inputs, outputs),
            }
        })
    }

    /// Hands out fuel in slices of this size.
    #[cfg(test)]
    pub(super) const fn sliced(mut self, slice: u64) -> Self {
        self.slice = slice;
        self
    }
}

fn exports(instance: &Instance, store: &Store<Room>) -> Option<(Memory, Func, Func)> {
    let memory = instance.get_memory(store, "memory")?;
    let alloc = instance.get_func(store, "alloc")?;
    Some((memory, alloc, instance.get_func(store, "handle")?))
}

fn ask_of(error: &Error) -> Result<Ask, End> {
    let ask = error.downcast_ref::<Ask>().copied();
    ask.ok_or_else(|| Halt::Unable("the interpreter broke".to_owned()).into())
}

/// A panic of the interpreter says nothing about the program: this member is unable.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, End> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|_error| Halt::Unable("the interpreter broke".to_owned()).into())
}

fn short() -> End {
    Halt::Unable("this machine has not enough memory for the program".to_owned()).into()
}

fn trapped(error: &Error) -> End {
    let reason = match error.as_trap_code() {
        Some(TrapCode::UnreachableCodeReached) => "the program gives up (unreachable)",
        Some(TrapCode::MemoryOutOfBounds) => "the program reaches outside of its memory",
        Some(TrapCode::TableOutOfBounds) => "the program reaches outside of its table",
        Some(TrapCode::IndirectCallToNull) => "the program calls a function that is none",
        Some(TrapCode::BadSignature) => "the program calls a function of another type",
        Some(TrapCode::IntegerDivisionByZero) => "the program divides by zero",
        Some(TrapCode::IntegerOverflow) => "the program divides what has no quotient",
        Some(TrapCode::BadConversionToInteger) => "the program converts what is no integer",
        Some(TrapCode::StackOverflow) => "the program calls too deep",
        // The stack of values could not grow: others may have the memory.
        Some(TrapCode::OutOfSystemMemory) => return short(),
        _ if error.downcast_ref::<Ask>().is_some() => "the program exports what it imports",
        _ => return Halt::Unable("the interpreter broke".to_owned()).into(),
    };
    reason.into()
}

/// The pointer of a packed result.
const fn high(packed: u64) -> u32 {
    (packed >> 32) as u32
}

/// The length of a packed result.
const fn low(packed: u64) -> u32 {
    (packed & 0xffff_ffff) as u32
}
