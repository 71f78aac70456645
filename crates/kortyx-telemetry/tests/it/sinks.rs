//! Several sinks behind one.

use std::sync::{Arc, Mutex};

use kortyx_orchestrator::{Captures, Fact, TelemetrySink};
use kortyx_telemetry::Telemetry;

use crate::world::{agent, run_through};

/// Keeps the facts that it is told.
#[derive(Clone)]
struct Kept {
    captures: Captures,
    watches: bool,
    facts: Arc<Mutex<Vec<Fact>>>,
}

impl Kept {
    fn new(captures: Captures, watches: bool) -> Self {
        Self { captures, watches, facts: Arc::default() }
    }

    /// How many facts hold an answer, an input, a result of a step.
    fn content(&self) -> [usize; 3] {
        let facts = self.facts.lock().unwrap();
        let count = |holds: fn(&Fact) -> bool| facts.iter().filter(|fact| holds(fact)).count();
        [
            count(|fact| matches!(fact, Fact::InterruptResolved { answer: Some(_), .. })),
            count(|fact| matches!(fact, Fact::RunStarted { input: Some(_), .. })),
            count(|fact| matches!(fact, Fact::StepEnded { output: Some(_), .. })),
        ]
    }
}

impl TelemetrySink for Kept {
    fn record(&self, fact: &Fact) {
        self.facts.lock().unwrap().push(fact.clone());
    }

    fn watches_nodes(&self) -> bool {
        self.watches
    }

    fn captures(&self) -> Captures {
        self.captures
    }
}

struct Broken;

impl TelemetrySink for Broken {
    fn record(&self, _: &Fact) {
        panic!("broken sink");
    }
}

#[tokio::test]
async fn each_sink_hears_what_it_asks_for_and_none_takes_the_others_down() {
    let shy = Kept::new(Captures::nothing(), false);
    let input = Kept::new(Captures::nothing().with_input(true), true);
    let all = Kept::new(Captures::nothing().with_input(true).with_output(true), true);
    let telemetry = Telemetry::new().to(Broken).to(shy.clone()).to(input.clone()).to(all.clone());
    run_through(&agent(telemetry).await).await;

    assert_eq!(shy.content(), [0, 0, 0]);
    assert_eq!(input.content(), [2, 1, 0]);
    assert_eq!(all.content(), [2, 1, 1]);
    let watched = |sink: &Kept| sink.facts.lock().unwrap().iter().any(|fact| matches!(fact, Fact::NodeEntered { .. }));
    assert!(watched(&input) && !watched(&shy));
}
