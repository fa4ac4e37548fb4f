//! One request to an agent and its answer, over the pipes of the relay.

use std::io;

use bollard::container::LogOutput;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, TryStreamExt as _};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio_util::codec::LengthDelimitedCodec;
use tokio_util::io::StreamReader;
use tokio_util::task::AbortOnDropHandle;
use types::Hash;

use super::engine::Pipes;

/// The most bytes of an answer's head.
const HEAD_BYTES_MAX: usize = 16_384;
const HEADERS_MAX: usize = 64;
const PASSED_AT_ONCE: usize = 16_384;
/// What is read of an answer that is no success: a reason has no more.
pub(super) const REASON_BYTES_MAX: usize = 1_024;

/// What an agent answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// The status.
    pub(super) status: u16,
    /// The body, up to one byte more than may be in it.
    pub(super) body: Bytes,
    /// What the agent says that models read for it; zero if it does not say.
    pub(super) input_tokens: u64,
    /// What the agent says that models wrote for it; zero if it does not say.
    pub(super) output_tokens: u64,
}

/// Pipes of a relay that stay open until this is dropped: with them the relay would end, and the agent before
/// it was seen what it has used.
#[derive(Debug)]
pub(super) struct Held(#[expect(dead_code, reason = "held")] AbortOnDropHandle<()>);

/// A connection over the pipes of a relay.
pub(super) fn connect(pipes: Pipes) -> (DuplexStream, Held) {
    let (near, far) = tokio::io::duplex(PASSED_AT_ONCE);
    let (mut from, mut to) = tokio::io::split(far);
    let passing = tokio::spawn(async move {
        let Pipes { output, mut input } = pipes;
        let output = output.map_ok(LogOutput::into_bytes).map_err(io::Error::other);
        let mut parts = LengthDelimitedCodec::builder();
        let mut parts = parts.length_field_type::<u16>().new_read(StreamReader::new(output));
        let back = async {
            // A relay that breaks off ends no answer: the watch over the container tells why.
            while let Some(Ok(part)) = parts.next().await {
                // Whoever asked may have enough before the end.
                let is_passed = to.write_all(&part).await.is_ok();
                if part.is_empty() || !is_passed {
                    drop(to.shutdown().await);
                }
            }
        };
        let (_, ()) = tokio::join!(tokio::io::copy(&mut from, &mut input), back);
        std::future::pending::<()>().await;
    });
    (near, Held(AbortOnDropHandle::new(passing)))
}

/// Asks an agent over a connection. `Err` says why there is no answer.
pub(super) async fn ask(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    call: Hash,
    payload: Bytes,
    body_bytes_max: usize,
) -> Result<Reply, String> {
    let none = |error: hyper::Error| format!("the agent gives no answer of HTTP: {error}");
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(none)?;
    // The connection is gone with the answer.
    let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
    let request = Request::builder()
        .method(Method::POST)
        .uri("/")
        .header(header::HOST, "localhost:8080")
        .header(header::CONNECTION, "close")
        .header(header::CONTENT_TYPE, "application/octet-stream")
        .header("X-Request-Id", call.to_string())
        .body(Full::new(payload))
        .map_err(|error| format!("the request: {error}"))?;
    let response = sender.send_request(request).await.map_err(none)?;
    read(response, body_bytes_max).await.map_err(none)
}

async fn read(response: Response<Incoming>, most: usize) -> Result<Reply, hyper::Error> {
    let is_success = response.status() == StatusCode::OK;
    let most = if is_success { most } else { REASON_BYTES_MAX };
    let status = response.status().as_u16();
    let [input_tokens, output_tokens] =
        ["x-input-tokens", "x-output-tokens"].map(|name| number(response.headers(), name));
    let mut parts = response.into_body().into_data_stream();
    let mut body = BytesMut::new();
    while body.len() <= most
        && let Some(part) = parts.next().await
    {
        let part = part?;
        let room = most.saturating_add(1).saturating_sub(body.len());
        body.extend_from_slice(part.get(..room).unwrap_or(&part));
    }
    Ok(Reply { status, body: body.freeze(), input_tokens, output_tokens })
}

/// A header that is there once and has a number; else zero.
fn number(headers: &HeaderMap, name: &str) -> u64 {
    let mut values = headers.get_all(name).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return 0 };
    let is_number = |text: &&str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    value.to_str().ok().filter(is_number).and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    //! What is made of answers, good ones and others.

    use tokio::io::AsyncReadExt as _;

    use super::*;

    const MOST: usize = 32;

    /// Asks an agent that answers these bytes, and hands back what it was asked.
    async fn asked(answer: Vec<u8>) -> (String, Result<Reply, String>) {
        let (own, mut agents) = tokio::io::duplex(64 * 1_024);
        let agent = async move {
            let mut request = Vec::new();
            while !request.ends_with(b"ask") {
                assert_ne!(agents.read_buf(&mut request).await.expect("a request"), 0);
            }
            // Who asked may have enough before it is over.
            drop(agents.write_all(&answer).await);
            String::from_utf8(request).expect("text")
        };
        let asking = ask(own, Hash::digest(b"call"), Bytes::from_static(b"ask"), MOST);
        tokio::join!(agent, asking)
    }

    async fn reply(answer: &str) -> Result<Reply, String> {
        asked(answer.as_bytes().to_vec()).await.1
    }

    #[tokio::test]
    async fn an_agent_is_asked_with_the_payload_and_the_id_of_the_call() {
        let answer = "HTTP/1.1 200 OK\r\nX-Input-Tokens: 12\r\nX-Output-Tokens: 3\r\n\
                      Content-Length: 2\r\n\r\nok";
        let (request, reply) = asked(answer.as_bytes().to_vec()).await;
        let request = request.to_ascii_lowercase();
        assert!(request.starts_with("post / http/1.1\r\n"), "{request}");
        assert!(request.contains(&format!("\r\nx-request-id: {}\r\n", Hash::digest(b"call"))));
        assert!(request.contains("\r\ncontent-length: 3\r\n") && request.ends_with("\r\n\r\nask"));
        let body = Bytes::from_static(b"ok");
        assert_eq!(reply, Ok(Reply { status: 200, body, input_tokens: 12, output_tokens: 3 }));
    }

    #[tokio::test]
    async fn tokens_that_are_no_number_are_none() {
        for value in ["", "-1", "+1", "1e3", "1 2", "18446744073709551616", "0x10"] {
            let answer = format!("HTTP/1.1 200 OK\r\nX-Input-Tokens: {value}\r\n\r\nok");
            assert_eq!(reply(&answer).await.map(|it| it.input_tokens), Ok(0), "{value:?}");
        }
        let twice = "HTTP/1.1 200 OK\r\nX-Input-Tokens: 1\r\nX-Input-Tokens: 1\r\n\r\nok";
        assert_eq!(reply(twice).await.map(|it| it.input_tokens), Ok(0));
    }

    #[tokio::test]
    async fn no_more_of_a_body_is_read_than_tells_that_it_is_too_long() {
        let long = |status: &str| format!("HTTP/1.1 {status}\r\n\r\n{}", "x".repeat(40_000));
        let read = reply(&long("200 OK")).await.expect("an answer");
        assert_eq!(read.body.len(), MOST + 1);
        let read = reply(&long("404 Not Found")).await.expect("an answer");
        assert_eq!((read.status, read.body.len()), (404, REASON_BYTES_MAX + 1));
        let just = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(MOST));
        assert_eq!(reply(&just).await.expect("an answer").body.len(), MOST);
    }

    #[tokio::test]
    async fn what_is_no_answer_of_http_is_an_error() {
        let many: String = (0..100).map(|it| format!("X-{it}: 1\r\n")).collect();
        for answer in [
            "".to_owned(),
            "hello\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n".to_owned(),
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd".to_owned(),
            "HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\nshort".to_owned(),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned(),
            format!("HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\nok", "x".repeat(2 * HEAD_BYTES_MAX)),
            format!("HTTP/1.1 200 OK\r\n{many}\r\nok"),
        ] {
            let error = reply(&answer).await.expect_err(&answer);
            assert!(error.starts_with("the agent gives no answer of HTTP: "), "{error}");
        }
    }
}
