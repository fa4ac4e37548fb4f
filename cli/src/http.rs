//! One request over one connection: how commands ask a process that serves HTTP.

use axum::http::header::{CONTENT_TYPE, HOST};
use axum::http::{Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

/// What can go wrong on the way.
pub(super) type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// The status and the body, of at most `bytes_max`, that a path is answered with.
pub(super) async fn get<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    host: &str,
    path: &str,
    bytes_max: usize,
) -> Result<(StatusCode, Bytes), AnyError> {
    send(stream, Method::GET, (host, path), bytes_max).await
}

/// The same for a request of another method, without a body.
pub(super) async fn send<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    method: Method,
    (host, path): (&str, &str),
    bytes_max: usize,
) -> Result<(StatusCode, Bytes), AnyError> {
    let request = Request::builder().method(method).uri(path);
    exchange(stream, request.header(HOST, host).body(Full::default())?, bytes_max).await
}

/// The same with a body of JSON.
pub(super) async fn send_json<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    method: Method,
    (host, path): (&str, &str),
    (body, bytes_max): (Vec<u8>, usize),
) -> Result<(StatusCode, Bytes), AnyError> {
    let request = Request::builder().method(method).uri(path).header(HOST, host);
    let request = request.header(CONTENT_TYPE, "application/json");
    exchange(stream, request.body(Full::from(body))?, bytes_max).await
}

async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    request: Request<Full<Bytes>>,
    bytes_max: usize,
) -> Result<(StatusCode, Bytes), AnyError> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let answer = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), bytes_max).collect().await?;
        Ok((status, body.to_bytes()))
    };
    tokio::pin!(connection);
    tokio::select! {
        biased;
        answer = answer => answer,
        // It ends before the answer only when it breaks.
        ended = &mut connection => Err(match ended {
            Ok(()) => "the connection was closed".into(),
            Err(error) => error.into(),
        }),
    }
}
