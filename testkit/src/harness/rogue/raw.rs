//! The bytes of questions and answers, whatever they are.

use std::io;

use async_trait::async_trait;
use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use libp2p::StreamProtocol;
use libp2p::request_response;

/// Bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// A question, and what it was asked on.
#[derive(Clone, Debug)]
pub struct Question {
    pub protocol: String,
    pub bytes: Vec<u8>,
}

/// Any bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw {
    /// Answers are left unread.
    pub(super) is_deaf: bool,
}

async fn read<T: AsyncRead + Unpin + Send>(io: &mut T) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io.take(ANSWER_BYTES_MAX).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

#[async_trait]
impl request_response::Codec for Raw {
    type Protocol = StreamProtocol;
    type Request = Question;
    type Response = Vec<u8>;

    async fn read_request<T>(
        &mut self,
        protocol: &StreamProtocol,
        io: &mut T,
    ) -> io::Result<Question>
    where
        T: AsyncRead + Unpin + Send,
    {
        Ok(Question { protocol: protocol.to_string(), bytes: read(io).await? })
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        if self.is_deaf {
            futures::future::pending::<()>().await;
        }
        read(io).await
    }

    async fn write_request<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        question: Question,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        io.write_all(&question.bytes).await
    }

    async fn write_response<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        bytes: Vec<u8>,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        io.write_all(&bytes).await
    }
}
