//! Where a server is, and how a connection to it is opened.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::{
    RoleClient,
    model::ProtocolVersion,
    service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, RunningService},
    transport::{
        StreamableHttpClientTransport, Transport, async_rw::AsyncRwTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};

use super::{McpCommand, client::Client, connection::Connection, process::Process};
use crate::http;

/// How a server is spoken to at first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum McpHandshake {
    /// `server/discover` of the protocol of 2026-07-28 first, and `initialize` where the server does not know it.
    #[default]
    Auto,
    /// `initialize`, as up to 2025-11-25: for servers that do not bear another request before it.
    Initialize,
    /// `server/discover` only.
    Discover,
}

#[derive(Clone)]
pub(super) enum Address {
    Command(McpCommand),
    Http { url: String, bearer: Option<String>, headers: Vec<(String, String)> },
}

/// Where a server is, and what holds for every connection to it.
#[derive(Clone)]
pub(super) struct Endpoint {
    pub(super) address: Address,
    pub(super) handshake: McpHandshake,
    pub(super) connect_timeout: Duration,
    pub(super) max_message_bytes: usize,
    pub(super) list_timeout: Duration,
}

/// Why a connection cannot be opened.
pub(super) struct Unopened {
    pub(super) reason: String,
    /// Another attempt may succeed.
    pub(super) passing: bool,
}

impl Unopened {
    fn for_good(reason: impl fmt::Display) -> Self {
        Self { reason: reason.to_string(), passing: false }
    }

    fn for_now(reason: impl fmt::Display) -> Self {
        Self { reason: reason.to_string(), passing: true }
    }
}

impl Endpoint {
    pub(super) async fn open(&self, changes: &Arc<AtomicU64>) -> Result<Connection, Unopened> {
        let client = Arc::new(Client::new(changes.clone()));
        let opening = async {
            match &self.address {
                Address::Command(command) => self.start(command, client).await,
                Address::Http { url, bearer, headers } => self.reach(url, bearer.as_deref(), headers, client).await,
            }
        };
        let opened = tokio::time::timeout(self.connect_timeout, opening).await;
        opened.unwrap_or_else(|_| Err(Unopened::for_now(format!("no answer in {:?}", self.connect_timeout))))
    }

    async fn start(&self, command: &McpCommand, client: Arc<Client>) -> Result<Connection, Unopened> {
        let mut child = command.command().spawn().map_err(Unopened::for_good)?;
        let streams = child.stdout.take().zip(child.stdin.take());
        // From here on the process ends with whatever holds it, also when this future is dropped.
        let process = Process::new(child);
        let (output, input) = streams.ok_or_else(|| Unopened::for_good("its standard streams are not there"))?;
        let transport = AsyncRwTransport::new_client(output, input).with_max_line_length(self.max_message_bytes);
        let service = self.greet(client, transport).await.map_err(Unopened::for_now)?;
        Ok(Connection::new(service, Some(process)))
    }

    async fn reach(
        &self,
        url: &str,
        bearer: Option<&str>,
        headers: &[(String, String)],
        client: Arc<Client>,
    ) -> Result<Connection, Unopened> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url)
            .custom_headers(named(headers)?)
            .max_sse_event_size(self.max_message_bytes)
            .max_json_response_size(self.max_message_bytes);
        if let Some(bearer) = bearer {
            config = config.auth_header(bearer);
        }
        let http = http::client(self.connect_timeout).map_err(Unopened::for_good)?;
        let transport = StreamableHttpClientTransport::with_client(http, config);
        let greeted = self.greet(client, transport).await;
        let service = greeted.map_err(|error| {
            let passing = !error.is_authorization_required();
            Unopened { reason: said(&error), passing }
        })?;
        Ok(Connection::new(service, None))
    }

    async fn greet<T: Transport<RoleClient> + 'static>(
        &self,
        client: Arc<Client>,
        transport: T,
    ) -> Result<RunningService<RoleClient, Arc<Client>>, ClientInitializeError> {
        let preferred_versions = vec![ProtocolVersion::LATEST];
        let mode = match self.handshake {
            McpHandshake::Auto => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
            McpHandshake::Initialize => ClientLifecycleMode::Initialize,
            McpHandshake::Discover => ClientLifecycleMode::Discover { preferred_versions },
        };
        // Its future has tens of kilobytes.
        Box::pin(client.serve_with_lifecycle(transport, mode)).await
    }
}

fn named(headers: &[(String, String)]) -> Result<HashMap<HeaderName, HeaderValue>, Unopened> {
    let header = |(name, value): &(String, String)| {
        let named = HeaderName::try_from(name.as_str());
        let named = named.map_err(|_| Unopened::for_good(format!("`{name}` is no name of an HTTP header")))?;
        let value = HeaderValue::try_from(value.as_str());
        let mut value =
            value.map_err(|_| Unopened::for_good(format!("the value of the header `{name}` is not valid")))?;
        value.set_sensitive(true);
        Ok((named, value))
    };
    headers.iter().map(header).collect()
}

/// An error with those behind it.
fn said(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.contains(&cause) { text } else { format!("{text}: {cause}") }
    })
}
