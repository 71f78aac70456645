//! Where the reporter sends events, as whom, and what of them.

use std::{ffi::OsString, fmt, sync::Arc, time::Duration};

use kortyx_runtime::{Workflow, workflow::Definition};
use reqwest::{Url, header::HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use super::{StudioError, queue::Bounds};
use crate::{Redaction, event::Service};

const API_URL: &str = "KORTYX_TELEMETRY_API_URL";
const API_KEY: &str = "KORTYX_TELEMETRY_API_KEY";
const ENVIRONMENT: &str = "KORTYX_TELEMETRY_ENVIRONMENT";
const SERVICE_NAME: &str = "KORTYX_TELEMETRY_SERVICE_NAME";

/// The longest name of an environment or a service, in bytes.
const LONGEST_NAME: usize = 200;

/// Where events are sent, as whom, and what of them.
///
/// ```
/// use kortyx_telemetry::{Redaction, StudioConfig};
///
/// let config = StudioConfig::new("https://studio.example.com/ingest", "key", "production", "desk")?
///     .capture_output(true)
///     .redaction(Redaction::new().key("iban"))
///     .tenant("tenant");
/// assert!(!format!("{config:?}").contains("key\""));
/// # Ok::<(), kortyx_telemetry::StudioError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct StudioConfig {
    pub(super) endpoint: Url,
    pub(super) key: SecretString,
    pub(super) environment: Arc<str>,
    pub(super) service: Service,
    pub(super) input: bool,
    pub(super) output: bool,
    pub(super) redaction: Redaction,
    pub(super) described: Described,
    pub(super) workflows: Vec<Arc<Definition>>,
    pub(super) bounds: Bounds,
    pub(super) patience: Patience,
}

/// What of a run's context values is sent, by their keys.
#[derive(Debug, Clone, Default)]
pub(super) struct Described {
    pub(super) user: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) tags: Vec<Arc<str>>,
    pub(super) metadata: Vec<String>,
}

/// How long the reporter tries.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) timeout: Duration,
    pub(super) attempts: usize,
    pub(super) first_wait: Duration,
    pub(super) longest_wait: Duration,
}

impl StudioConfig {
    /// Where to, with which key, and as which service of which environment.
    ///
    /// The endpoint is an `http` or `https` URL without credentials, query and fragment; its path is kept in front of the API's own.
    pub fn new(
        endpoint: &str,
        key: impl Into<SecretString>,
        environment: impl Into<Arc<str>>,
        service: impl Into<Arc<str>>,
    ) -> Result<Self, StudioError> {
        let names = Names { endpoint: "endpoint", key: "key", environment: "environment", service: "service" };
        Self::named(&names, endpoint, key.into(), environment.into(), service.into())
    }

    /// From the variables `KORTYX_TELEMETRY_API_URL`, `KORTYX_TELEMETRY_API_KEY`, `KORTYX_TELEMETRY_ENVIRONMENT` and
    /// `KORTYX_TELEMETRY_SERVICE_NAME`. `None` when none of them is set; an error that names the variable when one is missing or wrong.
    pub fn from_env() -> Result<Option<Self>, StudioError> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// The same with variables from elsewhere.
    ///
    /// ```
    /// use kortyx_telemetry::StudioConfig;
    ///
    /// assert!(StudioConfig::from_variables(|_| None)?.is_none());
    /// let only_url = |name: &str| (name == "KORTYX_TELEMETRY_API_URL").then(|| "https://studio.example.com".into());
    /// let error = StudioConfig::from_variables(only_url).unwrap_err();
    /// assert_eq!(error.to_string(), "`KORTYX_TELEMETRY_API_KEY` is not set, and other variables of telemetry are");
    /// # Ok::<(), kortyx_telemetry::StudioError>(())
    /// ```
    pub fn from_variables(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, StudioError> {
        let all = [API_URL, API_KEY, ENVIRONMENT, SERVICE_NAME];
        if all.iter().all(|name| lookup(name).is_none()) {
            return Ok(None);
        }
        let text = |name: &'static str| {
            let value = lookup(name).ok_or(StudioError::Missing { variable: name })?;
            value.into_string().map_err(|_| StudioError::invalid(name, "it is not UTF-8"))
        };
        let key = SecretString::from(text(API_KEY)?);
        let names = Names { endpoint: API_URL, key: API_KEY, environment: ENVIRONMENT, service: SERVICE_NAME };
        Self::named(&names, &text(API_URL)?, key, text(ENVIRONMENT)?.into(), text(SERVICE_NAME)?.into()).map(Some)
    }

