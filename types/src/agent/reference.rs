//! References to other things: URLs, and images of containers.

/// What [`is_url`] takes, for messages.
pub(super) const URL: &str = "an https:, http: or ipfs: URL";

/// Whether a text is a URL: `https://`, `http://` or `ipfs://`, and then at least one of the characters
/// of RFC 3986, and no others.
pub(super) fn is_url(text: &str) -> bool {
    ["https://", "http://", "ipfs://"].into_iter().any(|scheme| begins_url(text, scheme))
}

/// Whether a text is an `ipfs:` URL.
pub(super) fn is_ipfs(text: &str) -> bool {
    begins_url(text, "ipfs://")
}

fn begins_url(text: &str, scheme: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&byte);
    text.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_allowed))
}

/// Whether a text names an OCI image by the digest of its manifest: a reference in the distribution
/// grammar with `@sha256:` and 64 lowercase hex characters, and optionally a tag.
#[must_use]
pub fn is_image(text: &str) -> bool {
    let Some((tagged, digest)) = text.rsplit_once("@sha256:") else { return false };
    let (name, tag) = match tagged.rsplit_once(':') {
        // A colon before a slash belongs to a port.
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        Some(_) | None => (tagged, None),
    };
    crate::Hash::parse(digest).is_ok() && tag.is_none_or(is_tag) && is_image_name(name)
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
}

fn is_image_name(name: &str) -> bool {
    let are_components = |path: &str| path.split('/').all(is_component);
    let has_domain = |(domain, path): (&str, &str)| is_domain(domain) && are_components(path);
    are_components(name) || name.split_once('/').is_some_and(has_domain)
}

/// Runs of lower-case letters and digits, separated by `.`, `_`, `__` or hyphens.
fn is_component(text: &str) -> bool {
    let is_run = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    let mut rest = text;
    loop {
        let behind = rest.trim_start_matches(is_run);
        if behind.len() == rest.len() {
            return false;
        }
        if behind.is_empty() {
            return true;
        }
        let end = behind.find(is_run).unwrap_or(behind.len());
        let Some((separator, next)) = behind.split_at_checked(end) else { return false };
        if !is_separator(separator) {
            return false;
        }
        rest = next;
    }
}

fn is_separator(text: &str) -> bool {
    matches!(text, "." | "_" | "__") || text.bytes().all(|byte| byte == b'-')
}

/// A name, an IPv4 address or an IPv6 address in brackets, and perhaps a port.
fn is_domain(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        let is_address = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
        return !address.is_empty()
            && address.bytes().all(is_address)
            && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_label(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests;
