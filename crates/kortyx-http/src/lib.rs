#![doc = include_str!("../README.md")]

mod authorise;
mod body;
mod buffered;
mod endpoint;
mod http;
mod link;
mod local;
mod openapi;
mod problem;
mod query;
mod reply;
mod routes;
mod server;
mod settings;
mod sse;
mod streams;

pub use async_trait::async_trait;

pub use authorise::{Authoriser, Caller, Grant, Refusal};
pub use http::{Http, router};
pub use link::{AnswerLink, AnswerLinks, LinkKey, LinkKeyError};
pub use local::AllowLocal;
pub use server::{Ending, Server, ServerLimits};
pub use settings::{HttpLimits, Paths};
