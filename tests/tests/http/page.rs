//! A page in a browser: it knows what crossed the wire and nothing else.

use kortyx::{Agent, AgentBuilder, Workflow, http::Http};
use kortyx_tests::{
    World,
    site::{self, Request, Response, Site},
};
use serde_json::{Value, json};

/// A server and whoever speaks to it.
pub(crate) struct Page {
    site: Site,
    /// The user's tenant.
    tenant: &'static str,
}

impl Page {
    /// Of a server with these workflows, the first of which is the default one.
    pub(crate) async fn of(world: &World, workflows: &[Workflow]) -> Self {
        Self::with(world, workflows, |agent| agent).await
    }

    /// The same, with these settings.
    pub(crate) async fn with(
        world: &World,
        workflows: &[Workflow],
        configure: impl FnOnce(AgentBuilder) -> AgentBuilder,
    ) -> Self {
        let agent = configure(agent(world, workflows).await).build().await.unwrap();
        Self { site: Site::over(agent, |http| http).await, tenant: "acme" }
    }

    /// The same, with these settings of its routes.
    pub(crate) async fn below(world: &World, workflows: &[Workflow], configure: impl FnOnce(Http) -> Http) -> Self {
        let agent = agent(world, workflows).await.build().await.unwrap();
        Self { site: Site::over(agent, configure).await, tenant: "acme" }
    }

    /// The agent behind the server.
    pub(crate) fn agent(&self) -> &Agent {
        &self.site.agent
    }

    /// From here on this tenant's user is at the page.
    pub(crate) fn used_by(&mut self, tenant: &'static str) {
        self.tenant = tenant;
    }

    fn request(&self, method: &'static str, path: &str, body: &Value) -> Request {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        Request { method, path: path.to_owned(), headers: vec![("x-tenant", self.tenant)], body }
    }

    async fn send(&self, request: Request) -> Response {
        site::send(self.site.address, &request, &request.path, request.body.clone()).await
    }

    /// Gets an address: the status, and what came as JSON.
    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        read(&self.send(self.request("GET", path, &Value::Null)).await)
    }

    /// Posts something to an address: the status, and what came as JSON.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        read(&self.send(self.request("POST", path, body)).await)
    }

    /// Opens a stream, without reading it yet.
    pub(crate) async fn open(&self, body: &Value) -> site::Open {
        let request = self.request("POST", "/chat", body);
        site::open(self.site.address, &request, &request.path, request.body.clone()).await
    }

    /// Says something in a session: the chunks of the turn.
    pub(crate) async fn say(&self, session: &str, text: &str) -> Vec<Value> {
        self.chat(&message(session, text)).await
    }

    /// Answers a question in the chat with these fields beside token and id: the chunks of the turn.
    pub(crate) async fn answer(&self, session: &str, question: &Value, fields: &Value) -> Vec<Value> {
        self.chat(&answer(session, question, fields)).await
    }

    /// A chat turn as it streams.
    pub(crate) async fn chat(&self, body: &Value) -> Vec<Value> {
        let response = self.send(self.request("POST", "/chat", body)).await;
        assert_eq!(response.status, 200, "{}", response.body);
        chunks(&response)
    }

    /// What a run said, from its beginning.
    pub(crate) async fn follow(&self, run_id: &str) -> Vec<Value> {
        let response = self.send(self.request("GET", &format!("/runs/{run_id}/stream"), &Value::Null)).await;
        assert_eq!(response.status, 200, "{}", response.body);
        chunks(&response)
    }

    /// The pending questions of a session, as the server lists them.
    pub(crate) async fn listed(&self, session: &str) -> Vec<Value> {
        let (status, page) = self.get(&format!("/interrupts?sessionId={session}")).await;
        assert_eq!(status, 200, "{page}");
        page["interrupts"].as_array().unwrap().clone()
    }

    /// Asks for something about checkpoints: the status, and what came.
    pub(crate) async fn checkpoints(&self, action: &str, fields: &Value) -> (u16, Value) {
        let mut body = json!({"action": action});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.post("/checkpoints", &body).await
    }

    /// A session's checkpoints, oldest first.
    pub(crate) async fn turns(&self, session: &str) -> Vec<Value> {
        let (status, turns) = self.checkpoints("list", &json!({"sessionId": session})).await;
        assert_eq!(status, 200, "{turns}");
        turns.as_array().unwrap().clone()
    }
}

async fn agent(world: &World, workflows: &[Workflow]) -> AgentBuilder {
    let agent = workflows.iter().fold(world.builder().await, AgentBuilder::workflow);
    agent.default_workflow(workflows[0].definition().id().to_string())
}

fn read(response: &Response) -> (u16, Value) {
    (response.status, serde_json::from_str(&response.body).unwrap_or(Value::Null))
}

/// The chunks of a stream; its last frame is the end's.
fn chunks(response: &Response) -> Vec<Value> {
    let mut frames: Vec<_> = response.frames().unwrap().into_iter().map(|frame| frame.data).collect();
    assert_eq!(frames.pop(), Some("[DONE]"), "{}", response.body);
    frames.into_iter().map(|frame| serde_json::from_str(frame).unwrap()).collect()
}

/// The body of a message.
pub(crate) fn message(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "messages": [{"role": "user", "content": text}]})
}

/// The body of an answer to a question that a stream showed.
pub(crate) fn answer(session: &str, question: &Value, fields: &Value) -> Value {
    let mut resume = json!({"token": question["resumeToken"], "requestId": question["requestId"]});
    resume.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let message = json!({"role": "user", "content": "an answer", "metadata": {"resume": resume}});
    json!({"sessionId": session, "messages": [message]})
}

/// What an answer to a question is posted with when it is not given in the chat.
pub(crate) fn handle(question: &Value, run_id: &Value, session: &str, response: &Value) -> Value {
    let resume = json!({
        "token": question["resumeToken"], "requestId": question["requestId"], "sessionId": session, "runId": run_id,
    });
    json!({"resume": resume, "response": response})
}

/// The kinds of chunks.
pub(crate) fn kinds(chunks: &[Value]) -> Vec<&str> {
    chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect()
}

/// The questions among chunks.
pub(crate) fn questions(chunks: &[Value]) -> Vec<Value> {
    chunks.iter().filter(|chunk| chunk["type"] == "interrupt").cloned().collect()
}

/// What a turn ended with.
pub(crate) fn done(chunks: &[Value]) -> &Value {
    let last = chunks.last().unwrap();
    assert_eq!(last["type"], "done", "{chunks:?}");
    &last["data"]
}

/// The code of the error among chunks.
pub(crate) fn error(chunks: &[Value]) -> &str {
    let error = chunks.iter().find(|chunk| chunk["type"] == "error");
    error.unwrap_or_else(|| panic!("no error: {chunks:?}"))["failure"]["code"].as_str().unwrap()
}
