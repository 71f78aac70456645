//! Packed records: numbers and texts one behind another, as scripts read them too.
//!
//! Whole numbers are big-endian; a text stands behind its length. Times and counts are 64-bit floats, the only numbers that
//! scripts have.

use bytes::{Buf, Bytes};

use crate::reply::{Damage, Reading};

/// Writes a record.
#[derive(Default)]
pub(crate) struct Packer(Vec<u8>);

impl Packer {
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(crate) fn byte(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    /// A count, in 4 bytes.
    pub(crate) fn count(&mut self, value: usize) -> &mut Self {
        self.0.extend_from_slice(&u32::try_from(value).unwrap_or(u32::MAX).to_be_bytes());
        self
    }

    /// A number as scripts have it; one that they cannot tell from its neighbours becomes the nearest that they can.
    #[expect(clippy::cast_precision_loss, reason = "scripts have no other numbers")]
    pub(crate) fn number(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&(value as f64).to_be_bytes());
        self
    }

    #[expect(clippy::cast_precision_loss, reason = "scripts have no other numbers")]
    pub(crate) fn signed(&mut self, value: i64) -> &mut Self {
        self.0.extend_from_slice(&(value as f64).to_be_bytes());
        self
    }

    /// Bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// An id: its length in 2 bytes, and its text.
    pub(crate) fn id(&mut self, text: &str) -> &mut Self {
        self.0.extend_from_slice(&u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.raw(text.as_bytes())
    }

    /// Any bytes: their length in 4, and the bytes.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.count(bytes.len()).raw(bytes)
    }

    /// A text that may be absent: a byte that says whether it is there, and the text.
    pub(crate) fn option(&mut self, text: Option<&str>) -> &mut Self {
        self.byte(u8::from(text.is_some())).bytes(text.unwrap_or_default().as_bytes())
    }

    pub(crate) fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.0).into()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads a record.
pub(crate) struct Unpacker(Bytes);

impl Unpacker {
    pub(crate) fn of(bytes: Bytes) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn raw(&mut self, count: usize) -> Reading<Bytes> {
        if self.0.len() < count {
            return Err(Damage::new("a record ends too early"));
        }
        Ok(self.0.split_to(count))
    }

    pub(crate) fn byte(&mut self) -> Reading<u8> {
        Ok(self.raw(1)?.get_u8())
    }

    pub(crate) fn flag(&mut self) -> Reading<bool> {
        Ok(self.byte()? != 0)
    }

    pub(crate) fn signed(&mut self) -> Reading<i64> {
        let value = self.raw(8)?.get_f64();
        if value.fract() != 0.0 || value.abs() > 9_007_199_254_740_992.0 {
            return Err(Damage::new("a number of a record does not read back"));
        }
        #[expect(clippy::cast_possible_truncation, reason = "whole and small enough")]
        Ok(value as i64)
    }

    pub(crate) fn number(&mut self) -> Reading<u64> {
        u64::try_from(self.signed()?).map_err(|_| Damage::new("a number of a record is negative"))
    }

    pub(crate) fn id(&mut self) -> Reading<String> {
        let length = self.raw(2)?.get_u16();
        text(self.raw(length.into())?)
    }

    pub(crate) fn count(&mut self) -> Reading<usize> {
        Ok(usize::try_from(self.raw(4)?.get_u32()).unwrap_or(usize::MAX))
    }

    pub(crate) fn bytes(&mut self) -> Reading<Bytes> {
        let length = self.count()?;
        self.raw(length)
    }

    pub(crate) fn text(&mut self) -> Reading<String> {
        text(self.bytes()?)
    }

    pub(crate) fn option(&mut self) -> Reading<Option<String>> {
        let is_there = self.flag()?;
        Ok(Some(self.text()?).filter(|_| is_there))
    }
}

fn text(bytes: Bytes) -> Reading<String> {
    String::from_utf8(bytes.into()).map_err(|_| Damage::new("a text of a record is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_packed_reads_back_in_order() {
        let packed = Packer::default()
            .byte(7)
            .number(1 << 53)
            .signed(-1)
            .id("é")
            .bytes(b"\0x")
            .option(None)
            .option(Some(""))
            .take();
        let mut unpacker = Unpacker::of(packed);
        assert_eq!((unpacker.byte(), unpacker.number(), unpacker.signed()), (Ok(7), Ok(1 << 53), Ok(-1)));
        assert_eq!((unpacker.id(), unpacker.bytes()), (Ok("é".to_owned()), Ok(Bytes::from_static(b"\0x"))));
        assert_eq!((unpacker.option(), unpacker.option()), (Ok(None), Ok(Some(String::new()))));
        assert!(unpacker.is_empty() && unpacker.byte().is_err());
    }

    #[test]
    fn damaged_records_are_refused() {
        assert!(Unpacker::of(Bytes::from_static(b"\0\0\0\x09x")).bytes().is_err());
        assert!(Unpacker::of(Bytes::from_static(b"\0\x01\xff")).id().is_err());
        assert!(Unpacker::of(Bytes::copy_from_slice(&0.5_f64.to_be_bytes())).signed().is_err());
        assert!(Unpacker::of(Bytes::copy_from_slice(&f64::NAN.to_be_bytes())).signed().is_err());
        assert!(Unpacker::of(Bytes::copy_from_slice(&(-1_f64).to_be_bytes())).number().is_err());
    }
}
