//! A server behind TLS: used if its certificate is of an authority that the system trusts, and else not.
//!
//! What the system trusts is read from `SSL_CERT_FILE`, so the client is this test program again, with
//! that variable.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::{BackendError, Config, OpenAi, SetupError, ask, config, says, user};

const URL: &str = "MINER_HTTPS_URL";
const NAME: &str =
    "backend::tests::https::a_server_with_a_certificate_that_the_system_trusts_is_used";

/// An authority as PEM, and a server's certificate for `localhost` that it gave.
fn certified() -> (String, ServerConfig) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = authority.self_signed(&authority_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let server = server.signed_by(&key, &authority, &authority_key).unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    crate::tls::prepare();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![server.der().clone()], key).unwrap();
    (authority.pem(), config)
}

/// Answers every question on a connection with the same words.
async fn serve(stream: TcpStream, acceptor: TlsAcceptor) -> std::io::Result<()> {
    let mut stream = acceptor.accept(stream).await?;
    let mut read = Vec::new();
    // The body is JSON, so it ends with a brace; the head does not have one.
    while !read.ends_with(b"}") {
        let mut part = [0; 4_096];
        let bytes = stream.read(&mut part).await?;
        if bytes == 0 {
            return Ok(());
        }
        read.extend_from_slice(&part[..bytes]);
    }
    let body = says("Hi", 2, 11);
    let head =
        format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).await?;
    stream.shutdown().await
}

/// What the client does, in a process of its own.
async fn client(url: &str) {
    let config = Config { attempts_max: 1, ..config(url) };
    let connected = OpenAi::connect(config, &CancellationToken::new()).await;
    match connected {
        Ok(server) => {
            let output = ask(&server, &[user("hello")], &[]).await.unwrap();
            println!("it says {}", output.text);
        }
        Err(SetupError::Server(error @ BackendError::Unreachable { .. })) => {
            println!("it is not used: {error}");
        }
        Err(error) => panic!("{error}"),
    }
}

/// What a client says that trusts this file.
async fn said(url: String, trusts: &Path) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", NAME, "--nocapture"]).env(URL, url);
    command.env("SSL_CERT_FILE", trusts).env_remove("SSL_CERT_DIR");
    let ended = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert!(ended.status.success(), "{said}\n{}", String::from_utf8_lossy(&ended.stderr));
    said
}

#[tokio::test]
async fn a_server_with_a_certificate_that_the_system_trusts_is_used() {
    if let Ok(url) = std::env::var(URL) {
        return client(&url).await;
    }
    let (authority, config) = certified();
    let folder = tempfile::tempdir().unwrap();
    let (trusted, other) = (folder.path().join("trusted.pem"), folder.path().join("other.pem"));
    std::fs::write(&trusted, authority).unwrap();
    std::fs::write(&other, certified().0).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, acceptor.clone()));
        }
    });
    let told = said(url.clone(), &trusted).await;
    assert!(told.contains("it says Hi"), "{told}");
    let told = said(url, &other).await;
    assert!(told.contains("it is not used") && told.contains("certificate"), "{told}");
}
