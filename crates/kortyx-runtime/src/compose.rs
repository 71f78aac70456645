//! What a call needs that is made of several context calls: a name of its own, its chunks, and a way to stop replay.

use kortyx_protocol::{Failure, StreamChunk};

use crate::{NodeContext, NodeError};

impl NodeContext {
    /// Counts a use of an id and returns which it is within the activation, from 0.
    ///
    /// A call that is made of several derives their ids from its own and this number, so that two uses of it do not mix.
    ///
    /// # Errors
    /// The activation is over.
    pub fn occurrence(&self, id: &str) -> Result<u32, NodeError> {
        Ok(self.0.with_pass(|pass| pass.next_key(id))?.occ)
    }

    /// Sends a chunk of what the node says: text, a tool call, structured data.
    ///
    /// Like [`text`](Self::text) it waits until the chunk is delivered, and replay does not deliver it again. A chunk that is
    /// sent within a step is part of the step.
    ///
    /// # Errors
    /// The chunk is one that the engine or the driver sends, such as a question or the end of the response.
    pub async fn chunk(&self, chunk: StreamChunk) -> Result<(), NodeError> {
        match chunk {
            StreamChunk::Status { .. }
            | StreamChunk::TextStart(_)
            | StreamChunk::TextDelta(_)
            | StreamChunk::TextEnd(_)
            | StreamChunk::Message { .. }
            | StreamChunk::ToolCallStart { .. }
            | StreamChunk::ToolCallResult { .. }
            | StreamChunk::ToolCallError { .. }
            | StreamChunk::StructuredData(_)
            | StreamChunk::StructuredDataInvalidated { .. } => {
                self.emit(chunk).await;
                Ok(())
            }
            _ => Err(NodeError::message(
                "a node sends texts, tool calls and structured data; other chunks are the engine's",
            )),
        }
    }

    /// Sets the run aside, because what its journal holds does not fit the code that reads it: the node goes no further,
    /// answers stay, and the run goes on as soon as code that fits is deployed. Does not return.
    pub async fn park<T>(&self, failure: Failure) -> T {
        self.0.park(failure).await
    }
}
