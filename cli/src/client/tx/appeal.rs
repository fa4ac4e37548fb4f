//! `ombra tx appeal`: doubts the decision of a call.

use clap::Args;
use types::tx::CallAppeal;
use types::{Body, Hash};

use super::SendArgs;
use super::deliver::Delivery;
use crate::client::{Out, Outcome};

/// The call whose decision is doubted.
#[derive(Args, Debug)]
pub struct AppealArgs {
    /// The call's id
    call: Hash,
    #[command(flatten)]
    send: SendArgs,
}

pub(super) async fn run(args: AppealArgs, out: Out<'_>) -> Outcome {
    let body = Body::CallAppeal(CallAppeal { call_id: args.call });
    Delivery::open(args.send)?.deliver(&body, out).await
}
