//! What a program burns is counted exactly, whoever counts.

use super::*;
use crate::executor::tests::CONTEXT;
use crate::executor::wasm::cache::Cache;
use crate::executor::wasm::end::End;
use crate::executor::wasm::fuel::FUEL_PER_PROGRAM_BYTE;
use crate::executor::wasm::guest::Guest;
use crate::executor::{Halt, Limit, Meter, Scope};

/// Copies memory, grows it, calls, computes and asks for its context.
fn busy() -> Vec<u8> {
    let import = "(import \"ombra\" \"context\" (func $context (result i64)))
                  (import \"ombra\" \"log\" (func $log (param i32 i32)))
                  (func $step (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))";
    module(
        import,
        "(local $n i32)
         (loop $again
           (memory.copy (i32.const 9000) (i32.const 10000) (i32.const 1000))
           (memory.fill (i32.const 9000) (i32.const 48) (i32.const 999))
           (drop (memory.grow (i32.const 1)))
           (drop (call $context))
           (call $log (i32.const 9000) (i32.const 10))
           (local.set $n (call $step (local.get $n)))
           (br_if $again (i32.lt_u (local.get $n) (i32.const 50))))
         i64.const 0x20",
    )
}

fn burned(program: &[u8], slice: u64) -> (Result<Vec<u8>, String>, u64) {
    let agent = agent("alone", "uint256", &[]);
    let member = member().with_program(&agent, program);
    let mut meter = Meter::new(LIMITS.usage);
    let stop = never();
    let mut scope = Scope::new(&member.executors, &member.library, &mut meter, &CONTEXT, &stop);
    let cache = Cache::default();
    let guest = Guest::begin(&cache, program, &agent, &mut scope).expect("begun");
    let result = guest.sliced(slice).handle(b"payload").map_err(|end| format!("{end:?}"));
    (result, meter.used().fuel)
}

#[test]
fn the_size_of_the_slices_changes_nothing() {
    let program = busy();
    let whole = burned(&program, u64::MAX);
    assert!(whole.0.is_ok(), "{whole:?}");
    for slice in [1, 2, 3, 7, 100, 1_001] {
        assert_eq!(burned(&program, slice), whole, "slices of {slice}");
    }
}

#[test]
fn exactly_what_is_burned_is_enough() {
    let program = busy();
    let used = run(&program).answer.usage.fuel;
    assert_eq!(run_within(&program, fuelled(used)).answer.outcome, Outcome::Success);
    let executed = run_within(&program, fuelled(used - 1));
    assert_eq!(executed.reason.as_deref(), Some("the limit fuel of the call is reached"));
}

#[test]
fn a_program_that_was_compiled_before_burns_the_same() {
    let agent = agent("alone", "uint256", &[]);
    let member = member().with_program(&agent, &busy());
    let (first, second) = (member.call(&agent, LIMITS), member.call(&agent, LIMITS));
    assert_eq!(first, second);
    assert!(first.answer.usage.fuel > FUEL_PER_PROGRAM_BYTE * busy().len() as u64);
}

#[test]
fn what_a_nested_program_burns_is_missing_to_the_outer_one() {
    let (inner, outer) = nested();
    let payload = inner.metadata.methods[0].encode_arguments("[1]").expect("arguments");
    let asks = asking_agent(&inner, &payload);
    let spent = |rounds: u32| {
        let member = member()
            .with_program(&inner, &module("", &repeated(rounds, "")))
            .with_program(&outer, &asks);
        let alone = member.call(&inner, LIMITS);
        let both = member.call(&outer, LIMITS);
        (alone.answer.usage.fuel, both)
    };
    let (one, with_one) = spent(100_000);
    let (two, with_two) = spent(200_000);
    assert_eq!(two - one, with_two.answer.usage.fuel - with_one.answer.usage.fuel);
    assert!(two - one >= 100_000, "{one} {two}");
    let (_, with_all) = spent(u32::MAX);
    assert_eq!(with_all.reason.as_deref(), Some("the limit fuel of the call is reached"));
    assert_eq!(with_all.answer.usage, LIMITS.usage);
}

#[test]
fn a_program_that_a_call_cannot_pay_for_is_not_compiled() {
    let (program, cache) = (busy(), Cache::default());
    let bytes_fuel = FUEL_PER_PROGRAM_BYTE * program.len() as u64;
    for (fuel, compiled) in [(bytes_fuel - 1, 0), (bytes_fuel, 1)] {
        let end = begun(&cache, &program, fuel).expect_err("too little fuel");
        assert!(matches!(end, End::Halt(Halt::Exhausted(Limit::Fuel))), "{end:?}");
        assert_eq!(cache.len(), compiled);
    }
}

#[test]
fn what_is_no_module_burns_its_bytes_and_fails_as_ever() {
    let bytes = b"%PDF-1.4, not a module";
    let reason = "the program is no module of wasm-1";
    assert_eq!(fails(bytes, reason).answer.usage.fuel, 10 * bytes.len() as u64);
    let executed = run_within(bytes, fuelled(10 * bytes.len() as u64 - 1));
    assert_eq!(executed.reason.as_deref(), Some("the limit fuel of the call is reached"));
}

/// Begins with a program, with so much fuel.
fn begun(cache: &Cache, program: &[u8], fuel: u64) -> Result<(), End> {
    let agent = agent("alone", "uint256", &[]);
    let member = member().with_program(&agent, program);
    let mut meter = Meter::new(fuelled(fuel).usage);
    let stop = never();
    let mut scope = Scope::new(&member.executors, &member.library, &mut meter, &CONTEXT, &stop);
    Guest::begin(cache, program, &agent, &mut scope).map(|_| ())
}
