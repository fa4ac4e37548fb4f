//! Any bytes are a module of `wasm-1` or refused, and a module does the same each time it is
//! executed, within its memory.
//!
//! An input that begins with another byte than modules do is a list of changes to a module that is
//! one: a byte without a meaning, and for each change the place, two bytes of little endian, and
//! the new byte. Most modules that such changes leave valid are never found by changes to the bytes
//! of an input.
#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use agent::executor::{Agent, Executed, Local, check_program};
use types::call::{CallLimits, Outcome};
use types::{Address, Hash, Usage};

const METADATA: &[u8] = include_bytes!("../../examples/agents/keywords/agent.json");
const MODULE: &[u8] = include_bytes!("../../examples/agents/built/keywords.wasm");
/// The call of `classify` with the text `Works great.`.
const PAYLOAD: [u8; 100] = payload();
/// Some hundredths of a second.
const LIMITS: CallLimits = CallLimits {
    usage: Usage { input_tokens: 0, output_tokens: 0, fuel: 2_000_000 },
    result_bytes: 1_024,
};
/// What a module may have of memory (docs/market.md section 9.4), twice while it is moved to grow,
/// and as much again for everything else.
const BYTES_MAX: usize = 3 * 67_108_864;

/// The memory of the process, counted.
struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn taken(bytes: usize) {
    let now = BYTES.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

// SAFETY: every call is handed to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // Both are there while it is moved.
        taken(bytes);
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, bytes) }
    }
}

static AGENT: LazyLock<Agent> = LazyLock::new(|| {
    // The interpreter panics on some modules while it compiles them, which the miner catches and
    // takes for a rejection. The fuzzer would end at the panic itself; without its hook it ends where
    // nobody catches it.
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    Agent::read(Hash::ZERO, METADATA).expect("the metadata of the example")
});

fuzz_target!(|bytes: &[u8]| {
    let agent = &*AGENT;
    let module = match bytes.first() {
        Some(0) | None => bytes.to_vec(),
        Some(_) => changed(bytes.get(1..).unwrap_or_default()),
    };
    let before = BYTES.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let is_module = check_program(&module).is_ok();
    let mut fresh = machine(agent, &module);
    let first = execute(&fresh, agent);
    let compiled_before = execute(&fresh, agent);
    fresh = machine(agent, &module);
    let elsewhere = execute(&fresh, agent);
    assert_eq!(first, compiled_before);
    assert_eq!(first, elsewhere);
    drop(fresh);
    let peak = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    assert!(peak <= BYTES_MAX, "{peak} bytes were taken");

    let Executed { answer, result, reason, work } = first;
    // A member that is unable where others are not is the interpreter's fault.
    assert_ne!(answer.outcome, Outcome::Unable, "{reason:?}");
    assert!(is_module || answer.outcome == Outcome::Failure, "{reason:?}");
    assert_eq!(answer.result_hash, Hash::digest(&result));
    assert_eq!(Some(answer.receipt_hash), work.map(|it| it.hash()));
    assert!(answer.usage.fuel <= LIMITS.usage.fuel);
    assert!(result.len() <= 1_024);
});

/// The module with changes.
fn changed(changes: &[u8]) -> Vec<u8> {
    let mut module = MODULE.to_vec();
    for change in changes.as_chunks::<3>().0 {
        let [low, high, new] = *change;
        let place = usize::from(u16::from_le_bytes([low, high])) % module.len();
        if let Some(byte) = module.get_mut(place) {
            *byte = new;
        }
    }
    module
}

/// A machine that has compiled nothing yet.
fn machine(agent: &Agent, module: &[u8]) -> Local {
    let mut machine = Local::new(None);
    machine.add_program(agent, Arc::from(module));
    machine
}

fn execute(machine: &Local, agent: &Agent) -> Executed {
    machine.run(agent, &PAYLOAD, LIMITS, Address::new([0; 20]))
}

const fn payload() -> [u8; 100] {
    let mut payload = [0; 100];
    let (selector, text) = ([0x67, 0xdf, 0x39, 0x5d], *b"Works great.");
    payload[35] = 32;
    payload[67] = text.len() as u8;
    let mut at = 0;
    while at < text.len() {
        if at < selector.len() {
            payload[at] = selector[at];
        }
        payload[68 + at] = text[at];
        at += 1;
    }
    payload
}
