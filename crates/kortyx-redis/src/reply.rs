//! What a server says, free of the driver.

use bytes::Bytes;
use kortyx_store::{StoreError, StoreErrorKind};

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Nil,
    Int(i64),
    Bytes(Bytes),
    List(Vec<Reply>),
}

/// Reading a reply: a failure names what was expected; the caller says what was being done.
pub(crate) type Reading<T> = Result<T, Damage>;

/// Something does not read back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) String);

impl Damage {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    pub(crate) fn during(self, operation: &'static str) -> StoreError {
        StoreError::new(StoreErrorKind::Corrupt, operation, self.0)
    }
}

impl Reply {
    pub(crate) fn list(self) -> Reading<Vec<Reply>> {
        match self {
            Self::List(parts) => Ok(parts),
            Self::Nil => Ok(Vec::new()),
            other => Err(Damage::new(format!("expected a list, the server said {}", other.kind()))),
        }
    }

    pub(crate) fn bytes(self) -> Reading<Bytes> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Int(number) => Ok(Bytes::from(number.to_string())),
            other => Err(Damage::new(format!("expected bytes, the server said {}", other.kind()))),
        }
    }

    pub(crate) fn text(self) -> Reading<String> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes.into()).map_err(|_| Damage::new("a text is not UTF-8"))
    }

    pub(crate) fn int(self) -> Reading<i64> {
        match self {
            Self::Int(number) => Ok(number),
            other => other.text()?.parse().map_err(|_| Damage::new("a number does not read back")),
        }
    }

    pub(crate) fn count(self) -> Reading<u64> {
        u64::try_from(self.int()?).map_err(|_| Damage::new("a count is negative"))
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "nothing",
            Self::Int(_) => "a number",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "a list",
        }
    }
}

/// Takes the parts of a reply one after another.
pub(crate) struct Parts(std::vec::IntoIter<Reply>);

impl Parts {
    pub(crate) fn of(reply: Reply) -> Reading<Self> {
        Ok(Self(reply.list()?.into_iter()))
    }

    pub(crate) fn next(&mut self) -> Reading<Reply> {
        self.0.next().ok_or_else(|| Damage::new("a reply has fewer parts than it should"))
    }

    pub(crate) fn list(&mut self) -> Reading<Vec<Reply>> {
        self.next()?.list()
    }

    pub(crate) fn text(&mut self) -> Reading<String> {
        self.next()?.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_in_order_and_a_missing_one_is_named() {
        let reply = Reply::List(vec![Reply::Bytes("saved".into()), Reply::Int(7), Reply::Bytes("12".into())]);
        let mut parts = Parts::of(reply).unwrap();
        assert_eq!(parts.text(), Ok("saved".to_owned()));
        assert_eq!(parts.next().unwrap().int(), Ok(7));
        assert_eq!(parts.next().unwrap().count(), Ok(12));
        assert!(parts.next().is_err());
    }

    #[test]
    fn what_is_no_number_is_damage() {
        assert!(Reply::Bytes("x".into()).int().is_err());
        assert!(Reply::Int(-1).count().is_err());
        assert!(Reply::List(Vec::new()).bytes().is_err());
        assert_eq!(Reply::Nil.list(), Ok(Vec::new()));
    }
}
