//! Model files that are cut, damaged or made to harm: an error each, no panic, no memory for what
//! is not there.

use infer::{FileError, Model};

use crate::support::{Random, ask, file, generate, session};

fn read(bytes: &[u8]) -> Result<Model, FileError> {
    Model::read(bytes, bytes.len() as u64)
}

/// Where the tensors' bytes begin: everything before decides lengths.
fn header_bytes(file: &[u8]) -> usize {
    let name = b"blk.1.ffn_down.weight";
    let last = file.windows(name.len()).rposition(|window| window == name).expect("it is there");
    (last + name.len() + 32).next_multiple_of(32)
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    let file = file(1);
    for len in (0..file.len()).step_by(64) {
        let cut = read(&file[..len]).unwrap_err();
        let is_cut = matches!(cut, FileError::TooShort { .. } | FileError::Outside { .. });
        assert!(is_cut, "{len} bytes: {cut:?}");
        if len % 1_024 == 0 {
            let shrunk = Model::read(&file[..len], file.len() as u64).unwrap_err();
            assert!(matches!(shrunk, FileError::Read { .. }), "{len} bytes: {shrunk:?}");
        }
    }
}

#[test]
fn a_damaged_header_is_refused_or_still_a_model() {
    let file = file(1);
    let mut refused = 0;
    for at in 0..header_bytes(&file) {
        let mut damaged = file.clone();
        damaged[at] = match at % 3 {
            0 => 0xff,
            1 => damaged[at].wrapping_add(1),
            _ => damaged[at] ^ 0x80,
        };
        refused += usize::from(read(&damaged).is_err());
    }
    assert!(refused > 1_000, "{refused} refused");
}

#[test]
fn random_damage_is_refused_or_still_a_model() {
    let file = file(1);
    let mut random = Random(7);
    let refused = (0..300).filter(|_| {
        let mut damaged = file.clone();
        for _ in 0..=random.next() % 8 {
            let at = random.next() as usize % damaged.len();
            damaged[at] = random.next() as u8;
        }
        read(&damaged).is_err()
    });
    let refused = refused.count();
    assert!((1..300).contains(&refused), "{refused} refused");
}

/// The offset of the value after a name in the header.
fn after(file: &[u8], name: &str) -> usize {
    let at = file.windows(name.len()).position(|window| window == name.as_bytes());
    at.expect("it is there") + name.len()
}

#[test]
fn a_length_beyond_the_file_takes_no_memory() {
    let huge = (1_u64 << 40).to_le_bytes();
    let large = (1_u64 << 22).to_le_bytes();
    let texts = after(&file(1), "tokenizer.ggml.tokens") + 8;
    let kinds = after(&file(1), "tokenizer.ggml.token_type") + 8;
    let name = after(&file(1), "general.architecture") + 4;
    for at in [8, 16, 24, name, texts, kinds] {
        for length in [huge, large, [0xff; 8]] {
            let mut file = file(1);
            file[at..at + 8].copy_from_slice(&length);
            let error = read(&file).unwrap_err();
            let is_length = matches!(error, FileError::TooMany { .. } | FileError::TooShort { .. });
            assert!(is_length, "at {at}: {error:?}");
        }
    }
}

#[test]
fn what_is_wrong_is_named() {
    let number = |name: &str, value: u32| {
        let mut file = file(1);
        let at = after(&file, name) + 4;
        file[at..at + 4].copy_from_slice(&value.to_le_bytes());
        read(&file).unwrap_err().to_string()
    };
    let error = number("llama.block_count", 3);
    assert_eq!(error, "the tensor \"blk.2.attn_norm.weight\" is missing");
    let error = number("llama.block_count", 1);
    assert_eq!(error, "the tensor \"blk.1.attn_norm.weight\" is not one of this architecture");
    let error = number("llama.embedding_length", 65);
    assert_eq!(error, "the setting \"llama.embedding_length\" is 65, expected a multiple of 32");
    let error = number("llama.context_length", u32::MAX);
    assert_eq!(error, "the setting \"llama.context_length\" is 4294967295, expected 2 to 1048576");
    let error = number("tokenizer.ggml.eos_token_id", 5_000);
    assert_eq!(error, "the setting \"tokenizer.ggml.eos_token_id\" is 5000, expected 0 to 271");
    let error = number("llama.attention.head_count_kv", 3);
    assert!(error.starts_with("4 heads with 3 of keys"), "{error}");
}

#[test]
fn a_chat_template_that_is_not_known_is_refused_and_not_run() {
    let mut file = file(1);
    let at = after(&file, "{% for message");
    file[at] = b'X';
    let error = read(&file).unwrap_err();
    assert!(matches!(error, FileError::Template { .. }), "{error:?}");
}

#[test]
fn weights_that_are_not_finite_are_refused() {
    let mut infinite = file(1);
    let start = header_bytes(&infinite);
    infinite[start..start + 2].copy_from_slice(&0x7c00_u16.to_le_bytes());
    let error = read(&infinite).unwrap_err().to_string();
    assert_eq!(error, "the tensor \"token_embd.weight\" has a number that is not finite");
}

#[test]
fn weights_that_overflow_give_an_error_and_no_answer() {
    // The largest scale there is, in every block of the embedding.
    let mut file = file(1);
    let start = header_bytes(&file);
    for block in 0..272 * 2 {
        let at = start + block * 34;
        file[at..at + 2].copy_from_slice(&0x7bff_u16.to_le_bytes());
    }
    let norm = start + 272 * 2 * 34;
    for number in 0..64 {
        let at = norm + number * 4;
        file[at..at + 4].copy_from_slice(&f32::MAX.to_le_bytes());
    }
    let model = std::sync::Arc::new(read(&file).unwrap());
    let prompt = ask(&model, "x");
    let answer = generate(&mut session(&model), &prompt, 1, None);
    let tokens = prompt.tokens().len();
    assert_eq!(answer.unwrap_err(), infer::AnswerError::NotANumber { tokens });
}
