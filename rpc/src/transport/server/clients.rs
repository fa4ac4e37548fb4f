//! Who a client is: its address, an IPv6 network of 64 bits, or a key that the operator has given out.
//! Of clients without a key only a bounded number is remembered.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::http::header::HeaderName;
use axum::http::{HeaderMap, HeaderValue};
use governor::Quota;
use ipnet::IpNet;
use quick_cache::sync::Cache;

use crate::admission::{Bucket, Client, Party, RateStanding, Share, Shares, quota};
use crate::config::RateLimits;

/// A key that the operator has given out.
const KEY: HeaderName = HeaderName::from_static("x-api-key");
/// Whom a proxy asks for; each proxy on the way adds one at the end.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Every client that is remembered.
#[derive(Debug)]
pub(super) struct Clients {
    by_address: Option<(Quota, Cache<IpAddr, Arc<Bucket>>)>,
    by_key: BTreeMap<String, Client>,
    trusted_proxies: Vec<IpNet>,
    shares: Shares,
}

impl Clients {
    pub(super) fn new(limits: RateLimits, shares: Shares) -> Self {
        let RateLimits {
            requests_per_second,
            burst,
            keys,
            key_requests_per_second,
            trusted_proxies,
            clients_max,
        } = limits;
        let remembered = usize::try_from(clients_max.max(1)).unwrap_or(usize::MAX);
        let of_address = quota(requests_per_second, burst);
        let of_key = quota(key_requests_per_second, 0);
        let client = |key: String| {
            let share = shares.of(Party::Key(key.clone()));
            (key, Client::new(of_key.map(Bucket::full), share))
        };
        Self {
            by_address: of_address.map(|quota| (quota, Cache::new(remembered))),
            by_key: keys.into_iter().map(client).collect(),
            trusted_proxies,
            shares,
        }
    }

    /// Whose share a connection from `peer` is of. A trusted proxy asks for many.
    pub(super) fn share_of(&self, peer: IpAddr) -> Arc<Share> {
        let peer = peer.to_canonical();
        if self.is_trusted(&peer) {
            return self.shares.of_nobody();
        }
        self.shares.of(Party::Network(network(peer)))
    }

    fn is_trusted(&self, address: &IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(address))
    }

    /// Who sent a request with these headers over a connection from `peer`.
    pub(super) fn of(&self, peer: Option<IpAddr>, headers: &HeaderMap) -> Client {
        let key = headers.get(KEY).and_then(|key| key.to_str().ok());
        if let Some(client) = key.and_then(|key| self.by_key.get(key)) {
            return client.clone();
        }
        let Some(peer) = peer else { return Client::nobody(&self.shares) };
        let address = network(self.origin(peer.to_canonical(), headers));
        let bucket = self.by_address.as_ref().and_then(|(quota, cache)| {
            cache.get_or_insert_with(&address, || Ok::<_, ()>(Bucket::full(*quota))).ok()
        });
        Client::new(bucket, self.shares.of(Party::Network(address)))
    }

    /// The address that a request began at. Every proxy adds at the end of the header whom it was
    /// asked by, so what stands left of the first that is not trusted is the client's own invention.
    fn origin(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut origin = peer;
        let lists = headers.get_all(FORWARDED_FOR).iter().collect::<Vec<_>>().into_iter().rev();
        let hops = lists.flat_map(|list| list.to_str().unwrap_or("?").rsplit(','));
        for hop in hops {
            if !self.is_trusted(&origin) {
                break;
            }
            let Ok(address) = hop.trim().parse::<IpAddr>() else { break };
            origin = address.to_canonical();
        }
        origin
    }
}

/// Tells a client how it stands with so many requests left.
pub(super) fn tell(client: &Client, remaining: u32, headers: &mut HeaderMap) {
    let Some(RateStanding { burst, remaining, full_in_seconds }) = client.standing(remaining)
    else {
        return;
    };
    headers.insert(LIMIT, HeaderValue::from(burst));
    headers.insert(REMAINING, HeaderValue::from(remaining));
    headers.insert(RESET, HeaderValue::from(full_in_seconds));
}

/// Who has one IPv6 address has 2^64.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(address) => IpAddr::V4(Ipv4Addr::from_bits(address.to_bits())),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (!0 << 64))),
    }
}

#[cfg(test)]
mod tests {
    //! Whose requests are counted together.

    use std::time::Duration;

    use super::*;
    use crate::admission::AnswerMemory;
    use crate::config::Limits;
    use crate::error::RpcError;

