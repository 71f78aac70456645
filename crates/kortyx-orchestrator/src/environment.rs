//! Which store, and how long questions live, from environment variables.

use std::{ffi::OsString, time::Duration};

/// Variables that name a `PostgreSQL` database.
const POSTGRES: &[&str] = &["KORTYX_POSTGRES_URL"];
/// Variables that name a Redis server, the first one set counts.
const REDIS: &[&str] = &["KORTYX_REDIS_URL", "REDIS_URL", "KORTYX_FRAMEWORK_REDIS_URL"];
/// Variables that name a Redis server for a cache beside the `PostgreSQL` database.
const CACHE: &[&str] = &["KORTYX_CACHE_URL"];
/// Variables that name an `SQLite` file.
const SQLITE: &[&str] = &["KORTYX_SQLITE_PATH"];
/// Variables that say how many milliseconds a question may be answered, the first one set counts.
const TTL: &[&str] = &["KORTYX_FRAMEWORK_TTL_MS", "KORTYX_TTL_MS"];

/// Why the environment does not name a store, or a time.
///
/// Never shows a variable's value: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// A variable names a store that is not compiled in.
    #[error("`{variable}` is set, but this build has no such store: enable the Cargo feature `{feature}`, or unset it")]
    NotCompiledIn {
        /// The variable.
        variable: &'static str,
        /// The feature that brings the store.
        feature: &'static str,
    },
    /// A variable is set to nothing.
    #[error(
        "`{variable}` is set but empty: give it a value for the store of the Cargo feature `{feature}`, or unset it"
    )]
    Empty {
        /// The variable.
        variable: &'static str,
        /// The feature that brings the store.
        feature: &'static str,
    },
    /// A variable's value does not name such a store.
    #[error("`{variable}` does not name a store of the Cargo feature `{feature}`: {reason}")]
    Malformed {
        /// The variable.
        variable: &'static str,
        /// The feature that brings the store.
        feature: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A variable names a cache, and no other one the store that it would stand beside.
    #[error(
        "`{variable}` names a cache for a store in PostgreSQL, and `KORTYX_POSTGRES_URL` is not set: set it, or unset `{variable}`"
    )]
    CacheAlone {
        /// The variable.
        variable: &'static str,
    },
    /// A variable that should hold a time does not.
    #[error("`{variable}` is not a whole number of milliseconds, at least 1")]
    Time {
        /// The variable.
        variable: &'static str,
    },
    /// No variable names a store, and none in memory is compiled in.
    #[error("no variable names a store, and the store in memory needs the Cargo feature `memory`")]
    Nothing,
}

/// The store that the environment names.
#[derive(Debug)]
pub(crate) enum Selected {
    #[cfg(feature = "postgres")]
    Postgres(kortyx_postgres::PostgresConfig),
    #[cfg(feature = "cache")]
    Cached(kortyx_postgres::PostgresConfig, kortyx_redis::RedisConfig),
    #[cfg(feature = "redis")]
    Redis(kortyx_redis::RedisConfig),
    #[cfg(feature = "sqlite")]
    Sqlite(kortyx_sqlite::SqliteConfig),
    #[cfg(feature = "memory")]
    Memory,
}

/// Looks a variable up.
pub(crate) type Lookup<'a> = dyn Fn(&str) -> Option<OsString> + Send + 'a;

/// The store that the environment names: Postgres, with a cache where there is one, before Redis before SQLite before memory.
pub(crate) fn store(lookup: &Lookup<'_>) -> Result<Selected, EnvironmentError> {
    let cache = set(lookup, CACHE, "cache")?;
    match (set(lookup, POSTGRES, "postgres")?, cache) {
        (Some(value), Some(cache)) => return adapter::cached(value, cache),
        (Some(value), None) => return adapter::postgres(value),
        (None, Some(Value { variable, .. })) => return Err(EnvironmentError::CacheAlone { variable }),
        (None, None) => {}
    }
    if let Some(value) = set(lookup, REDIS, "redis")? {
        return adapter::redis(value);
    }
    if let Some(value) = set(lookup, SQLITE, "sqlite")? {
        return adapter::sqlite(value);
    }
    memory()
}

/// How long questions live, when a variable says so.
pub(crate) fn question_ttl(lookup: &Lookup<'_>) -> Result<Option<Duration>, EnvironmentError> {
    for variable in TTL.iter().copied() {
        let Some(value) = lookup(variable) else { continue };
        let millis = value.to_str().and_then(|text| text.trim().parse::<u64>().ok()).filter(|millis| *millis > 0);
        return millis.map(|millis| Some(Duration::from_millis(millis))).ok_or(EnvironmentError::Time { variable });
    }
    Ok(None)
}

