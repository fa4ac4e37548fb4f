//! Tests.

use fearless_simd::Level;

use super::multiply;
use crate::activation::Activation;
use crate::gguf::{Kind, Source, TensorEntry};
use crate::shape::BLOCK;
use crate::threads::Threads;
use crate::weights::Matrix;

const KINDS: [Kind; 5] = [Kind::Q4_0, Kind::Q4_1, Kind::Q8_0, Kind::F16, Kind::F32];
/// Not a multiple of the rows that stand beside each other.
const ROWS: usize = 21;
const COLS: usize = 96;

/// Every set of instructions that this processor has.
fn levels() -> Vec<Level> {
    let best = Level::new();
    let mut levels = vec![Level::baseline(), best];
    #[cfg(target_arch = "x86_64")]
    {
        levels.extend(best.as_sse2().map(Level::Sse2));
        levels.extend(best.as_sse4_2().map(Level::Sse4_2));
        levels.extend(best.as_avx2().map(Level::Avx2));
        levels.extend(best.as_avx512().map(Level::Avx512));
    }
    levels
}

/// Bytes of a tensor. All that is a scale, an offset or a float is finite and not tiny.
fn tensor(kind: Kind) -> Vec<u8> {
    let mut state = 12_345_u32;
    let mut random = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as u8
    };
    let mut bytes = Vec::new();
    for _ in 0..ROWS * COLS / kind.block() {
        let half = [random(), 0x20 | (random() & 0x83)];
        let offset = [random(), 0xa0 | (random() & 0x03)];
        match kind {
            Kind::F32 => bytes.extend(f32::from(random()).to_le_bytes()),
            Kind::F16 => bytes.extend(half),
            Kind::Q4_0 => bytes.extend(half),
            Kind::Q4_1 => bytes.extend([half, offset].concat()),
            Kind::Q8_0 => bytes.extend(half),
        }
        let quants = match kind {
            Kind::F32 | Kind::F16 => 0,
            Kind::Q4_0 | Kind::Q4_1 => BLOCK / 2,
            Kind::Q8_0 => BLOCK,
        };
        bytes.extend((0..quants).map(|_| random()));
    }
    bytes
}

fn matrix(kind: Kind) -> Matrix {
    let bytes = tensor(kind);
    let len = bytes.len() as u64;
    let entry = TensorEntry { kind, cols: COLS, rows: ROWS, offset: 0, bytes: len };
    Matrix::read(&mut Source::new(&bytes[..], len), "test", &entry).unwrap()
}

fn activation(tokens: usize) -> Activation {
    let numbers: Vec<f32> =
        (0..tokens * COLS).map(|at| ((at * 37 % 101) as f32 - 50.0) / 7.0).collect();
    let mut activation = Activation::default();
    activation.set(COLS, &numbers);
    activation
}

fn product(level: Level, matrix: &Matrix, activation: &Activation) -> Vec<f32> {
    let threads = Threads::new(1.try_into().unwrap()).unwrap();
    let mut out = vec![f32::NAN; ROWS * activation.tokens()];
    multiply((level, &threads), matrix, activation, &mut Vec::new(), &mut out);
    out
}

#[test]
fn every_set_of_instructions_gives_the_same_bits() {
    for kind in KINDS {
        let matrix = matrix(kind);
        for tokens in [1, 3, 4, 9] {
            let activation = activation(tokens);
            let bits = |level| {
                let product = product(level, &matrix, &activation);
                product.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            };
            let expected = bits(Level::baseline());
            for level in levels() {
                assert_eq!(bits(level), expected, "{kind:?}, {tokens} tokens, {level:?}");
            }
        }
    }
}

#[test]
fn a_token_has_the_same_product_alone_and_among_others() {
    for kind in KINDS {
        let matrix = matrix(kind);
        let all = product(Level::new(), &matrix, &activation(9));
        for tokens in 1..9 {
            let some = product(Level::new(), &matrix, &activation(tokens));
            assert_eq!(some, all[..some.len()], "{kind:?}, {tokens} tokens");
        }
    }
}

/// The sums of products as they are defined, with the weights as `row` gives them.
#[test]
fn a_product_is_near_the_sum_of_the_products() {
    for kind in KINDS {
        let (matrix, activation) = (matrix(kind), activation(2));
        let product = product(Level::new(), &matrix, &activation);
        for (token, product) in product.chunks_exact(ROWS).enumerate() {
            for (row, product) in product.iter().enumerate() {
                let mut weights = [0.0; COLS];
                matrix.row(row, &mut weights);
                let pairs = weights.iter().zip(activation.numbers(token));
                let terms: Vec<f64> =
                    pairs.map(|(left, right)| f64::from(*left) * f64::from(*right)).collect();
                let (exact, size) =
                    (terms.iter().sum::<f64>(), terms.iter().map(|term| term.abs()).sum::<f64>());
                let error = (f64::from(*product) - exact).abs();
                // Activations are rounded to one part in 254 of the largest in their block.
                assert!(error <= size * 0.01, "{kind:?} {token} {row}: {product} for {exact}");
            }
        }
    }
}

/// What `row` gives, against the definition of each form in the file.
#[test]
fn rows_are_the_numbers_of_the_file() {
    for kind in KINDS {
        let (bytes, matrix) = (tensor(kind), matrix(kind));
        let blocks = bytes.chunks_exact(kind.block_bytes());
        let expected: Vec<f32> = blocks.flat_map(|block| numbers(kind, block)).collect();
        for (row, expected) in expected.chunks_exact(COLS).enumerate() {
            let mut found = [0.0; COLS];
            matrix.row(row, &mut found);
            assert_eq!(found, expected, "{kind:?}, row {row}");
        }
    }
}

fn numbers(kind: Kind, block: &[u8]) -> Vec<f32> {
    let half = |at: usize| {
        let bits = u32::from(u16::from_le_bytes([block[at], block[at + 1]]));
        let (sign, exponent) = (bits >> 15, (bits >> 10) & 31);
        let magnitude = (1.0 + (bits & 1_023) as f32 / 1_024.0) * 2_f32.powi(exponent as i32 - 15);
        if sign == 1 { -magnitude } else { magnitude }
    };
    let nibbles = |from: usize| {
        let low = block[from..].iter().map(|byte| f32::from(byte & 15));
        low.chain(block[from..].iter().map(|byte| f32::from(byte >> 4)))
    };
    match kind {
        Kind::F32 => vec![f32::from_le_bytes(block.try_into().unwrap())],
        Kind::F16 => vec![half(0)],
        Kind::Q4_0 => nibbles(2).map(|quant| half(0) * (quant - 8.0)).collect(),
        Kind::Q4_1 => nibbles(4).map(|quant| half(0) * quant + half(2)).collect(),
        Kind::Q8_0 => block[2..].iter().map(|byte| half(0) * f32::from(*byte as i8)).collect(),
    }
}
