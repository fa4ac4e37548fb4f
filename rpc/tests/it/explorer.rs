//! The page for people, and the headers that come with it.

use crate::client::TestServer;

/// The head and the body with which a GET is answered.
async fn get(server: &TestServer, path: &str, headers: &str) -> (String, String) {
    let answer = String::from_utf8(server.get_whole(path, headers).await).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(known, _)| *known == name).map(|(_, value)| value)
}

#[tokio::test]
async fn a_browser_is_led_to_the_page_and_a_program_is_not() {
    let server = TestServer::start().await;
    let accepts = "accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";
    let (head, _) = get(&server, "/", accepts).await;
    assert!(head.starts_with("HTTP/1.1 303"), "{head}");
    assert_eq!(Some("/explorer/"), header(&head, "location"));
    for program in ["", "accept: */*\r\n", "accept: application/json\r\n"] {
        let (head, _) = get(&server, "/", program).await;
        assert!(head.starts_with("HTTP/1.1 426"), "{program}: {head}");
    }
}

#[tokio::test]
async fn every_file_of_the_page_has_its_type_and_the_guards() {
    let server = TestServer::start().await;
    for (path, kind, code) in [
        ("/explorer/", "text/html; charset=utf-8", "200"),
        ("/explorer/style.css", "text/css; charset=utf-8", "200"),
        ("/explorer/app.js", "text/javascript; charset=utf-8", "200"),
        ("/explorer/lib/keys.js", "text/javascript; charset=utf-8", "200"),
        ("/explorer/icon.svg", "image/svg+xml", "200"),
        ("/explorer/nothing", "text/plain; charset=utf-8", "404"),
    ] {
        let (head, _) = get(&server, path, "").await;
        assert!(head.starts_with(&format!("HTTP/1.1 {code}")), "{path}: {head}");
        assert_eq!(Some(kind), header(&head, "content-type"), "{path}");
        let policy = header(&head, "content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(Some(value), header(&head, name), "{path}: {name}");
        }
    }
}

#[tokio::test]
async fn a_browser_that_has_a_file_does_not_get_it_again() {
    let server = TestServer::start().await;
    let (head, body) = get(&server, "/explorer/app.js", "").await;
    assert_eq!(Some("no-cache"), header(&head, "cache-control"));
    assert!(body.contains("import"), "{body}");
    let mark = header(&head, "etag").unwrap();
    let has_it = format!("if-none-match: \"other\", W/{mark}\r\n");
    let (again, body) = get(&server, "/explorer/app.js", &has_it).await;
    assert!(again.starts_with("HTTP/1.1 304"), "{again}");
    assert_eq!("", body);
    let (other, _) = get(&server, "/explorer/dom.js", &has_it).await;
    assert!(other.starts_with("HTTP/1.1 200"), "{other}");
}

#[tokio::test]
async fn nothing_outside_the_list_is_served() {
    let server = TestServer::start().await;
    for path in [
        "/explorer/../Cargo.toml",
        "/explorer/..%2fCargo.toml",
        "/explorer/views/",
        "/explorer//app.js",
    ] {
        assert_eq!(404, server.get(path).await.0, "{path}");
    }
}
