//! Which hosts the operator lets be fetched from.

use reqwest::Url;

/// One entry of `fetch.hosts_allow`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct HostRule {
    /// The name, or the domain that names must be below.
    name: String,
    is_domain: bool,
    /// The port; the usual ports of both schemes if none is given.
    port: Option<u16>,
}

/// The usual ports of `http` and `https`.
const USUAL_PORTS: [u16; 2] = [80, 443];

impl HostRule {
    /// Reads `HOST`, `*.DOMAIN`, `HOST:PORT` or `*.DOMAIN:PORT`. A host may be an IPv4 address, or an
    /// IPv6 address in brackets.
    pub(in super::super) fn parse(text: &str) -> Option<Self> {
        let (is_domain, rest) = match text.strip_prefix("*.") {
            Some(domain) => (true, domain),
            None => (false, text),
        };
        // A URL with this host tells whether it is one, and how it is written.
        let url = Url::parse(&format!("http://{rest}/")).ok()?;
        let name = url.host_str()?.to_owned();
        let has_port = rest.len() > name.len();
        let port = if has_port { url.port_or_known_default() } else { None };
        let written = port.map_or_else(|| name.clone(), |port| format!("{name}:{port}"));
        let is_name = url.domain().is_some();
        let is_plain = !name.contains('*');
        (written == rest && is_plain && (is_name || !is_domain)).then_some(Self {
            name,
            is_domain,
            port,
        })
    }

    /// Whether this URL may be asked.
    pub(super) fn allows(&self, url: &Url) -> bool {
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return false;
        };
        let host = host.strip_suffix('.').unwrap_or(host);
        let fits = if self.is_domain {
            host.strip_suffix(&self.name).is_some_and(|rest| rest.ends_with('.'))
        } else {
            host == self.name
        };
        fits && self.port.map_or_else(|| USUAL_PORTS.contains(&port), |only| only == port)
    }
}
