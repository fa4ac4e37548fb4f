//! `fetch_url` against real servers, some of which lead to where nobody may go.

use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::*;
use reqwest::Url;

use super::address::may_be_reached;
use super::host::HostRule;
use crate::tools::tests::support::{
    Book, Reply, Request, Web, call, config, http, said, surroundings,
};
use crate::tools::{Code, Toolbox};

/// The address of the servers of these tests, which the operator allows although it is loopback.
const HERE: &str = "127.0.0.2";

/// A toolbox that may fetch from `hosts` and from the address [`HERE`].
fn toolbox(hosts: &[String], names: Arc<Book>) -> Toolbox {
    let settings = format!(
        "allow = ['fetch_url']\n[limits.fetch_url]\ntimeout_ms = 2000\noutput_bytes_max = 1000\n\
         [fetch]\nhosts_allow = {hosts:?}\nnetworks_allow = ['{HERE}/32']"
    );
    let folder = tempfile::tempdir().unwrap();
    let mut around = surroundings(folder.path());
    around.names = names;
    Toolbox::open(&config(&settings), &around).unwrap()
}

fn url(url: &str) -> String {
    format!(r#"{{"url": "{url}"}}"#)
}

const TEXT: &str = "content-type: text/plain; charset=UTF-8\r\n";

/// What is at each path of the usual server.
fn site(request: &Request) -> Reply {
    let path = request.line.split(' ').nth(1).unwrap();
    let to = |place: &str| http("302 Found", &format!("location: {place}\r\n"), "");
    match path {
        "/" => http("200 OK", TEXT, "hello é"),
        "/json" => http("200 OK", "content-type: application/ld+json\r\n", "{}"),
        "/untyped" => http("200 OK", "", "bytes"),
        "/image" => http("200 OK", "content-type: image/png\r\n", "bytes"),
        "/latin" => http("200 OK", "content-type: text/html; charset=ISO-8859-1\r\n", "x"),
        "/packed" => http("200 OK", &format!("{TEXT}content-encoding: gzip\r\n"), "x"),
        "/gone" => http("404 Not Found", TEXT, "x"),
        "/short" => Reply::Bytes(format!("HTTP/1.1 200 OK\r\n{TEXT}content-length: 9\r\n\r\nx")),
        "/nonsense" => Reply::Bytes("what?\r\n\r\n".into()),
        "/endless" => Reply::Endless(format!("HTTP/1.1 200 OK\r\n{TEXT}\r\n"), b'e'),
        "/head" => Reply::Endless("HTTP/1.1 200 OK\r\nx-a: ".into(), b'h'),
        "/drip" => Reply::Drip(format!("HTTP/1.1 200 OK\r\n{TEXT}\r\n"), b'd', 20),
        "/to/" => to("/"),
        "/to/nowhere" => http("302 Found", "", ""),
        path => match path.strip_prefix("/to?") {
            Some(place) => to(place),
            None => {
                let left: u32 = path.trim_start_matches("/hop/").parse().unwrap();
                to(&if left > 1 { format!("/hop/{}", left - 1) } else { "/".to_owned() })
            }
        },
    }
}

#[tokio::test]
async fn texts_are_read_and_everything_else_is_told() {
    let web = Web::start(&format!("{HERE}:0"), site).await;
    let toolbox = toolbox(&[web.address.to_string()], Book::of(&[]));
    let cut = "\n[cut off: the result is longer than 1000 bytes]";
    let endless = "e".repeat(1000 - cut.len()) + cut;
    let cases = [
        ("/", "hello é"),
        ("/json", "{}"),
        ("/untyped", "failed: the server answers with something that is not text"),
        ("/image", "failed: the server answers with something that is not text"),
        ("/latin", "failed: the text is not written in UTF-8"),
        ("/packed", "failed: the server compresses the text, though nobody asked for it"),
        ("/gone", "failed: the server answers with status 404 Not Found"),
        ("/short", "transport: the answer broke off"),
        ("/nonsense", "transport: the server could not be asked"),
        ("/endless", &endless),
        ("/head", "transport: the server could not be asked"),
        ("/drip", "timeout: no result within 2000 ms"),
        ("/to/", "hello é"),
        ("/to/nowhere", "failed: the server redirects to nowhere"),
        ("/hop/3", "hello é"),
        ("/hop/4", "failed: the server redirects more than 3 times"),
    ];
    for (path, result) in cases {
        let asked = url(&format!("http://{}{path}", web.address));
        assert_eq!(said(&toolbox, "fetch_url", &asked).await, result, "{path}");
    }
    let request = web.requests()[0].clone();
    assert_eq!(request.line, "GET / HTTP/1.1");
    let headers: Vec<_> = request.head.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(headers, ["accept", "user-agent", "host", ""], "nothing tells who asks");
}

#[tokio::test]
async fn what_the_operator_does_not_allow_is_not_asked_for() {
    let web = Web::start(&format!("{HERE}:0"), site).await;
    let port = web.port();
    let names = Book::of(&[("other.test", &[&[HERE]])]);
    let toolbox = toolbox(&[format!("{HERE}:{port}"), "*.good.test".into()], names);
    let host = "refused: the miner does not fetch from this host and port";
    let cases = [
        (format!("http://other.test:{port}/"), host),
        (format!("http://{HERE}/"), host),
        (format!("http://good.test:{port}/"), host),
        ("http://evilgood.test/".into(), host),
        ("http://a.good.test:8080/".into(), host),
        (
            format!("http://user:word@{HERE}:{port}/"),
            "refused: an address with a user or a password is not fetched",
        ),
        (format!("ftp://{HERE}:{port}/"), "refused: only http and https may be fetched"),
        ("file:///etc/passwd".into(), "refused: only http and https may be fetched"),
        ("http://a.good.test/".into(), "transport: the host has no address"),
        (
            "example.org".into(),
            "bad_arguments: argument url is \"example.org\": expected an address with http:// or \
             https://",
        ),
    ];
    for (asked, result) in cases {
        assert_eq!(said(&toolbox, "fetch_url", &url(&asked)).await, result, "{asked}");
    }
    assert_eq!(web.requests().len(), 0);
}

#[tokio::test]
async fn a_redirect_is_judged_like_the_first_address() {
    let web = Web::start(&format!("{HERE}:0"), site).await;
    let trap = Web::start("127.0.0.1:0", site).await;
    let port = trap.port();
    let hosts = [
        web.address.to_string(),
        format!("127.0.0.1:{port}"),
        "169.254.169.254".into(),
        format!("[::ffff:7f00:1]:{port}"),
        format!("[::1]:{port}"),
        format!("inside.test:{port}"),
    ];
    let names = Book::of(&[("inside.test", &[&["127.0.0.1"]])]);
    let toolbox = toolbox(&hosts, names);
    let address = "refused: the host's address is not one of the public internet";
    let cases = [
        (format!("http://127.0.0.1:{port}/"), address),
        ("http://169.254.169.254/latest/meta-data/".into(), address),
        (format!("http://[::1]:{port}/"), address),
        (format!("http://[::ffff:127.0.0.1]:{port}/"), address),
        (format!("http://[::ffff:7f00:1]:{port}/"), address),
        (format!("http://inside.test:{port}/"), address),
        (format!("http://2130706433:{port}/"), address),
        (format!("http://0x7f.1:{port}/"), address),
        ("file:///etc/passwd".into(), "refused: only http and https may be fetched"),
        ("//elsewhere.test/".into(), "refused: the miner does not fetch from this host and port"),
    ];
    for (place, result) in cases {
        let asked = url(&format!("http://{}/to?{place}", web.address));
        assert_eq!(said(&toolbox, "fetch_url", &asked).await, result, "{place}");
    }
    assert_eq!(trap.requests().len(), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_address_leads_to_no_other() {
    let web = Web::start(&format!("{HERE}:0"), site).await;
    let port = web.port();
    let trap = Web::start(&format!("127.0.0.1:{port}"), site).await;
    let names = Book::of(&[
        ("turns.test", &[&[HERE], &["127.0.0.1"]]),
        ("mixed.test", &[&[HERE, "127.0.0.1"]]),
        ("mapped.test", &[&["::ffff:127.0.0.1"]]),
        ("none.test", &[&[]]),
    ]);
    let hosts = ["turns", "mixed", "mapped", "none"].map(|name| format!("{name}.test:{port}"));
    let toolbox = toolbox(&hosts, names);
    let address = "refused: the host's address is not one of the public internet";
    let cases = [
        // Asked once for the whole request: the second answer comes only with the redirect.
        ("turns.test", "/to/", address),
        ("mixed.test", "/", address),
        ("mapped.test", "/", address),
        ("none.test", "/", "transport: the host has no address"),
    ];
    for (name, path, result) in cases {
        let asked = url(&format!("http://{name}:{port}{path}"));
        assert_eq!(said(&toolbox, "fetch_url", &asked).await, result, "{name}");
    }
    assert_eq!(web.requests().len(), 1);
    assert_eq!(trap.requests().len(), 0);
}

#[tokio::test]
async fn https_is_never_asked_for_in_clear() {
    let web = Web::start(&format!("{HERE}:0"), |_| http("200 OK", TEXT, "plain")).await;
    let toolbox = toolbox(&[web.address.to_string()], Book::of(&[]));
    let outcome = call(&toolbox, "fetch_url", &url(&format!("https://{}/", web.address))).await;
    assert_eq!(outcome.code, Some(Code::Transport), "{outcome:?}");
}

const NOT_PUBLIC: &str = "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 \
    127.0.0.1 127.255.255.255 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 \
    192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.1 \
    168.63.129.16 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::7f00:1 \
    ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::7f00:1 \
    64:ff9b::a9fe:a9fe 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1:: 3fff::1 fc00::1 \
    fd00:ec2::254 fe80::1 fec0::1 ff02::1";

const PUBLIC: &str = "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 172.15.255.255 \
    172.32.0.0 168.63.129.15 223.255.255.255 ::ffff:8.8.8.8 64:ff9b::808:808 \
    2606:4700:4700::1111 2a00::1";

#[test]
fn only_addresses_of_the_public_internet_may_be_reached() {
    for (addresses, may) in [(NOT_PUBLIC, false), (PUBLIC, true)] {
        for address in addresses.split_whitespace() {
            assert_eq!(may_be_reached(address.parse().unwrap(), &[]), may, "{address}");
        }
    }
    let allowed = ["10.1.0.0/16".parse().unwrap()];
    for (address, may) in [("10.1.2.3", true), ("::ffff:10.1.2.3", true), ("10.2.0.1", false)] {
        assert_eq!(may_be_reached(address.parse().unwrap(), &allowed), may, "{address}");
    }
}

#[test]
fn a_rule_allows_its_host_and_nothing_like_it() {
    let cases = [
        ("example.org", "http://example.org/", true),
        ("example.org", "https://EXAMPLE.org/a?b", true),
        ("example.org", "https://example.org./", true),
        ("example.org", "https://example.org:443/", true),
        ("example.org", "https://example.org:8443/", false),
        ("example.org", "https://a.example.org/", false),
        ("example.org", "https://example.org.evil.test/", false),
        ("example.org", "https://example.org@evil.test/", false),
        ("example.org:8443", "https://example.org:8443/", true),
        ("example.org:8443", "https://example.org/", false),
        ("*.example.org", "https://a.b.example.org/", true),
        ("*.example.org", "https://example.org/", false),
        ("*.example.org", "https://notexample.org/", false),
        ("[2606:4700::1]", "https://[2606:4700::1]/", true),
    ];
    for (rule, asked, may) in cases {
        let rule = HostRule::parse(rule).expect(rule);
        assert_eq!(rule.allows(&Url::parse(asked).unwrap()), may, "{rule:?} {asked}");
    }
    for text in ["", "*", "*.", "a b", "Example.org", "example.org/", "a@b", "*.1.1.1.1", "a:0x50"]
    {
        assert_eq!(HostRule::parse(text), None, "{text}");
    }
}

proptest! {
    #[test]
    fn an_ipv4_address_is_judged_the_same_however_it_is_wrapped(bits in any::<u32>()) {
        let plain = std::net::Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = plain.octets().map(u16::from);
        let tail = [a << 8 | b, c << 8 | d];
        let wrapped = [
            std::net::Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, tail[0], tail[1]),
            std::net::Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, tail[0], tail[1]),
        ];
        for it in wrapped {
            let same = may_be_reached(IpAddr::V4(plain), &[]);
            prop_assert_eq!(may_be_reached(IpAddr::V6(it), &[]), same);
        }
    }
}
