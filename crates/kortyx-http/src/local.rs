//! The authoriser for development.

use std::net::IpAddr;

use async_trait::async_trait;
use axum::http::{Uri, header};
use kortyx_store::Scalar;

use crate::{Authoriser, Caller, Grant, Refusal};

/// Headers that say that a proxy passed the request on: then the peer is the proxy, not the client.
const PROXIED: [&str; 6] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"];

/// Lets everybody on this machine in: for development only.
///
/// A request must come from a loopback address, which has to be known, and not through a proxy. Its `Host` must name this machine, and so
/// must its `Origin` where it has one: a page on the web can send requests to a loopback port, too.
///
/// Everybody is one tenant: runs that are begun get the context value `local: true`, and only those are seen.
#[derive(Debug, Clone)]
pub struct AllowLocal {
    grant: Grant,
}

impl AllowLocal {
    /// Lets everybody on this machine see what was begun from this machine.
    pub fn new() -> Self {
        let mut grant = Grant::new();
        grant.scope.context.insert("local".to_owned(), Scalar::Bool(true));
        Self { grant }
    }

    /// Gives everybody on this machine this instead.
    pub fn granting(grant: Grant) -> Self {
        Self { grant }
    }
}

impl Default for AllowLocal {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Authoriser for AllowLocal {
    async fn authorise(&self, caller: Caller<'_>) -> Result<Grant, Refusal> {
        match objection(caller) {
            None => Ok(self.grant.clone()),
            Some(why) => Err(Refusal::forbidden(format!("only this machine may call: {why}"))),
        }
    }
}

/// Why a request is not taken for one from this machine.
fn objection(caller: Caller<'_>) -> Option<&'static str> {
    match caller.peer() {
        None => return Some("the server does not tell who is at the other end; serve with connect info"),
        Some(peer) if !peer.ip().to_canonical().is_loopback() => return Some("the request comes from elsewhere"),
        Some(_) => {}
    }
    if PROXIED.iter().any(|name| caller.headers().contains_key(*name)) {
        return Some("a proxy passed the request on");
    }
    if !caller.header("host").is_some_and(is_local_authority) {
        return Some("the host header does not name it");
    }
    let has_origin = caller.headers().contains_key(header::ORIGIN);
    if has_origin && !caller.header("origin").is_some_and(is_local_origin) {
        return Some("a page from elsewhere sent the request");
    }
    if caller.header("sec-fetch-site") == Some("cross-site") {
        return Some("a page from elsewhere sent the request");
    }
    None
}

fn is_local_origin(origin: &str) -> bool {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    rest.is_some_and(is_local_authority)
}

/// Whether `host` or `host:port` is this machine, by a name that no name server can point elsewhere.
fn is_local_authority(text: &str) -> bool {
    // Parsed as a server would: what does not parse names nobody.
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let Some(authority) = uri.authority().filter(|authority| authority.as_str() == text && !text.contains('@')) else {
        return false;
    };
    let host = authority.host();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::{extract::ConnectInfo, http::Request};

    use super::*;

    fn is_let_in(peer: Option<&str>, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        if let Some(peer) = peer {
            parts.extensions.insert(ConnectInfo::<SocketAddr>(peer.parse().unwrap()));
        }
        objection(Caller::of(&parts)).is_none()
    }

    #[test]
    fn this_machine_is_let_in_by_each_of_its_names() {
        for peer in ["127.0.0.1:4000", "127.8.8.8:4000", "[::1]:4000", "[::ffff:127.0.0.1]:4000"] {
            assert!(is_let_in(Some(peer), &[("host", "localhost:3000")]), "{peer}");
        }
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:3000", "[::1]:3000", "[::1]"] {
            assert!(is_let_in(Some("127.0.0.1:1"), &[("host", host)]), "{host}");
        }
        for origin in ["http://localhost:5173", "https://127.0.0.1", "http://[::1]:80"] {
            assert!(is_let_in(Some("127.0.0.1:1"), &[("host", "localhost"), ("origin", origin)]), "{origin}");
        }
    }

    #[test]
    fn others_and_the_unknown_are_refused() {
        for peer in [None, Some("10.0.0.1:1"), Some("[2001:db8::1]:1"), Some("[::ffff:10.0.0.1]:1")] {
            assert!(!is_let_in(peer, &[("host", "localhost")]), "{peer:?}");
        }
    }

    #[test]
    fn what_came_through_a_proxy_is_refused() {
        for name in PROXIED {
            assert!(!is_let_in(Some("127.0.0.1:1"), &[("host", "localhost"), (name, "127.0.0.1")]), "{name}");
        }
    }

    #[test]
    fn pages_of_the_web_are_refused() {
        let peer = Some("127.0.0.1:1");
        for host in ["evil.example", "localhost.evil.example", "evil@localhost", "", "127.0.0.1.nip.io", "localhost/x"]
        {
            assert!(!is_let_in(peer, &[("host", host)]), "{host}");
        }
        assert!(!is_let_in(peer, &[]), "no host");
        assert!(!is_let_in(peer, &[("host", "localhost"), ("host", "localhost")]), "two hosts");
        for origin in ["https://evil.example", "null", "http://localhost@evil.example", "file://", "localhost"] {
            assert!(!is_let_in(peer, &[("host", "localhost"), ("origin", origin)]), "{origin}");
        }
        assert!(!is_let_in(peer, &[("host", "localhost"), ("sec-fetch-site", "cross-site")]));
    }
}
