//! Asks a model the same question in several ways, and goes by the majority.
#![no_std]

extern crate alloc;

use alloc::format;

use guest::abi::{Arguments, Outputs};
use guest::host::{Question, infer, log};

/// How the question is put, and what says yes to it.
const WAYS: [(&str, &str, [&str; 2]); 3] = [
    ("You are a careful judge.", "Is this true? Answer yes or no.", ["yes", "no"]),
    ("You doubt everything.", "Is there anything wrong with this?", ["nothing", "something"]),
    ("You answer exams.", "True or false?", ["true", "false"]),
];

/// `decide(string claim)` answers `(bool verdict, uint256 votes)`: whether most say that the claim is true,
/// and how many do.
#[unsafe(no_mangle)]
extern "C" fn handle(pointer: usize, length: usize) -> u64 {
    guest::answer(pointer, length, |payload| {
        let claim = Arguments::of(payload)?.string(0)?;
        let mut votes = 0;
        for (system, question, choices) in WAYS {
            let prompt = format!("{question}\n\n{claim}");
            let question =
                Question { system, prompt: &prompt, output_tokens_max: 16, choices: &choices };
            let said = infer(&question)?;
            log(&format!("{system} {said}"));
            votes += u64::from(said == choices[0]);
        }
        Ok(Outputs::new().bool(votes * 2 > WAYS.len() as u64).uint(votes).finish())
    })
}
