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

#[cfg(test)]
mod tests {
    //! Both forms from either, and what is refused.

    use super::NodeUrl;

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
    fn other_texts_are_refused() {
        for text in ["", "127.0.0.1:8777", "ftp://host", "http://", "http:///path"] {
            assert!(NodeUrl::parse(text).is_err(), "{text}");
        }
    }
}
