//! Where the file is and how it is used.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use kortyx_store::{Clock, StoreError, StoreErrorKind, SystemClock};

const OPERATION: &str = "configure";

/// How far a commit reaches before a transition is acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Synchronous {
    /// To the disk: an acknowledged transition survives a power cut.
    #[default]
    Full,
    /// To the operating system: it survives the end of the process, and a power cut may take the last ones back.
    Normal,
}

/// The settings of an [`SqliteStore`](crate::SqliteStore).
///
/// ```
/// use std::time::Duration;
/// use kortyx_sqlite::SqliteConfig;
///
/// let config = SqliteConfig::new("data/kortyx.db").busy_timeout(Duration::from_secs(10));
/// assert!(config.path().ends_with("kortyx.db"));
/// ```
#[derive(Clone)]
pub struct SqliteConfig {
    pub(crate) path: PathBuf,
    pub(crate) synchronous: Synchronous,
    pub(crate) busy_timeout: Duration,
    pub(crate) readers: u32,
    pub(crate) payload_limit: usize,
    pub(crate) clock: Arc<dyn Clock>,
}

impl SqliteConfig {
    /// A store in this file, which is created when it does not exist, with its directories.
    ///
    /// Full durability, 5 s of patience with other processes, 4 reading connections, payloads up to 64 MiB, the
    /// machine's clock.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            synchronous: Synchronous::Full,
            busy_timeout: Duration::from_secs(5),
            readers: 4,
            payload_limit: 64 * 1024 * 1024,
            clock: Arc::new(SystemClock),
        }
    }

    /// Reads a path, `sqlite:PATH` or `sqlite://PATH`, with `?synchronous=full|normal` and `&busy_timeout_ms=N` after a
    /// `sqlite:` address.
    ///
    /// Refuses an empty path, a database in memory and settings that it does not know, with
    /// [`InvalidRequest`](StoreErrorKind::InvalidRequest).
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let text = text.trim();
        let (path, settings) = match text.strip_prefix("sqlite:") {
            Some(address) => {
                let address = address.strip_prefix("//").unwrap_or(address);
                address.split_once('?').unwrap_or((address, ""))
            }
            None => (text, ""),
        };
        if path.is_empty() {
            return Err(invalid("the path of the database file is empty"));
        }
        if path == ":memory:" {
            return Err(invalid(
                "a database in memory does not survive a restart: name a file, or use the memory store",
            ));
        }
        settings.split('&').filter(|setting| !setting.is_empty()).try_fold(Self::new(path), Self::set)
    }

    fn set(self, setting: &str) -> Result<Self, StoreError> {
        match setting.split_once('=') {
            Some(("synchronous", "full")) => Ok(self.synchronous(Synchronous::Full)),
            Some(("synchronous", "normal")) => Ok(self.synchronous(Synchronous::Normal)),
            Some(("busy_timeout_ms", millis)) => {
                let millis = millis.parse().map_err(|_| invalid("busy_timeout_ms must be a whole number"))?;
                Ok(self.busy_timeout(Duration::from_millis(millis)))
            }
            _ => Err(invalid("the only settings are synchronous=full|normal and busy_timeout_ms=N")),
        }
    }

    /// How far a commit reaches.
    #[must_use]
    pub fn synchronous(mut self, synchronous: Synchronous) -> Self {
        self.synchronous = synchronous;
        self
    }

    /// How long to wait for another process that writes, at most a day. Then a transition fails as
    /// [`Unavailable`](StoreErrorKind::Unavailable).
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout.min(Duration::from_hours(24));
        self
    }

    /// How many connections read, at least one. They are opened when needed.
    #[must_use]
    pub fn readers(mut self, readers: u32) -> Self {
        self.readers = readers.max(1);
        self
    }

    /// The largest snapshot, entry, question, answer, outcome or state, in bytes; at most 512 MiB. A larger one is
    /// refused as [`TooLarge`](StoreErrorKind::TooLarge).
    #[must_use]
    pub fn payload_limit(mut self, bytes: usize) -> Self {
        self.payload_limit = bytes.min(512 * 1024 * 1024);
        self
    }

    /// The clock that deadlines, leases and retention go by.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The database file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Debug for SqliteConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteConfig")
            .field("path", &self.path)
            .field("synchronous", &self.synchronous)
            .field("busy_timeout", &self.busy_timeout)
            .field("readers", &self.readers)
            .field("payload_limit", &self.payload_limit)
            .finish_non_exhaustive()
    }
}

fn invalid(message: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::InvalidRequest, OPERATION, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_and_both_forms_of_an_address_name_a_file() {
        for text in ["data/k.db", " sqlite:data/k.db ", "sqlite://data/k.db"] {
            assert_eq!(SqliteConfig::parse(text).unwrap().path(), Path::new("data/k.db"), "{text}");
        }
        assert_eq!(SqliteConfig::parse("sqlite:///var/k.db").unwrap().path(), Path::new("/var/k.db"));
        assert_eq!(SqliteConfig::parse("what?.db").unwrap().path(), Path::new("what?.db"));
    }

    #[test]
    fn an_address_may_carry_settings() {
        let config = SqliteConfig::parse("sqlite:k.db?synchronous=normal&busy_timeout_ms=250").unwrap();
        assert_eq!((config.synchronous, config.busy_timeout), (Synchronous::Normal, Duration::from_millis(250)));
    }

    #[test]
    fn what_names_no_file_or_an_unknown_setting_is_refused() {
        for text in
            ["", "sqlite:", "sqlite::memory:", ":memory:", "sqlite:k.db?mode=memory", "sqlite:k.db?busy_timeout_ms=x"]
        {
            assert_eq!(SqliteConfig::parse(text).unwrap_err().kind(), StoreErrorKind::InvalidRequest, "{text}");
        }
    }
}
