//! K5: whoever has the store can go on, by every road.

use kortyx::{
    Agent, Answer, ChatOptions, ExecuteOptions, NodeOutput, Text, Workflow,
    protocol::{ChatMessage, ResumeHandle, ResumeMeta, ResumeResponse, json as wire},
    store::{InterruptQuery, RunStatus, Scope},
};
use kortyx_tests::{Counter, World, approve_or_decline, data, ends, handle, kinds, one_node, only, with};
use serde_json::{Value, json};

fn asking() -> Workflow {
    one_node("asking", |ctx| async move {
        let answer = ctx.interrupt("ask", Text::new("Well?")).await?;
        Ok(NodeOutput::new().data("answer", &answer))
    })
}

/// The public ways to answer.
#[derive(Debug, Clone, Copy)]
enum Way {
    Resume,
    ResumeAs,
    ResumeBatch,
    Answer,
    AnswerBatch,
    Respond,
    Submit,
    Chat,
}

impl Way {
    const ALL: [Self; 8] = [
        Self::Resume,
        Self::ResumeAs,
        Self::ResumeBatch,
        Self::Answer,
        Self::AnswerBatch,
        Self::Respond,
        Self::Submit,
        Self::Chat,
    ];

    async fn go(self, agent: &Agent, workflow: &Workflow, gate: &ResumeHandle, text: &str) {
        let response = ResumeResponse::text(text);
        let scope = Scope::session(gate.session_id.clone());
        let status = match self {
            Self::Resume => agent.resume(gate, response).await.unwrap().status(),
            Self::ResumeAs => agent.resume_as(workflow, gate, response).await.unwrap().status(),
            Self::ResumeBatch => agent.resume_batch([(gate.clone(), response)]).await.unwrap().status(),
            Self::Answer => agent.answer(&gate.request_id, scope, response, None).await.unwrap().status(),
            Self::AnswerBatch => {
                agent.answer_batch([(gate.request_id.clone(), response)], scope, None).await.unwrap().status()
            }
            Self::Respond => agent.respond(vec![Answer::with_handle(gate, response)]).await.unwrap().status(),
            Self::Submit => {
                let accepted = agent.submit(vec![Answer::with_handle(gate, response)]).await.unwrap();
                assert_eq!((accepted.receipts.len(), accepted.is_duplicate), (1, false));
                ends(agent, gate, RunStatus::Completed).await;
                "completed"
            }
            Self::Chat => {
                let mut meta = ResumeMeta::new(gate.token.clone(), gate.request_id.clone());
                meta.text = Some(text.to_owned());
                let turn = agent.stream_chat(vec![ChatMessage::user("").with_resume(&meta)], ChatOptions::new());
                assert_eq!(kinds(&turn.collect().await), ["session", "done"]);
                "completed"
            }
        };
        assert_eq!(status, "completed", "{self:?}");
    }
}

/// There is no registry of paused runs in a process, so nothing of one can run out.
#[tokio::test]
async fn b078_every_way_to_answer_works_from_a_process_that_never_saw_the_run() {
    let world = World::new();
    let workflow = asking();
    for way in Way::ALL {
        let registered = workflow.clone();
        let start = move |agent: kortyx::AgentBuilder| agent.workflow(&registered);
        let first = world.process(start.clone()).await;
        let paused = first.agent().execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
        first.kill().await;

        let second = world.process(start).await;
        let gate = only(&paused).resume;
        way.go(second.agent(), &workflow, &gate, "yes").await;
        let run = second.agent().get_run(&gate.run_id, &Scope::session(gate.session_id.clone())).await;
        let run = run.unwrap().unwrap();
        assert_eq!(run.data.unwrap().to_value().unwrap()["answer"], "yes", "{way:?}");
    }
}

#[tokio::test]
async fn b066_a_child_is_answered_in_another_process_and_its_parent_goes_on() {
    let world = World::new();
    let (child, after) = (asking(), Counter::new());
    let parent = one_node(
        "parent",
        with((child.clone(), after.clone()), |ctx, (child, after)| async move {
            let output: Value = ctx.call("child", &child, json!({})).await?;
            after.hit();
            Ok(NodeOutput::new().data("child", &output))
        }),
    );
    let (one, two) = (child.clone(), parent.clone());
    let start = move |agent: kortyx::AgentBuilder| agent.workflow(&one).workflow(&two);
    let first = world.process(start.clone()).await;
    let paused = first.agent().execute(&parent, json!({}), ExecuteOptions::new()).await.unwrap();
    first.kill().await;

    let question = only(&paused);
    assert_eq!((question.workflow.as_str(), question.node.as_str()), ("asking", "node"));
    let second = world.process(start).await;
    let result = second.agent().resume(&question.resume, ResumeResponse::text("yes")).await.unwrap();
    assert_eq!((data(result)["child"]["answer"].as_str(), after.count()), (Some("yes"), 1));
}

