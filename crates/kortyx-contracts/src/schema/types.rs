//! Schemas of Rust types, generated once per type.

use std::{
    any::TypeId,
    collections::HashMap,
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use kortyx_protocol::{RawJson, json};
use schemars::{JsonSchema, Schema, generate::SchemaSettings, transform::RecursiveTransform};
use serde_json::{Number, Value};

use super::{SchemaError, SchemaValidator, not_json};

/// Which side of serde a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    /// What the type writes.
    Written,
    /// What the type reads.
    Read,
}

/// The schema of a type: its canonical text, and the text compiled.
#[derive(Debug, Clone)]
pub(crate) struct TypeSchema {
    pub(crate) raw: RawJson,
    pub(crate) validator: SchemaValidator,
}

type Generated = Arc<Result<TypeSchema, SchemaError>>;

impl TypeSchema {
    /// The schema of `T`, generated and compiled at the first call.
    pub(crate) fn of<T: JsonSchema + 'static>(direction: Direction) -> Generated {
        static SCHEMAS: OnceLock<RwLock<HashMap<(TypeId, Direction), Generated>>> = OnceLock::new();
        let schemas = SCHEMAS.get_or_init(RwLock::default);
        let key = (TypeId::of::<T>(), direction);
        if let Some(schema) = schemas.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Arc::clone(schema);
        }
        let schema = Arc::new(generate::<T>(direction));
        Arc::clone(schemas.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert(schema))
    }
}

fn generate<T: JsonSchema>(direction: Direction) -> Result<TypeSchema, SchemaError> {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(bound_integers));
    let settings = match direction {
        Direction::Written => settings.for_serialize(),
        Direction::Read => settings.for_deserialize(),
    };
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let text = json::canonical(schema.as_value()).map_err(not_json)?;
    let raw = RawJson::parse(text).map_err(not_json)?;
    let validator = SchemaValidator::compile_raw(&raw)?;
    Ok(TypeSchema { raw, validator })
}

/// Adds the bounds of the integer types that schemars only names, so that an answer out of range is refused before it is
/// accepted and not when it is decoded.
fn bound_integers(schema: &mut Schema) {
    let Some(format) = schema.get("format").and_then(Value::as_str) else { return };
    let (minimum, maximum): (Number, Number) = match format {
        "int32" => (i32::MIN.into(), i32::MAX.into()),
        "int64" => (i64::MIN.into(), i64::MAX.into()),
        "int" => (isize::MIN.into(), isize::MAX.into()),
        "uint32" => (0.into(), u32::MAX.into()),
        "uint64" => (0.into(), u64::MAX.into()),
        "uint" => (0.into(), usize::MAX.into()),
        _ => return,
    };
    if let Some(fields) = schema.as_object_mut() {
        if !fields.contains_key("exclusiveMinimum") {
            fields.entry("minimum").or_insert_with(|| minimum.into());
        }
        if !fields.contains_key("exclusiveMaximum") {
            fields.entry("maximum").or_insert_with(|| maximum.into());
        }
    }
}
