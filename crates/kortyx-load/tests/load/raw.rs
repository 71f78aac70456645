//! Connections without a client library: ten thousand of them, or bytes that no library would send.

use std::{io, net::SocketAddr};

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

/// The head of a request whose client is local, without the blank line.
pub(crate) fn head(method: &str, path: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n")
}

/// A whole request with a body.
pub(crate) fn request(path: &str, body: &Value) -> String {
    let body = body.to_string();
    format!("{}content-length: {}\r\n\r\n{body}", head("POST", path), body.len())
}

/// A connection on which something was asked, and what came so far.
pub(crate) struct Raw<S = TcpStream> {
    pub(crate) stream: S,
    pub(crate) heard: Vec<u8>,
}

impl Raw {
    pub(crate) async fn ask(address: SocketAddr, request: &str) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        Ok(Self { stream, heard: Vec::new() })
    }

    /// With so little room that the server must wait until the client reads.
    pub(crate) async fn ask_with_little_room(address: SocketAddr, request: &str) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4096)?;
        let mut stream = socket.connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        Ok(Self { stream, heard: Vec::new() })
    }
}

impl<S: AsyncRead + Unpin> Raw<S> {
    /// Reads until this text has come; `false`: the connection ended before.
    pub(crate) async fn hears(&mut self, text: &str) -> bool {
        while self.count(text) == 0 {
            if !self.hears_more().await {
                return false;
            }
        }
        true
    }

    /// Reads what comes next; `false`: the connection has ended.
    pub(crate) async fn hears_more(&mut self) -> bool {
        let mut piece = [0; 512];
        match self.stream.read(&mut piece).await {
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.heard.extend_from_slice(&piece[..count]);
                true
            }
        }
    }

    /// How often this text has come.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.heard.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
    }
}
