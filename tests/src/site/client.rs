//! A client that reads streams as widespread clients do.

use std::net::SocketAddr;

use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap,
    body::{Bytes, Incoming},
    client::conn::http1,
    http::response::Parts,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinHandle};

/// A request as it is written in its file: ids and tokens by the names that they have there.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its method.
    pub method: &'static str,
    /// Its path, with the query.
    pub path: String,
    /// Headers that the client adds.
    pub headers: Vec<(&'static str, &'static str)>,
    /// Its body.
    pub body: Vec<u8>,
}

/// A response, taken apart.
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, or the part of it that was read.
    pub body: String,
}

impl Response {
    /// The frames of a stream: split on blank lines, those with a line `data: `, up to `[DONE]`. `None` for anything else.
    pub fn frames(&self) -> Option<Vec<Frame<'_>>> {
        if self.headers.get("content-type")? != "text/event-stream" {
            return None;
        }
        let mut frames = Vec::new();
        for frame in self.body.split("\n\n").filter_map(Frame::read) {
            let is_last = frame.data == "[DONE]";
            frames.push(frame);
            if is_last {
                break;
            }
        }
        Some(frames)
    }
}

/// A frame: what it begins with before `data: `, where widespread clients expect nothing, and its data.
pub struct Frame<'a> {
    /// What is before its data.
    pub before: &'a str,
    /// Its data.
    pub data: &'a str,
}

impl<'a> Frame<'a> {
    fn read(frame: &'a str) -> Option<Self> {
        let at = frame.find("data: ").filter(|at| *at == 0 || frame[..*at].ends_with('\n'))?;
        Some(Self { before: &frame[..at], data: &frame[at + "data: ".len()..] })
    }
}

/// Sends a request on a connection of its own, and reads the whole response.
pub async fn send(address: SocketAddr, request: &Request, path: &str, body: Vec<u8>) -> Response {
    open(address, request, path, body).await.rest().await
}

/// A response that is still arriving.
pub struct Open {
    head: Parts,
    body: Incoming,
    connection: JoinHandle<()>,
    // Dropped, it would end the connection.
    _sender: http1::SendRequest<Full<Bytes>>,
}

/// Sends a request on a connection of its own.
pub async fn open(address: SocketAddr, request: &Request, path: &str, body: Vec<u8>) -> Open {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(async { drop(connection.await) });
    let mut head = hyper::Request::builder().method(request.method).uri(path).header("host", "localhost");
    for (name, value) in &request.headers {
        head = head.header(*name, *value);
    }
    let response = sender.send_request(head.body(Full::new(Bytes::from(body))).unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    Open { head, body, connection, _sender: sender }
}

impl Open {
    /// So many frames.
    pub async fn frames(&mut self, count: usize) -> Response {
        let mut bytes = Vec::new();
        while bytes.windows(2).filter(|end| end == b"\n\n").count() < count {
            let frame = self.body.frame().await.unwrap().unwrap();
            bytes.extend_from_slice(&frame.into_data().unwrap());
        }
        self.response(bytes)
    }

    /// All that is left.
    pub async fn rest(mut self) -> Response {
        let bytes = (&mut self.body).collect().await.unwrap().to_bytes();
        self.connection.abort();
        self.response(bytes.to_vec())
    }

    fn response(&self, bytes: Vec<u8>) -> Response {
        let (status, headers) = (self.head.status.as_u16(), self.head.headers.clone());
        Response { status, headers, body: String::from_utf8(bytes).unwrap() }
    }
}
