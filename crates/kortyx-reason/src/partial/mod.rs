//! JSON that a model is still writing: declared fields are told as soon as they are certain.
//!
//! [`PartialJson`] takes the bytes of one document, split anywhere, and gives the changes of the declared [`Fields`].
//! [`StructuredOutput`] makes the chunks of one structured stream of them: changes while the model writes, `final` when the
//! whole is accepted, `structured-data-invalidated` when it is not. Both are pure: no I/O, no clock.
//!
//! ```
//! use kortyx_protocol::{StructuredChange, json};
//! use kortyx_reason::partial::{Field, Fields, PartialJson, Wrapping};
//!
//! let fields = Fields::new([Field::set("title"), Field::text_delta("body"), Field::append("tags")])?;
//! let mut json = PartialJson::new(fields, Wrapping::AroundObject);
//! let mut changes = Vec::new();
//! json.push(br#"Here it is: {"title":"Tea","body":"Hot wa"#, &mut changes)?;
//! json.push(br#"ter","tags":["drink",{"n"#, &mut changes)?;
//!
//! let told: Vec<_> = changes.iter().filter_map(StructuredChange::path).collect();
//! assert_eq!(told, ["title", "body", "body", "tags"]);
//!
//! json.push(b"\":1}]}", &mut changes)?;
//! assert_eq!(json.finish()?.get(), r#"{"title":"Tea","body":"Hot water","tags":["drink",{"n":1}]}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is told
//!
//! | declared with | the value is | told as |
//! | --- | --- | --- |
//! | [`Field::set`] | anything | `set`, when it is complete |
//! | [`Field::text_delta`] | a string | `text-delta` for each push; never half an escape or half a character |
//! | [`Field::append`] | an array | `append` of each item, when it is complete; of nothing for an empty array |
//! | the last two | anything else, such as `null` | `set`, when it is complete |
//!
//! An item of an array that a path leads through with `*`, and in which nothing is declared, is told as an empty one of its kind
//! (`null` for scalars): otherwise the items after it would have no place. What lies beside the declared fields is told
//! by `final` alone. Told changes never have to be taken back, but for the whole stream when the document turns out wrong.
//!
//! # What is tolerated
//!
//! Models put JSON into prose and code fences; [`Wrapping`] says what may surround it. The JSON itself is
//! that of RFC 8259 and nothing else: comments, trailing commas, single quotes, bare words and raw line breaks in strings are
//! refused with their place, and so are a lone surrogate, a number that would be rounded (see [`kortyx_protocol::json`]), and a
//! declared field that comes twice. Of another key that comes twice the last one counts. A model that is told what is wrong
//! corrects it better than a guess does.

mod after;
mod before;
mod declared;
mod error;
mod field;
mod frame;
mod limits;
mod machine;
mod output;
mod parser;
mod scalar;
mod string;
mod teller;
mod utf8;
mod wrapping;

pub use error::{PartialJsonError, Problem};
pub use field::{Field, FieldError, Fields};
pub use limits::PartialLimits;
pub use output::{Finished, Rejected, StructuredOutput};
pub use parser::PartialJson;
pub use wrapping::Wrapping;
