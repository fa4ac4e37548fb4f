//! A server with a small package, and everything that can be wrong with one.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use infer::Pinned;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::disk::beside;
use super::place::place;
use super::*;
use crate::tools::tests::support::{DEADLINE, Reply, Request, Web, http};

const ARCHIVE: &str = "tiny-1-py3-none-any.whl";

/// A package with a small file, and the folder in which the file is wanted.
struct Scene {
    model: Pinned,
    archive: Vec<u8>,
    folder: TempDir,
}

fn sha256_of(bytes: &[u8]) -> &'static str {
    types::Hash::digest(bytes).to_string().leak()
}

/// What a wheel begins with: one deflated entry.
fn archive_of(entry: &str, content: &[u8]) -> Vec<u8> {
    let mut archive = b"PK\x03\x04".to_vec();
    archive.extend([20, 0, 0, 0, 8, 0]);
    archive.extend([0; 16]);
    archive.extend(u16::try_from(entry.len()).unwrap().to_le_bytes());
    archive.extend([0, 0]);
    archive.extend(entry.as_bytes());
    let mut deflated = DeflateEncoder::new(archive, Compression::default());
    deflated.write_all(content).unwrap();
    let mut archive = deflated.finish().unwrap();
    archive.extend(b"what comes after the first entry");
    archive
}

