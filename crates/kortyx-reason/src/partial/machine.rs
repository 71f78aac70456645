//! The grammar of JSON as a machine that goes on where it stopped. It reads every byte once.

use std::ops::Range;

use kortyx_protocol::StructuredChange;

use super::{
    Fields, PartialLimits, Problem,
    error::{Fault, unexpected},
    frame::{Frame, Kind, Role, pointer},
    scalar::{self, Scalar},
    string::{self, StringState},
    teller::{Complete, Teller},
};

/// Reads one document.
#[derive(Debug)]
pub(super) struct Machine {
    teller: Teller,
    limits: PartialLimits,
    /// How far the text was read.
    at: usize,
    frames: Vec<Frame>,
    expect: Expect,
    token: Option<Token>,
    /// How many keys began.
    keys: usize,
    /// The current key, where it matters what it says.
    key: String,
    /// How many bytes were looked at, each time that they were.
    #[cfg(test)]
    looked_at: usize,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    /// A value, or the end of the array.
    FirstItem,
    Key,
    /// A key, or the end of the object.
    FirstKey,
    Colon,
    /// A comma, or the end of the array or object.
    Separator,
    /// Nothing: the document is complete.
    End,
}

/// What has begun and may go on in the next push.
#[derive(Debug)]
enum Token {
    Key { start: usize, state: StringState },
    String { start: usize, role: Role, state: StringState },
    Scalar { start: usize, role: Role, state: Scalar },
}

/// The text so far, and where changes go.
struct Pass<'a> {
    text: &'a str,
    changes: &'a mut Vec<StructuredChange>,
}

impl Machine {
    pub(super) fn new(fields: Fields, limits: PartialLimits) -> Self {
        Self {
            teller: Teller::new(fields),
            limits,
            at: 0,
            frames: Vec::new(),
            expect: Expect::Value,
            token: None,
            keys: 0,
            key: String::new(),
            #[cfg(test)]
            looked_at: 0,
        }
    }

    /// Says where the document begins.
    pub(super) fn begin_at(&mut self, start: usize) {
        self.at = start;
    }