/// The objects of the second process are made from the stored rows and the code alone.
#[tokio::test]
async fn b077_a_nested_pause_survives_that_every_object_is_made_anew() {
    fn nested(depth: u32) -> Vec<Workflow> {
        let mut workflows = vec![asking()];
        for level in 0..depth {
            let below = workflows[0].clone();
            let caller = one_node(
                &format!("level-{level}"),
                with(below, |ctx, below| async move {
                    let output: Value = ctx.call("below", &below, json!({})).await?;
                    Ok(NodeOutput::new().data("answer", &output["answer"]))
                }),
            );
            workflows.insert(0, caller);
        }
        workflows
    }
    let world = World::new();
    let start = |agent| nested(3).iter().fold(agent, |agent: kortyx::AgentBuilder, one| agent.workflow(one));
    let first = world.process(start).await;
    let paused = first.agent().execute(&nested(3)[0], json!({}), ExecuteOptions::new()).await.unwrap();
    first.kill().await;
    let second = world.process(start).await;
    let result = second.agent().resume(&only(&paused).resume, ResumeResponse::text("yes")).await.unwrap();
    assert_eq!(data(result)["answer"], "yes");
}

/// There are no links: what is sent to a person is a handle, and it is the application that puts it into one.
#[tokio::test]
async fn b090_a_handle_is_the_same_whoever_hands_it_out_and_good_for_agents_of_every_kind() {
    let world = World::new();
    let workflow = asking();
    let agent = world.agent(&workflow).await;
    let paused = agent.execute(&workflow, json!({}), ExecuteOptions::new()).await.unwrap();
    let issued = wire::to_string(&handle(&paused, "ask")).unwrap();

    let with_worker = Agent::builder().shared_store(world.store().await).workflow(&workflow).build().await.unwrap();
    let accept_only = world.builder().await.accept_only().build().await.unwrap();
    for other in [&with_worker, &accept_only, &agent] {
        let query = InterruptQuery { run_id: Some(paused.run_id().clone()), ..Default::default() };
        let listed = other.list_interrupts(query).await.unwrap().interrupts.remove(0);
        assert_eq!(wire::to_string(listed.handle()).unwrap(), issued);
    }
    let kept: ResumeHandle = wire::from_str(&issued).unwrap();
    accept_only.submit(vec![Answer::with_handle(&kept, ResumeResponse::text("yes"))]).await.unwrap();
    let repeated = with_worker.resume(&kept, ResumeResponse::text("yes")).await.unwrap();
    assert_eq!(data(repeated)["answer"], "yes");
    with_worker.shutdown(std::time::Duration::from_secs(10)).await;
}

/// `resume` takes no context at all; a chat turn may bring one, which is that of a fresh run only.
#[tokio::test]
async fn b092_a_context_given_with_an_answer_takes_nothing_away() {
    let world = World::new();
    let workflow = one_node("gate", |ctx| async move {
        let decision = ctx.interrupt("gate", approve_or_decline("Act?")).await?;
        let context: Value = ctx.context()?;
        Ok(NodeOutput::new().data("all", &json!([decision, context["tenant"]])))
    });
    let agent = world.agent(&workflow).await;
    for options in [ChatOptions::new(), ChatOptions::new().context("tenant", "b").context("approvals", json!({}))] {
        let begun = ExecuteOptions::new().context("tenant", "a");
        let paused = agent.execute(&workflow, json!({}), begun).await.unwrap();
        let gate = only(&paused).resume;
        let mut meta = ResumeMeta::new(gate.token.clone(), gate.request_id.clone());
        meta.selected = vec!["approve".into()];
        let chunks = agent.stream_chat(vec![ChatMessage::user("").with_resume(&meta)], options).collect().await;
        assert_eq!(kinds(&chunks), ["session", "done"]);
        let run = agent.get_run(&gate.run_id, &Scope::session(gate.session_id.clone())).await.unwrap().unwrap();
        assert_eq!(run.status, RunStatus::Completed);
        assert_eq!(run.data.unwrap().to_value().unwrap()["all"], json!(["approve", "a"]));
    }
}
