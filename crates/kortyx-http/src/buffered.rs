//! Turns as one response.

use std::io;

use axum::http::StatusCode;
use kortyx_orchestrator::ChatStream;
use kortyx_protocol::{BufferedResponse, Failure, FailureCode, StreamChunk};
use serde_json::json;

use crate::{problem::Problem, sse};

/// The whole turn, whose chunks have at most so many bytes as JSON. A larger one goes on, and is not answered with.
pub(crate) async fn whole(mut turn: ChatStream, limit: usize) -> Result<BufferedResponse, Problem> {
    let (mut chunks, mut left) = (Vec::new(), limit);
    while let Some(chunk) = turn.next().await {
        match left.checked_sub(bytes(&chunk)) {
            Some(rest) => left = rest,
            None => return Err(too_large(turn, limit)),
        }
        chunks.push(chunk);
    }
    BufferedResponse::from_chunks(chunks).map_err(|error| {
        let message = format!("the turn's structured data does not fit together: {error}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, FailureCode::InvalidOutput, message)
    })
}

fn too_large(turn: ChatStream, limit: usize) -> Problem {
    let mut message = format!("the turn says more than {limit} bytes, which is too much for one response: ");
    let run_id = turn.run_id().cloned();
    message += match run_id {
        Some(_) => "it goes on, so follow its run, and ask for a stream the next time",
        None => "it goes on, and its next turn can be streamed",
    };
    sse::leave(turn);
    let mut failure = Failure::new(FailureCode::LimitReached, message);
    if let Some(run_id) = run_id {
        failure = failure.with_details(json!({"runId": run_id}));
    }
    failure.into()
}

/// How long a chunk is as JSON.
fn bytes(chunk: &StreamChunk) -> usize {
    let mut count = Count(0);
    // What is not JSON fails later, where the response is written.
    let _ = serde_json::to_writer(&mut count, chunk);
    count.0
}

struct Count(usize);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_as_long_as_its_json() {
        let chunk = StreamChunk::text_delta("é\n");
        assert_eq!(bytes(&chunk), serde_json::to_string(&chunk).unwrap().len());
    }
}
