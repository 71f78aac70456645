//! Models by name, against servers that imitate the wire formats of OpenAI (chat completions and responses), Anthropic and Gemini.
#![expect(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test that fails should say where")]

mod answers;
mod asked;
mod broken;
mod durable;
mod faults;
mod format;
mod formats;
mod others;
mod provider;
mod setup;
