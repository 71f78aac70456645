//! What an observer is told of models and tools: once, with what they used and how they ended, and content only where it asks.

use std::sync::{Arc, Mutex};

use kortyx_memory::MemoryStore;
use kortyx_orchestrator::{Agent, Captures, Content, End, Fact, TelemetrySink};
use kortyx_protocol::FailureCode;
use kortyx_reason::{ModelError, ModelErrorKind, Script, ScriptedModel};
use kortyx_runtime::Workflow;
use serde_json::json;

use crate::world::{Effects, answer, data, failure, gated, reasoning, run, with};

/// Keeps the facts of models and tools.
#[derive(Clone, Default)]
struct Heard {
    facts: Arc<Mutex<Vec<Fact>>>,
    captures: Captures,
}

impl TelemetrySink for Heard {
    fn record(&self, fact: &Fact) {
        let is_of_work = matches!(
            fact,
            Fact::ModelStarted { .. } | Fact::ModelEnded { .. } | Fact::ToolStarted { .. } | Fact::ToolEnded { .. }
        );
        if is_of_work {
            self.facts.lock().unwrap().push(fact.clone());
        }
    }

    fn watches_nodes(&self) -> bool {
        true
    }

    fn captures(&self) -> Captures {
        self.captures
    }
}

impl Heard {
    fn lines(&self) -> Vec<String> {
        std::mem::take(&mut *self.facts.lock().unwrap()).iter().map(line).collect()
    }
}

fn line(fact: &Fact) -> String {
    match fact {
        Fact::ModelStarted { model, step, .. } => format!("ask {} in {step}", model.model),
        Fact::ModelEnded { end, usage, finish, tool_calls, .. } => {
            let used = usage.map_or(0, |usage| usage.input);
            format!("answered {} {} {tool_calls} {used}", end.as_str(), finish.as_deref().unwrap_or("-"))
        }
        Fact::ToolStarted { tool, call_id, approved, .. } => format!("run {tool} {call_id} {approved}"),
        Fact::ToolEnded { tool, end, .. } => format!("ran {tool} {}", end.as_str()),
        other => panic!("{other:?}"),
    }
}

async fn agent(workflow: &Workflow, heard: &Heard) -> Agent {
    let builder = Agent::builder().workflow(workflow).store(MemoryStore::new()).telemetry(heard.clone());
    builder.without_worker().build().await.unwrap()
}

#[tokio::test]
async fn passes_and_tools_are_told_once_and_replay_tells_nothing() {
    let (effects, heard) = (Effects::default(), Heard::default());
    let first = Script::new().call("order", json!({"what": "tea"})).usage(7, 5);
    let model = ScriptedModel::new([first, Script::new().text("Done.")]);
    let workflow = gated(&model, &effects);
    let agent = agent(&workflow, &heard).await;
    let paused = run(&agent, &workflow).await;
    assert_eq!(heard.lines(), ["ask scripted in brief#0/pass/0", "answered completed tool_calls 1 7"]);
    data(answer(&agent, &paused, 0, json!({"decision": "approve"})).await);
    let wanted = [
        "run order call_0_0 true",
        "ran order completed",
        "ask scripted in brief#0/pass/1",
        "answered completed stop 0 0",
    ];
    assert_eq!(heard.lines(), wanted);
}

#[tokio::test]
async fn a_model_that_fails_is_told_with_its_code() {
    let heard = Heard::default();
    let error = ModelError::new(ModelErrorKind::Refusal, "planted");
    let model = ScriptedModel::new([Script::new().fail(error)]);
    let workflow = reasoning(move || with(&model));
    failure(run(&agent(&workflow, &heard).await, &workflow).await);
    let facts = heard.facts.lock().unwrap();
    let Fact::ModelEnded { end, .. } = &facts[1] else { panic!("{facts:?}") };
    assert_eq!(*end, End::Failed(FailureCode::ProviderRefusal));
    assert!(!format!("{facts:?}").contains("planted"));
}

#[tokio::test]
async fn prompts_arguments_and_results_are_told_by_their_switch_without_what_a_tool_hides() {
    for (captures, wanted) in [
        (Captures::nothing(), &[][..]),
        (Captures::nothing().with_input(true), &["planted-prompt", "planted-what"]),
        (Captures::nothing().with_output(true), &["planted-what", "planted-text"]),
    ] {
        let (effects, heard) = (Effects::default(), Heard { captures, ..Heard::default() });
        let arguments = json!({"what": "planted-what", "amount": 424_242});
        let calls = Script::new().call("order", arguments);
        let model = ScriptedModel::new([calls, Script::new().text("planted-text")]);
        let workflow =
            reasoning(move || with(&model).system("planted-prompt").tool(effects.tool("order").redact("/amount")));
        data(run(&agent(&workflow, &heard).await, &workflow).await);
        let facts = heard.facts.lock().unwrap();
        let json = |content: &Option<Content>| content.as_ref().map(|content| content.json().get().to_owned());
        let content = |fact: &Fact| match fact {
            Fact::ModelStarted { input, .. } | Fact::ToolStarted { input, .. } => json(input),
            Fact::ModelEnded { output, .. } | Fact::ToolEnded { output, .. } => json(output),
            _ => None,
        };
        let content: String = facts.iter().filter_map(content).collect();
        for planted in ["planted-prompt", "planted-what", "planted-text"] {
            assert_eq!(content.contains(planted), wanted.contains(&planted), "{captures:?}: {planted}: {content}");
        }
        assert!(!content.contains("424242"), "what a tool hides is hidden everywhere: {content}");
        assert!(!format!("{facts:?}").contains("planted"));
    }
}
