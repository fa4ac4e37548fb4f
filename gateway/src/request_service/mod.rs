//! The request service: takes requests in, has one worker for each that is not over, and tells how far they are.

mod admission;
mod blobs;
mod calls;
mod drain;
mod earlier_requests;
mod ended;
mod fates;
mod progress;
mod service;
mod submit;
#[cfg(test)]
mod tests;
mod work;

pub(crate) use calls::CallSubmission;
pub use drain::DrainFault;
pub use ended::{Answered, Ended};
pub use progress::Progress;
pub(crate) use service::Submitted;
pub use service::{Job, Parts, RequestService};
pub(crate) use submit::{Submission, away};
