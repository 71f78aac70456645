//! Which store, and how it is opened.

use std::{ffi::OsString, path::PathBuf, sync::Arc};

use kortyx_orchestrator::Agent;
use kortyx_protocol::{RequestId, RunId, SessionId, Timestamp};
use kortyx_store::{InterruptRecord, RunRecord, Store};

use crate::{arguments::Options, error::CliError};

const POSTGRES: &str = "KORTYX_POSTGRES_URL";
const REDIS: &str = "KORTYX_REDIS_URL";
const SQLITE: &str = "KORTYX_SQLITE_PATH";
/// Every variable that names a store, in the order in which they count.
const VARIABLES: [&str; 5] = [POSTGRES, REDIS, "REDIS_URL", "KORTYX_FRAMEWORK_REDIS_URL", SQLITE];

/// An open store. It takes answers, and drives nothing.
pub(crate) struct Inspected {
    agent: Agent,
    /// The store's address, without what is secret.
    pub(crate) address: String,
}

/// A variable with its value, as the library reads it.
struct Named {
    variable: &'static str,
    value: OsString,
}

impl Inspected {
    /// Opens the store that the options or the environment name. One that does not exist is made only when `creates`.
    pub(crate) async fn open(options: &Options, creates: bool) -> Result<Self, CliError> {
        let Named { variable, value } = match &options.store {
            Some(url) => named(url)?,
            None => of_environment(|name| std::env::var_os(name))?,
        };
        let text = value.to_string_lossy().into_owned();
        if variable == SQLITE && !creates {
            let path = file(&text);
            if !path.exists() {
                let message = format!("SQLite file {}; `kortyx store setup --write` makes one", path.display());
                return Err(CliError::NotFound(message));
            }
        }
        let lookup = move |name: &str| (name == variable).then(|| value.clone());
        let agent = Agent::builder().from_variables(lookup).accept_only().without_setup();
        let agent = agent.build().await.map_err(CliError::Open)?;
        Ok(Self { agent, address: masked(&text) })
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        self.agent.store()
    }

    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    pub(crate) async fn now(&self) -> Result<Timestamp, CliError> {
        Ok(self.store().now().await?)
    }

    pub(crate) async fn run(&self, id: &RunId) -> Result<RunRecord, CliError> {
        self.store().run(id).await?.ok_or_else(|| CliError::NotFound(format!("run {id}")))
    }

    pub(crate) async fn question(&self, id: &RequestId) -> Result<InterruptRecord, CliError> {
        self.store().interrupt(id).await?.ok_or_else(|| CliError::NotFound(format!("question {id}")))
    }

    pub(crate) fn no_session(id: &SessionId) -> CliError {
        CliError::NotFound(format!("session {id}"))
    }

    pub(crate) async fn close(self) {
        self.store().close().await;
    }
}

/// Which variable of the library stands for an address.
fn named(address: &str) -> Result<Named, CliError> {
    let address = address.trim();
    let variable = match address.split_once("://").map(|(scheme, _)| scheme) {
        Some("postgres" | "postgresql") => POSTGRES,
        Some(scheme) if scheme.starts_with("redis") || scheme.starts_with("valkey") => REDIS,
        None if is_meant_for_a_server(address) => {
            let message =
                "`--store` reads like the address of a server without `://`: use postgres://, redis:// or sqlite:PATH";
            return Err(CliError::Usage(message.to_owned()));
        }
        Some("sqlite") | None => SQLITE,
        Some(scheme) => {
            let message = format!(
                "`--store` knows no `{scheme}://`: use postgres://, redis://, rediss://, redis-cluster://, redis-sentinel:// or \
                 sqlite:PATH"
            );
            return Err(CliError::Usage(message));
        }
    };
    Ok(Named { variable, value: address.into() })
}

/// Whether an address without `://` is no path. It may hold a password, and a path is shown.
fn is_meant_for_a_server(address: &str) -> bool {
    let is_named = address.starts_with("sqlite:");
    !is_named
        && (address.contains("password=")
            || ["postgres", "redis", "valkey"].iter().any(|kind| address.starts_with(kind) && address.contains('@')))
}

fn of_environment(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Named, CliError> {
    let set = VARIABLES.into_iter().find_map(|variable| Some(Named { variable, value: lookup(variable)? }));
    set.ok_or_else(|| {
        let message = format!("no store is named: give --store URL, or set one of {}", VARIABLES.join(", "));
        CliError::Usage(message)
    })
}

/// The file that an address of `SQLite` names.
fn file(address: &str) -> PathBuf {
    match address.trim().strip_prefix("sqlite:") {
        Some(path) => path.strip_prefix("//").unwrap_or(path).split('?').next().unwrap_or_default().into(),
        None => address.trim().into(),
    }
}

/// An address without its user, password and settings.
fn masked(address: &str) -> String {
    let address = address.trim();
    let Some((scheme, rest)) = address.split_once("://") else {
        return format!("sqlite:{}", file(address).display());
    };
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = tail.split(['?', '#']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{host}{path}"),
        // Whatever stands before a stray `@` may be part of a password that was not encoded.
        None if tail.contains('@') => format!("{scheme}://***"),
        None => format!("{scheme}://{authority}{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_store() {
        let variable = |address: &str| named(address).map(|named| named.variable).map_err(|error| error.to_string());
        for (address, wanted) in [
            ("postgres://h/db", POSTGRES),
            ("postgresql://h/db", POSTGRES),
            ("rediss://h", REDIS),
            ("redis-cluster://h", REDIS),
            ("valkey://h", REDIS),
            ("sqlite:a/k.db", SQLITE),
            ("sqlite://a/k.db", SQLITE),
            (" k.db ", SQLITE),
        ] {
            assert_eq!(variable(address).as_deref(), Ok(wanted), "{address}");
        }
        let refused = variable("mysql://u:hunter2@h/db").unwrap_err();
        assert!(refused.contains("`mysql://`") && !refused.contains("hunter2"), "{refused}");
        for address in ["host=db user=app password=hunter2", "postgres:app:hunter2@h/db", "redis:/:hunter2@h"] {
            let refused = variable(address).unwrap_err();
            assert!(refused.contains("server") && !refused.contains("hunter2"), "{refused}");
        }
    }

    #[test]
    fn no_secret_of_an_address_is_shown() {
        for (address, shown) in [
            ("postgres://app:hunter2@db:5432/shop?password=hunter2", "postgres://db:5432/shop"),
            ("redis://:hunter2@h", "redis://h"),
            ("redis://a:hun@ter2@h/0", "redis://h/0"),
            ("redis-sentinel://h:1?sentinelPassword=hunter2", "redis-sentinel://h:1"),
            ("redis-sentinel://h:1?sentinelPassword=a@hunter2", "redis-sentinel://***"),
            ("redis://:hunter2/x@h", "redis://***"),
            ("sqlite:data/k.db?synchronous=full", "sqlite:data/k.db"),
            ("data/k.db", "sqlite:data/k.db"),
        ] {
            assert_eq!(masked(address), shown);
        }
    }

    #[test]
    fn the_first_variable_that_is_set_names_the_store() {
        let set = |names: &'static [&'static str]| {
            of_environment(move |name| names.contains(&name).then(|| name.into())).map(|named| named.variable)
        };
        assert_eq!(set(&[SQLITE, "REDIS_URL"]).ok(), Some("REDIS_URL"));
        assert!(set(&[]).unwrap_err().to_string().contains("KORTYX_SQLITE_PATH"));
    }
}
