//! The statements that a store runs.

use std::sync::Arc;

use crate::{
    PostgresConfig,
    request::{Request, of_inspection},
};

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
    list_runs: Arc<str>,
    history: Arc<str>,
    list_sessions: Arc<str>,
    stats: Arc<str>,
}

impl Statements {
    pub(crate) fn new(config: &PostgresConfig) -> Self {
        let inspection = |operation| config.render(of_inspection(operation).unwrap_or_default()).into();
        Self {
            transit_2: config.render(include_str!("queries/transit_2.sql")).into(),
            transit: config.render(include_str!("queries/transit.sql")).into(),
            suspend: config.render(include_str!("queries/suspend.sql")).into(),
            answer: config.render(include_str!("queries/answer.sql")).into(),
            finish: config.render(include_str!("queries/finish.sql")).into(),
            read_2: config.render(include_str!("queries/read_2.sql")).into(),
            read: config.render(include_str!("queries/read.sql")).into(),
            interrupt: config.render(include_str!("queries/interrupt.sql")).into(),
            list_runs: inspection("list_runs"),
            history: inspection("history"),
            list_sessions: inspection("list_sessions"),
            stats: inspection("stats"),
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
            "list_runs" => &self.list_runs,
            "history" => &self.history,
            "list_sessions" => &self.list_sessions,
            "stats" => &self.stats,
            _ if request.transition.is_some() => &self.transit,
            _ => &self.read,
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::request::Draft;

    #[test]
    fn a_transition_without_chunks_says_nothing_of_them_and_runs_its_own_statement() {
        let config = PostgresConfig::parse("postgres://db/app").unwrap();
        let statements = Statements::new(&config);
        for operation in ["open", "record", "suspend", "finish"] {
            let plain = Draft::new().transition(operation).unwrap();
            let silent = Draft::new().with_chunks(&[]).transition(operation).unwrap();
            assert_eq!((&silent.body, statements.of(&silent)), (&plain.body, statements.of(&plain)));
            assert!(!statements.of(&silent).contains("_v2") && !silent.inline(&config, false).contains("_v2"));

            let said = Draft::new().with_chunks(&[Bytes::new(), Bytes::new()]).transition(operation).unwrap();
            assert!(statements.of(&said).contains("transit_v2(") && said.inline(&config, false).contains("quiet_v2("));
            assert_eq!(said.body["chunks"], serde_json::json!([1, 2]));
        }
    }
}
