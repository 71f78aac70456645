//! A server as the application holds it, and its connections.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::future::join_all;
use kortyx_runtime::{NodeContext, NodeError};
use rmcp::model::Tool as Described;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{
    McpCommand, McpError, McpServerBuilder, McpTools,
    connection::Connection,
    endpoint::{Address, Endpoint},
    lease::Lease,
    list::{catalog, described},
    rules::Rules,
};

/// What is waited before the second attempt to connect; twice as long before each further one.
const FIRST_DELAY: Duration = Duration::from_millis(200);

/// An MCP server, whose tools a model can be given.
///
/// The application makes it once, and it owns the connections: a run that pauses holds none. They are opened when they are needed,
/// opened again when the server has died meanwhile, closed by [`close`](Self::close), and cut when the last copy of this handle, and of
/// the tools that came from it, is dropped. Cheap to clone.
///
/// ```
/// use kortyx_reason::{McpCommand, McpServer, Reason, ReasonExt, Script, ScriptedModel};
/// use kortyx_runtime::{NodeContext, NodeOutput, NodeResult};
///
/// # fn server() -> McpServer {
/// let files = McpServer::command("files", McpCommand::new("acme-files").args(["/srv/papers"]))
///     .only(["list", "read", "delete"])
///     .prefix("files_")
///     .trust_read_only() // everything else is asked
///     .build();
/// # files
/// # }
///
/// async fn tidy(ctx: NodeContext, files: McpServer) -> NodeResult {
///     let model = ScriptedModel::new([Script::new().text("It is tidy.")]);
///     let reason = Reason::new(model).input("Tidy up.").tools(files.tools(&ctx).await?);
///     Ok(NodeOutput::new().data("said", &ctx.reason("tidy", reason).await?.text))
/// }
/// # let _ = (server, tidy);
/// ```
#[derive(Clone)]
pub struct McpServer(pub(super) Arc<Shared>);

impl McpServer {
    /// A server that is a program, which speaks over its standard streams. The name is for people and logs.
    pub fn command(name: impl Into<String>, command: McpCommand) -> McpServerBuilder {
        McpServerBuilder::new(name.into(), Address::Command(command))
    }

    /// A server behind an address, which speaks streamable HTTP. Redirections are not followed: keys would go along.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> McpServerBuilder {
        let address = Address::Http { url: url.into(), bearer: None, headers: Vec::new() };
        McpServerBuilder::new(name.into(), address)
    }

    /// Its tools, for a node: as they were when the run came here first. The list is recorded with the run, by the server's name.
    ///
    /// A node runs again with each answer. It needs no server then until the model calls one, so the answer takes effect also while the
    /// server is gone or takes its time to start; the model is told when a call fails. The price is the list in the run's journal, as long
    /// as the server's descriptions and schemas are. The application's rules count as they are now.
    ///
    /// # Errors
    /// It cannot be reached, does not list its tools, or two of them have one name.
    pub async fn tools(&self, ctx: &NodeContext) -> Result<McpTools, NodeError> {
        let listed = ctx.step(&format!("kortyx.mcp.{}", self.0.name), || async {
            let described = self.described().await?;
            Ok::<_, McpError>(described.to_vec())
        });
        let catalog = catalog(&self.0, &listed.await?)?;
        Ok(McpTools::new(Arc::new(catalog), &self.0))
    }

    /// Its tools as they are now, for programs that list them before they run anything, or show them. A server that says when its tools
    /// change is not asked again before.
    ///
    /// In a node this is plain waiting: it happens again with each answer, and a run whose node waits long before it asks what was
    /// answered is set aside. A tool that a run needs and that is gone sets it aside too.
    ///
    /// # Errors
    /// As with [`tools`](Self::tools).
    pub async fn list(&self) -> Result<McpTools, McpError> {
        let catalog = catalog(&self.0, &self.described().await?)?;
        Ok(McpTools::new(Arc::new(catalog), &self.0))
    }

    /// What the server lists, unless it takes too long: a node that waits for it holds its run.
    async fn described(&self) -> Result<Arc<[Described]>, McpError> {
        let time = self.0.endpoint.list_timeout;
        tokio::time::timeout(time, self.listed()).await.unwrap_or_else(|_| {
            Err(McpError::List { server: self.0.name.clone(), reason: format!("it took longer than {time:?}") })
        })
    }

    async fn listed(&self) -> Result<Arc<[Described]>, McpError> {
        let known = lock(&self.0.known).clone();
        if let Some((at, described)) = known
            && at == self.0.changes.load(Ordering::SeqCst)
        {
            return Ok(described);
        }
        let lease = self.0.lease().await?;
        // A change during the listing makes this list old again.
        let at = self.0.changes.load(Ordering::SeqCst);
        let described: Arc<[Described]> = described(&self.0, &lease.peer).await?.into();
        *lock(&self.0.known) = lease.tells_changes.then(|| (at, described.clone()));
        lease.give_back();
        Ok(described)
    }

    /// Ends all connections in order and waits until they are gone. Calls under way fail, and so does every later one.
    pub async fn close(&self) {
        self.0.closed.cancel();
        self.0.permits.close();
        let idle = std::mem::take(&mut *lock(&self.0.idle));
        join_all(idle.into_iter().map(|connection| connection.close(None))).await;
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").field("name", &self.0.name).finish_non_exhaustive()
    }
}

