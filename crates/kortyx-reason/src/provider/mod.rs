//! Models of many providers by name. The only folder that names the crate `genai`.

mod buffered;
mod calls;
mod conversation;
mod dialect;
mod ending;
mod fault;
mod seen;
mod streamed;

use std::{fmt, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream};
use genai::{
    Client, ServiceTarget,
    adapter::AdapterKind,
    chat::ChatOptions,
    resolver::{AuthData, Endpoint},
};

use self::{dialect::Dialect, fault::Faults, seen::Seen};
use crate::{Capabilities, Model, ModelError, ModelErrorKind, ModelRequest, ModelStream, http};

/// How long a connection may take to be there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

#[doc = include_str!("README.md")]
#[derive(Clone)]
#[must_use]
pub struct GenaiModel {
    name: String,
    dialect: Dialect,
    client: Client,
    endpoint: Option<String>,
    key: Option<String>,
    is_buffered: bool,
    capabilities: Capabilities,
}

impl GenaiModel {
    /// The model of this name.
    ///
    /// # Errors
    /// The HTTP client cannot be set up.
    pub fn new(name: impl Into<String>) -> Result<Self, ModelError> {
        let name = name.into();
        let configuration = |why: String| ModelError::new(ModelErrorKind::Configuration, why);
        let kind = AdapterKind::from_model(&name).map_err(|error| configuration(error.to_string()))?;
        let dialect = Dialect::of(kind, &name);
        let http = http::client(CONNECT_TIMEOUT);
        let client = Client::builder().with_reqwest(http.map_err(configuration)?).build();
        let client = client.map_err(|error| configuration(error.to_string()))?;
        let capabilities = dialect.capabilities();
        Ok(Self { name, dialect, client, endpoint: None, key: None, is_buffered: false, capabilities })
    }

    /// Where the provider is, instead of its usual place: a gateway, a proxy, a server of your own. It is what the provider's paths
    /// are appended to, such as `https://gateway.example.com/v1/`.
    ///
    /// The key goes there, also one from the environment.
    pub fn endpoint(mut self, url: impl Into<String>) -> Self {
        let mut url = url.into();
        if !url.ends_with('/') && !url.contains('?') {
            url.push('/');
        }
        self.endpoint = Some(url);
        self
    }

    /// The key, instead of the one in the environment. It is in no `Debug` output and in no error.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Asks for each answer as a whole, for providers and gateways that cannot stream, or not with tools.
    ///
    /// Clients then see an answer when it is complete. Arguments of a call that are no JSON fail the pass instead of going back to
    /// the model.
    pub fn buffered(mut self) -> Self {
        self.is_buffered = true;
        self
    }

    /// Says what the model is capable of, where its name does not tell.
    pub fn with_capabilities(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Whether there is a key, where the provider needs one. No request is made.
    ///
    /// # Errors
    /// There is none; the error names the variable.
    pub fn check(&self) -> Result<(), ModelError> {
        let Some(variable) = self.dialect.key_variable().filter(|_| self.key.is_none()) else { return Ok(()) };
        if std::env::var(variable).is_ok_and(|key| !key.trim().is_empty()) {
            return Ok(());
        }
        let text = format!("the model `{}` needs a key: set {variable}", self.name);
        Err(ModelError::new(ModelErrorKind::Configuration, text))
    }

    async fn target(&self, faults: &Faults) -> Result<ServiceTarget, ModelError> {
        self.check()?;
        let target = self.client.resolve_service_target(self.name.as_str()).await;
        let mut target = target.map_err(|error| faults.of(error, &Seen::default()))?;
        if let Some(endpoint) = &self.endpoint {
            target.endpoint = Endpoint::from_owned(endpoint.as_str());
        }
        if let Some(key) = &self.key {
            target.auth = AuthData::from_single(key.as_str());
        }
        Ok(target)
    }

    async fn begin(&self, request: ModelRequest<'_>) -> Result<ModelStream<'static>, ModelError> {
        let faults = Faults::new(self.name.clone(), self.key.clone());
        let target = self.target(&faults).await?;
        let faults = faults.hiding(target.auth.single_key_value().ok());
        let chat = conversation::chat_request(&self.dialect, &request)?;
        let options = self.options(&request)?;
        if self.is_buffered {
            let answer = self.client.exec_chat(target, chat, Some(&options.with_capture_raw_body(true))).await;
            let events = buffered::events(answer, &faults)?;
            return Ok(stream::iter(events).map(Ok).boxed());
        }
        let tap = seen::Tap::default();
        let options = options.with_raw_frame_sink_arc(tap.sink());
        match self.client.exec_chat_stream(target, chat, Some(&options)).await {
            Ok(answer) => Ok(streamed::events(answer.stream, tap, faults)),
            Err(error) => Err(faults.of(error, &Seen::default())),
        }
    }

    fn options(&self, request: &ModelRequest<'_>) -> Result<ChatOptions, ModelError> {
        let mut options = ChatOptions::default().with_capture_usage(true);
        options = options.with_capture_tool_calls(self.dialect.tells_calls_at_the_end());
        options.temperature = request.settings.temperature;
        options.max_tokens = request.settings.max_output_tokens;
        options.response_format = conversation::response_format(&self.dialect, request)?;
        options.tool_choice = conversation::tool_choice(&self.dialect, request);
        Ok(options)
    }
}

impl fmt::Debug for GenaiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenaiModel")
            .field("name", &self.name)
            .field("buffered", &self.is_buffered)
            .field("capabilities", &self.capabilities)
            .finish_non_exhaustive()
    }
}

impl Model for GenaiModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn provider(&self) -> Option<&str> {
        Some(self.dialect.provider())
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn stream<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelStream<'a>, ModelError>> {
        async move { self.begin(request).await.map(|events| -> ModelStream<'a> { events }) }.boxed()
    }
}
