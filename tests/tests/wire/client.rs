//! A client that reads streams as widespread clients do.

use std::net::SocketAddr;

use http_body_util::{BodyExt as _, Full};
use hyper::{HeaderMap, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::cases::Request;

/// A response, taken apart.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Response {
    /// The frames of a stream: split on blank lines, those that begin with `data: `, up to `[DONE]`. `None` for anything else.
    pub(crate) fn frames(&self) -> Option<Vec<&str>> {
        if self.headers.get("content-type")? != "text/event-stream" {
            return None;
        }
        let mut frames = Vec::new();
        for data in self.body.split("\n\n").filter_map(|frame| frame.strip_prefix("data: ")) {
            frames.push(data);
            if data == "[DONE]" {
                break;
            }
        }
        Some(frames)
    }
}

/// Sends a request on a connection of its own.
pub(crate) async fn send(address: SocketAddr, request: &Request, path: &str, body: Vec<u8>) -> Response {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut head = hyper::Request::builder().method(request.method).uri(path).header("host", "localhost");
    if let Some((name, value)) = request.header {
        head = head.header(name, value);
    }
    let response = sender.send_request(head.body(Full::new(Bytes::from(body))).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    drop(sender);
    connection.abort();
    let body = String::from_utf8(body.to_vec()).unwrap();
    Response { status: parts.status.as_u16(), headers: parts.headers, body }
}
