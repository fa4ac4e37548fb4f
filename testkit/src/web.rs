//! HTTP/1.1 as plainly as the servers of tests need it.

use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use serde_json::Value;

/// A request that came in whole.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method, path and version.
    pub line: String,
    /// The other lines of the head.
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

impl Request {
    /// Reads the next request; none at the end of the connection.
    pub fn read(reader: &mut impl BufRead) -> Option<Self> {
        let line = line(reader)?;
        let mut headers = Vec::new();
        loop {
            let header = self::line(reader)?;
            if header.is_empty() {
                break;
            }
            headers.push(header);
        }
        let mut request = Self { line, headers, body: Vec::new() };
        let length = request.header("content-length").map_or(Some(0), |text| text.parse().ok())?;
        request.body = vec![0; length];
        reader.read_exact(&mut request.body).ok()?;
        Some(request)
    }

    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let value = |header: &str| {
            let (found, _) = header.split_once(':')?;
            found.eq_ignore_ascii_case(name).then_some(found.len() + 1)
        };
        let found = self.headers.iter().find_map(|header| Some((header, value(header)?)));
        found.and_then(|(header, begin)| header.get(begin..)).map(str::trim)
    }

    /// The body as JSON; null if it is not.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    Some(line.trim_end().to_owned())
}

/// Serves each connection to a free port of this machine in a thread of its own, until the process
/// ends.
pub fn listen(
    serve: impl Fn(TcpStream) -> Option<()> + Clone + Send + 'static,
) -> anyhow::Result<SocketAddr> {
    listen_at(SocketAddr::from(([127, 0, 0, 1], 0)), serve)
}

/// The same at an address; port 0 is any.
pub(crate) fn listen_at(
    at: SocketAddr,
    serve: impl Fn(TcpStream) -> Option<()> + Clone + Send + 'static,
) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind(at)?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    Ok(address)
}

/// Both directions of a connection.
pub(crate) fn both(stream: TcpStream) -> Option<(BufReader<TcpStream>, TcpStream)> {
    stream.set_nodelay(true).ok()?;
    Some((BufReader::new(stream.try_clone().ok()?), stream))
}

/// A whole answer: the first line's status, further lines of the head, and the body.
pub(crate) fn answer(
    writer: &mut TcpStream,
    status: &str,
    headers: &[String],
    body: &str,
) -> Option<()> {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    headers.iter().for_each(|header| head.extend([header.as_str(), "\r\n"]));
    write!(writer, "{head}\r\n{body}").ok()
}
