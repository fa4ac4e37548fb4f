//! Batches. Transactions that are sent one by one in the same batch are handed over together, so
//! that their signatures are checked together.

use std::time::Instant;

use jsonrpsee::MethodResponse;
use jsonrpsee::core::middleware::{Batch, BatchEntry, RpcServiceT};
use jsonrpsee::server::BatchResponseBuilder;
use jsonrpsee::types::{Id, Request};
use serde_json::value::RawValue;

use super::submit::{SEND, response, signed_text};
use super::{Checked, Company};
use crate::error::RpcError;
use crate::memory::Room;
use crate::registry::{Kind, Method};

/// Submissions that wait to be handed over, in the order of their calls.
#[derive(Default)]
struct Joined<'a> {
    calls: Vec<(Id<'a>, Result<(), RpcError>)>,
    texts: Vec<Box<RawValue>>,
}

impl<S> Checked<S>
where
    S: RpcServiceT<
            MethodResponse = MethodResponse,
            NotificationResponse = MethodResponse,
            BatchResponse = MethodResponse,
        > + Sync,
{
    pub(super) async fn answer_batch(&self, batch: Batch<'_>) -> MethodResponse {
        match self.try_answer_batch(batch).await {
            Ok(response) | Err(response) => response,
        }
    }

    /// An error is the response to a batch whose answers are too large together.
    async fn try_answer_batch(&self, batch: Batch<'_>) -> Result<MethodResponse, MethodResponse> {
        let shared = &self.checks.shared;
        let mut answers = BatchResponseBuilder::new_with_limit(shared.response_bytes_max);
        let mut joined = Joined::default();
        let mut rooms = Room::default();
        let mut has_notification = false;
        for entry in batch {
            match entry {
                Ok(BatchEntry::Call(request)) => {
                    let method = shared.registry.method(&request.method);
                    match method.filter(|method| method.kind == Kind::Submit) {
                        Some(method) => self.join(method, request, &mut joined),
                        None => {
                            self.hand_over(&mut joined, &mut answers).await?;
                            let id = request.id.clone();
                            let answered = self.answer_with_room(id, request, Company::InBatch);
                            let (response, room) = answered.await;
                            rooms.add(room);
                            answers.append(response)?;
                        }
                    }
                }
                Ok(BatchEntry::Notification(notification)) => {
                    has_notification = true;
                    drop(self.checks.calls.take());
                    self.inner.notification(notification).await;
                }
                Err(error) => {
                    self.hand_over(&mut joined, &mut answers).await?;
                    drop(self.checks.calls.take());
                    let (error, id) = error.into_parts();
                    answers.append(MethodResponse::error(id, error))?;
                }
            }
        }
        self.hand_over(&mut joined, &mut answers).await?;
        if answers.is_empty() && has_notification {
            self.checks.place.settle_unanswered();
            return Ok(MethodResponse::notification());
        }
        let response = MethodResponse::from_batch(answers.finish());
        self.checks.place.keep(&response, rooms);
        Ok(response)
    }

    fn join<'a>(&self, method: &Method, request: Request<'a>, joined: &mut Joined<'a>) {
        let checked = self.admit(method, &request, Company::InBatch);
        let text = checked.and_then(|_permit| signed_text(method, request.params));
        let outcome = text.map(|text| joined.texts.push(text));
        joined.calls.push((request.id, outcome));
    }

    async fn hand_over(
        &self,
        joined: &mut Joined<'_>,
        answers: &mut BatchResponseBuilder,
    ) -> Result<(), MethodResponse> {
        if joined.calls.is_empty() {
            return Ok(());
        }
        let shared = &self.checks.shared;
        let started = Instant::now();
        let texts = std::mem::take(&mut joined.texts);
        let sent = if texts.is_empty() { Vec::new() } else { shared.submit.submit(texts).await };
        let mut sent = sent.into_iter();
        let mut accepted = 0;
        for (id, outcome) in joined.calls.drain(..) {
            let outcome = outcome.and_then(|()| {
                let answer = sent.next().ok_or(RpcError::Internal)?;
                answer.map_err(RpcError::from)
            });
            match outcome {
                Ok(_) => accepted += 1,
                Err(ref error) => shared.metrics.count(SEND, error.number(), 1),
            }
            answers.append(response(id, outcome, shared.response_bytes_max))?;
        }
        shared.metrics.count(SEND, 0, accepted);
        shared.metrics.observe(SEND, started.elapsed());
        Ok(())
    }
}
