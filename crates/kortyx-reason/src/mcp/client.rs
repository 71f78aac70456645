//! What a server may ask of us: elicitations, on behalf of the one call that is under way on its connection.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use rmcp::{
    ClientHandler, RoleClient,
    model::{
        ClientCapabilities, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorData,
        FormElicitationCapability, Implementation, InitializeRequestParams, ProtocolVersion,
    },
    service::{NotificationContext, RequestContext},
};
use tokio::sync::{mpsc, oneshot};

/// A question of a server, and where its answer goes.
pub(super) struct Elicitation {
    pub(super) params: ElicitRequestParams,
    pub(super) reply: oneshot::Sender<Result<ElicitResult, ErrorData>>,
}

/// Our side of a connection.
pub(super) struct Client {
    /// The call that is under way.
    call: Mutex<Option<mpsc::UnboundedSender<Elicitation>>>,
    /// Counts what may have changed the server's tools.
    changes: Arc<AtomicU64>,
}

impl Client {
    pub(super) fn new(changes: Arc<AtomicU64>) -> Self {
        Self { call: Mutex::default(), changes }
    }

    /// Elicitations go to this call from now on, or to none.
    pub(super) fn listens(&self, call: Option<mpsc::UnboundedSender<Elicitation>>) {
        *self.call.lock().unwrap_or_else(PoisonError::into_inner) = call;
    }
}

impl ClientHandler for Client {
    fn get_info(&self) -> InitializeRequestParams {
        let form = FormElicitationCapability::new().with_schema_validation(true);
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        let us = Implementation::new("kortyx", env!("CARGO_PKG_VERSION"));
        InitializeRequestParams::new(capabilities, us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let (reply, answer) = oneshot::channel();
        let call = self.call.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if call.is_none_or(|call| call.send(Elicitation { params, reply }).is_err()) {
            return Err(ErrorData::invalid_request("no call is under way for which a person could be asked", None));
        }
        if let Ok(answer) = answer.await {
            return answer;
        }
        // The call was given up, and this connection ends. Until then silence: any answer would be one that nobody gave.
        context.ct.cancelled().await;
        Err(ErrorData::internal_error("the call was given up", None))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }
}
