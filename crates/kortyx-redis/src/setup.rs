//! Setting up: is this a server that keeps what it is given, and is its schema one that this code knows?

use bytes::Bytes;
use kortyx_store::{StoreError, StoreErrorKind};

use crate::{reply::Reply, script, store::RedisStore};

const OPERATION: &str = "setup";
/// The version of keys and rows that this code writes.
const SCHEMA: u32 = 2;
/// The oldest servers that have what scripts use.
const REDIS: (u32, u32) = (7, 0);
const VALKEY: (u32, u32) = (7, 2);

impl RedisStore {
    pub(crate) async fn set_up(&self) -> Result<(), StoreError> {
        let client = self.client(OPERATION)?;
        for node in client.nodes() {
            match client.on_node(OPERATION, &node, "INFO", Vec::new()).await {
                Ok(Reply::Bytes(info)) => check_server(&String::from_utf8_lossy(&info))?,
                Ok(_) => {}
                // A user without the right to ask may still run every transition.
                Err(error) if error.kind() == StoreErrorKind::Backend => {
                    tracing::warn!(%error, "the server's version and its maxmemory-policy could not be checked");
                }
                Err(error) => return Err(error),
            }
        }
        let (key, version) = (self.names.schema(), Bytes::from(SCHEMA.to_string()));
        let reply = client.script(OPERATION, &script::SETUP, &key, &[version]).await?;
        let stored = reply.text().map_err(|damage| damage.during(OPERATION))?;
        match stored.parse::<u32>() {
            Ok(SCHEMA) => Ok(()),
            Ok(newer) => {
                let message = format!("the keys have schema {newer}, this code knows {SCHEMA}: deploy a newer one");
                Err(StoreError::new(StoreErrorKind::Schema, OPERATION, message))
            }
            Err(_) => {
                let message = format!("{key} holds no schema version: something else uses this prefix");
                Err(StoreError::new(StoreErrorKind::Schema, OPERATION, message))
            }
        }
    }
}

/// Refuses a server that is too old, or that would throw away what it was given.
fn check_server(info: &str) -> Result<(), StoreError> {
    let refuse = |message: String| Err(StoreError::new(StoreErrorKind::Backend, OPERATION, message));
    let (name, text, oldest) = match (field(info, "valkey_version"), field(info, "redis_version")) {
        (Some(version), _) => ("Valkey", version, VALKEY),
        (None, Some(version)) => ("Redis", version, REDIS),
        (None, None) => return Ok(()),
    };
    if version(text).is_some_and(|version| version < oldest) {
        return refuse(format!("this is {name} {text}; {name} {}.{} or later is needed", oldest.0, oldest.1));
    }
    match field(info, "maxmemory_policy") {
        Some(policy) if policy != "noeviction" => refuse(format!(
            "maxmemory-policy is {policy}: a full server would throw away open questions and accepted answers; \
             set it to noeviction"
        )),
        _ => Ok(()),
    }
}

fn field<'i>(info: &'i str, name: &str) -> Option<&'i str> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_servers_are_refused_by_name_and_version() {
        let error = check_server("redis_version:6.2.14\r\n").unwrap_err();
        assert_eq!(error.to_string(), "setup: this is Redis 6.2.14; Redis 7.0 or later is needed");
        assert!(check_server("redis_version:7.2.4\r\nvalkey_version:8.0.1\r\n").is_ok());
        assert!(check_server("redis_version:7.0.15\r\n").is_ok());
        assert!(check_server("valkey_version:7.1.0\r\n").is_err());
    }

    #[test]
    fn a_server_that_evicts_is_refused_with_the_reason() {
        for policy in ["allkeys-lru", "volatile-ttl", "allkeys-random"] {
            let error = check_server(&format!("redis_version:7.0.0\r\nmaxmemory_policy:{policy}\r\n")).unwrap_err();
            assert!(error.to_string().contains(policy) && error.to_string().contains("noeviction"), "{error}");
            assert!(!error.is_retryable());
        }
        assert!(check_server("redis_version:7.0.0\r\nmaxmemory_policy:noeviction\r\n").is_ok());
    }
}