    /// How far the text was read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_done(&self) -> bool {
        self.expect == Expect::End
    }

    /// In which value the reader is, as a JSON pointer.
    pub(super) fn pointer(&self, text: &str) -> String {
        pointer(&self.frames, text)
    }

    /// Reads on to the end of the text or of the document.
    pub(super) fn advance(&mut self, text: &str, changes: &mut Vec<StructuredChange>) -> Result<(), Fault> {
        let outcome = self.run(&mut Pass { text, changes });
        self.teller.tell_rest(&mut self.frames, changes);
        outcome
    }

    fn run(&mut self, pass: &mut Pass<'_>) -> Result<(), Fault> {
        while self.at < pass.text.len() && !self.is_done() {
            #[cfg(test)]
            let before = self.at;
            match self.token.take() {
                None => self.structure(pass)?,
                Some(Token::Key { start, state }) => self.read_key(start, state, pass.text)?,
                Some(Token::String { start, role, state }) => self.read_string(start, role, state, pass)?,
                Some(Token::Scalar { start, role, state }) => self.read_scalar(start, role, state, pass)?,
            }
            #[cfg(test)]
            (self.looked_at += self.at - before + 1);
        }
        Ok(())
    }

    /// Takes the end of the text for the end of the document.
    pub(super) fn finish(&mut self, text: &str) -> Result<(), Fault> {
        match self.token.take() {
            // Only a scalar can be a document that ends with its text, and of such a document nothing is declared.
            Some(Token::Scalar { start, state, .. }) if self.frames.is_empty() && state.may_end() => {
                state.check(text, start..text.len())?;
                self.at = text.len();
                Ok(())
            }
            _ => Err(Problem::Ended.at(text.len())),
        }
    }

    /// Takes a byte between keys and values.
    fn structure(&mut self, pass: &mut Pass<'_>) -> Result<(), Fault> {
        let Some(byte) = pass.text.as_bytes().get(self.at).copied() else { return Ok(()) };
        match (self.expect, byte) {
            (_, b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
            (Expect::FirstItem | Expect::Separator, b']') => return self.close(Kind::Array, pass),
            (Expect::FirstKey | Expect::Separator, b'}') => return self.close(Kind::Object, pass),
            (Expect::Value | Expect::FirstItem, _) => return self.begin_value(byte, pass.text),
            (Expect::FirstKey | Expect::Key, b'"') => return self.begin_key(),
            (Expect::Colon, b':') => {
                self.expect = Expect::Value;
                self.at += 1;
            }
            (Expect::Separator, b',') => self.separate(),
            (expect, _) => return Err(unexpected(pass.text, self.at, expect.name())),
        }
        Ok(())
    }

    fn begin_value(&mut self, first: u8, text: &str) -> Result<(), Fault> {
        if let Some(frame) = self.frames.last_mut() {
            frame.is_within = true;
        }
        let (role, start) = (self.teller.role(self.frames.last(), first), self.at);
        self.token = match first {
            b'{' => return self.open(Kind::Object, role),
            b'[' => return self.open(Kind::Array, role),
            b'"' => Some(Token::String { start, role, state: StringState::Plain }),
            _ => {
                let state = Scalar::of(first).ok_or_else(|| unexpected(text, start, self.expect.name()))?;
                Some(Token::Scalar { start, role, state })
            }
        };
        self.at += 1;
        Ok(())
    }

    fn open(&mut self, kind: Kind, role: Role) -> Result<(), Fault> {
        self.limits.check_depth(self.frames.len() + 1).map_err(|problem| problem.at(self.at))?;
        self.frames.push(Frame::new(kind, role, self.at, self.teller.declared_items(kind, role)));
        self.expect = if kind == Kind::Array { Expect::FirstItem } else { Expect::FirstKey };
        self.at += 1;
        Ok(())
    }

    fn close(&mut self, kind: Kind, pass: &mut Pass<'_>) -> Result<(), Fault> {
        let Some(frame) = self.frames.pop_if(|frame| frame.kind == kind) else {
            return Err(unexpected(pass.text, self.at, self.expect.name()));
        };
        self.at += 1;
        let is_empty = self.expect != Expect::Separator;
        self.complete(&Complete { role: frame.role, range: frame.start..self.at, kind: Some(kind), is_empty }, pass)
    }

    fn separate(&mut self) {
        self.expect = match self.frames.last_mut() {
            Some(frame) if frame.kind == Kind::Array => {
                frame.index += 1;
                Expect::Value
            }
            _ => Expect::Key,
        };
        self.at += 1;
    }

    fn begin_key(&mut self) -> Result<(), Fault> {
        self.keys += 1;
        self.limits.check_keys(self.keys).map_err(|problem| problem.at(self.at))?;
        self.key.clear();
        self.token = Some(Token::Key { start: self.at, state: StringState::Plain });
        self.at += 1;
        Ok(())
    }

    fn read_key(&mut self, start: usize, mut state: StringState, text: &str) -> Result<(), Fault> {
        let limit = self.limits.key_bytes;
        // With both quotes. Only what may belong to the key is looked at, so that every split meets the same fault first.
        let end = text.floor_char_boundary(start.saturating_add(limit).saturating_add(2));
        let is_inside = self.frames.last().is_some_and(|frame| matches!(frame.role, Role::Inside(_)));
        let key = is_inside.then_some(&mut self.key);
        match state.read(text.get(..end).unwrap_or_default(), self.at, key)? {
            string::Read::Closed(end) => self.end_key(start..end),
            string::Read::On if end < text.len() => Err(Problem::KeyTooLong { limit }.at(start)),
            string::Read::On => {
                self.at = end;
                self.token = Some(Token::Key { start, state });
                Ok(())
            }
        }
    }

    fn end_key(&mut self, range: Range<usize>) -> Result<(), Fault> {
        self.at = range.end;
        self.expect = Expect::Colon;
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        let start = range.start;
        frame.key = range;
        self.teller.note_key(frame, &self.key).map_err(|problem| problem.at(start))
    }

    fn read_string(
        &mut self,
        start: usize,
        role: Role,
        mut state: StringState,
        pass: &mut Pass<'_>,
    ) -> Result<(), Fault> {
        match state.read(pass.text, self.at, self.teller.content(role))? {
            string::Read::On => {
                self.at = pass.text.len();
                self.token = Some(Token::String { start, role, state });
                Ok(())
            }
            string::Read::Closed(end) => {
                self.at = end;
                self.complete(&Complete::scalar(role, start..end), pass)
            }
        }
    }

    fn read_scalar(&mut self, start: usize, role: Role, mut state: Scalar, pass: &mut Pass<'_>) -> Result<(), Fault> {
        match state.read(pass.text, self.at)? {
            scalar::Read::On => {
                self.at = pass.text.len();
                self.token = Some(Token::Scalar { start, role, state });
                Ok(())
            }
            scalar::Read::Ended(end) => {
                self.at = end;
                state.check(pass.text, start..end)?;
                self.complete(&Complete::scalar(role, start..end), pass)
            }
        }
    }

    fn complete(&mut self, value: &Complete, pass: &mut Pass<'_>) -> Result<(), Fault> {
        self.teller.complete(value, &mut self.frames, pass.text, pass.changes)?;
        self.expect = if self.frames.is_empty() { Expect::End } else { Expect::Separator };
        Ok(())
    }
}

