//! `ombra_sendTransaction`: the one method that is answered here, because this is where the text of
//! a single call and the texts of a joined batch meet.

use jsonrpsee::MethodResponse;
use jsonrpsee::server::ResponsePayload;
use jsonrpsee::types::{ErrorObjectOwned, Id, Request};
use serde_json::value::RawValue;
use types::Hash;

use super::Shared;
use crate::error::RpcError;
use crate::registry::{Method, bind};
use crate::wire::SendAnswer;

/// The method's name.
pub(super) const SEND: &str = "ombra_sendTransaction";

/// Hands one transaction over.
pub(super) async fn submit_alone(
    shared: &Shared,
    method: &Method,
    request: Request<'_>,
) -> MethodResponse {
    let outcome = match signed_text(method, request.params) {
        Ok(text) => {
            let answer = shared.submit.submit(vec![text]).await.pop();
            answer.ok_or(RpcError::Internal).and_then(|sent| sent.map_err(RpcError::from))
        }
        Err(error) => Err(error),
    };
    response(request.id, outcome, shared.response_bytes_max)
}

/// The response to one submission.
pub(super) fn response(
    id: Id<'_>,
    outcome: Result<Hash, RpcError>,
    bytes_max: usize,
) -> MethodResponse {
    match outcome {
        Ok(hash) => {
            let answer = SendAnswer { hash };
            MethodResponse::response(id, ResponsePayload::success(answer), bytes_max)
        }
        Err(error) => MethodResponse::error(id, ErrorObjectOwned::from(error)),
    }
}

/// The text of the only parameter, exactly as it was sent.
pub(super) fn signed_text(
    method: &Method,
    params: Option<std::borrow::Cow<'_, RawValue>>,
) -> Result<Box<RawValue>, RpcError> {
    let direct = params.as_deref().map(RawValue::get);
    if let Some(Ok((text,))) = direct.map(serde_json::from_str::<(Box<RawValue>,)>) {
        return Ok(text);
    }
    let bound = bind(method, params)?.ok_or(RpcError::Internal)?;
    let read = serde_json::from_str::<(Box<RawValue>,)>(bound.get());
    read.map(|(text,)| text).map_err(|_error| RpcError::Internal)
}
