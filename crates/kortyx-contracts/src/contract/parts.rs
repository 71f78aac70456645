//! What every contract has: a name, a description, a schema id and a version.

use std::sync::Arc;

use schemars::JsonSchema;

use crate::{
    ContractError, SchemaError,
    check::is_blank,
    excerpt::excerpt,
    limits::{MAX_CONTRACT_NAME_CHARS, MAX_QUESTION_BYTES, MAX_SCHEMA_NAME_BYTES},
    schema::{Direction, TypeSchema},
};

/// A contract less its types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContractInfo {
    /// Its name.
    pub name: &'static str,
    /// What it is for, for people and models.
    pub description: &'static str,
    /// The name of its schemas.
    pub schema_id: &'static str,
    /// The version of its schemas.
    pub version: &'static str,
}

/// The builder methods and getters that every contract has.
macro_rules! named_contract {
    ($contract:ident<$($type:ident),+>) => {
        impl<$($type),+> $contract<$($type),+> {
            /// A contract with this name: at most 40 characters, an ASCII letter, then ASCII letters, digits, `_` or `-`.
            ///
            /// The description, the schema id and the version must follow.
            pub const fn new(name: &'static str) -> Self {
                Self { info: ContractInfo::new(name), types: PhantomData }
            }

            /// What it is for, for people and models.
            pub const fn description(mut self, description: &'static str) -> Self {
                self.info.description = description;
                self
            }

            /// The name of its schemas.
            pub const fn schema_id(mut self, schema_id: &'static str) -> Self {
                self.info.schema_id = schema_id;
                self
            }

            /// The version of its schemas.
            pub const fn version(mut self, version: &'static str) -> Self {
                self.info.version = version;
                self
            }

            /// Its name, description, schema id and version.
            pub const fn info(&self) -> ContractInfo {
                self.info
            }
        }

        impl<$($type),+> Clone for $contract<$($type),+> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<$($type),+> Copy for $contract<$($type),+> {}

        impl<$($type),+> fmt::Debug for $contract<$($type),+> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($contract)).field(&self.info).finish()
            }
        }
    };
}

pub(super) use named_contract;

impl ContractInfo {
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, description: "", schema_id: "", version: "" }
    }

    /// Refuses what breaks the rules of contracts.
    pub(super) fn check(&self) -> Result<(), ContractError> {
        if !is_name(self.name) {
            return Err(ContractError::Name { name: excerpt(self.name) });
        }
        for (part, text, limit) in [
            ("description", self.description, MAX_QUESTION_BYTES),
            ("schema id", self.schema_id, MAX_SCHEMA_NAME_BYTES),
            ("version", self.version, MAX_SCHEMA_NAME_BYTES),
        ] {
            if is_blank(text) {
                return Err(ContractError::Missing { contract: self.name.to_owned(), part });
            }
            if text.len() > limit {
                return Err(ContractError::TooLong { contract: self.name.to_owned(), part, limit });
            }
        }
        Ok(())
    }

    /// The schema of one of its types.
    pub(super) fn schema<T: JsonSchema + 'static>(
        &self,
        part: &'static str,
        direction: Direction,
    ) -> Result<TypeSchema, ContractError> {
        let schema: Arc<Result<TypeSchema, SchemaError>> = TypeSchema::of::<T>(direction);
        (*schema).clone().map_err(|source| ContractError::Schema { contract: self.name.to_owned(), part, source })
    }
}

fn is_name(name: &str) -> bool {
    let mut letters = name.bytes();
    name.len() <= MAX_CONTRACT_NAME_CHARS
        && letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_' || letter == b'-')
}
