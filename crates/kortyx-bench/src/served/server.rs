//! The servers that measures need, as the environment names them.

use std::env;

use crate::error::Error;

/// A server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    /// A Redis or Valkey on its own.
    Redis,
    /// A Redis Cluster.
    RedisCluster,
    /// A Postgres.
    Postgres,
}

impl Server {
    /// What `cargo xtask serve` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::RedisCluster => "redis-cluster",
            Self::Postgres => "postgres",
        }
    }

    fn variable(self) -> &'static str {
        match self {
            Self::Redis => "KORTYX_TEST_REDIS_URL",
            Self::RedisCluster => "KORTYX_TEST_REDIS_CLUSTER_URL",
            Self::Postgres => "KORTYX_TEST_POSTGRES_URL",
        }
    }

    /// Where it is.
    pub(super) fn url(self) -> Result<String, Error> {
        let url = env::var(self.variable()).ok().filter(|url| !url.is_empty());
        url.ok_or_else(|| Error::NoServer(self.variable(), self.name()))
    }
}

/// The ports of an address, in order. All of its hosts must be this one: round trips are counted by a relay on it.
pub(super) fn ports(url: &str) -> Result<Vec<u16>, Error> {
    let unfit = || Error::unexpected("round trips are counted on a server of 127.0.0.1, at an address with a port");
    let hosts = url.rsplit_once('@').map_or(url, |(_, hosts)| hosts);
    let ports: Vec<u16> = hosts.split("127.0.0.1:").skip(1).filter_map(port).collect();
    if ports.is_empty() || hosts.matches("127.0.0.1:").count() != ports.len() { Err(unfit()) } else { Ok(ports) }
}

fn port(text: &str) -> Option<u16> {
    text.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// An address with other ports.
pub(super) fn at_ports(url: &str, from: &[u16], to: &[u16]) -> String {
    let place = |port: &u16| format!("127.0.0.1:{port}");
    from.iter().zip(to).fold(url.to_owned(), |url, (from, to)| url.replace(&place(from), &place(to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_led_through_relays() {
        for (url, from, to, led) in [
            ("redis://:a:1@127.0.0.1:6379", vec![6379], vec![40_000], "redis://:a:1@127.0.0.1:40000"),
            ("postgres://u:p@127.0.0.1:5432/db?x=1", vec![5432], vec![4], "postgres://u:p@127.0.0.1:4/db?x=1"),
            (
                "redis-cluster://u:p@127.0.0.1:7000?node=127.0.0.1:7001&node=127.0.0.1:7002",
                vec![7000, 7001, 7002],
                vec![1, 2, 3],
                "redis-cluster://u:p@127.0.0.1:1?node=127.0.0.1:2&node=127.0.0.1:3",
            ),
        ] {
            assert_eq!(ports(url).unwrap(), from);
            assert_eq!(at_ports(url, &from, &to), led);
        }
    }

    #[test]
    fn an_address_elsewhere_or_without_a_port_is_refused() {
        for url in ["redis://:secret@db.example:6379", "redis://127.0.0.1", "postgres://u:p@127.0.0.1:x/db"] {
            let error = ports(url).unwrap_err().to_string();
            assert!(error.contains("127.0.0.1") && !error.contains("secret"), "{error}");
        }
    }
}
