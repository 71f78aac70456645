//! Redis as `redis-cli` sees it: beside every store.

use std::{io, process::Command};

/// Keys without a time to live. Works on a node of a Cluster as well, where `KEYS` gives its own.
const ENDLESS: &str = "local left = {} for _, key in ipairs(redis.call('KEYS', ARGV[1])) do \
    if redis.call('TTL', key) == -1 then left[#left + 1] = key end end return left";

/// The answer of the node on this port.
pub fn ask(port: u16, password: &str, args: &[&str]) -> io::Result<String> {
    let mut command = Command::new("redis-cli");
    command.env("REDISCLI_AUTH", password).args(["-h", "127.0.0.1", "-p", &port.to_string()]).args(args);
    let output = command.output()?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The ports of a Cluster's masters, as the node on this port knows them; of a server that is none, its own.
pub fn masters(port: u16, password: &str) -> io::Result<Vec<u16>> {
    let nodes = ask(port, password, &["CLUSTER", "NODES"])?;
    // `<id> <host>:<port>@<bus> <flags> …`
    let of_master = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        let (address, flags) = (fields.next()?, fields.next()?);
        let port = address.split('@').next()?.rsplit(':').next()?.parse().ok()?;
        (flags.contains("master") && !flags.contains("fail")).then_some(port)
    };
    let masters: Vec<u16> = nodes.lines().filter_map(of_master).collect();
    Ok(if masters.is_empty() { vec![port] } else { masters })
}

/// The keys of a prefix that no time to live will remove, but for the mark of the schema.
pub fn keys_without_end(url: &str, prefix: &str) -> io::Result<Vec<String>> {
    let (port, password) = address(url);
    let mut left = Vec::new();
    for master in masters(port, &password)? {
        let keys = ask(master, &password, &["EVAL", ENDLESS, "0", &format!("*{prefix}:*")])?;
        left.extend(keys.lines().filter(|key| !key.is_empty() && !key.ends_with(":schema")).map(str::to_owned));
    }
    Ok(left)
}

/// The port and the password in a URL.
pub fn address(url: &str) -> (u16, String) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (login, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let password = login.split_once(':').map_or("", |(_, password)| password);
    (host.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(6379), password.to_owned())
}
