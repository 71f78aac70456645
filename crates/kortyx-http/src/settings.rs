//! Paths and limits.

use std::time::Duration;

use kortyx_protocol::Limits;

/// Where the routes of a [router](crate::Http::router) are.
///
/// ```
/// use kortyx_http::Paths;
///
/// let paths = Paths { chat: "/talk".to_owned(), ..Paths::under("/api") };
/// assert_eq!(paths.interrupts, "/api/interrupts");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Chat turns, `/chat`.
    pub chat: String,
    /// Executions, `/execute`.
    pub execute: String,
    /// Answers with a handle, `/resume`.
    pub resume: String,
    /// Open questions, `/interrupts`; one is at `/{id}` below, its answer at `/{id}/answer`.
    pub interrupts: String,
    /// Runs, `/runs`: what one says is at `/{id}/stream` below.
    pub runs: String,
    /// Checkpoints, `/checkpoints`.
    pub checkpoints: String,
    /// The pages of answer links, `/answers`, where [`links`](crate::Http::links) are set; each is at `/{id}` below.
    pub answers: String,
    /// The `OpenAPI` document, `/openapi.json`.
    pub openapi: String,
    /// Health, `/health`: `/live` and `/ready` below.
    pub health: String,
}

impl Paths {
    /// The usual paths under a prefix, such as `/api`.
    pub fn under(prefix: &str) -> Self {
        let at = |name: &str| format!("{}/{name}", prefix.trim_end_matches('/'));
        Self {
            chat: at("chat"),
            execute: at("execute"),
            resume: at("resume"),
            interrupts: at("interrupts"),
            runs: at("runs"),
            checkpoints: at("checkpoints"),
            answers: at("answers"),
            openapi: at("openapi.json"),
            health: at("health"),
        }
    }
}

impl Default for Paths {
    fn default() -> Self {
        Self::under("")
    }
}

/// What a client may ask of the routes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpLimits {
    /// How large a request may be. As the protocol's defaults, with bodies of at most 1 MiB.
    pub request: Limits,
    /// How long a body may take to arrive as a whole; 30 seconds by default.
    pub body_read: Duration,
    /// How many bytes a turn that is not streamed may say, as the JSON of its chunks; 16 MiB by default. One that says more is
    /// answered with `LIMIT_REACHED` and goes on: what it says is stored, unless the agent keeps no output, and its run can be
    /// followed.
    pub buffered_bytes: usize,
    /// How many streams of one session may be open at once in this process; 8 by default.
    pub streams_per_session: usize,
    /// After how much silence a stream says that it lives; 15 seconds by default.
    pub keep_alive: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            request: Limits { body_bytes: 1024 * 1024, ..Limits::default() },
            body_read: Duration::from_secs(30),
            buffered_bytes: 16 * 1024 * 1024,
            streams_per_session: 8,
            keep_alive: Duration::from_secs(15),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_may_end_with_a_slash_or_not() {
        assert_eq!(Paths::under("/api/"), Paths::under("/api"));
        assert_eq!(Paths::default().chat, "/chat");
    }
}