impl Expect {
    fn name(self) -> &'static str {
        match self {
            Self::Value => "a value",
            Self::FirstItem => "a value or `]`",
            Self::Key => "a key in double quotes",
            Self::FirstKey => "a key in double quotes or `}`",
            Self::Colon => "`:`",
            Self::Separator => "`,` or the end of the array or object",
            Self::End => "nothing",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partial::Field;

    /// How many bytes are looked at when a text is read in pieces.
    fn looked_at(text: &str, piece: usize) -> usize {
        let fields = [Field::text_delta("t"), Field::append("n"), Field::text_delta("i.*.t"), Field::set("s")];
        let mut machine = Machine::new(Fields::new(fields).unwrap(), PartialLimits::default());
        let mut changes = Vec::new();
        let mut ends: Vec<usize> = (1..=text.len()).filter(|end| end % piece == 0).collect();
        ends.push(text.len());
        for end in ends {
            machine.advance(&text[..end], &mut changes).unwrap();
            assert_eq!(machine.at(), end, "everything is read at once");
        }
        assert!(machine.is_done());
        machine.looked_at
    }

    /// A document of about a length: a head, a part again and again, a tail.
    fn document((head, part, tail): (&str, &str, &str), bytes: usize) -> String {
        format!("{head}{}{tail}", part.repeat(bytes / part.len()))
    }

    #[test]
    fn a_text_is_read_once_however_it_is_split() {
        for parts in [
            ("{\"t\":\"", "\\ud83d\\ude00 words", "\"}"),
            ("{\"i\":[{}", ",{\"t\":\"words\",\"x\":[1,{\"y\":null}]}", "]}"),
            ("{\"n\":[0", ",1", "]}"),
            ("{\"s\":0.", "0", "1}"),
            ("{\"x\":[0", ",[[[[[[{\"k\":\"v\"}]]]]]]", "]}"),
            ("{", "\n ", "}"),
        ] {
            for (bytes, piece) in [(1 << 14, 1), (1 << 20, 1000)] {
                let text = document(parts, bytes);
                let count = looked_at(&text, piece);
                assert!(count <= 3 * text.len(), "{count} of {} by {piece}", text.len());
            }
        }
    }
}
