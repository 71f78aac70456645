//! Describing a server.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    McpHandshake, McpServer, McpToolInfo,
    endpoint::{Address, Endpoint},
    rules::Rules,
    server::Shared,
};
use crate::{Approval, ToolPolicy};

/// How long a server may take to be there.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Longest message of a server: 4 MiB.
const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;

/// Longer than all attempts to connect, and what a server takes that is slow.
const LIST_TIMEOUT: Duration = Duration::from_secs(90);

/// How many calls may be made at once over HTTP. A process takes one.
const HTTP_CONNECTIONS: usize = 4;

/// Describes a server; made by [`McpServer::command`] and [`McpServer::http`]. Nothing is started or reached before its tools are
/// asked for.
#[derive(Clone)]
#[must_use]
pub struct McpServerBuilder {
    name: String,
    endpoint: Endpoint,
    rules: Rules,
    connections: usize,
    attempts: u32,
}

impl McpServerBuilder {
    pub(super) fn new(name: String, address: Address) -> Self {
        let connections = if matches!(address, Address::Command(_)) { 1 } else { HTTP_CONNECTIONS };
        let endpoint = Endpoint {
            address,
            handshake: McpHandshake::default(),
            connect_timeout: CONNECT_TIMEOUT,
            max_message_bytes: MAX_MESSAGE_BYTES,
            list_timeout: LIST_TIMEOUT,
        };
        Self { name, endpoint, rules: Rules::default(), connections, attempts: 3 }
    }

    /// Takes these tools only. One that the server does not have is told in [`McpTools::excluded`](super::McpTools::excluded).
    pub fn only<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.rules.only.get_or_insert_default().extend(names.into_iter().map(Into::into));
        self
    }

    /// Leaves these tools out.
    pub fn without<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.rules.without.extend(names.into_iter().map(Into::into));
        self
    }

    /// Takes only tools of which this is true, of those that the lists leave.
    pub fn filter(mut self, takes: impl Fn(&McpToolInfo) -> bool + Send + Sync + 'static) -> Self {
        self.rules.filter = Arc::new(takes);
        self
    }

    /// Puts this before the name of every tool, so that servers with tools of one name can be used together.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.rules.prefix = prefix.into();
        self
    }

    /// Names the tools so, before the prefix is added. The default is the server's name for it.
    pub fn rename(mut self, name: impl Fn(&McpToolInfo) -> String + Send + Sync + 'static) -> Self {
        self.rules.rename = Arc::new(name);
        self
    }

    /// Which tools need a person's approval. Where nothing is said, all do.
    pub fn approval(mut self, approval: impl Fn(&McpToolInfo) -> Approval + Send + Sync + 'static) -> Self {
        self.rules.approval = Arc::new(approval);
        self
    }

    /// Which calls need a person's approval, by the arguments that would be executed; for tools that are [`Approval::Decide`], which
    /// this makes all of them.
    pub fn approve_when(mut self, needs: impl Fn(&McpToolInfo, &Value) -> bool + Send + Sync + 'static) -> Self {
        self.rules.judge = Arc::new(needs);
        self.approval(|_| Approval::Decide)
    }

    /// Tools that the server says are read-only need no approval. **Only for servers whose word counts**: a hint is not a
    /// guarantee.
    pub fn trust_read_only(self) -> Self {
        self.approval(|tool| if tool.read_only == Some(true) { Approval::Never } else { Approval::Always })
    }

    /// The rest of the rules for a tool: its time, the size of its results, what is hidden, how many questions a call may ask. It is
    /// given the default with the approval that was decided.
    pub fn policy(mut self, policy: impl Fn(&McpToolInfo, ToolPolicy) -> ToolPolicy + Send + Sync + 'static) -> Self {
        self.rules.policy = Arc::new(policy);
        self
    }

    /// How long a question of the server may be answered.
    pub fn questions_expire_in(mut self, time: Duration) -> Self {
        self.rules.questions_expire_in = Some(time);
        self
    }

    /// The most tools that are taken from it; more are an error. 256 where nothing is said.
    pub fn max_tools(mut self, tools: usize) -> Self {
        self.rules.max_tools = tools;
        self
    }

    /// How many calls are made at once, each on a connection of its own, and for a command in a process of its own. 1 for a command,
    /// 4 over HTTP. Other calls wait in line, within their time.
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// How often a connection is tried before a call fails; 3 where nothing is said.
    pub fn connect_attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }

    /// How long the server may take to be there, at each attempt; 20 seconds where nothing is said.
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.endpoint.connect_timeout = time;
        self
    }

    /// How long the server may take to list its tools, all pages and what goes before included: a place in line, and a connection. 90
    /// seconds where nothing is said.
    pub fn list_timeout(mut self, time: Duration) -> Self {
        self.endpoint.list_timeout = time;
        self
    }

    /// The longest message that is taken from the server, and the longest list of its tools on all pages together; 4 MiB where nothing is
    /// said.
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.endpoint.max_message_bytes = bytes;
        self
    }

    /// How the server is spoken to at first.
    pub fn handshake(mut self, handshake: McpHandshake) -> Self {
        self.endpoint.handshake = handshake;
        self
    }

    /// The bearer token of every request. Only for HTTP.
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        if let Address::Http { bearer, .. } = &mut self.endpoint.address {
            *bearer = Some(token.into());
        }
        self
    }

    /// A header of every request. Only for HTTP.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let Address::Http { headers, .. } = &mut self.endpoint.address {
            headers.push((name.into(), value.into()));
        }
        self
    }

    /// The server.
    pub fn build(self) -> McpServer {
        let Self { name, endpoint, rules, connections, attempts } = self;
        McpServer(Arc::new(Shared::new(name, endpoint, rules, connections, attempts)))
    }
}

impl fmt::Debug for McpServerBuilder {
    /// Without addresses and headers, which may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServerBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}
