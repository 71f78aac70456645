//! Where traces are exported, as whom, and in what batches.

use std::{collections::HashMap, env, fmt, time::Duration};

use opentelemetry::KeyValue;
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchConfig, BatchConfigBuilder, BatchSpanProcessor, SdkTracerProvider},
};
use reqwest::{
    Url,
    header::{HeaderName, HeaderValue},
};
use secrecy::{ExposeSecret as _, SecretString};

use super::{Otel, OtelError, client::Http};

/// How long a request may take where nothing says so, as the specification has it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where traces are exported, as whom, and in what batches. What is not said here is taken from the variables of the OpenTelemetry
/// specification, else from its defaults.
///
/// ```
/// use kortyx_telemetry::Otel;
///
/// let builder = Otel::builder()
///     .endpoint("https://collector.example.com/v1/traces")
///     .header("authorization", "Bearer planted-key")
///     .service_name("desk")
///     .attribute("deployment.environment.name", "production");
/// assert!(!format!("{builder:?}").contains("planted-key"));
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct OtelBuilder {
    endpoint: Option<String>,
    headers: Vec<(String, SecretString)>,
    service: Option<String>,
    attributes: Vec<(String, String)>,
    timeout: Option<Duration>,
    batch: Option<(usize, Duration)>,
    waiting: Option<usize>,
}

impl OtelBuilder {
    /// The full `http` or `https` URL that traces are sent to, without credentials. Else `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, else
    /// `OTEL_EXPORTER_OTLP_ENDPOINT` and `/v1/traces`, else `http://localhost:4318/v1/traces`.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        self.endpoint = Some(url.into());
        self
    }

    /// Sends a header along. Those of `OTEL_EXPORTER_OTLP_TRACES_HEADERS`, else `OTEL_EXPORTER_OTLP_HEADERS`, are sent too, and count
    /// where the names are the same.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<SecretString>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The service. Else `OTEL_SERVICE_NAME`, else `unknown_service`.
    pub fn service_name(mut self, name: impl Into<String>) -> Self {
        self.service = Some(name.into());
        self
    }

    /// Says something of the process, besides what `OTEL_RESOURCE_ATTRIBUTES` says.
    pub fn attribute(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.push((key.into(), value.into()));
        self
    }

    /// How long a batch may take to be sent, with all attempts. Else `OTEL_EXPORTER_OTLP_TRACES_TIMEOUT`, else
    /// `OTEL_EXPORTER_OTLP_TIMEOUT` (milliseconds), else ten seconds.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How many spans are sent at once, at most, and how often. Else `OTEL_BSP_MAX_EXPORT_BATCH_SIZE` and `OTEL_BSP_SCHEDULE_DELAY`, else
    /// 512 and five seconds.
    pub fn batch(mut self, spans: usize, every: Duration) -> Self {
        self.batch = Some((spans.max(1), every));
        self
    }

    /// How many spans may wait to be sent; more are dropped. Else `OTEL_BSP_MAX_QUEUE_SIZE`, else 2048.
    pub fn waiting(mut self, spans: usize) -> Self {
        self.waiting = Some(spans.max(1));
        self
    }

    /// Starts the thread that sends. Nothing is sent before there are spans, and nobody is asked whether they would be taken.
    ///
    /// Fails when the endpoint or a header is wrong, or the variables are.
    pub fn start(&self) -> Result<Otel, OtelError> {
        let processor = BatchSpanProcessor::builder(self.exporter()?).with_batch_config(self.batches()).build();
        let provider = SdkTracerProvider::builder().with_span_processor(processor).with_resource(self.resource());
        Ok(Otel::from_provider(provider.build()))
    }

    fn exporter(&self) -> Result<SpanExporter, OtelError> {
        let timeout = self.timeout.or_else(timeout_of_environment).unwrap_or(TIMEOUT);
        let exporter = SpanExporter::builder().with_http().with_http_client(Http::new(timeout)?);
        let mut exporter = exporter.with_timeout(timeout).with_headers(self.checked_headers()?);
        if let Some(endpoint) = &self.endpoint {
            exporter = exporter.with_endpoint(checked_url(endpoint)?);
        }
        // Its words may repeat a variable that holds credentials.
        exporter.build().map_err(|_| OtelError::Exporter)
    }

    fn checked_headers(&self) -> Result<HashMap<String, String>, OtelError> {
        let checked = |(name, value): &(String, SecretString)| {
            let value = value.expose_secret();
            let is_right = HeaderName::try_from(name).is_ok() && HeaderValue::try_from(value).is_ok();
            // The exporter takes values as it takes them from a variable: percent-encoded.
            is_right.then(|| (name.clone(), value.replace('%', "%25")))
        };
        let headers = self.headers.iter().map(checked).collect::<Option<_>>();
        headers.ok_or(OtelError::invalid("header", "its name or its value cannot stand in a header"))
    }

    fn batches(&self) -> BatchConfig {
        let mut config = BatchConfigBuilder::default();
        if let Some(waiting) = self.waiting {
            config = config.with_max_queue_size(waiting);
        }
        if let Some((spans, every)) = self.batch {
            config = config.with_max_export_batch_size(spans).with_scheduled_delay(every);
        }
        config.build()
    }

    fn resource(&self) -> Resource {
        let attributes = self.attributes.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
        let resource = Resource::builder().with_attributes(attributes);
        match &self.service {
            Some(service) => resource.with_service_name(service.clone()).build(),
            None => resource.build(),
        }
    }
}

/// Without the values of headers.
impl fmt::Debug for OtelBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        let endpoint = self.endpoint.as_ref().map(|endpoint| checked_url(endpoint));
        let mut shown = f.debug_struct("OtelBuilder");
        shown.field("endpoint", &endpoint).field("headers", &headers).field("service", &self.service);
        shown.field("attributes", &self.attributes).field("timeout", &self.timeout);
        shown.field("batch", &self.batch).field("waiting", &self.waiting).finish()
    }
}

fn checked_url(text: &str) -> Result<String, OtelError> {
    let url = Url::parse(text.trim()).map_err(|_| OtelError::invalid("endpoint", "it is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(OtelError::invalid("endpoint", "it is not an http or https URL"));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err(OtelError::invalid("endpoint", "it holds credentials, a query or a fragment"));
    }
    Ok(url.into())
}

/// The exporter reads them too, but the client that it is given has to keep the time.
fn timeout_of_environment() -> Option<Duration> {
    let names = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
    let milliseconds = |name| env::var(name).ok().and_then(|text: String| text.trim().parse().ok());
    names.into_iter().find_map(milliseconds).map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_endpoint_or_header_is_refused_and_not_shown() {
        let with = |url: &str| Otel::builder().endpoint(url);
        for builder in [
            with("planted"),
            with("ftp://planted.example.com"),
            with("https://user:planted@collector.example.com/v1/traces"),
            with("https://collector.example.com/v1/traces?key=planted"),
            Otel::builder().header("authorization", "planted\nkey"),
            Otel::builder().header("planted key", "value"),
        ] {
            let error = builder.start().unwrap_err();
            assert!(matches!(error, OtelError::Invalid { .. }) && !error.to_string().contains("planted"), "{error}");
        }
        let shown = format!("{:?}", with("https://user:planted@collector.example.com").header("key", "planted"));
        assert!(!shown.contains("planted"), "{shown}");
    }
}
