//! An agent in a container: it gets a JSON text and a selector, and answers the value that is there.
//!
//! The protocol is that of docs/market.md section 9.5: port 8080, `POST /` with the calldata, `200` with the
//! encoded outputs, `400` with the reason. There is nothing but the standard library in it, so that one static
//! program is the whole image; README.md says how it is built.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

mod json;

/// What a head or a body has at most.
const BYTES_MAX: usize = 65_536;
/// The bytes of the selector, which the miner has checked.
const SELECTOR: usize = 4;
const WORD: usize = 32;

fn main() -> std::io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:8080")?;
    for stream in listener.incoming() {
        // One call after another; who breaks off has no answer.
        drop(stream.and_then(serve));
    }
    Ok(())
}

/// Reads a request and answers it.
fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    let (status, body) = match read(&mut stream)? {
        Some(calldata) => match answer(&calldata) {
            Ok(text) => ("200 OK", encoded(&text)),
            Err(why) => ("400 Bad Request", why.into_bytes()),
        },
        None => ("400 Bad Request", b"a POST with Content-Length is expected".to_vec()),
    };
    let length = body.len();
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    stream.write_all(&body)
}

/// The body of a request; none if it is no POST, or too long.
fn read(stream: &mut TcpStream) -> std::io::Result<Option<Vec<u8>>> {
    let (mut bytes, mut part) = (Vec::new(), [0; 4_096]);
    let mut wanted = None;
    loop {
        if let Some(end) = wanted
            && bytes.len() >= end
        {
            return Ok(Some(bytes[body_of(&bytes).unwrap_or(end)..end].to_vec()));
        }
        let got = stream.read(&mut part)?;
        bytes.extend_from_slice(&part[..got]);
        if got == 0 || bytes.len() > BYTES_MAX {
            return Ok(None);
        }
        if wanted.is_none()
            && let Some(begin) = body_of(&bytes)
        {
            let head = String::from_utf8_lossy(&bytes[..begin]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length = length.and_then(|text| text.trim().parse::<usize>().ok());
            let Some(length) = length.filter(|it| *it <= BYTES_MAX) else { return Ok(None) };
            if !head.starts_with("post / ") {
                return Ok(None);
            }
            wanted = Some(begin + length);
        }
    }
}

/// Where the body begins.
fn body_of(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|it| it == b"\r\n\r\n").map(|at| at + 4)
}

/// The value, or why there is none.
fn answer(calldata: &[u8]) -> Result<String, String> {
    let arguments = calldata.get(SELECTOR..).unwrap_or_default();
    let text = argument(arguments, 0).ok_or("the arguments are no two strings")?;
    let selector = argument(arguments, 1).ok_or("the arguments are no two strings")?;
    let value = json::parse(&text)?;
    let found = json::select(&value, &selector)?;
    Ok(match found {
        json::Value::Text(text) => text.clone(),
        other => other.to_string(),
    })
}

/// A string among arguments.
fn argument(arguments: &[u8], index: usize) -> Option<String> {
    let at = number(arguments, index * WORD)?;
    let length = number(arguments, at)?;
    let begin = at.checked_add(WORD)?;
    let bytes = arguments.get(begin..begin.checked_add(length)?)?;
    String::from_utf8(bytes.to_vec()).ok()
}

/// A number of 32 bytes, if it is a small one.
fn number(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..at.checked_add(WORD)?)?;
    let (high, low) = word.split_at(WORD - 4);
    let low = u32::from_be_bytes(low.try_into().ok()?);
    high.iter().all(|byte| *byte == 0).then_some(low as usize)
}

/// The outputs `(string)`.
fn encoded(text: &str) -> Vec<u8> {
    let mut bytes = vec![0; 2 * WORD];
    bytes[WORD - 1] = WORD as u8;
    bytes[2 * WORD - 8..].copy_from_slice(&(text.len() as u64).to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(WORD), 0);
    bytes
}
