//! A client: whole responses, and streams read as widespread clients read them.

use std::net::SocketAddr;

use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::{HeaderMap, Method, Request, body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// A request in the making: of the tenant `acme`, unless it says otherwise.
pub(crate) struct Call {
    address: SocketAddr,
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Call {
    pub(crate) fn new(address: SocketAddr, method: &str, path: &str) -> Self {
        let headers = vec![("x-tenant".to_owned(), "acme".to_owned())];
        Self { address, method: method.parse().unwrap(), path: path.to_owned(), headers, body: Vec::new() }
    }

    pub(crate) fn get(address: SocketAddr, path: &str) -> Self {
        Self::new(address, "GET", path)
    }

    pub(crate) fn post(address: SocketAddr, path: &str, body: &Value) -> Self {
        Self::new(address, "POST", path).body(body.to_string())
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a header; the empty value takes it away.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        if !value.is_empty() {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// The response as a whole.
    pub(crate) async fn send(self) -> Reply {
        let mut open = self.open().await;
        let body = (&mut open.body).collect().await.unwrap().to_bytes();
        Reply { status: open.status, headers: open.headers.clone(), body }
    }

    /// The response as soon as its headers are there.
    pub(crate) async fn open(self) -> Open {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(async { drop(connection.await) });
        let mut request =
            Request::builder().method(self.method).uri(self.path).header("host", self.address.to_string());
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        let response = sender.send_request(request.body(Body::from(self.body)).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        Open { status: parts.status.as_u16(), headers: parts.headers, body, text: String::new(), connection }
    }
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The status and the failure's code; the body must have the shape of every error.
    pub(crate) fn refusal(&self) -> (u16, String) {
        let body = self.json();
        let failure = &body["failure"];
        assert_eq!(body["error"], failure["message"], "{body}");
        assert_eq!((&failure["version"], &failure["status"]), (&1.into(), &self.status.into()), "{body}");
        assert_eq!(self.headers["content-type"], "application/json");
        (self.status, failure["code"].as_str().unwrap().to_owned())
    }

    /// The chunks of a stream that has ended as it must.
    pub(crate) fn chunks(&self) -> Vec<Value> {
        let text = std::str::from_utf8(&self.body).unwrap();
        let (mut chunks, mut is_done) = (Vec::new(), false);
        for frame in text.split_terminator("\n\n") {
            let Some(data) = frame.strip_prefix("data: ") else {
                assert_eq!(frame, ": ");
                continue;
            };
            assert!(!is_done && !data.contains('\n'), "{text}");
            is_done = data == "[DONE]";
            if !is_done {
                chunks.push(serde_json::from_str(data).unwrap());
            }
        }
        assert!(is_done && text.ends_with("\n\n"), "{text}");
        chunks
    }
}

/// A response whose body comes bit by bit. Dropped, the connection is closed.
pub(crate) struct Open {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Incoming,
    text: String,
    connection: tokio::task::JoinHandle<()>,
}

impl Open {
    /// The next frame, without the empty line; `None` at the end.
    pub(crate) async fn frame(&mut self) -> Option<String> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(frame);
            }
            let piece = self.body.frame().await?.unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&piece).unwrap());
        }
    }

    /// Every frame that is left.
    pub(crate) async fn rest(&mut self) -> Vec<String> {
        let mut frames = Vec::new();
        while let Some(frame) = self.frame().await {
            frames.push(frame);
        }
        frames
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

pub(crate) fn kinds(chunks: &[Value]) -> Vec<&str> {
    chunks.iter().map(|chunk| chunk["type"].as_str().unwrap()).collect()
}
