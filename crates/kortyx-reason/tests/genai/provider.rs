//! A server that says what it is told to, byte for byte, and remembers what it was asked.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::yield_now,
};

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) text: String,
}

impl Received {
    pub(crate) fn body(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }
}

/// What the server answers to one request.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    pieces: Vec<Vec<u8>>,
    breaks: bool,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json", &body.to_string())
    }

    pub(crate) fn text(status: u16, content_type: &str, body: &str) -> Self {
        let headers = vec![("content-type".into(), content_type.into())];
        Self { status, headers, pieces: vec![body.into()], breaks: false }
    }

    /// A stream, each frame in a write of its own.
    pub(crate) fn stream(frames: &[String]) -> Self {
        let pieces = frames.iter().map(|frame| frame.clone().into_bytes()).collect();
        Self { pieces, ..Self::text(200, "text/event-stream", "") }
    }

    /// A stream of these bytes.
    pub(crate) fn bytes(bytes: Vec<u8>) -> Self {
        Self { pieces: vec![bytes], ..Self::text(200, "text/event-stream", "") }
    }

    /// The same bytes in writes of so many.
    pub(crate) fn split(mut self, size: usize) -> Self {
        self.pieces = self.pieces.concat().chunks(size).map(<[u8]>::to_vec).collect();
        self
    }

    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The connection breaks at the end, where it should be closed in order.
    pub(crate) fn broken(mut self) -> Self {
        self.breaks = true;
        self
    }
}

/// The server.
#[derive(Clone)]
pub(crate) struct Provider {
    address: String,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Provider {
    /// Answers with these, in order.
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let provider = Self { address, received: Arc::default() };
        let (received, mut replies) = (provider.received.clone(), replies.into_iter().collect::<VecDeque<_>>());
        tokio::spawn(async move {
            while let Some(reply) = replies.pop_front() {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = read(&mut stream).await;
                received.lock().unwrap().push(request);
                write(stream, reply).await;
            }
        });
        provider
    }

    /// Where it is, with the path that a provider's paths are appended to.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

async fn read(stream: &mut TcpStream) -> Received {
    let mut bytes = Vec::new();
    loop {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "the client left");
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let mut lines = head.lines();
        let path = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
        let header = |line: &str| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_ascii_lowercase(), value.to_owned())
        };
        let headers: BTreeMap<String, String> = lines.map(header).collect();
        let length: usize = headers["content-length"].parse().unwrap();
        if body.len() >= length {
            return Received { path, headers, text: body.to_owned() };
        }
    }
}

/// A client may leave before it has heard all: that is for its test to mind.
async fn write(mut stream: TcpStream, reply: Reply) {
    stream.set_nodelay(true).unwrap();
    let mut head = format!("HTTP/1.1 {} Said\r\nconnection: close\r\ntransfer-encoding: chunked\r\n", reply.status);
    for (name, value) in &reply.headers {
        head = format!("{head}{name}: {value}\r\n");
    }
    let _ = stream.write_all(format!("{head}\r\n").as_bytes()).await;
    for piece in reply.pieces.iter().filter(|piece| !piece.is_empty()) {
        let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
        let _ = stream.write_all(&chunk).await;
        // The client reads what is there before more comes.
        yield_now().await;
    }
    if !reply.breaks {
        let _ = stream.write_all(b"0\r\n\r\n").await;
    }
}
