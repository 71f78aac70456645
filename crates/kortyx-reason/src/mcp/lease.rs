//! A connection in use by one call.

use std::sync::Arc;

use rmcp::{
    RoleClient,
    service::{Peer, RequestHandle},
};
use tokio::{runtime::Handle, sync::OwnedSemaphorePermit};

use super::{client::Client, connection::Connection, server::Shared};

/// A connection for one call, which nobody else uses meanwhile: what the server asks on it belongs to that call.
///
/// Dropped before it is given back, the call is given up: the server is told, and the connection ends, since what the server still does
/// for this call could not be told from what it does for the next.
pub(super) struct Lease {
    pub(super) peer: Peer<RoleClient>,
    pub(super) client: Arc<Client>,
    pub(super) tells_changes: bool,
    /// The request under way.
    pub(super) call: Option<RequestHandle<RoleClient>>,
    shared: Arc<Shared>,
    connection: Option<Connection>,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    pub(super) fn new(shared: Arc<Shared>, connection: Connection, permit: OwnedSemaphorePermit) -> Self {
        Self {
            peer: connection.peer(),
            client: connection.client(),
            tells_changes: connection.tells_changes(),
            call: None,
            shared,
            connection: Some(connection),
            _permit: permit,
        }
    }

    /// The call is over, and the connection is free for the next.
    pub(super) fn give_back(mut self) {
        self.client.listens(None);
        if let Some(connection) = self.connection.take() {
            self.shared.keep(connection);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        self.client.listens(None);
        let call = self.call.take();
        // Without a runtime nobody could wait for an orderly end: the connection is cut.
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(connection.close(call));
        }
    }
}