    fn clients(limits: RateLimits) -> Clients {
        let (memory, sizes) = (AnswerMemory::new(1 << 20), Limits::default());
        let shares = Shares::new(&sizes, memory, 32);
        Clients::new(RateLimits { requests_per_second: 1, burst: 2, ..limits }, shares)
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().expect("an address"))
    }

    /// How many of five requests are answered.
    fn answered(clients: &Clients, peer: &str, pairs: &[(&'static str, &'static str)]) -> usize {
        let headers = headers(pairs);
        (0..5).filter(|_| clients.of(ip(peer), &headers).take().is_ok()).count()
    }

    #[test]
    fn each_address_has_a_burst_of_its_own_and_is_then_told_to_wait() {
        let clients = clients(RateLimits::default());
        assert_eq!(2, answered(&clients, "10.0.0.1", &[]));
        assert_eq!(0, answered(&clients, "::ffff:10.0.0.1", &[]), "the same address");
        assert_eq!(2, answered(&clients, "10.0.0.2", &[]));
        let error = clients.of(ip("10.0.0.1"), &HeaderMap::new()).take().expect_err("refused");
        let RpcError::Limited { retry_after_ms: Some(1..=1_001), .. } = error else {
            panic!("{error:?}")
        };
    }

    #[test]
    fn one_network_of_ipv6_is_one_client() {
        let clients = clients(RateLimits::default());
        assert_eq!(2, answered(&clients, "2001:db8::1", &[]));
        assert_eq!(0, answered(&clients, "2001:db8::ffff:1", &[]));
        assert_eq!(2, answered(&clients, "2001:db8:0:1::1", &[]));
    }

    #[test]
    fn only_a_trusted_proxy_is_believed_whom_it_asks_for() {
        let proxy: IpNet = "10.9.0.0/16".parse().expect("a network");
        let clients = clients(RateLimits { trusted_proxies: vec![proxy], ..RateLimits::default() });
        let says = |list| [("x-forwarded-for", list)];
        assert_eq!(2, answered(&clients, "10.9.0.1", &says("1.1.1.1")));
        assert_eq!(0, answered(&clients, "10.9.0.2", &says("6.6.6.6, 1.1.1.1")), "an invention");
        assert_eq!(0, answered(&clients, "10.9.0.1", &says("1.1.1.1, 10.9.3.3")), "two proxies");
        assert_eq!(2, answered(&clients, "8.8.8.8", &says("2.2.2.2")), "no proxy");
        assert_eq!(0, answered(&clients, "8.8.8.8", &says("3.3.3.3")), "no proxy");
        assert_eq!(2, answered(&clients, "10.9.0.1", &says("rubbish")), "the proxy itself");
    }

    #[test]
    fn a_key_that_was_given_out_counts_for_itself_and_an_invented_one_does_not() {
        let keys = vec!["good".to_owned()];
        let limits = RateLimits { keys, key_requests_per_second: 1_000, ..RateLimits::default() };
        let clients = clients(limits);
        assert_eq!(2, answered(&clients, "10.0.0.1", &[("x-api-key", "bad")]));
        assert_eq!(0, answered(&clients, "10.0.0.1", &[("x-api-key", "worse")]));
        assert_eq!(5, answered(&clients, "10.0.0.1", &[("x-api-key", "good")]));
    }

    #[test]
    fn of_many_addresses_only_some_are_remembered() {
        let clients = clients(RateLimits { clients_max: 100, ..RateLimits::default() });
        for last in 0..10_000_u32 {
            let peer = IpAddr::V4(Ipv4Addr::from_bits(last));
            assert!(clients.of(Some(peer), &HeaderMap::new()).take().is_ok());
        }
        let (_, cache) = clients.by_address.as_ref().expect("a limit");
        assert!(cache.len() <= 110, "{}", cache.len());
    }

    #[test]
    fn who_is_one_client_for_the_rate_limit_has_one_share() {
        let proxy: IpNet = "10.9.0.0/16".parse().expect("a network");
        let limits = RateLimits {
            trusted_proxies: vec![proxy],
            keys: vec!["good".to_owned()],
            ..RateLimits::default()
        };
        let clients = clients(limits);
        let of = |peer, pairs: &[_]| Arc::clone(clients.of(ip(peer), &headers(pairs)).share());
        let address = |text: &str| clients.share_of(text.parse().expect("an address"));
        let one = of("10.0.0.1", &[]);
        assert!(Arc::ptr_eq(&one, &address("::ffff:10.0.0.1")), "a connection is of its address");
        assert!(Arc::ptr_eq(&one, &of("10.9.0.1", &[("x-forwarded-for", "10.0.0.1")])));
        assert!(!Arc::ptr_eq(&one, &of("10.0.0.2", &[])));
        assert!(!Arc::ptr_eq(&one, &of("10.0.0.1", &[("x-api-key", "good")])));
        let network = of("2001:db8::1", &[]);
        assert!(Arc::ptr_eq(&network, &of("2001:db8::2", &[])));
        let (first, second) = (address("10.9.0.1"), address("10.9.0.1"));
        assert!(!Arc::ptr_eq(&first, &second), "connections of a proxy are not counted");
    }

    #[tokio::test]
    async fn who_pays_late_waits_instead_of_being_refused() {
        let clients = clients(RateLimits::default());
        let client = clients.of(ip("10.0.0.1"), &HeaderMap::new());
        client.pay().await;
        client.pay().await;
        assert!(tokio::time::timeout(Duration::from_millis(10), client.pay()).await.is_err());
    }

    #[test]
    fn a_client_is_told_how_it_stands() {
        let clients = clients(RateLimits::default());
        let client = clients.of(ip("10.0.0.1"), &HeaderMap::new());
        let mut headers = HeaderMap::new();
        let remaining = client.take().expect("the first").expect("a limit");
        tell(&client, remaining, &mut headers);
        let told = [LIMIT, REMAINING, RESET].map(|name| headers.get(name).cloned());
        assert_eq!([2, 1, 1].map(|number: u32| Some(HeaderValue::from(number))), told);
    }
}
