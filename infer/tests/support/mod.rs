//! A small model with random weights, made from a seed: two layers, every form of weights, a
//! vocabulary of bytes and a few words. What it says is noise; that it says the same everywhere is
//! what tests want.

use std::sync::Arc;

use infer::{
    AnswerError, Flow, Generated, Grammar, Limits, Model, Prompt, Role, Session, Threads, Turn,
};

/// Sizes of the model.
const WIDTH: u64 = 64;
const INNER: u64 = 96;
const HEADS: u32 = 4;
const KV_HEADS: u32 = 2;
const KV_WIDTH: u64 = 32;
const LAYERS: u32 = 2;
/// The most tokens of its context.
pub(crate) const CONTEXT: u32 = 640;

const CONTROLS: [&str; 3] = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];
/// The byte that the vocabulary lacks, as that of the real model lacks some.
pub(crate) const MISSING: u8 = 0x04;
const MERGES: [&str; 14] = [
    "Ġ t",
    "h e",
    "i n",
    "Ġt he",
    "a n",
    "Ġ a",
    "Ġa n",
    "o n",
    "r e",
    "Ġ Ġ",
    "ĠĠ ĠĠ",
    "Ã ©",
    "a a",
    "aa aa",
];
const TEMPLATE: &str = "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// Numbers of types in the file.
const U32: u32 = 4;
const I32: u32 = 5;
const F32_VALUE: u32 = 6;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;
const F32: u32 = 0;
const F16: u32 = 1;
const Q4_0: u32 = 2;
const Q4_1: u32 = 3;
const Q8_0: u32 = 8;

/// Random numbers: splitmix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn byte(&mut self) -> u8 {
        self.next() as u8
    }

    /// Between -0.125 and 0.125, but never nearly 0.
    fn number(&mut self) -> f32 {
        let magnitude = f32::from_bits(0x3c00_0000 + (self.next() as u32 & 0x00ff_ffff));
        if self.next() & 1 == 0 { magnitude } else { -magnitude }
    }

    /// A 16-bit float of about a hundredth.
    fn scale(&mut self) -> [u8; 2] {
        (0x2000 + (self.next() as u16 & 0x3ff)).to_le_bytes()
    }

    /// A 16-bit float of about minus a twelfth.
    fn offset(&mut self) -> [u8; 2] {
        (0xac00 + (self.next() as u16 & 0x1ff)).to_le_bytes()
    }

    fn tensor(&mut self, kind: u32, count: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        match kind {
            F32 => (0..count).for_each(|_| bytes.extend(self.number().to_le_bytes())),
            F16 => (0..count).for_each(|_| bytes.extend(self.offset())),
            _ => {
                let quants = if kind == Q8_0 { 32 } else { 16 };
                for _ in 0..count / 32 {
                    bytes.extend(self.scale());
                    if kind == Q4_1 {
                        bytes.extend(self.offset());
                    }
                    bytes.extend((0..quants).map(|_| self.byte()));
                }
            }
        }
        bytes
    }
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Settings in the file's form.
#[derive(Default)]
struct Settings {
    count: u64,
    bytes: Vec<u8>,
}

impl Settings {
    fn begin(&mut self, name: &str, kind: u32) {
        self.count += 1;
        text(&mut self.bytes, name);
        self.bytes.extend(kind.to_le_bytes());
    }

    fn number(&mut self, name: &str, value: u32) {
        self.begin(name, U32);
        self.bytes.extend(value.to_le_bytes());
    }

    fn float(&mut self, name: &str, value: f32) {
        self.begin(name, F32_VALUE);
        self.bytes.extend(value.to_le_bytes());
    }

    fn text(&mut self, name: &str, value: &str) {
        self.begin(name, TEXT);
        text(&mut self.bytes, value);
    }

    fn list(&mut self, name: &str, kind: u32, count: usize) {
        self.begin(name, ARRAY);
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend((count as u64).to_le_bytes());
    }

    fn texts(&mut self, name: &str, values: &[String]) {
        self.list(name, TEXT, values.len());
        values.iter().for_each(|value| text(&mut self.bytes, value));
    }
}

/// The letter of a byte in a vocabulary of bytes.
fn letter(byte: u8) -> char {
    let stands_for_itself = |byte: &u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if stands_for_itself(&byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|byte| !stands_for_itself(byte)).count() as u32;
    char::from_u32(0x100 + before).expect("a letter")
}

fn vocabulary() -> Vec<String> {
    let controls = CONTROLS.map(str::to_owned).into_iter();
    let bytes = (0..=u8::MAX).filter(|byte| *byte != MISSING).map(|byte| letter(byte).to_string());
    let merged = MERGES.map(|merge| merge.replace(' ', ""));
    controls.chain(bytes).chain(merged).collect()
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.text("general.architecture", "llama");
    settings.number("llama.block_count", LAYERS);
    settings.number("llama.context_length", CONTEXT);
    settings.number("llama.embedding_length", WIDTH as u32);
    settings.number("llama.feed_forward_length", INNER as u32);
    settings.number("llama.attention.head_count", HEADS);
    settings.number("llama.attention.head_count_kv", KV_HEADS);
    settings.number("llama.rope.dimension_count", WIDTH as u32 / HEADS);
    settings.float("llama.rope.freq_base", 10_000.0);
    settings.float("llama.attention.layer_norm_rms_epsilon", 1e-5);
    settings.text("tokenizer.ggml.model", "gpt2");
    settings.text("tokenizer.ggml.pre", "smollm");
    let vocabulary = vocabulary();
    settings.texts("tokenizer.ggml.tokens", &vocabulary);
    settings.list("tokenizer.ggml.token_type", I32, vocabulary.len());
    for at in 0..vocabulary.len() {
        let kind: i32 = if at < CONTROLS.len() { 3 } else { 1 };
        settings.bytes.extend(kind.to_le_bytes());
    }
    settings.texts("tokenizer.ggml.merges", &MERGES.map(str::to_owned));
    settings.number("tokenizer.ggml.eos_token_id", 2);
    settings.text("tokenizer.chat_template", TEMPLATE);
    settings
}

