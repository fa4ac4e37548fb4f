//! Programs stay compiled while there is room, and are compiled once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::executor::wasm::Wasm;
use crate::executor::wasm::cache::Cache;
use crate::executor::wasm::program::{Program, Refused};

/// A small program, whatever was to be compiled.
fn small(_: &[u8]) -> Result<Program, Refused> {
    Program::compile(&module("", "i64.const 32"))
}

#[test]
fn only_so_many_programs_stay_compiled() {
    let cache = Cache::default();
    for number in 0..70 {
        let program = module("", &format!("i64.const {number}"));
        assert!(cache.program(&program).is_ok());
    }
    assert_eq!(cache.len(), 64);
}

#[test]
fn programs_count_with_what_they_take_compiled() {
    let cache = Cache::compiling(small);
    let largest = |byte: u8| vec![byte; 4 * 1024 * 1024];
    for (byte, kept) in [(0, 1), (1, 2), (2, 2), (3, 2)] {
        assert!(cache.program(&largest(byte)).is_ok());
        assert_eq!(cache.len(), kept, "two of the largest have room");
    }
    for byte in 0..10 {
        assert!(cache.program(&vec![byte; 64 * 1024]).is_ok());
    }
    assert_eq!(cache.len(), 11, "one gave way to ten small ones");
}

#[test]
fn what_is_no_program_takes_no_room() {
    let cache = Cache::default();
    for byte in 0..4 {
        assert!(cache.program(&vec![byte; 4 * 1024 * 1024]).is_err());
    }
    assert_eq!(cache.len(), 4);
}

#[test]
fn a_program_that_is_wanted_twice_at_once_is_compiled_once() {
    static COMPILED: AtomicUsize = AtomicUsize::new(0);
    fn slowly(bytes: &[u8]) -> Result<Program, Refused> {
        COMPILED.fetch_add(1, Ordering::SeqCst);
        // Long enough for another to begin with it, too.
        let until = Instant::now() + Duration::from_millis(200);
        while COMPILED.load(Ordering::SeqCst) < 2 && Instant::now() < until {
            std::thread::yield_now();
        }
        small(bytes)
    }
    let cache = Cache::compiling(slowly);
    std::thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| assert!(cache.program(b"wanted").is_ok()));
        }
    });
    assert_eq!(COMPILED.load(Ordering::SeqCst), 1);
    assert_eq!(cache.len(), 1);
}

#[test]
fn a_program_that_is_compiled_does_not_hold_up_another() {
    static COMPILED: AtomicUsize = AtomicUsize::new(0);
    fn together(bytes: &[u8]) -> Result<Program, Refused> {
        COMPILED.fetch_add(1, Ordering::SeqCst);
        let until = Instant::now() + Duration::from_secs(60);
        while COMPILED.load(Ordering::SeqCst) < 2 {
            assert!(Instant::now() < until, "the other does not begin");
            std::thread::yield_now();
        }
        small(bytes)
    }
    let cache = Cache::compiling(together);
    std::thread::scope(|threads| {
        for wanted in [b"one", b"two"] {
            let cache = &cache;
            threads.spawn(move || assert!(cache.program(wanted).is_ok()));
        }
    });
    assert_eq!(cache.len(), 2);
}

#[test]
fn a_machine_without_memory_for_a_program_is_unable_and_tries_again() {
    static TRIED: AtomicUsize = AtomicUsize::new(0);
    fn short_at_first(bytes: &[u8]) -> Result<Program, Refused> {
        match TRIED.fetch_add(1, Ordering::SeqCst) {
            0 => Err(Refused::Short),
            _ => Program::compile(bytes),
        }
    }
    let agent = agent("alone", "uint256", &[]);
    let mut member = member().with_program(&agent, &module("", "i64.const 32"));
    let executor = Wasm { cache: Cache::compiling(short_at_first) };
    member.executors.add(agent.metadata.executor.id(), Arc::new(executor));
    let executed = member.call(&agent, LIMITS);
    assert_eq!(executed.answer.outcome, Outcome::Unable);
    let why = "this machine has not enough memory for the program";
    assert_eq!(executed.reason.as_deref(), Some(why));
    assert_eq!(member.call(&agent, LIMITS).reason.as_deref(), None, "it is there by now");
    assert_eq!(member.call(&agent, LIMITS).answer.outcome, Outcome::Success);
    assert_eq!(TRIED.load(Ordering::SeqCst), 2);
}
