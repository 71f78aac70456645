//! OTLP's requests over the HTTP client of the workspace.

use std::{fmt, time::Duration};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use reqwest::{Client, redirect};
use tokio::runtime::{Builder, Runtime};

use super::OtelError;
use crate::tls::tls;

/// How much of an answer is read.
const MAX_ANSWER: usize = 1024 * 1024;

/// Sends from the thread of the batch processor, with a runtime of its own: the application's may be busy, or gone at the end.
pub(super) struct Http {
    client: Client,
    /// Always there until it is dropped.
    runtime: Option<Runtime>,
}

impl Http {
    pub(super) fn new(timeout: Duration) -> Result<Self, OtelError> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls().map_err(OtelError::Client)?)
            // The headers would go along.
            .redirect(redirect::Policy::none())
            .timeout(timeout)
            .build();
        let runtime = Builder::new_current_thread().enable_all().build();
        Ok(Self {
            client: client.map_err(|error| OtelError::Client(error.to_string()))?,
            runtime: Some(runtime.map_err(|error| OtelError::Client(error.to_string()))?),
        })
    }

    async fn post(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let mut answer = self.client.execute(request.try_into()?).await?;
        let mut body = BytesMut::new();
        while let Some(chunk) = answer.chunk().await? {
            if body.len().saturating_add(chunk.len()) > MAX_ANSWER {
                return Err("the answer is too long".into());
            }
            body.extend_from_slice(&chunk);
        }
        let mut response = Response::builder().status(answer.status());
        if let Some(headers) = response.headers_mut() {
            headers.clone_from(answer.headers());
        }
        Ok(response.body(body.freeze())?)
    }
}

#[async_trait]
impl HttpClient for Http {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let runtime = self.runtime.as_ref().ok_or("the client is shut down")?;
        // The batch processor waits for its export on a thread of its own, where blocking is right.
        runtime.block_on(self.post(request))
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        // Dropping a runtime within another one panics otherwise.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}
