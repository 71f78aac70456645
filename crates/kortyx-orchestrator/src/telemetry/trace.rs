//! The ids that a tracing layer gives to spans.

use std::fmt::{self, Write as _};

/// Where something is found in distributed tracing: the ids of W3C Trace Context.
///
/// ```
/// use kortyx_orchestrator::TraceIds;
///
/// let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
/// let ids = TraceIds::parse(parent).unwrap();
/// assert_eq!(ids.trace_id(), "0af7651916cd43dd8448eb211c80319c");
/// assert_eq!(ids.span_id(), "b7ad6b7169203331");
/// assert!(ids.is_sampled());
/// assert_eq!(ids.traceparent(), parent);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceIds {
    trace: [u8; 16],
    span: [u8; 8],
    parent: Option<[u8; 8]>,
    flags: u8,
}

impl TraceIds {
    /// A span of a trace. `None` for ids of zeros, which name nothing.
    pub fn new(trace: [u8; 16], span: [u8; 8], is_sampled: bool) -> Option<Self> {
        let is_valid = trace != [0; 16] && span != [0; 8];
        is_valid.then_some(Self { trace, span, parent: None, flags: u8::from(is_sampled) })
    }

    /// Names the span above it.
    #[must_use]
    pub fn below(mut self, parent: [u8; 8]) -> Self {
        self.parent = (parent != [0; 8]).then_some(parent);
        self
    }

    /// Reads a `traceparent` of version `00`, or the known part of a later one.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let mut parts = traceparent.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version] = bytes::<1>(version)?;
        if version == u8::MAX || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let [flags] = bytes::<1>(flags)?;
        Self::new(bytes(trace)?, bytes(span)?, flags & 1 == 1)
    }

    /// The `traceparent` of W3C Trace Context.
    pub fn traceparent(&self) -> String {
        format!("00-{}-{}-{:02x}", self.trace_id(), self.span_id(), self.flags)
    }

    /// The trace, as 32 lower-case hex digits.
    pub fn trace_id(&self) -> String {
        hex(&self.trace)
    }

    /// The span, as 16 lower-case hex digits.
    pub fn span_id(&self) -> String {
        hex(&self.span)
    }

    /// The span above it, as 16 lower-case hex digits, where it is known.
    pub fn parent_span_id(&self) -> Option<String> {
        self.parent.as_ref().map(|parent| hex(parent))
    }

    /// The trace, as bytes.
    pub fn trace(&self) -> [u8; 16] {
        self.trace
    }

    /// The span, as bytes.
    pub fn span(&self) -> [u8; 8] {
        self.span
    }

    /// Whether the trace is recorded.
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }
}

impl fmt::Debug for TraceIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.traceparent())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len().saturating_mul(2)), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Lower-case hex digits, exactly as many as needed.
fn bytes<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let is_hex = hex.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit));
    if !is_hex || hex.len() != N.checked_mul(2)? {
        return None;
    }
    let mut bytes = [0; N];
    for (at, byte) in bytes.iter_mut().enumerate() {
        let start = at.checked_mul(2)?;
        *byte = u8::from_str_radix(hex.get(start..start.checked_add(2)?)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_traceparent_is_refused() {
        for text in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319ü-b7ad6b716920333-01",
        ] {
            assert_eq!(TraceIds::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        let ids = TraceIds::parse("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02-more").unwrap();
        assert_eq!(ids.traceparent(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
    }
}
