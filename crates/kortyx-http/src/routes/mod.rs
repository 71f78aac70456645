//! What answers the requests to each address.

pub(crate) mod answers;
pub(crate) mod chat;
pub(crate) mod checkpoints;
pub(crate) mod execute;
pub(crate) mod health;
pub(crate) mod interrupts;
pub(crate) mod openapi;
pub(crate) mod resume;
pub(crate) mod runs;

use crate::{Paths, endpoint::Methods};

/// An address, and what answers there.
pub(crate) type Route = (String, Methods);

/// Every route: what the router mounts and what the document describes both come from here.
pub(crate) fn table(paths: &Paths, has_links: bool) -> Vec<Route> {
    let Paths { chat, execute, resume, interrupts, runs, checkpoints, answers, openapi, health } = paths;
    let mut routes = vec![
        (chat.clone(), chat::METHODS),
        (execute.clone(), execute::METHODS),
        (resume.clone(), resume::METHODS),
        (interrupts.clone(), interrupts::LIST),
        (format!("{interrupts}/{{id}}"), interrupts::GET),
        (format!("{interrupts}/{{id}}/answer"), interrupts::ANSWER),
        (format!("{runs}/{{id}}/stream"), runs::STREAM),
        (checkpoints.clone(), checkpoints::METHODS),
        (openapi.clone(), openapi::METHODS),
        (format!("{health}/live"), health::LIVE),
        (format!("{health}/ready"), health::READY),
    ];
    if has_links {
        routes.push((format!("{answers}/{{id}}"), answers::METHODS));
    }
    routes
}
