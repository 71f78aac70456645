//! What goes wrong with a server.

/// Why a server's tools cannot be had. In a node it converts by `?`; a node that may find the server gone when it comes to it first gets
/// a [`Retry`](kortyx_runtime::workflow::Retry).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// It cannot be reached, or does not speak the protocol.
    #[error("the MCP server `{server}` cannot be reached: {reason}")]
    Connect {
        /// The name that the application gave the server.
        server: String,
        /// Why, after the last attempt.
        reason: String,
    },
    /// It does not list its tools, or lists more than is allowed.
    #[error("the tools of the MCP server `{server}` cannot be listed: {reason}")]
    List {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// Two of its tools come out under one name.
    #[error(
        "the tools `{first}` and `{second}` of the MCP server `{server}` are both named `{name}`: rename or leave out one"
    )]
    SameName {
        /// The server.
        server: String,
        /// The name that both would have.
        name: String,
        /// The server's name of one.
        first: String,
        /// The server's name of the other.
        second: String,
    },
    /// The application has closed it.
    #[error("the MCP server `{server}` was closed")]
    Closed {
        /// The server.
        server: String,
    },
}