/// A variable that is set, with the feature that brings its store.
struct Value {
    variable: &'static str,
    feature: &'static str,
    #[cfg_attr(
        not(any(feature = "postgres", feature = "redis", feature = "sqlite")),
        expect(dead_code, reason = "only adapters read it")
    )]
    text: String,
}

impl Value {
    #[cfg_attr(all(feature = "cache", feature = "sqlite"), expect(dead_code, reason = "every adapter is compiled in"))]
    fn not_compiled_in(self) -> EnvironmentError {
        EnvironmentError::NotCompiledIn { variable: self.variable, feature: self.feature }
    }
}

/// The first of these variables that is set.
fn set(
    lookup: &Lookup<'_>,
    variables: &[&'static str],
    feature: &'static str,
) -> Result<Option<Value>, EnvironmentError> {
    for variable in variables.iter().copied() {
        let Some(value) = lookup(variable) else { continue };
        let Ok(text) = value.into_string() else {
            let reason = "it is not UTF-8".to_owned();
            return Err(EnvironmentError::Malformed { variable, feature, reason });
        };
        if text.trim().is_empty() {
            return Err(EnvironmentError::Empty { variable, feature });
        }
        return Ok(Some(Value { variable, feature, text }));
    }
    Ok(None)
}

/// One function for each adapter: it reads the variable's value, or says that the adapter is not compiled in.
mod adapter {
    use super::{EnvironmentError, Selected, Value};

    macro_rules! adapter {
        ($name:ident, $feature:literal, $config:path, $selected:ident) => {
            #[cfg(feature = $feature)]
            pub(super) fn $name(value: Value) -> Result<Selected, EnvironmentError> {
                parse(value, <$config>::parse).map(Selected::$selected)
            }

            #[cfg(not(feature = $feature))]
            pub(super) fn $name(value: Value) -> Result<Selected, EnvironmentError> {
                Err(value.not_compiled_in())
            }
        };
    }

    adapter!(postgres, "postgres", kortyx_postgres::PostgresConfig, Postgres);
    adapter!(redis, "redis", kortyx_redis::RedisConfig, Redis);
    adapter!(sqlite, "sqlite", kortyx_sqlite::SqliteConfig, Sqlite);

    #[cfg(feature = "cache")]
    pub(super) fn cached(store: Value, cache: Value) -> Result<Selected, EnvironmentError> {
        let store = parse(store, kortyx_postgres::PostgresConfig::parse)?;
        Ok(Selected::Cached(store, parse(cache, kortyx_redis::RedisConfig::parse)?))
    }

    #[cfg(not(feature = "cache"))]
    pub(super) fn cached(_store: Value, cache: Value) -> Result<Selected, EnvironmentError> {
        Err(cache.not_compiled_in())
    }

    #[cfg(any(feature = "postgres", feature = "redis", feature = "sqlite"))]
    fn parse<T>(
        value: Value,
        parse: impl FnOnce(&str) -> Result<T, kortyx_store::StoreError>,
    ) -> Result<T, EnvironmentError> {
        let Value { variable, feature, text } = value;
        parse(&text).map_err(|error| {
            let reason = error.to_string();
            EnvironmentError::Malformed { variable, feature, reason }
        })
    }
}

#[cfg(feature = "memory")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature it fails")]
fn memory() -> Result<Selected, EnvironmentError> {
    Ok(Selected::Memory)
}

#[cfg(not(feature = "memory"))]
fn memory() -> Result<Selected, EnvironmentError> {
    Err(EnvironmentError::Nothing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)]) -> Result<Selected, String> {
        let lookup = |name: &str| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| OsString::from(*value))
        };
        store(&lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn a_store_that_cannot_be_used_is_named_with_its_feature_and_without_its_password() {
        let all = [
            ("KORTYX_POSTGRES_URL", "postgres", cfg!(feature = "postgres")),
            ("KORTYX_REDIS_URL", "redis", cfg!(feature = "redis")),
            ("REDIS_URL", "redis", cfg!(feature = "redis")),
            ("KORTYX_FRAMEWORK_REDIS_URL", "redis", cfg!(feature = "redis")),
        ];
        for (variable, feature, is_compiled_in) in all {
            let error =
                chosen(&[(variable, "scheme://user:hunter2@host"), ("KORTYX_SQLITE_PATH", "k.db")]).unwrap_err();
            let wanted = if is_compiled_in {
                format!("`{variable}` does not name a store of the Cargo feature `{feature}`: ")
            } else {
                format!(
                    "`{variable}` is set, but this build has no such store: enable the Cargo feature `{feature}`, or unset it"
                )
            };
            assert!(error.starts_with(&wanted), "{error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn postgres_comes_before_redis_and_the_first_redis_variable_counts() {
        let error = chosen(&[("REDIS_URL", "r"), ("KORTYX_POSTGRES_URL", "p")]).unwrap_err();
        assert!(error.contains("KORTYX_POSTGRES_URL"), "{error}");
        let error = chosen(&[("KORTYX_FRAMEWORK_REDIS_URL", "r"), ("REDIS_URL", "r")]).unwrap_err();
        assert!(error.contains("`REDIS_URL`"), "{error}");
    }

    #[test]
    fn a_cache_stands_beside_postgres_or_is_an_error() {
        let cache = ("KORTYX_CACHE_URL", "redis://app:hunter2@cache");
        let alone = chosen(&[cache, ("REDIS_URL", "redis://r")]).unwrap_err();
        let wanted = "`KORTYX_CACHE_URL` names a cache for a store in PostgreSQL, and `KORTYX_POSTGRES_URL` is not set: set it, or unset `KORTYX_CACHE_URL`";
        assert_eq!(alone, wanted);
        let both = chosen(&[cache, ("KORTYX_POSTGRES_URL", "postgres://db/app")]);
        #[cfg(feature = "cache")]
        {
            assert!(matches!(both, Ok(Selected::Cached(..))));
            let error = chosen(&[("KORTYX_CACHE_URL", "hunter2"), ("KORTYX_POSTGRES_URL", "postgres://db/app")]);
            let error = error.unwrap_err();
            assert!(
                error.starts_with("`KORTYX_CACHE_URL` does not name a store of the Cargo feature `cache`: "),
                "{error}"
            );
            assert!(!error.contains("hunter2"), "{error}");
        }
        #[cfg(not(feature = "cache"))]
        assert!(both.unwrap_err().contains("enable the Cargo feature `cache`"));
    }

    #[test]
    fn an_empty_variable_is_an_error_and_not_a_missing_one() {
        let error = chosen(&[("KORTYX_SQLITE_PATH", "  ")]).unwrap_err();
        let wanted = "`KORTYX_SQLITE_PATH` is set but empty: give it a value for the store of the Cargo feature `sqlite`, or unset it";
        assert_eq!(error, wanted);
    }

    #[cfg(feature = "memory")]
    #[test]
    fn nothing_set_means_memory() {
        assert!(matches!(chosen(&[]), Ok(Selected::Memory)));
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn a_path_means_sqlite_and_a_malformed_one_is_named() {
        let Ok(Selected::Sqlite(config)) = chosen(&[("KORTYX_SQLITE_PATH", "data/k.db")]) else { panic!("no sqlite") };
        assert!(config.path().ends_with("k.db"));
        let error = chosen(&[("KORTYX_SQLITE_PATH", ":memory:")]).unwrap_err();
        assert!(
            error.starts_with("`KORTYX_SQLITE_PATH` does not name a store of the Cargo feature `sqlite`: "),
            "{error}"
        );
    }

    #[cfg(not(feature = "sqlite"))]
    #[test]
    fn a_path_without_the_adapter_is_an_error() {
        let error = chosen(&[("KORTYX_SQLITE_PATH", "k.db")]).unwrap_err();
        assert!(error.contains("feature `sqlite`"), "{error}");
    }

    #[test]
    fn the_time_of_questions_comes_from_the_framework_variable_first() {
        let ttl = |variables: &[(&str, &str)]| {
            question_ttl(&|name: &str| {
                variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| OsString::from(*value))
            })
        };
        assert_eq!(ttl(&[]), Ok(None));
        assert_eq!(ttl(&[("KORTYX_TTL_MS", "1500")]), Ok(Some(Duration::from_millis(1500))));
        let both = [("KORTYX_TTL_MS", "1"), ("KORTYX_FRAMEWORK_TTL_MS", "2")];
        assert_eq!(ttl(&both), Ok(Some(Duration::from_millis(2))));
        for wrong in ["", "0", "-5", "15m", "1.5", "99999999999999999999999"] {
            let error = ttl(&[("KORTYX_TTL_MS", wrong)]).unwrap_err();
            assert_eq!(
                error.to_string(),
                "`KORTYX_TTL_MS` is not a whole number of milliseconds, at least 1",
                "{wrong}"
            );
        }
    }
}
