//! One connection to a server.

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    service::{Peer, RequestHandle, RunningService},
};

use super::{client::Client, process::Process};

/// How long a server may take to take note that a call was given up.
const NOTICE: Duration = Duration::from_secs(1);

/// How long a transport may take to close, and a process to end by itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// A connection. Dropped, it is cut at once; closed, it ends in order.
pub(super) struct Connection {
    service: RunningService<RoleClient, Arc<Client>>,
    process: Option<Process>,
}

impl Connection {
    pub(super) fn new(service: RunningService<RoleClient, Arc<Client>>, process: Option<Process>) -> Self {
        Self { service, process }
    }

    pub(super) fn peer(&self) -> Peer<RoleClient> {
        self.service.peer().clone()
    }

    pub(super) fn client(&self) -> Arc<Client> {
        self.service.service().clone()
    }

    pub(super) fn is_open(&mut self) -> bool {
        let alive = self.process.as_mut().is_none_or(Process::is_alive);
        alive && !self.service.is_closed() && !self.service.peer().is_transport_closed()
    }

    /// Whether the server says when its tools change.
    pub(super) fn tells_changes(&self) -> bool {
        let info = self.service.peer().peer_info();
        info.is_some_and(|info| {
            let tells = info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
            tells.unwrap_or_default() && info.protocol_version.has_initialize()
        })
    }

    /// Tells the server that this call was given up, when there is one, and ends the connection.
    pub(super) async fn close(mut self, given_up: Option<RequestHandle<RoleClient>>) {
        if let Some(call) = given_up {
            let notice = call.cancel(Some("the call was given up".to_owned()));
            let _ = tokio::time::timeout(NOTICE, notice).await;
        }
        let _ = self.service.close_with_timeout(PATIENCE).await;
        if let Some(process) = self.process.take() {
            process.end(PATIENCE).await;
        }
    }
}
