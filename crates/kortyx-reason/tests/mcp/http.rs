//! A server over streamable HTTP, on the loopback.

use std::{net::SocketAddr, sync::Arc};

use axum::{Router, extract::Request, http::StatusCode, middleware::Next, response::IntoResponse as _};
use kortyx_reason::{Approval, McpHandshake, McpServer, McpServerBuilder};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use serde_json::json;
use tokio::net::TcpListener;

use crate::{
    server::Server,
    world::{Diary, agent, answer, calling, ended, reasoning, results, run, text},
};

/// A listening server that wants a key; it ends with the test's runtime.
async fn listening(diary: &Diary) -> SocketAddr {
    let server = Server::new(diary.path());
    let sessions = Arc::new(LocalSessionManager::default());
    let config = StreamableHttpServerConfig::default();
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    let keyed = axum::middleware::from_fn(|request: Request, next: Next| async move {
        if request.headers().get("authorization").is_some_and(|key| key == "Bearer sesame") {
            next.run(request).await
        } else {
            StatusCode::UNAUTHORIZED.into_response()
        }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new().fallback_service(service).layer(keyed);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

async fn server(diary: &Diary) -> McpServerBuilder {
    let address = listening(diary).await;
    McpServer::http("web", format!("http://{address}/mcp")).bearer("sesame").approval(|_| Approval::Never)
}

#[tokio::test]
async fn tools_are_listed_and_called_over_http_by_either_handshake() {
    for handshake in [McpHandshake::Auto, McpHandshake::Initialize] {
        let diary = Diary::new();
        let server = server(&diary).await.handshake(handshake).build();
        let results = results(&server, [("echo", text("hello")), ("fail", text(""))]).await;
        assert_eq!((&results[0][2], &results[1][3]), (&json!("hello"), &json!("it is broken")), "{handshake:?}");
        assert_eq!(diary.count("listed"), 3);
        server.close().await;
    }
}

#[tokio::test]
async fn a_question_over_http_is_answered_by_a_call_that_is_made_again() {
    let diary = Diary::new();
    let server = server(&diary).await.handshake(McpHandshake::Initialize).build();
    let workflow = reasoning(&calling([("ask", text(""))]), &server);
    let agent = agent(&workflow).await;
    let mut paused = run(&agent, &workflow).await;
    for name in ["Ann", "Bob", "Cy"] {
        paused = answer(&agent, &paused, json!({"action": "accept", "content": {"name": name}})).await;
    }
    assert_eq!(ended(paused)[0][2], "Ann, Bob, Cy");
    server.close().await;
}

#[tokio::test]
async fn a_server_that_says_in_its_result_what_it_wants_gets_it() {
    let diary = Diary::new();
    let server = server(&diary).await.handshake(McpHandshake::Discover).build();
    let workflow = reasoning(&calling([("wants", text(""))]), &server);
    let agent = agent(&workflow).await;
    let paused = run(&agent, &workflow).await;
    let done = answer(&agent, &paused, json!({"action": "accept", "content": {"name": "Ann"}})).await;
    assert_eq!(ended(done)[0][2], "\"Ann\" state");
    assert_eq!((diary.count("wanting"), diary.count("told")), (2, 1));
    server.close().await;
}

#[tokio::test]
async fn a_wrong_key_and_a_bad_header_are_errors_that_show_no_secret() {
    let diary = Diary::new();
    let address = listening(&diary).await;
    let plain = || McpServer::http("web", format!("http://{address}/mcp")).connect_attempts(1);
    let refused = plain().bearer("open").build().list().await.err().unwrap().to_string();
    assert!(refused.starts_with("the MCP server `web` cannot be reached: ") && refused.contains("401"), "{refused}");
    assert!(!refused.contains("open"), "{refused}");
    let bad = plain().header("x-key", "se\ncret").build().list().await.err().unwrap().to_string();
    assert_eq!(bad, "the MCP server `web` cannot be reached: the value of the header `x-key` is not valid");
    assert_eq!(format!("{:?}", plain().bearer("sesame")), "McpServerBuilder { name: \"web\", .. }");
}
