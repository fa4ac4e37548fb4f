//! A language model inside the process: the same bytes out for the same bytes in, on every machine.
//!
//! ```text
//!   file ──> Model ──────────────┬──> Session ──> generate: text, token by token
//!            weights, tokenizer, │    remembers   choose:   which of some texts is likeliest
//!            manifest            │    its tokens  scores:   of every token, for tests and checks
//!                                └──> Grammars ─> Grammar: the form that an answer must have
//! ```
//!
//! [`Model::open`] reads a GGUF file once. [`Model::prompt`] formats a conversation for the model.
//! Text in the conversation can never become a control token. A [`Session`] reads the prompt and
//! answers, with the highest score at each token. docs/model.md says what the model is worth, and
//! what was measured. [`Session::record`] writes down what a session reads and chooses, and
//! [`verify`] checks it.
//!
//! Two sessions of models with equal [`Manifest`]s give equal answers, because
//!
//! * weights and activations are multiplied as whole numbers, and sums of those are exact;
//! * the order of additions in every sum of floats is fixed in the code: a sum is never divided
//!   among threads, and its additions are never fused with multiplications;
//! * the exponential, sine, cosine, power and logarithm are those of one version of the crate
//!   `libm`, and not those of the system or of the processor;
//! * a token's scores depend on the tokens before it and on nothing else;
//! * of equal scores the token with the lowest number wins.
//!
//! Not here: the network, clocks, randomness, the rules of the chain, and what tools do.

mod activation;
mod chat;
mod choose;
mod error;
mod forward;
mod generate;
mod gguf;
mod grammar;
mod model;
mod pinned;
mod record;
mod session;
mod shape;
mod threads;
mod tokenizer;
mod verify;
mod weights;

pub use chat::{Prompt, Role, Turn};
pub use choose::Choice;
pub use error::{AnswerError, FileError, GrammarError, ModelError};
pub use generate::{End, Generated, Limits};
pub use grammar::{CALL_END, CALL_START, Grammar, Grammars, Tool, call_beginning, integer_pattern};
pub use model::{Manifest, Model};
pub use pinned::{Pinned, SMOLLM2_135M, SMOLLM2_135M_MANIFEST, file_sha256};
pub use record::{Chosen, Reading, scores_sha256};
pub use session::{Event, Flow, Session, Watch};
pub use threads::Threads;
pub use tokenizer::{TextStream, Token, Tokenizer};
pub use verify::{Difference, Verified, verify};