    fn named(
        names: &Names,
        endpoint: &str,
        key: SecretString,
        environment: Arc<str>,
        service: Arc<str>,
    ) -> Result<Self, StudioError> {
        let is_key = !key.expose_secret().trim().is_empty() && bearer(&key).is_some();
        if !is_key {
            return Err(StudioError::invalid(names.key, "it is empty or cannot stand in a header"));
        }
        Ok(Self {
            endpoint: url(names.endpoint, endpoint)?,
            key,
            environment: name(names.environment, environment)?,
            service: Service { name: name(names.service, service)?, deployment_ref: None },
            input: false,
            output: false,
            redaction: Redaction::new(),
            described: Described::default(),
            workflows: Vec::new(),
            bounds: Bounds {
                events: 10_000,
                bytes: 16 * 1024 * 1024,
                content: 64 * 1024,
                batch_events: 200,
                batch_bytes: 512 * 1024,
                linger: Duration::from_millis(500),
            },
            patience: Patience {
                timeout: Duration::from_secs(10),
                attempts: 8,
                first_wait: Duration::from_millis(500),
                longest_wait: Duration::from_mins(1),
            },
        })
    }

    /// Which deployment of the service this is: a commit, an image, a release.
    pub fn deployment(mut self, reference: impl Into<Arc<str>>) -> Self {
        self.service.deployment_ref = Some(reference.into());
        self
    }

    /// Whether answers of people and inputs of runs, children, models and tools are sent. They are not by default.
    pub fn capture_input(mut self, on: bool) -> Self {
        self.input = on;
        self
    }

    /// Whether questions to people and outputs of runs, nodes, steps, children, models and tools are sent. They are not by default.
    pub fn capture_output(mut self, on: bool) -> Self {
        self.output = on;
        self
    }

    /// What is taken out of content that is sent, besides credentials.
    pub fn redaction(mut self, redaction: Redaction) -> Self {
        self.redaction = redaction;
        self
    }

    /// Sends the context value of this key as the user of a run's events. No context values are sent by default.
    pub fn user(mut self, key: impl Into<String>) -> Self {
        self.described.user = Some(key.into());
        self
    }

    /// Sends the context value of this key as the tenant of a run's events.
    pub fn tenant(mut self, key: impl Into<String>) -> Self {
        self.described.tenant = Some(key.into());
        self
    }

    /// Sends the context value of this key among the metadata of a run's events.
    pub fn metadata(mut self, key: impl Into<String>) -> Self {
        self.described.metadata.push(key.into());
        self
    }

    /// Adds a word to find events by.
    pub fn tag(mut self, tag: impl Into<Arc<str>>) -> Self {
        self.described.tags.push(tag.into());
        self
    }

    /// Reports the topology of a workflow: its nodes, edges and description. Its events say which revision of it they are about.
    pub fn workflow<I, O>(mut self, workflow: &Workflow<I, O>) -> Self {
        self.workflows.push(workflow.definition().clone());
        self
    }

    /// How many facts, and how many bytes of them, may wait to be sent; the oldest are dropped for more. 10 000 and 16 MiB by default.
    /// One batch more is in the hands of the sender.
    pub fn waiting(mut self, events: usize, bytes: usize) -> Self {
        (self.bounds.events, self.bounds.bytes) = (events.max(1), bytes);
        self
    }

    /// How many events are sent at once, at most, and how long the first of them waits for others. 200 and half a second by default.
    pub fn batch(mut self, events: usize, linger: Duration) -> Self {
        (self.bounds.batch_events, self.bounds.linger) = (events.max(1), linger);
        self
    }

