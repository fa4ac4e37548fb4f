//! What programs burn, apart from their instructions.

/// What a call of a host function burns, whatever it does.
pub(super) const ASK_FUEL: u64 = 1_000;
/// What a question to a model, a call of a tool and a call of an agent burn besides.
pub(super) const WORK_FUEL: u64 = 100_000;
/// What each byte burns that passes between program and host, in either direction.
pub(super) const FUEL_PER_BYTE_PASSED: u64 = 4;
/// What each byte of a program burns before it begins, compiled before or not.
pub(super) const FUEL_PER_PROGRAM_BYTE: u64 = 10;
/// How many bytes of memory a program begins with, grows by, copies or fills for one unit of fuel.
pub(super) const MEMORY_BYTES_PER_FUEL: u32 = 64;
/// What a call of a function within the program burns: it clears the function's locals.
pub(super) const CALL_FUEL: u8 = 10;
