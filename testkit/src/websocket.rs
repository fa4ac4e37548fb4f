//! The plainest WebSocket (RFC 6455). It reads when it is asked to and not before, as a slow client
//! does.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::http::{call_body, connect_from};
use crate::node::PATIENCE;

#[derive(Debug)]
pub struct WebSocket {
    stream: BufReader<TcpStream>,
}

const TEXT: u8 = 0x1;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xa;

impl WebSocket {
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
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut stream = BufReader::new(stream);
        let head = format!(
            "GET / HTTP/1.1\r\nhost: {host}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.get_mut().write_all(head.as_bytes())?;
        let mut status = String::new();
        stream.read_line(&mut status)?;
        if !status.contains(" 101 ") {
            bail!("no WebSocket: {}", status.trim_end());
        }
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if stream.read_line(&mut line)? == 0 {
                bail!("the head of the answer breaks off");
            }
        }
        Ok(Self { stream })
    }

    /// Begins a subscription; answers its id. Nothing may be open on the socket yet.
    pub fn subscribe(&mut self, kind: &str, filter: &Value) -> anyhow::Result<Value> {
        let call = call_body("ombra_subscribe", &json!([kind, filter]));
        self.send(TEXT, call.as_bytes())?;
        let answer = self.next()?.context("the socket was closed")?;
        answer.get("result").cloned().with_context(|| format!("not subscribed: {answer}"))
    }

    /// The next message; none when the server has closed the connection.
    #[expect(clippy::should_implement_trait, reason = "it can fail")]
    pub fn next(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            match self.frame() {
                Ok((TEXT, payload)) => return Ok(Some(serde_json::from_slice(&payload)?)),
                Ok((PING, payload)) => self.send(PONG, &payload)?,
                Ok((CLOSE, _)) => return Ok(None),
                Ok((opcode, _)) => bail!("a frame of kind {opcode}"),
                Err(error) if is_end(error.kind()) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// One frame; the server does not cut messages.
    fn frame(&mut self) -> std::io::Result<(u8, Vec<u8>)> {
        let [first, length] = self.bytes()?;
        let length = match length {
            126 => u64::from(u16::from_be_bytes(self.bytes()?)),
            127 => u64::from_be_bytes(self.bytes()?),
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        self.stream.read_exact(&mut payload)?;
        Ok((first & 0xf, payload))
    }

    fn bytes<const N: usize>(&mut self) -> std::io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// A masked frame, as a client must send it; the mask is 0.
    fn send(&mut self, opcode: u8, payload: &[u8]) -> anyhow::Result<()> {
        let mut frame = vec![0x80 | opcode];
        match u8::try_from(payload.len()) {
            Ok(length @ 0..126) => frame.push(0x80 | length),
            _ => {
                frame.push(0x80 | 126);
                frame.extend(u16::try_from(payload.len())?.to_be_bytes());
            }
        }
        frame.extend([0; 4]);
        frame.extend_from_slice(payload);
        self.stream.get_mut().write_all(&frame)?;
        Ok(())
    }
}

fn is_end(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
