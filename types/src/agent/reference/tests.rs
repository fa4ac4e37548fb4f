//! URLs and names of images, good and bad.

use super::{is_image, is_ipfs, is_url};

const DIGEST: &str = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

#[test]
fn urls_have_one_of_three_schemes_and_the_characters_of_rfc_3986() {
    for url in [
        "https://a",
        "http://",
        "https://[::1]:8080/a?b=c#d",
        "ipfs://bafy/x.png",
        "http://a%zz",
        "https://-._~:/?#[]@!$&'()*+,;=%",
    ] {
        assert_eq!(is_url(url), url != "http://", "{url}");
    }
    let bad = "https: https:/a HTTPS://a ftp://a //a a https://ă https://<a> https://a^ https://a` \
               https://{a} https://a| data:text/plain,a";
    let others = ["", "https://a b", "https://a\"", "https://a\\", " https://a", "https://a\n"];
    for url in bad.split_whitespace().chain(others) {
        assert!(!is_url(url), "{url:?}");
    }
    assert!(is_ipfs("ipfs://a") && !is_ipfs("ipfs://") && !is_ipfs("https://a"));
}

#[test]
fn images_are_references_of_the_distribution_grammar_with_a_digest() {
    let names = "a alpine library/alpine a/b/c ghcr.io/o/r ghcr.io/o/r:v1.0 localhost:5000/a \
                localhost:5000/a:tag a:5000 UPPER/a Up.per-1.io:1/a/b 127.0.0.1:80/a [::1]/a \
                [2001:db8::1]:5000/a:b a.b a_b a__b a-b a---b a.b/c_d/e__f/g--h 1/2 a:_.- \
                xn--n3h.com/a a:5000/b -/a a-/b a/b-";
    for name in names.split_whitespace() {
        let is_good = !matches!(name, "-/a" | "a-/b" | "a/b-");
        assert_eq!(is_image(&format!("{name}{DIGEST}")), is_good, "{name}");
    }
    let bad = "A a/B a//b /a a/ a___b a._b a..b _a a_ .a a. a: a:.b a:b:c a:-b host:/a host:x/a \
               [::1] []/a [::g]/a [::1/a [::1]x/a ă/b a@b https://a/b a-.com/b .com/b";
    let others = ["", "a: ", "a b"];
    for name in bad.split_whitespace().chain(others) {
        assert!(!is_image(&format!("{name}{DIGEST}")), "{name:?}");
    }
    assert!(is_image(&format!("a:{}{DIGEST}", "t".repeat(128))));
    assert!(!is_image(&format!("a:{}{DIGEST}", "t".repeat(129))));
}

#[test]
fn an_image_without_its_digest_is_none() {
    let hex = DIGEST.trim_start_matches("@sha256:");
    for text in [
        "a".to_owned(),
        "a:latest".to_owned(),
        format!("a@sha512:{hex}"),
        format!("a@sha256:{}", &hex[1..]),
        format!("a@sha256:{hex}0"),
        format!("a@sha256:{}", hex.to_uppercase()),
        format!("a@sha256:{hex} "),
        format!("a{DIGEST}{DIGEST}"),
        DIGEST.to_owned(),
    ] {
        assert!(!is_image(&text), "{text}");
    }
}