/// What the copies of a handle, and its tools, share.
pub(super) struct Shared {
    pub(super) name: String,
    pub(super) rules: Rules,
    pub(super) closed: CancellationToken,
    pub(super) endpoint: Endpoint,
    attempts: u32,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    /// Counts what may have changed the tools: what the server says, and new connections.
    changes: Arc<AtomicU64>,
    /// What the server listed, with the count at which it did.
    known: Mutex<Option<(u64, Arc<[Described]>)>>,
}

impl Shared {
    pub(super) fn new(name: String, endpoint: Endpoint, rules: Rules, connections: usize, attempts: u32) -> Self {
        Self {
            name,
            rules,
            closed: CancellationToken::new(),
            endpoint,
            attempts,
            permits: Arc::new(Semaphore::new(connections)),
            idle: Mutex::default(),
            changes: Arc::default(),
            known: Mutex::default(),
        }
    }

    /// A connection for one call, which nobody else uses meanwhile: what the server asks on it belongs to that call.
    pub(super) async fn lease(self: &Arc<Self>) -> Result<Lease, McpError> {
        let closed = || McpError::Closed { server: self.name.clone() };
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| closed())?;
        let connection = match self.take_idle() {
            Some(connection) => connection,
            None => self.closed.run_until_cancelled(self.connect()).await.ok_or_else(closed)??,
        };
        Ok(Lease::new(self.clone(), connection, permit))
    }

    /// Keeps a connection for the next call.
    pub(super) fn keep(&self, mut connection: Connection) {
        if !self.closed.is_cancelled() && connection.is_open() {
            lock(&self.idle).push(connection);
        }
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = lock(&self.idle);
        std::iter::from_fn(|| idle.pop()).find_map(|mut connection| connection.is_open().then_some(connection))
    }

    async fn connect(&self) -> Result<Connection, McpError> {
        let mut delay = FIRST_DELAY;
        for attempt in 1.. {
            match self.endpoint.open(&self.changes).await {
                Ok(connection) => {
                    self.changes.fetch_add(1, Ordering::SeqCst);
                    return Ok(connection);
                }
                Err(failed) if !failed.passing || attempt >= self.attempts => {
                    return Err(McpError::Connect { server: self.name.clone(), reason: failed.reason });
                }
                Err(failed) => {
                    tracing::warn!(server = self.name, attempt, reason = failed.reason, "the MCP server is not there");
                }
            }
            tokio::time::sleep(delay).await;
            delay = delay.saturating_mul(2);
        }
        Err(McpError::Closed { server: self.name.clone() })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
