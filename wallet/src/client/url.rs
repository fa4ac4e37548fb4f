//! The one address of a node, in its HTTP and its WebSocket form.

use super::ClientError;

/// A node's address for calls and for subscriptions: the same host and port, two schemes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeUrl {
    http: String,
    socket: String,
}

impl NodeUrl {
    /// Reads `http`, `https`, `ws` or `wss` URLs; the others are refused.
    pub(super) fn parse(text: &str) -> Result<Self, ClientError> {
        let refused = || ClientError::BadUrl { url: text.to_owned() };
        let (scheme, rest) = text.trim().split_once("://").ok_or_else(refused)?;
        if rest.is_empty() || rest.starts_with('/') {
            return Err(refused());
        }
        let (http, socket) = match scheme {
            "http" | "ws" => ("http", "ws"),
            "https" | "wss" => ("https", "wss"),
            _ => return Err(refused()),
        };
        Ok(Self { http: format!("{http}://{rest}"), socket: format!("{socket}://{rest}") })
    }

    /// For calls.
    pub(super) fn http(&self) -> &str {
        &self.http
    }

    /// For subscriptions.
    pub(super) fn socket(&self) -> &str {
        &self.socket
    }
}

/// A node's address without what may be secret in it: user, password and query.
pub(super) fn shown(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (address, _query) = url.split_at_checked(end).unwrap_or((url, ""));
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let path = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(path).unwrap_or((rest, ""));
    let host = authority.rsplit_once('@').map_or(authority, |(_user, host)| host);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    //! Both forms from either, what is refused, and what is shown.

    use super::{NodeUrl, shown};

    #[test]
    fn either_scheme_gives_both() {
        for text in ["http://127.0.0.1:8777", "ws://127.0.0.1:8777"] {
            let url = NodeUrl::parse(text).unwrap();
            let told = (url.http(), url.socket());
            assert_eq!(("http://127.0.0.1:8777", "ws://127.0.0.1:8777"), told);
        }
        let secure = NodeUrl::parse("https://node.example/rpc").unwrap();
        assert_eq!("wss://node.example/rpc", secure.socket());
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        for (url, expected) in [
            ("http://127.0.0.1:8777", "http://127.0.0.1:8777"),
            ("https://user:p@ss@node.example/rpc?key=a/b@c#d", "https://node.example/rpc"),
            ("wss://token@[::1]:8777", "wss://[::1]:8777"),
            ("http://node.example?key=a", "http://node.example"),
        ] {
            assert_eq!(expected, shown(url));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "127.0.0.1:8777", "ftp://host", "http://", "http:///path"] {
            assert!(NodeUrl::parse(text).is_err(), "{text}");
        }
    }
}
