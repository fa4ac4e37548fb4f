//! What a model reads, what becomes of what it says, and answers that never change.

mod golden;
mod own;
mod published;
mod scene;
