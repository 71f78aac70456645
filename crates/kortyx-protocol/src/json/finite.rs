//! Finding numbers that JSON cannot hold.

use std::fmt;

use serde::{
    Serialize, Serializer,
    ser::{
        Error, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
        SerializeTupleStruct, SerializeTupleVariant,
    },
};

use super::JsonError;

/// Refuses NaN and infinities with their path. Writes nothing.
pub(super) fn refuse_non_finite<T: Serialize + ?Sized>(value: &T) -> Result<(), JsonError> {
    value.serialize(Check).map_err(|problem| {
        let path = problem
            .outward
            .iter()
            .rev()
            .fold(String::new(), |path, segment| path + "/" + &segment.replace('~', "~0").replace('/', "~1"));
        JsonError::new(path, problem.message)
    })
}

/// What was found, and the way from there to the root: paths cost nothing unless something is wrong.
#[derive(Debug)]
struct Problem {
    message: String,
    outward: Vec<String>,
}

impl Problem {
    fn inside(mut self, segment: impl Into<String>) -> Self {
        self.outward.push(segment.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Error for Problem {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { message: message.to_string(), outward: Vec::new() }
    }
}

/// A serializer that only looks.
struct Check;

/// A container that is being looked through: where it lies in its parent variant, and the next index or key.
struct Inside {
    variant: Option<&'static str>,
    index: usize,
    key: String,
}

impl Inside {
    fn new(variant: Option<&'static str>) -> Self {
        Self { variant, index: 0, key: String::new() }
    }

    fn item<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Problem> {
        let outcome = item.serialize(Check).map_err(|problem| self.place(problem.inside(self.index.to_string())));
        self.index += 1;
        outcome
    }

    fn field<T: Serialize + ?Sized>(&self, key: &str, field: &T) -> Result<(), Problem> {
        field.serialize(Check).map_err(|problem| self.place(problem.inside(key)))
    }

    fn place(&self, problem: Problem) -> Problem {
        match self.variant {
            Some(variant) => problem.inside(variant),
            None => problem,
        }
    }
}

/// The text of a key, as `serde_json` writes it.
fn key_text<K: Serialize + ?Sized>(key: &K) -> String {
    match serde_json::to_value(key) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

macro_rules! nothing_to_find {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method(self, _: $type) -> Result<(), Problem> {
            Ok(())
        })*
    };
}

impl Serializer for Check {
    type Ok = ();
    type Error = Problem;
    type SerializeSeq = Inside;
    type SerializeTuple = Inside;
    type SerializeTupleStruct = Inside;
    type SerializeTupleVariant = Inside;
    type SerializeMap = Inside;
    type SerializeStruct = Inside;
    type SerializeStructVariant = Inside;

    nothing_to_find! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
        serialize_char: char,
        serialize_str: &str,
        serialize_bytes: &[u8],
        serialize_unit_struct: &'static str,
    }

    fn serialize_f32(self, number: f32) -> Result<(), Problem> {
        self.serialize_f64(f64::from(number))
    }

    fn serialize_f64(self, number: f64) -> Result<(), Problem> {
        if number.is_finite() { Ok(()) } else { Err(Problem::custom(format_args!("{number} has no form in JSON"))) }
    }

    fn serialize_none(self) -> Result<(), Problem> {
        Ok(())
    }

    fn serialize_unit(self) -> Result<(), Problem> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Problem> {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Problem> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), Problem> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Problem> {
        value.serialize(self).map_err(|problem| problem.inside(variant))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Inside, Problem> {
        Ok(Inside::new(None))
    }

    fn serialize_tuple(self, _: usize) -> Result<Inside, Problem> {
        Ok(Inside::new(None))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Inside, Problem> {
        Ok(Inside::new(None))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside, Problem> {
        Ok(Inside::new(Some(variant)))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Inside, Problem> {
        Ok(Inside::new(None))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Inside, Problem> {
        Ok(Inside::new(None))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Inside, Problem> {
        Ok(Inside::new(Some(variant)))
    }
}

macro_rules! of_items {
    ($($trait:ident::$method:ident,)*) => {
        $(impl $trait for Inside {
            type Ok = ();
            type Error = Problem;

            fn $method<T: Serialize + ?Sized>(&mut self, item: &T) -> Result<(), Problem> {
                self.item(item)
            }

            fn end(self) -> Result<(), Problem> {
                Ok(())
            }
        })*
    };
}

of_items! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

macro_rules! of_fields {
    ($($trait:ident,)*) => {
        $(impl $trait for Inside {
            type Ok = ();
            type Error = Problem;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, field: &T) -> Result<(), Problem> {
                self.field(key, field)
            }

            fn end(self) -> Result<(), Problem> {
                Ok(())
            }
        })*
    };
}

of_fields! {
    SerializeStruct,
    SerializeStructVariant,
}

impl SerializeMap for Inside {
    type Ok = ();
    type Error = Problem;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Problem> {
        self.key = key_text(key);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Problem> {
        self.field(&self.key, value)
    }

    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &V,
    ) -> Result<(), Problem> {
        value.serialize(Check).map_err(|problem| problem.inside(key_text(key)))
    }

    fn end(self) -> Result<(), Problem> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{RawJson, json};

    #[derive(Serialize)]
    enum Shape {
        Unit,
        Newtype(f64),
        Tuple(u8, f32),
        Struct { rate: Option<f64> },
    }

    #[derive(Serialize)]
    struct Wrapper<T>(T);

    fn path<T: Serialize>(value: T) -> String {
        json::to_string(&value).unwrap_err().path
    }

    #[test]
    fn what_is_not_finite_is_refused_with_its_path() {
        assert_eq!(path(f64::NAN), "");
        assert_eq!(path(f32::NEG_INFINITY), "");
        assert_eq!(path(Some(Wrapper(f64::INFINITY))), "");
        assert_eq!(path(vec![(1, 1.0), (2, f64::NAN)]), "/1/1");
        assert_eq!(path(Shape::Newtype(f64::NAN)), "/Newtype");
        assert_eq!(path([Shape::Unit, Shape::Tuple(1, f32::NAN)]), "/1/Tuple/1");
        assert_eq!(path(Shape::Struct { rate: Some(f64::NAN) }), "/Struct/rate");
        assert_eq!(path(BTreeMap::from([(7, BTreeMap::from([("a/b~", f64::NAN)]))])), "/7/a~1b~0");
    }

    #[test]
    fn the_message_names_the_number() {
        assert_eq!(json::to_string(&[f64::NEG_INFINITY]).unwrap_err().to_string(), "-inf has no form in JSON at /0");
    }

    #[test]
    fn a_true_null_is_written() {
        assert_eq!(json::to_string(&(None::<f64>, (), "null")).unwrap(), r#"[null,null,"null"]"#);
        assert_eq!(json::to_string(&[RawJson::null()]).unwrap(), "[null]");
        assert_eq!(json::to_string(&Shape::Struct { rate: None }).unwrap(), r#"{"Struct":{"rate":null}}"#);
    }
}
