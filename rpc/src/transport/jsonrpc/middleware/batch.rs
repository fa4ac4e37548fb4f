//! Batches. Transactions that are sent one by one in the same batch are handed over together, so
//! that their signatures are checked together.

use std::borrow::Cow;
use std::time::Instant;

use jsonrpsee::MethodResponse;
use jsonrpsee::core::middleware::{Batch, BatchEntry, RpcServiceT};
use jsonrpsee::server::{BatchResponseBuilder, ResponsePayload};
use jsonrpsee::types::{ErrorObjectOwned, Id, Request};
use serde_json::value::RawValue;
use types::Hash;

use super::checked::{Checked, Company};
use super::shared::Shared;
use crate::admission::Room;
use crate::error::RpcError;
use crate::service;
use crate::transport::jsonrpc::registry::{Kind, Method, bind};
use crate::wire::SendAnswer;

/// Submissions that wait to be handed over, in the order of their calls.
#[derive(Default)]
struct Joined<'a> {
    /// The method that all of them call.
    method: &'static str,
    calls: Vec<(Id<'a>, Result<(), RpcError>)>,
    texts: Vec<Box<RawValue>>,
}

/// The response to a batch.
pub(super) async fn answer_batch<S>(checked: &Checked<S>, batch: Batch<'_>) -> MethodResponse
where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            NotificationResponse = MethodResponse,
            BatchResponse = MethodResponse,
        > + Sync,
{
    match try_answer_batch(checked, batch).await {
        Ok(response) | Err(response) => response,
    }
}

/// An error is the response to a batch whose answers are too large together.
async fn try_answer_batch<S>(
    checked: &Checked<S>,
    batch: Batch<'_>,
) -> Result<MethodResponse, MethodResponse>
where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            NotificationResponse = MethodResponse,
            BatchResponse = MethodResponse,
        > + Sync,
{
    let shared = &*checked.checks.shared;
    let mut answers = BatchResponseBuilder::new_with_limit(shared.response_bytes_max);
    let mut joined = Joined::default();
    let mut rooms = Room::default();
    let mut has_notification = false;
    for entry in batch {
        match entry {
            Ok(BatchEntry::Call(request)) => {
                let method = shared.registry.method(&request.method);
                match method.filter(|method| method.kind == Kind::Submit) {
                    Some(method) => join(checked, method, request, &mut joined),
                    None => {
                        hand_over(shared, &mut joined, &mut answers).await?;
                        let id = request.id.clone();
                        let answered = checked.answer_with_room(id, request, Company::InBatch);
                        let (response, room) = answered.await;
                        rooms.add(room);
                        answers.append(response)?;
                    }
                }
            }
            Ok(BatchEntry::Notification(notification)) => {
                has_notification = true;
                drop(checked.checks.calls.take());
                checked.inner.notification(notification).await;
            }
            Err(error) => {
                hand_over(shared, &mut joined, &mut answers).await?;
                drop(checked.checks.calls.take());
                let (error, id) = error.into_parts();
                answers.append(MethodResponse::error(id, error))?;
            }
        }
    }
    hand_over(shared, &mut joined, &mut answers).await?;
    if answers.is_empty() && has_notification {
        checked.checks.connection.settle_unanswered();
        return Ok(MethodResponse::notification());
    }
    let response = MethodResponse::from_batch(answers.finish());
    checked.checks.connection.keep(&response, rooms);
    Ok(response)
}

fn join<'a, S>(checked: &Checked<S>, method: &Method, request: Request<'a>, joined: &mut Joined<'a>)
where
    S: RpcServiceT<MethodResponse = MethodResponse> + Sync,
{
    let admitted = checked.admit(method, &request, Company::InBatch);
    let text = admitted.and_then(|_permit| signed_text(method, request.params));
    let outcome = text.map(|text| joined.texts.push(text));
    joined.method = method.name;
    joined.calls.push((request.id, outcome));
}

async fn hand_over(
    shared: &Shared,
    joined: &mut Joined<'_>,
    answers: &mut BatchResponseBuilder,
) -> Result<(), MethodResponse> {
    if joined.calls.is_empty() {
        return Ok(());
    }
    let started = Instant::now();
    let texts = std::mem::take(&mut joined.texts);
    let mut sent = service::submit::send_all(&shared.ports, texts).await.into_iter();
    let mut accepted = 0;
    for (id, outcome) in joined.calls.drain(..) {
        let outcome = outcome.and_then(|()| {
            let answer = sent.next().ok_or(RpcError::Internal)?;
            answer.map_err(RpcError::from)
        });
        match outcome {
            Ok(_) => accepted += 1,
            Err(ref error) => shared.metrics.count(joined.method, error.number(), 1),
        }
        answers.append(response(id, outcome, shared.response_bytes_max))?;
    }
    shared.metrics.count(joined.method, 0, accepted);
    shared.metrics.observe(joined.method, started.elapsed());
    Ok(())
}

/// The response to one submission.
fn response(id: Id<'_>, outcome: Result<Hash, RpcError>, bytes_max: usize) -> MethodResponse {
    match outcome {
        Ok(hash) => {
            let answer = SendAnswer { hash };
            MethodResponse::response(id, ResponsePayload::success(answer), bytes_max)
        }
        Err(error) => MethodResponse::error(id, ErrorObjectOwned::from(error)),
    }
}

/// The text of the only parameter, exactly as it was sent.
fn signed_text(
    method: &Method,
    params: Option<Cow<'_, RawValue>>,
) -> Result<Box<RawValue>, RpcError> {
    let direct = params.as_deref().map(RawValue::get);
    if let Some(Ok((text,))) = direct.map(serde_json::from_str::<(Box<RawValue>,)>) {
        return Ok(text);
    }
    let bound = bind(method, params)?.ok_or(RpcError::Internal)?;
    let read = serde_json::from_str::<(Box<RawValue>,)>(bound.get());
    read.map(|(text,)| text).map_err(|_error| RpcError::Internal)
}
