//! One keep-alive HTTP/1.1 connection: the least that a generator needs, so that it takes little of
//! the machine that it shares with the node.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
    host: SocketAddr,
}

/// Posts a body to a Unix socket and answers the body of the response.
pub fn post_to_socket(path: &Path, body: &str) -> anyhow::Result<String> {
    let stream = UnixStream::connect(path).with_context(|| path.display().to_string())?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    exchange(&mut BufReader::new(stream), "localhost", body)
}

/// Connects from an address of the caller's choice.
pub fn connect_from(from: IpAddr, host: SocketAddr) -> anyhow::Result<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let stream = runtime.block_on(async {
        let socket = match from {
            IpAddr::V4(_) => TcpSocket::new_v4()?,
            IpAddr::V6(_) => TcpSocket::new_v6()?,
        };
        socket.bind(SocketAddr::new(from, 0))?;
        socket.connect(host).await?.into_std()
    });
    let stream = stream.with_context(|| format!("connecting from {from} to {host}"))?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

impl Connection {
    pub fn open(host: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(host).with_context(|| format!("connecting to {host}"))?;
        Self::over(stream, host)
    }

    /// The same from an address of the caller's choice, for example another one of loopback.
    pub fn open_from(from: IpAddr, host: SocketAddr) -> anyhow::Result<Self> {
        Self::over(connect_from(from, host)?, host)
    }

    fn over(stream: TcpStream, host: SocketAddr) -> anyhow::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream: BufReader::with_capacity(64 * 1024, stream), host })
    }

    /// Posts a body and answers the body of the response.
    pub fn post(&mut self, body: &str) -> anyhow::Result<String> {
        exchange(&mut self.stream, &self.host.to_string(), body)
    }

    /// Gets a path and answers the body of the response.
    pub fn get(&mut self, path: &str) -> anyhow::Result<String> {
        let host = self.host.to_string();
        self.get_as(&host, path)
    }

    /// Gets a path and answers the body of the response, whatever its status is.
    pub fn get_any(&mut self, path: &str) -> anyhow::Result<String> {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\n\r\n", self.host);
        Ok(respond(&mut self.stream, &request)?.1)
    }

    /// The same, with a host of the caller's choice in the request.
    pub fn get_as(&mut self, host: &str, path: &str) -> anyhow::Result<String> {
        request(&mut self.stream, &format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n"))
    }

    /// Calls a method and answers its result.
    pub fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let answer = self.post(&call_body(method, params))?;
        let mut answer: Value = serde_json::from_str(&answer)?;
        match answer.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => bail!("{method}: {answer}"),
        }
    }

    /// Calls a method that must be refused and answers the error object.
    pub fn rejection(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let answer: Value = serde_json::from_str(&self.post(&call_body(method, params))?)?;
        answer.get("error").cloned().with_context(|| format!("{method} was not refused: {answer}"))
    }

    /// All items of a list; `params` are those of the call with these options of a page.
    pub fn pages(
        &mut self,
        method: &str,
        params: impl Fn(&Value) -> Value,
    ) -> anyhow::Result<Vec<Value>> {
        let (mut items, mut page) = (Vec::new(), json!({ "limit": 500 }));
        loop {
            let mut answer = self.call(method, &params(&page))?;
            items.extend(answer["items"].as_array().cloned().unwrap_or_default());
            page["cursor"] = answer["nextCursor"].take();
            if page["cursor"].is_null() {
                return Ok(items);
            }
        }
    }

    /// Sends a signed transaction; answers what the node said, a rejection too.
    pub fn send(&mut self, text: &str) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.post(&send_body(&[text.to_owned()]))?)?)
    }
}

fn exchange<S: Read + Write>(
    stream: &mut BufReader<S>,
    host: &str,
    body: &str,
) -> anyhow::Result<String> {
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    request(stream, &format!("{head}{body}"))
}

/// Sends a request and answers the body of the response.
fn request<S: Read + Write>(stream: &mut BufReader<S>, request: &str) -> anyhow::Result<String> {
    let (status, body) = respond(stream, request)?;
    if !status.contains(" 200") {
        bail!("{status}: {body}");
    }
    Ok(body)
}

/// Sends a request and answers the first line and the body of the response.
fn respond<S: Read + Write>(
    stream: &mut BufReader<S>,
    request: &str,
) -> anyhow::Result<(String, String)> {
    stream.get_mut().write_all(request.as_bytes())?;
    let mut line = String::new();
    read_line(stream, &mut line)?;
    let status = line.trim_end().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        read_line(stream, &mut line)?;
        let header = line.trim_end();
        if header.is_empty() {
            break;
        }
        let lower = header.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok((status, String::from_utf8(body)?))
}

/// Reads a line of a head, which must be there.
fn read_line(stream: &mut impl BufRead, line: &mut String) -> std::io::Result<()> {
    match stream.read_line(line)? {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

/// One call of a method.
#[must_use]
pub fn call_body(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

/// One call, or a JSON-RPC array of calls, of `ombra_sendTransaction`.
#[must_use]
pub fn send_body(texts: &[String]) -> String {
    let call = |(id, text): (usize, &String)| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ombra_sendTransaction\",\"params\":[{text}]}}"
        )
    };
    let calls: Vec<String> = texts.iter().enumerate().map(call).collect();
    match calls.as_slice() {
        [single] => single.clone(),
        _ => format!("[{}]", calls.join(",")),
    }
}

/// One call of `ombra_sendTransactions`.
#[must_use]
pub fn send_together_body(texts: &[String]) -> String {
    let texts = texts.join(",");
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ombra_sendTransactions\",\"params\":[[{texts}]]}}"
    )
}

/// The committed nonce of an account.
pub fn account_nonce(connection: &mut Connection, address: &str) -> anyhow::Result<u64> {
    let account = connection.call("ombra_getAccount", &json!([address]))?;
    account.get("nonce").and_then(Value::as_u64).context("an account without nonce")
}
