//! One call of a tool on its server, and what the server asks meanwhile.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, future::try_join_all, stream::FuturesUnordered};
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, ClientRequest, InputRequest, InputRequiredResult, InputResponses,
        JsonObject, RequestMetaObject, ServerResult,
    },
    service::{PeerRequestOptions, RequestHandle, ServiceError},
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    client::Elicitation,
    content::{cut, output},
    elicit::elicited,
    lease::Lease,
    list::Entry,
    server::Shared,
};
use crate::{ToolContext, ToolError, ToolOutput};

/// Under which name of `_meta` the key is sent by which a server can tell that it has seen a call before.
const IDEMPOTENCY_KEY: &str = "kortyx/idempotencyKey";

/// How often a server may say that it needs more before it has a result.
const MAX_ROUNDS: usize = 16;

/// What is waited before a server is asked again that wants nothing but that.
const AGAIN: Duration = Duration::from_millis(200);

/// A call.
pub(super) struct Call<'a> {
    pub(super) entry: &'a Entry,
    pub(super) server: &'a Arc<Shared>,
    pub(super) ctx: ToolContext,
}

impl Call<'_> {
    /// Makes the call.
    pub(super) async fn made(self, arguments: Value) -> Result<ToolOutput, ToolError> {
        let Value::Object(arguments) = arguments else { return Err(ToolError::new("the arguments are no object")) };
        let stopped = self.ctx.cancelled();
        let work = self.server.closed.run_until_cancelled(Box::pin(self.rounds(arguments)));
        let made = stopped.run_until_cancelled(work).await;
        let made = made.ok_or_else(|| ToolError::new("the run was asked to stop"))?;
        made.ok_or_else(|| ToolError::new("the MCP server was closed"))?
    }

    /// Calls until there is a result. A server that needs to know something may say so instead of asking meanwhile.
    async fn rounds(&self, arguments: JsonObject) -> Result<ToolOutput, ToolError> {
        let mut lease = self.server.lease().await?;
        let mut params = CallToolRequestParams::new(self.entry.info.name.clone()).with_arguments(arguments);
        for _ in 0..MAX_ROUNDS {
            let answered = self.sent(&mut lease, params.clone()).await;
            let result = match answered {
                Ok(result) => result,
                Err(ServiceError::McpError(error)) => {
                    lease.give_back();
                    let why = cut(&error.message, self.entry);
                    return Err(ToolError::new(format!("the server refused the call: {why}")));
                }
                Err(error) => {
                    tracing::warn!(server = self.server.name, %error, "the MCP server went away during a call");
                    return Err(ToolError::new("the server went away during the call; it may have done it or not"));
                }
            };
            match result {
                ServerResult::CallToolResult(result) => {
                    lease.give_back();
                    return output(result, self.entry);
                }
                ServerResult::InputRequiredResult(wanted) => {
                    params.request_state.clone_from(&wanted.request_state);
                    params.input_responses = self.inputs(wanted).await?;
                }
                _ => return Err(ToolError::new("the server gave no result")),
            }
        }
        Err(ToolError::new("the server comes to no result"))
    }

    /// Sends the call and answers what the server asks until it replies.
    async fn sent(&self, lease: &mut Lease, params: CallToolRequestParams) -> Result<ServerResult, ServiceError> {
        let (asking, mut asked) = mpsc::unbounded_channel();
        lease.client.listens(Some(asking));
        let request = CallToolRequest::new(params);
        let sending = lease.peer.send_request_with_option(ClientRequest::CallToolRequest(request), self.options());
        let call = lease.call.insert(sending.await?);
        let answered = self.replied(call, &mut asked).await;
        lease.call = None;
        answered
    }

    async fn replied(
        &self,
        call: &mut RequestHandle<RoleClient>,
        asked: &mut mpsc::UnboundedReceiver<Elicitation>,
    ) -> Result<ServerResult, ServiceError> {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                reply = &mut call.rx => return reply.unwrap_or(Err(ServiceError::TransportClosed)),
                Some(Elicitation { params, reply }) = asked.recv() => open.push(async move {
                    let _ = reply.send(elicited(self.entry, self.server, &self.ctx, params).await);
                }),
                Some(()) = open.next(), if !open.is_empty() => {}
            }
        }
    }

    /// What a server wants before it goes on, by its names for it.
    async fn inputs(&self, wanted: InputRequiredResult) -> Result<Option<InputResponses>, ToolError> {
        let requests = wanted.input_requests.unwrap_or_default();
        if requests.is_empty() {
            tokio::time::sleep(AGAIN).await;
            return Ok(None);
        }
        let answers = requests.into_iter().map(|(name, request)| async move {
            let InputRequest::Elicitation(request) = request else {
                return Err(ToolError::new("the server wants something else than an answer of a person"));
            };
            let answer = elicited(self.entry, self.server, &self.ctx, request.params).await;
            let answer = answer.map_err(|error| ToolError::new(error.message))?;
            Ok((name, serde_json::to_value(answer)?))
        });
        Ok(Some(try_join_all(answers).await?.into_iter().collect()))
    }

    fn options(&self) -> PeerRequestOptions {
        let mut meta = JsonObject::new();
        meta.insert(IDEMPOTENCY_KEY.to_owned(), self.ctx.idempotency_key().into());
        PeerRequestOptions::no_options().with_meta(RequestMetaObject::from(meta))
    }
}
