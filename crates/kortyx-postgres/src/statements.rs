//! The statements that a store runs.

use std::sync::Arc;

use crate::{PostgresConfig, request::Request};

/// What is prepared on a connection.
pub(crate) struct Statements {
    transit: Arc<str>,
    transit_2: Arc<str>,
    suspend: Arc<str>,
    answer: Arc<str>,
    finish: Arc<str>,
    read: Arc<str>,
    read_2: Arc<str>,
    interrupt: Arc<str>,
}

impl Statements {
    pub(crate) fn new(config: &PostgresConfig) -> Self {
        Self {
            transit_2: config.render(include_str!("queries/transit_2.sql")).into(),
            transit: config.render(include_str!("queries/transit.sql")).into(),
            suspend: config.render(include_str!("queries/suspend.sql")).into(),
            answer: config.render(include_str!("queries/answer.sql")).into(),
            finish: config.render(include_str!("queries/finish.sql")).into(),
            read_2: config.render(include_str!("queries/read_2.sql")).into(),
            read: config.render(include_str!("queries/read.sql")).into(),
            interrupt: config.render(include_str!("queries/interrupt.sql")).into(),
        }
    }

    /// The statement of a call. Transitions all take the same values, and so do readings; what is done most often has a
    /// statement of its own, and so has what concerns the output of runs.
    pub(crate) fn of(&self, request: &Request) -> Arc<str> {
        Arc::clone(match request.operation {
            _ if request.is_of_output && request.transition.is_some() => &self.transit_2,
            _ if request.is_of_output => &self.read_2,
            "suspend" => &self.suspend,
            "answer" => &self.answer,
            "finish" => &self.finish,
            "interrupt" => &self.interrupt,
            _ if request.transition.is_some() => &self.transit,
            _ => &self.read,
        })
    }
}