impl Scene {
    fn new() -> Self {
        // Not compressible, so that the archive is long enough to be cut off.
        let content: Vec<u8> = (0_u64..4_096).flat_map(|at| at.pow(5).to_le_bytes()).collect();
        let archive = archive_of("tiny/model.gguf", &content);
        let model = Pinned {
            file: "model.gguf",
            bytes: content.len() as u64,
            sha256: sha256_of(&content),
            archive: ARCHIVE,
            archive_bytes: archive.len() as u64,
            archive_sha256: sha256_of(&archive),
            archive_entry: "tiny/model.gguf",
            package: "tiny",
            ..infer::SMOLLM2_135M
        };
        Self { model, archive, folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("models/model.gguf")
    }

    fn part(&self) -> PathBuf {
        self.folder.path().join(format!("models/{ARCHIVE}.part"))
    }

    /// A server whose index lists the archive, and which answers questions for it so.
    async fn serve(
        &self,
        answer: impl Fn(&Request, &[u8]) -> Reply + Send + Sync + 'static,
    ) -> Web {
        let archive = self.archive.clone();
        Web::start("127.0.0.1:0", move |request| {
            if request.line.starts_with("GET /simple/tiny/ ") {
                let page = format!(
                    r#"{{"files":[{{"filename":"other.whl","url":"x"}},{{"filename":"{ARCHIVE}","url":"../../files/{ARCHIVE}"}}]}}"#
                );
                return http("200 OK", "content-type: application/json\r\n", &page);
            }
            answer(request, &archive)
        })
        .await
    }

    async fn fetch(&self, web: &Web) -> (Result<Fetched, FetchError>, Vec<Progress>) {
        self.fetch_from(&format!("http://{}/simple", web.address)).await
    }

    async fn fetch_from(&self, index: &str) -> (Result<Fetched, FetchError>, Vec<Progress>) {
        let mut told = Vec::new();
        let (index, stop) = (Index::parse(index).unwrap(), CancellationToken::new());
        let mut tell = |progress| told.push(progress);
        let path = self.path();
        let fetched = fetch(&self.model, &path, &index, &mut tell, &stop);
        let fetched = tokio::time::timeout(DEADLINE, fetched).await.unwrap();
        (fetched, told)
    }
}

/// The whole of some bytes.
fn whole(bytes: &[u8]) -> Reply {
    with_head(&format!("200 OK\r\ncontent-length: {}", bytes.len()), bytes)
}

fn with_head(head: &str, bytes: &[u8]) -> Reply {
    let mut answer = format!("HTTP/1.1 {head}\r\nconnection: close\r\n\r\n").into_bytes();
    answer.extend(bytes);
    Reply::Binary(answer)
}

/// The byte from which a request wants a file.
fn from_byte(request: &Request) -> Option<usize> {
    let range = request.head.lines().find_map(|line| line.strip_prefix("range: bytes="))?;
    range.strip_suffix('-').map(|byte| byte.parse().unwrap())
}

#[tokio::test]
async fn a_file_is_fetched_checked_and_put_in_its_place() {
    let scene = Scene::new();
    let web = scene.serve(|_, archive| whole(archive)).await;
    let (fetched, told) = scene.fetch(&web).await;
    assert_eq!(Fetched::Now, fetched.unwrap());
    scene.model.check(&scene.path()).unwrap();
    assert_eq!(Some(&Progress::Unpacking), told.last());
    let total = scene.model.archive_bytes;
    assert!(told.contains(&Progress::Received { bytes: total, total }), "{told:?}");
    // Nothing but the model and the lock is left.
    let left = std::fs::read_dir(scene.folder.path().join("models")).unwrap().count();
    assert_eq!(2, left);

    let requests = web.requests().len();
    let (fetched, _) = scene.fetch(&web).await;
    assert_eq!((Fetched::WasThere, requests), (fetched.unwrap(), web.requests().len()));
}

#[tokio::test]
async fn a_transfer_that_breaks_off_goes_on_where_it_was() {
    let scene = Scene::new();
    let web = scene
        .serve(|request, archive| {
            let from = from_byte(request).unwrap_or_default();
            let to = (from + 10_000).min(archive.len());
            let (left, last) = (archive.len() - from, archive.len() - 1);
            let status = if from == 0 { "200 OK" } else { "206 Partial Content" };
            let head = format!(
                "{status}\r\ncontent-range: bytes {from}-{last}/{}\r\ncontent-length: {left}",
                archive.len()
            );
            with_head(&head, &archive[from..to])
        })
        .await;
    let (fetched, told) = scene.fetch(&web).await;
    assert_eq!(Fetched::Now, fetched.unwrap());
    assert!(told.iter().any(|it| matches!(it, Progress::Again { .. })), "{told:?}");
    let from: Vec<_> = web.requests().iter().skip(1).map(from_byte).collect();
    assert_eq!([None, Some(10_000), Some(20_000)], from[..3]);
}

#[tokio::test]
async fn what_an_earlier_process_received_is_not_asked_for_again() {
    let scene = Scene::new();
    std::fs::create_dir(scene.folder.path().join("models")).unwrap();
    std::fs::write(scene.part(), &scene.archive[..5_000]).unwrap();
    let web = scene
        .serve(|request, archive| {
            assert_eq!(Some(5_000), from_byte(request));
            let last = archive.len() - 1;
            let head = format!("206 Partial Content\r\ncontent-range: bytes 5000-{last}/*");
            with_head(&head, &archive[5_000..])
        })
        .await;
    let (fetched, told) = scene.fetch(&web).await;
    assert_eq!(Fetched::Now, fetched.unwrap());
    assert!(matches!(told[0], Progress::Found { bytes: 5_000, .. }), "{told:?}");
}

#[tokio::test]
async fn a_server_that_cannot_resume_is_asked_for_the_whole() {
    let scene = Scene::new();
    std::fs::create_dir(scene.folder.path().join("models")).unwrap();
    std::fs::write(scene.part(), b"something old").unwrap();
    let web = scene.serve(|_, archive| whole(archive)).await;
    assert_eq!(Fetched::Now, scene.fetch(&web).await.0.unwrap());
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again() {
    let scene = Scene::new();
    let asked = AtomicUsize::new(0);
    let answer = move |_: &Request, archive: &[u8]| {
        if asked.fetch_add(1, Ordering::SeqCst) == 0 {
            return http("503 Service Unavailable", "", "later");
        }
        whole(archive)
    };
    let web = scene.serve(answer).await;
    assert_eq!(Fetched::Now, scene.fetch(&web).await.0.unwrap());
}

#[tokio::test]
async fn an_archive_with_another_hash_is_refused_and_deleted() {
    let scene = Scene::new();
    let web = scene
        .serve(|_, archive| {
            let mut other = archive.to_vec();
            other[20_000] ^= 1;
            whole(&other)
        })
        .await;
    let error = scene.fetch(&web).await.0.unwrap_err();
    assert!(matches!(error, FetchError::ArchiveHash { .. }), "{error}");
    assert!(error.to_string().contains(scene.model.archive_sha256), "{error}");
    assert!(!scene.part().exists() && !scene.path().exists());
}

#[tokio::test]
async fn a_file_within_the_archive_with_another_hash_is_refused() {
    let scene = Scene::new();
    let scene = Scene { model: Pinned { sha256: "00", ..scene.model }, ..scene };
    let web = scene.serve(|_, archive| whole(archive)).await;
    let error = scene.fetch(&web).await.0.unwrap_err();
    assert!(matches!(error, FetchError::Archive { .. }), "{error}");
    assert!(!scene.path().exists());
    assert!(!beside(&scene.path(), "part").exists());
}

#[tokio::test]
async fn an_archive_of_another_length_is_refused_before_it_is_fetched() {
    let scene = Scene::new();
    let web = scene.serve(|_, _| whole(b"short")).await;
    let error = scene.fetch(&web).await.0.unwrap_err();
    let FetchError::Length { found, expected, .. } = error else { panic!("{error}") };
    assert_eq!((5, scene.model.archive_bytes), (found, expected));
}

#[tokio::test]
async fn an_endless_archive_is_given_up_at_its_length() {
    let scene = Scene::new();
    let web = scene.serve(|_, _| Reply::Endless("HTTP/1.1 200 OK\r\n\r\n".into(), 7)).await;
    let error = scene.fetch(&web).await.0.unwrap_err();
    assert!(matches!(error, FetchError::Length { .. }), "{error}");
}

#[tokio::test]
async fn an_archive_that_is_not_there_is_not_asked_for_twice() {
    let scene = Scene::new();
    let web = scene.serve(|_, _| http("404 Not Found", "", "")).await;
    let error = scene.fetch(&web).await.0.unwrap_err();
    assert!(matches!(error, FetchError::Status { status: 404, .. }), "{error}");
    assert_eq!(2, web.requests().len());
}

#[tokio::test]
async fn a_server_that_breaks_off_for_ever_is_given_up_and_what_came_stays() {
    let scene = Scene::new();
    let length = scene.archive.len();
    let web = scene
        .serve(move |request, archive| match from_byte(request) {
            None => with_head(&format!("200 OK\r\ncontent-length: {length}"), &archive[..1_000]),
            Some(_) => Reply::Bytes(String::new()),
        })
        .await;
    let error = scene.fetch(&web).await.0.unwrap_err();
    assert!(matches!(error, FetchError::Broken { bytes: 1_000, .. }), "{error}");
    assert!(error.to_string().contains(&format!("ended after 1000 of {length} bytes")), "{error}");
    assert_eq!(1_000, std::fs::metadata(scene.part()).unwrap().len());
}

#[tokio::test]
async fn a_page_of_links_is_an_index_too_and_its_password_stays_with_its_server() {
    let scene = Scene::new();
    let archive = scene.archive.clone();
    let web = Web::start("127.0.0.1:0", move |request| {
        let is_known = request.head.contains("authorization: basic bwu6c2vjcmv0");
        if !is_known {
            return http("401 Unauthorized", "", "");
        }
        if request.line.starts_with("GET /pypi/simple/tiny/ ") {
            let page = format!(
                "<!DOCTYPE html><a href=\"/other-1.whl\">x</a>\n\
                 <A HREF='/files/{ARCHIVE}?a=1&amp;b=2#sha256=00'>{ARCHIVE}</A>"
            );
            return http("200 OK", "content-type: text/html\r\n", &page);
        }
        assert!(request.line.contains("?a=1&b=2 "), "{}", request.line);
        whole(&archive)
    })
    .await;
    let index = format!("http://me:secret@{}/pypi/simple", web.address);
    let (fetched, told) = scene.fetch_from(&index).await;
    assert_eq!(Fetched::Now, fetched.unwrap());
    assert!(!format!("{told:?} {:?}", Index::parse(&index)).contains("secret"));
}

#[tokio::test]
async fn an_index_without_the_archive_says_what_it_was_asked_for() {
    let scene = Scene::new();
    let web = Web::start("127.0.0.1:0", |_| {
        http("200 OK", "content-type: application/vnd.pypi.simple.v1+json\r\n", r#"{"files":[]}"#)
    })
    .await;
    let error = scene.fetch(&web).await.0.unwrap_err();
    assert!(error.to_string().contains("does not list tiny-1"), "{error}");
    let strange =
        Web::start("127.0.0.1:0", |_| http("200 OK", "content-type: application/json\r\n", "["))
            .await;
    let error = scene.fetch(&strange).await.0.unwrap_err();
    assert!(matches!(error, FetchError::Page { .. }), "{error}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_told_without_its_password() {
    let scene = Scene::new();
    let error = scene.fetch_from("http://me:secret@127.0.0.1:1/simple").await.0.unwrap_err();
    assert!(matches!(error, FetchError::Unreachable { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
}

#[tokio::test]
async fn another_file_in_the_place_is_left_alone() {
    let scene = Scene::new();
    let web = scene.serve(|_, archive| whole(archive)).await;
    std::fs::create_dir(scene.folder.path().join("models")).unwrap();
    std::fs::write(scene.path(), b"mine").unwrap();
    let error = scene.fetch(&web).await.0.unwrap_err();
    assert!(matches!(error, FetchError::Another { .. }), "{error}");
    assert_eq!(b"mine".to_vec(), std::fs::read(scene.path()).unwrap());
}

#[tokio::test]
async fn two_at_once_fetch_it_once() {
    let scene = Scene::new();
    let web = scene.serve(|_, archive| whole(archive)).await;
    let ((first, _), (second, _)) = tokio::join!(scene.fetch(&web), scene.fetch(&web));
    let mut fetched = [first.unwrap(), second.unwrap()];
    fetched.sort_by_key(|fetched| *fetched == Fetched::Now);
    assert_eq!([Fetched::WasThere, Fetched::Now], fetched);
    assert_eq!(2, web.requests().len());
}

#[tokio::test]
async fn a_stop_ends_a_slow_transfer_and_what_came_stays() {
    let scene = Scene::new();
    let web = scene.serve(|_, _| Reply::Drip("HTTP/1.1 200 OK\r\n\r\n".into(), 1, 5)).await;
    let index = Index::parse(&format!("http://{}/simple", web.address)).unwrap();
    let stop = CancellationToken::new();
    let mut tell = |progress| {
        if matches!(progress, Progress::Received { bytes: 3.., .. }) {
            stop.cancel();
        }
    };
    let path = scene.path();
    let fetched = fetch(&scene.model, &path, &index, &mut tell, &stop);
    let fetched = tokio::time::timeout(DEADLINE, fetched).await.unwrap();
    assert!(matches!(fetched, Err(FetchError::Stopped)), "{fetched:?}");
    assert!(std::fs::metadata(scene.part()).unwrap().len() >= 3);
}

#[test]
fn only_addresses_of_http_are_indexes() {
    for wrong in ["", "pypi.org/simple", "file:///tmp", "ftp://a/b"] {
        assert!(matches!(Index::parse(wrong), Err(FetchError::Index { .. })), "{wrong}");
    }
    assert!(Index::parse(Index::DEFAULT).is_ok());
}

#[test]
fn the_place_is_what_the_variable_names_or_in_the_cache_of_the_user() {
    let model = infer::SMOLLM2_135M;
    let place = |named: Option<&str>, home: Option<&str>| {
        place(&model, named.map(OsString::from), home.map(OsString::from))
    };
    assert_eq!(Ok("x.gguf".into()), place(Some("x.gguf"), Some("h")));
    let kept = Path::new("h/.cache/ombra/models/SmolLM2-135M-Instruct.Q4_1.gguf");
    assert_eq!(Ok(kept.to_owned()), place(None, Some("h")));
    assert_eq!(Ok(kept.to_owned()), place(Some(""), Some("h")));
    assert_eq!(Err(NoPlace), place(None, None));
}

#[test]
fn a_full_disk_has_a_sentence_of_its_own() {
    for kind in [std::io::ErrorKind::StorageFull, std::io::ErrorKind::QuotaExceeded] {
        let error = FetchError::write(Path::new("f"), kind.into());
        assert!(matches!(error, FetchError::Full { .. }), "{error}");
    }
}
