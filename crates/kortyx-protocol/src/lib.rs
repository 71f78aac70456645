//! Wire types of Kortyx: messages, resume metadata, chunks, structured data, failures.
