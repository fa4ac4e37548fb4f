//! An agent that does what it is told, also what it must not. The suite compiles it and makes images of it.
//!
//! `run(string)` answers a string. The image `never` starts it with that word, and it does not listen then.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("never") => sleep(),
        Some("sleep") => sleep(),
        Some("bomb") => bomb(),
        Some("end") => std::process::exit(7),
        _ => {
            let listener = TcpListener::bind("0.0.0.0:8080").expect("the port");
            for stream in listener.incoming() {
                serve(stream.expect("a connection"));
            }
        }
    }
}

fn sleep() -> ! {
    loop {
        // It is asked to hang.
        std::thread::sleep(Duration::from_secs(60));
    }
}

/// Processes that make processes, as many as there can be.
fn bomb() -> ! {
    loop {
        drop(Command::new("/proc/self/exe").arg("bomb").spawn());
    }
}

fn serve(mut stream: TcpStream) {
    let (mut bytes, mut part) = (Vec::new(), [0; 4_096]);
    let (head, order) = loop {
        let got = stream.read(&mut part).expect("a request");
        bytes.extend_from_slice(&part[..got]);
        let Some(at) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
        let length = head.lines().find_map(|it| it.strip_prefix("content-length: "));
        let length: usize = length.and_then(|it| it.parse().ok()).expect("a length");
        if bytes.len() >= at + 4 + length {
            // The selector, where the string is, its length, the string.
            let body = &bytes[at + 4..];
            let length = usize::from(body[66]) * 256 + usize::from(body[67]);
            break (head, String::from_utf8_lossy(&body[68..68 + length]).into_owned());
        }
    };
    let (word, rest) = order.split_once(' ').unwrap_or((&order, ""));
    let answer = match word {
        "echo" => rest.to_owned(),
        "head" => head,
        "status" => return status(&mut stream, rest),
        "raw" => return drop(stream.write_all(rest.replace('|', "\r\n").as_bytes())),
        "endless" => return endless(&mut stream, rest),
        "hang" => sleep(),
        "end" => std::process::exit(3),
        "children" => children(),
        "bomb" => bomb(),
        "memory" => memory(),
        "burn" => loop {
            std::hint::black_box(0);
        },
        "write" => written(),
        "fill" => fill(),
        "phone" => phone(rest),
        "print" => print(),
        "self" => std::fs::read_to_string("/proc/self/status").unwrap_or_default(),
        "relay" => relay(),
        "tokens" => return tokens(&mut stream, rest),
        other => format!("{other}?"),
    };
    say(&mut stream, "200 OK", "", &encoded(&answer));
}

fn say(stream: &mut TcpStream, status: &str, headers: &str, body: &[u8]) {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n");
    drop(stream.write_all(head.as_bytes()));
    drop(stream.write_all(body));
}

fn encoded(text: &str) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[31] = 32;
    bytes[56..].copy_from_slice(&(text.len() as u64).to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes
}

fn status(stream: &mut TcpStream, rest: &str) {
    let (status, body) = rest.split_once(' ').unwrap_or((rest, ""));
    say(stream, &format!("{status} Because"), "", body.as_bytes());
}

fn tokens(stream: &mut TcpStream, rest: &str) {
    let (read, written) = rest.split_once(' ').unwrap_or((rest, ""));
    let headers = format!("X-Input-Tokens: {read}\r\nX-Output-Tokens: {written}\r\n");
    say(stream, "200 OK", &headers, &encoded("counted"));
}

fn endless(stream: &mut TcpStream, status: &str) {
    drop(stream.write_all(format!("HTTP/1.1 {status} Because\r\n\r\n").as_bytes()));
    while stream.write_all(&[b'x'; 65_536]).is_ok() {}
    sleep();
}

/// How many processes there can be.
fn children() -> String {
    let mut count = 0;
    while Command::new("/proc/self/exe").arg("sleep").spawn().is_ok() {
        count += 1;
    }
    count.to_string()
}

fn memory() -> String {
    let mut all = Vec::new();
    loop {
        all.push(vec![1_u8; 1 << 20]);
        std::hint::black_box(&all);
    }
}

/// Where it may write.
fn written() -> String {
    let places = ["/x", "/rogue", "/etc/x", "/dev/x", "/proc/sys/kernel/hostname", "/tmp/x"];
    let may = |place: &&&str| std::fs::write(place, "x").is_ok();
    places.iter().filter(may).copied().collect::<Vec<_>>().join(" ")
}

/// How many mebibytes `/tmp` takes.
fn fill() -> String {
    let mut file = std::fs::File::create("/tmp/full").expect("a file");
    let mut count = 0;
    while file.write_all(&vec![0; 1 << 20]).is_ok() {
        count += 1;
    }
    drop(std::fs::remove_file("/tmp/full"));
    count.to_string()
}

/// What of these places, `HOST:PORT`, can be reached.
fn phone(places: &str) -> String {
    let mut reached = Vec::new();
    for place in places.split(' ') {
        let Ok(address) = place.parse() else { continue };
        if TcpStream::connect_timeout(&address, Duration::from_secs(2)).is_ok() {
            reached.push(format!("tcp {place}"));
        }
        let sent = UdpSocket::bind("0.0.0.0:0").and_then(|it| it.send_to(b"x", address));
        if sent.is_ok() {
            reached.push(format!("udp {place}"));
        }
    }
    let names = std::net::ToSocketAddrs::to_socket_addrs("example.org:80");
    if names.is_ok_and(|mut found| found.next().is_some()) {
        reached.push("names".to_owned());
    }
    reached.join(", ")
}

/// Writes to its output for a second.
fn print() -> String {
    let began = Instant::now();
    let line = vec![b'x'; 1 << 16];
    while began.elapsed() < Duration::from_secs(1) && std::io::stdout().write_all(&line).is_ok() {}
    "printed".to_owned()
}

/// What of the relay's process can be read.
fn relay() -> String {
    let files = ["environ", "mem", "maps", "root/relay", "cwd", "fd/0"];
    let may = |file: &&&str| std::fs::File::open(format!("/proc/1/{file}")).is_ok();
    files.iter().filter(may).copied().collect::<Vec<_>>().join(" ")
}