    /// How long one request may take. Ten seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.patience.timeout = timeout;
        self
    }

    /// How often a batch is tried, and the first and the longest wait between two attempts. 8, half a second and a minute by default. Waits
    /// double, with jitter; `Retry-After` counts up to the longest wait.
    pub fn retries(mut self, attempts: usize, first_wait: Duration, longest_wait: Duration) -> Self {
        let patience = &mut self.patience;
        (patience.attempts, patience.first_wait, patience.longest_wait) = (attempts.max(1), first_wait, longest_wait);
        self
    }

    /// How large a piece of content may be, in bytes; a larger one is left out. 64 KiB by default.
    pub fn max_content(mut self, bytes: usize) -> Self {
        self.bounds.content = bytes;
        self
    }
}

/// Without the key.
impl fmt::Debug for StudioConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("StudioConfig");
        shown.field("endpoint", &self.endpoint.as_str()).field("environment", &self.environment);
        shown.field("service", &self.service).field("input", &self.input).field("output", &self.output);
        shown.field("redaction", &self.redaction).field("bounds", &self.bounds).field("patience", &self.patience);
        shown.finish_non_exhaustive()
    }
}

/// What the four parts are called where they come from.
struct Names {
    endpoint: &'static str,
    key: &'static str,
    environment: &'static str,
    service: &'static str,
}

fn url(name: &'static str, text: &str) -> Result<Url, StudioError> {
    let url = Url::parse(text.trim()).map_err(|_| StudioError::invalid(name, "it is not a URL"))?;
    let reason = if !matches!(url.scheme(), "http" | "https") {
        "it is not an http or https URL"
    } else if !url.username().is_empty() || url.password().is_some() {
        "it holds credentials"
    } else if url.query().is_some() || url.fragment().is_some() {
        "it has a query or a fragment"
    } else {
        return Ok(url);
    };
    Err(StudioError::invalid(name, reason))
}

fn name(name: &'static str, text: Arc<str>) -> Result<Arc<str>, StudioError> {
    if text.trim().is_empty() {
        return Err(StudioError::invalid(name, "it is empty"));
    }
    if text.len() > LONGEST_NAME || text.chars().any(char::is_control) {
        return Err(StudioError::invalid(name, "it is longer than 200 bytes or holds control characters"));
    }
    Ok(text)
}

/// The value of the header `authorization`.
pub(super) fn bearer(key: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret().trim())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(change: (&str, Option<&str>)) -> Result<Option<StudioConfig>, String> {
        let config = StudioConfig::from_variables(|name| {
            let right = match name {
                API_URL => "https://studio.example.com",
                API_KEY => "planted-key",
                ENVIRONMENT => "production",
                _ => "desk",
            };
            (if name == change.0 { change.1 } else { Some(right) }).map(OsString::from)
        });
        config.map_err(|error| error.to_string())
    }

    #[test]
    fn four_variables_make_a_configuration_that_does_not_show_its_key() {
        let config = read(("", None)).unwrap().unwrap();
        assert_eq!((&*config.environment, &*config.service.name), ("production", "desk"));
        assert_eq!(config.key.expose_secret(), "planted-key");
        assert!(!format!("{config:?}").contains("planted-key"));
    }

    #[test]
    fn a_missing_or_wrong_variable_is_named_and_its_value_is_not_shown() {
        for (variable, value) in [
            (API_URL, None),
            (API_KEY, None),
            (ENVIRONMENT, None),
            (SERVICE_NAME, None),
            (API_URL, Some("planted")),
            (API_URL, Some("ftp://planted.example.com")),
            (API_URL, Some("https://user:planted@studio.example.com")),
            (API_URL, Some("https://studio.example.com/?key=planted")),
            (API_KEY, Some(" ")),
            (API_KEY, Some("planted\nkey")),
            (ENVIRONMENT, Some("")),
            (SERVICE_NAME, Some("planted\u{7}")),
        ] {
            let error = read((variable, value)).unwrap_err();
            assert!(error.contains(&format!("`{variable}`")) && !error.contains("planted"), "{value:?}: {error}");
        }
    }
}
