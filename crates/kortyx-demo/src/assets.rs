//! The files of the pages, compiled in.

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";
pub(crate) const JSON: &str = "application/json";

/// A file that is served.
pub(crate) struct Asset {
    /// Where.
    pub(crate) path: &'static str,
    /// Its media type.
    pub(crate) kind: &'static str,
    /// What is in it.
    pub(crate) text: &'static str,
}

/// The files of `web`, each at its own name below `/assets/`.
macro_rules! assets {
    ($($kind:ident $file:literal),* $(,)?) => {
        &[
            Asset { path: "/", kind: HTML, text: include_str!("../web/chat.html") },
            Asset { path: "/inbox", kind: HTML, text: include_str!("../web/inbox.html") },
            $(Asset {
                path: concat!("/assets/", $file),
                kind: $kind,
                text: include_str!(concat!("../web/", $file)),
            }),*
        ]
    };
}

/// Every file of the pages.
pub(crate) const ASSETS: &[Asset] = assets![
    STYLE "style.css",
    IMAGE "icon.svg",
    SCRIPT "answer.js",
    SCRIPT "api.js",
    SCRIPT "approval.js",
    SCRIPT "board.js",
    SCRIPT "byid.js",
    SCRIPT "chat.js",
    SCRIPT "dom.js",
    SCRIPT "follow.js",
    SCRIPT "inbox.js",
    SCRIPT "log.js",
    SCRIPT "part.js",
    SCRIPT "pen.js",
    SCRIPT "pending.js",
    SCRIPT "question.js",
    SCRIPT "schema.js",
    SCRIPT "session.js",
    SCRIPT "shown.js",
    SCRIPT "sse.js",
    SCRIPT "time.js",
    SCRIPT "transcript.js",
    SCRIPT "turn.js",
    SCRIPT "turns.js",
    SCRIPT "value.js",
    SCRIPT "words.js",
];
