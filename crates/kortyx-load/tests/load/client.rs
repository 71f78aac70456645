//! Requests, each on a connection of its own, and responses as a whole or frame by frame.

use std::net::SocketAddr;

use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request,
    body::{Bytes, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpStream, task::JoinHandle};

use crate::broken::{Broken, Doing as _, holds};

/// A response whose body comes bit by bit. Dropped, the connection is closed.
pub(crate) struct Open {
    pub(crate) status: u16,
    pub(crate) run_id: Option<String>,
    body: Incoming,
    bytes: Vec<u8>,
    connection: JoinHandle<()>,
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Result<Open, Broken> {
    open(address, "GET", path, String::new()).await
}

pub(crate) async fn post(address: SocketAddr, path: &str, body: &Value) -> Result<Open, Broken> {
    open(address, "POST", path, body.to_string()).await
}

async fn open(address: SocketAddr, method: &str, path: &str, body: String) -> Result<Open, Broken> {
    let stream = TcpStream::connect(address).await.doing("connecting")?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.doing("connecting")?;
    let connection = tokio::spawn(async { drop(connection.await) });
    let request = Request::builder().method(method).uri(path).header("host", address.to_string());
    let request = request.header("connection", "close").body(Full::new(Bytes::from(body))).doing("making a request")?;
    let response = sender.send_request(request).await.doing("sending a request")?;
    let (parts, body) = response.into_parts();
    let run_id = parts.headers.get("kortyx-run-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    Ok(Open { status: parts.status.as_u16(), run_id, body, bytes: Vec::new(), connection })
}

impl Open {
    /// The next frame, without the blank line; `None` at the end.
    pub(crate) async fn frame(&mut self) -> Result<Option<String>, Broken> {
        loop {
            if let Some(end) = self.bytes.windows(2).position(|two| two == b"\n\n") {
                let rest = self.bytes.split_off(end + 2);
                let mut frame = std::mem::replace(&mut self.bytes, rest);
                frame.truncate(end);
                return String::from_utf8(frame).doing("reading a frame").map(Some);
            }
            let Some(piece) = self.body.frame().await else {
                holds(self.bytes.is_empty(), || "the stream ends within a frame".to_owned())?;
                return Ok(None);
            };
            if let Ok(data) = piece.doing("reading a stream")?.into_data() {
                self.bytes.extend_from_slice(&data);
            }
        }
    }

    /// The whole body as JSON, of a response with this status.
    pub(crate) async fn json(mut self, status: u16) -> Result<Value, Broken> {
        let body = (&mut self.body).collect().await.doing("reading a body")?.to_bytes();
        holds(self.status == status, || format!("status {}: {}", self.status, String::from_utf8_lossy(&body)))?;
        serde_json::from_slice(&body).doing("reading a body")
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connection.abort();
    }
}
