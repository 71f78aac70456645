//! Where the chunks of a response come from.

use kortyx_orchestrator::{ChatStream, RunStream};
use kortyx_protocol::{Failure, FailureCode, SseWriter};

/// A turn that is played, or a run that is followed.
pub(crate) enum Source {
    Turn(ChatStream),
    Run(Box<RunStream>),
}

impl From<ChatStream> for Source {
    fn from(turn: ChatStream) -> Self {
        Self::Turn(turn)
    }
}

impl From<RunStream> for Source {
    fn from(run: RunStream) -> Self {
        Self::Run(Box::new(run))
    }
}

impl Source {
    /// Writes the next chunk's frame. `false`: there is none any more. Dropped before it is done, it has written nothing and loses
    /// nothing.
    pub(super) async fn next(&mut self, piece: &mut Vec<u8>) -> Result<bool, Box<Failure>> {
        match self {
            Self::Turn(turn) => match turn.next().await {
                None => Ok(false),
                Some(chunk) => SseWriter::append(piece, &chunk).map(|()| true).map_err(|error| {
                    tracing::error!(%error, "a chunk is not JSON");
                    let message = format!("an output is not JSON: {error}");
                    Box::new(Failure::new(FailureCode::InvalidOutput, message))
                }),
            },
            Self::Run(run) => match run.next().await.map_err(|error| Box::new(Failure::from(error)))? {
                None => Ok(false),
                Some(chunk) => {
                    SseWriter::append_numbered(piece, chunk.number, &chunk.json);
                    Ok(true)
                }
            },
        }
    }

    /// Nobody reads it any more because the server stops.
    pub(super) fn leave(self) {
        if let Self::Turn(turn) = self {
            leave(turn);
        }
    }
}

/// Lets a turn go on that nobody reads any more: it is not its client who left. The agent decides what becomes of it.
pub(crate) fn leave(mut turn: ChatStream) {
    tokio::spawn(async move { while turn.next().await.is_some() {} });
}
