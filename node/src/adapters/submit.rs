//! Submissions of clients: rpc's port over the ingest service.

use async_trait::async_trait;
use rpc::ports::{PortFault, Submit, SubmitError};
use serde_json::value::RawValue;
use types::Hash;

use crate::ingest::{IngestError, IngestFault, IngestHandle, Origin, Text};

/// The ingest service, for the interfaces.
pub(crate) struct ClientSubmissions(pub(crate) IngestHandle);

#[async_trait]
impl Submit for ClientSubmissions {
    async fn submit(&self, texts: Vec<Box<RawValue>>) -> Vec<Result<Hash, SubmitError>> {
        let texts = texts.into_iter().map(bytes).collect();
        let answers = self.0.submit(texts, Origin::Client).await.into_iter();
        answers.map(|answer| answer.map(|it| it.hash).map_err(submit_error)).collect()
    }
}

/// The same memory in another type: nothing is copied.
fn bytes(text: Box<RawValue>) -> Text {
    Box::<str>::from(text).into_boxed_bytes()
}

fn submit_error(error: IngestError) -> SubmitError {
    match error {
        IngestError::Rejected(reason) => SubmitError::Rejected(reason),
        IngestError::Syncing => SubmitError::Syncing,
        IngestError::ShuttingDown => SubmitError::ShuttingDown,
        IngestError::Busy { retry_after_ms } => SubmitError::Busy { retry_after_ms },
        IngestError::Fault(fault) => SubmitError::Fault(rpc_fault(fault)),
    }
}

fn rpc_fault(fault: IngestFault) -> PortFault {
    match fault {
        IngestFault::Journal(error) => {
            PortFault::new("keeping an accepted transaction; send it again", error)
        }
        IngestFault::Ledger(error) => PortFault::new("admitting a transaction", error),
    }
}

#[cfg(test)]
mod tests {
    //! What clients are told.

    use std::sync::Arc;

    use super::*;

    #[test]
    fn circumstances_and_faults_keep_what_they_say() {
        let busy = submit_error(IngestError::Busy { retry_after_ms: 7 });
        assert!(matches!(busy, SubmitError::Busy { retry_after_ms: 7 }), "{busy:?}");
        assert!(matches!(submit_error(IngestError::Syncing), SubmitError::Syncing));
        assert!(matches!(submit_error(IngestError::ShuttingDown), SubmitError::ShuttingDown));
        let fault = IngestFault::Ledger(Arc::new(txpool::PoolFault::new("the disk is gone")));
        let told = submit_error(fault.into());
        let SubmitError::Fault(PortFault { doing, source, missing: None }) = told else {
            panic!("{told:?}");
        };
        assert_eq!(("admitting a transaction", "the disk is gone"), (doing, &*source.to_string()));
    }
}
