//! One structured stream out of the bytes of one document.

use std::sync::Arc;

use kortyx_protocol::{StreamChunk, StructuredChange, StructuredChunk};
use serde_json::Value;

use super::{PartialJson, PartialJsonError};

/// One structured stream: the bytes of a document in, chunks out.
///
/// While the document grows, its declared fields are told. At its end the whole is put before whoever accepts it, such as a
/// contract: `final` when it is accepted. When it is not, or is no JSON, a stream of which something was told is
/// invalidated. A document is one stream with an id of its own: what a model writes instead of a refused one is the next.
///
/// ```
/// use kortyx_contracts::OutputContract;
/// use kortyx_protocol::StructuredStreams;
/// use kortyx_reason::partial::{Field, Fields, PartialJson, StructuredOutput, Wrapping};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Card {
///     title: String,
///     body: String,
/// }
///
/// const CARD: OutputContract<Card> =
///     OutputContract::new("card").description("A card to show").schema_id("acme.card").version("1");
///
/// let fields = Fields::new([Field::set("title"), Field::text_delta("body")])?;
/// let json = PartialJson::new(fields, Wrapping::for_schema(&CARD.schema()?.to_value()?));
/// let mut output = StructuredOutput::new("stream-1", "acme.card", json).schema(CARD.info().schema_id, CARD.info().version);
///
/// let mut client = StructuredStreams::default();
/// for piece in [r#"{"title":"Tea","bo"#, r#"dy":"Hot "#, r#"water"}"#] {
///     output.push(piece.as_bytes()).iter().try_for_each(|chunk| client.apply(chunk))?;
/// }
/// let finished = output.finish(|data| CARD.decode(data));
/// finished.chunks.iter().try_for_each(|chunk| client.apply(chunk))?;
///
/// assert_eq!(finished.outcome.unwrap().body, "Hot water");
/// assert!(client.get("stream-1").unwrap().is_final());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StructuredOutput {
    /// Every chunk, less its change.
    head: StructuredChunk,
    json: PartialJson,
    is_told: bool,
    error: Option<PartialJsonError>,
}

/// What became of a document.
#[derive(Debug)]
#[must_use]
pub struct Finished<T, E> {
    /// What is still to be told: `final`, or that the stream no longer counts.
    pub chunks: Vec<StreamChunk>,
    /// What the document was accepted as, or why it was not.
    pub outcome: Result<T, Rejected<E>>,
}

/// Why a document was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Rejected<E> {
    /// It is not JSON.
    #[error(transparent)]
    Json(PartialJsonError),
    /// It is JSON, but not what was asked for.
    #[error(transparent)]
    Refused(E),
}

impl StructuredOutput {
    /// A stream with this id, of data of this type.
    pub fn new(stream_id: impl Into<Arc<str>>, data_type: impl Into<Arc<str>>, json: PartialJson) -> Self {
        let head = StructuredChunk::new(stream_id, data_type, StructuredChange::Final { data: Value::Null });
        Self { head, json, is_told: false, error: None }
    }

    /// Names the node in every chunk.
    #[must_use]
    pub fn node(mut self, node: impl Into<Arc<str>>) -> Self {
        self.head.node = Some(node.into());
        self
    }

    /// Names the schema and its version in every chunk.
    #[must_use]
    pub fn schema(mut self, id: impl Into<Arc<str>>, version: impl Into<Arc<str>>) -> Self {
        self.head.schema_id = Some(id.into());
        self.head.schema_version = Some(version.into());
        self
    }

    /// Puts the author's id into every chunk.
    #[must_use]
    pub fn id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.head.id = Some(id.into());
        self
    }

    /// Reads on. Gives what is to be told now; nothing more once the document turned out wrong.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<StreamChunk> {
        if self.error.is_some() {
            return Vec::new();
        }
        let mut changes = Vec::new();
        self.error = self.json.push(bytes, &mut changes).err();
        let mut chunks: Vec<StreamChunk> = changes.into_iter().map(|change| self.chunk(change)).collect();
        self.is_told |= !chunks.is_empty();
        if self.error.is_some() {
            chunks.extend(self.invalidated());
        }
        chunks
    }

    /// Why the document is wrong, as soon as it is certain that it is. Nothing that follows can make it right.
    pub fn error(&self) -> Option<&PartialJsonError> {
        self.error.as_ref()
    }

    /// Whether nothing was read but white space.
    pub(crate) fn is_blank(&self) -> bool {
        self.error.is_none() && self.json.is_blank()
    }

    /// Takes the document for complete. `accept` gets the whole of it, and says what it is or why it is refused.
    pub fn finish<T, E>(self, accept: impl FnOnce(&Value) -> Result<T, E>) -> Finished<T, E> {
        if let Some(error) = self.error {
            return Finished { chunks: Vec::new(), outcome: Err(Rejected::Json(error)) };
        }
        let (last, invalidated) = (self.head.clone(), self.invalidated());
        let outcome = self
            .json
            .finish_value()
            .map_err(Rejected::Json)
            .and_then(|data| accept(&data).map(|accepted| (accepted, data)).map_err(Rejected::Refused));
        match outcome {
            Ok((accepted, data)) => {
                let change = StructuredChange::Final { data };
                Finished { chunks: vec![StructuredChunk { change, ..last }.into()], outcome: Ok(accepted) }
            }
            Err(rejected) => Finished { chunks: invalidated.into_iter().collect(), outcome: Err(rejected) },
        }
    }

    /// Gives the document up, as when the model's answer breaks off. Gives what is to be told of that.
    pub fn abandon(self) -> Option<StreamChunk> {
        if self.error.is_some() { None } else { self.invalidated() }
    }

    fn chunk(&self, change: StructuredChange) -> StreamChunk {
        StructuredChunk { change, ..self.head.clone() }.into()
    }

    /// That the stream no longer counts, when somebody knows of it.
    fn invalidated(&self) -> Option<StreamChunk> {
        let stream_id = Arc::clone(&self.head.stream_id);
        self.is_told.then_some(StreamChunk::StructuredDataInvalidated { stream_id, checkpoint_id: None })
    }
}