/// Name, rows, columns and form of every tensor.
fn tensors() -> Vec<(String, u64, u64, u32)> {
    let rows = vocabulary().len() as u64;
    let mut tensors = vec![
        ("token_embd.weight".to_owned(), rows, WIDTH, Q8_0),
        ("output_norm.weight".to_owned(), 1, WIDTH, F32),
    ];
    for (layer, [wide, narrow]) in (0..LAYERS).zip([[Q4_1, Q4_1], [Q4_0, F16]]) {
        let mut push = |part: &str, rows, cols, kind| {
            tensors.push((format!("blk.{layer}.{part}.weight"), rows, cols, kind));
        };
        push("attn_norm", 1, WIDTH, F32);
        push("attn_q", WIDTH, WIDTH, wide);
        push("attn_k", KV_WIDTH, WIDTH, Q8_0);
        push("attn_v", KV_WIDTH, WIDTH, narrow);
        push("attn_output", WIDTH, WIDTH, F32);
        push("ffn_norm", 1, WIDTH, F32);
        push("ffn_gate", INNER, WIDTH, wide);
        push("ffn_up", INNER, WIDTH, narrow);
        push("ffn_down", WIDTH, INNER, wide);
    }
    tensors
}

/// What a weight of a normalisation becomes: its tensor, and as it was drawn.
type Norm = fn(&str, f32) -> f32;

/// The bytes of the model's file.
pub(crate) fn file(seed: u64) -> Vec<u8> {
    file_with(seed, |_, number| number)
}

fn file_with(seed: u64, norm: Norm) -> Vec<u8> {
    let settings = settings();
    let tensors = tensors();
    let mut file = b"GGUF".to_vec();
    file.extend(3_u32.to_le_bytes());
    file.extend((tensors.len() as u64).to_le_bytes());
    file.extend(settings.count.to_le_bytes());
    file.extend(settings.bytes);
    let mut random = Random(seed);
    let mut data = Vec::new();
    for (name, rows, cols, kind) in tensors {
        text(&mut file, &name);
        let dimensions = if rows == 1 { vec![cols] } else { vec![cols, rows] };
        file.extend((dimensions.len() as u32).to_le_bytes());
        dimensions.iter().for_each(|dimension| file.extend(dimension.to_le_bytes()));
        file.extend(kind.to_le_bytes());
        file.extend((data.len() as u64).to_le_bytes());
        let mut bytes = random.tensor(kind, rows * cols);
        if name.ends_with("norm.weight") {
            for number in bytes.as_chunks_mut::<4>().0 {
                *number = norm(&name, f32::from_le_bytes(*number)).to_le_bytes();
            }
        }
        data.extend(bytes);
        data.resize(data.len().next_multiple_of(32), 0);
    }
    file.resize(file.len().next_multiple_of(32), 0);
    file.extend(data);
    file
}

/// The model.
pub(crate) fn model() -> Arc<Model> {
    read(&file(1))
}

/// A model whose layers add about as much as there is, so that a sum that is rounded otherwise changes its
/// scores. Those of the other are the same all the same, because its layers add little.
pub(crate) fn loud() -> Arc<Model> {
    read(&file_with(1, |_, number| number * 64.0))
}

/// A model of which some scores are not numbers, because their sums have infinities of both signs.
pub(crate) fn overflowing() -> Arc<Model> {
    read(&file_with(1, |name, number| if name == "output_norm.weight" { 1e38 } else { number }))
}

pub(crate) fn read(file: &[u8]) -> Arc<Model> {
    Arc::new(Model::read(file, file.len() as u64).expect("the model is sound"))
}

/// A session with one thread.
pub(crate) fn session(model: &Arc<Model>) -> Session {
    session_with(model, 1)
}

/// A session with some threads.
pub(crate) fn session_with(model: &Arc<Model>, threads: usize) -> Session {
    let threads = Threads::new(threads.try_into().expect("not 0")).expect("threads start");
    let context = (CONTEXT as usize).try_into().expect("not 0");
    Session::new(Arc::clone(model), threads, context)
}

/// A session of the model with one thread, and a prompt of one turn of the user for it.
pub(crate) fn asked(text: &str) -> (Session, Prompt) {
    let model = model();
    (session(&model), ask(&model, text))
}

/// The answer to a prompt, told to nobody.
pub(crate) fn generate(
    session: &mut Session,
    prompt: &Prompt,
    output_tokens_max: u32,
    grammar: Option<&Grammar>,
) -> Result<Generated, AnswerError> {
    session.generate(prompt, &Limits { output_tokens_max }, grammar, &mut |_| Flow::Continue)
}

/// A prompt of one turn of the user.
pub(crate) fn ask(model: &Model, text: &str) -> Prompt {
    model.prompt(&[Turn { role: Role::User, text }])
}
