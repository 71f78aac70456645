//! Tools from MCP servers.

mod builder;
mod call;
mod client;
mod command;
mod connection;
mod content;
mod digest;
mod elicit;
mod endpoint;
mod error;
mod info;
mod lease;
mod list;
mod name;
mod process;
mod remote;
mod rules;
mod server;

use self::remote::McpTool;
pub use self::{
    builder::McpServerBuilder,
    command::McpCommand,
    endpoint::McpHandshake,
    error::McpError,
    info::McpToolInfo,
    list::{ExcludedTool, McpTools},
    server::McpServer,
};
