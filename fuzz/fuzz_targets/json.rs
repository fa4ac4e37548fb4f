//! Any bytes are JSON or refused, as another reader has it; writing and reading again changes
//! nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::value::RawValue;
use types::json::{Json, JsonError, parse};

fuzz_target!(|bytes: &[u8]| {
    let theirs = serde_json::from_slice::<&RawValue>(bytes);
    match parse(bytes, 8) {
        Ok(value) => {
            assert!(theirs.is_ok(), "only we accept it");
            let text = written(&value);
            let again = parse(text.as_bytes(), 8).expect("its own text");
            assert_eq!(again, value);
            assert_eq!(written(&again), text);
        }
        Err(
            JsonError::Depth { .. } | JsonError::DuplicateKey { .. } | JsonError::Surrogate { .. },
        ) => {}
        Err(error) => assert!(theirs.is_err(), "only we refuse it: {error}"),
    }
});

fn written(value: &Json<'_>) -> String {
    let mut text = String::new();
    value.write_to(&mut text);
    text
}
