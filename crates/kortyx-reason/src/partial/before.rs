//! What comes before the document.

use super::{
    Problem, Wrapping,
    error::Fault,
    wrapping::{Search, is_space},
};

/// Looks for the document's beginning.
#[derive(Debug)]
pub(super) struct Before {
    wrapping: Wrapping,
    /// How far the text was read.
    at: usize,
    state: State,
    has_fence: bool,
}

#[derive(Debug)]
enum State {
    /// White space so far.
    Blank,
    /// Backticks at the beginning: where, and how many.
    Ticks(usize, usize),
    /// In the line that opens a code fence.
    FenceLine,
    /// In prose.
    Prose(Search),
}

impl Before {
    pub(super) fn new(wrapping: Wrapping) -> Self {
        Self { wrapping, at: 0, state: State::Blank, has_fence: false }
    }

    /// Reads on. Tells where the document begins, when it does.
    pub(super) fn read(&mut self, text: &str) -> Option<usize> {
        while let Some(character) = text.get(self.at..).and_then(|rest| rest.chars().next()) {
            if let Some(start) = self.take(character) {
                return Some(start);
            }
            self.at += character.len_utf8();
        }
        None
    }

    fn take(&mut self, character: char) -> Option<usize> {
        match &mut self.state {
            State::Blank if is_space(character) || (character, self.at) == ('\u{feff}', 0) => None,
            State::Blank => self.begin(character),
            State::Ticks(_, count) if character == '`' => {
                *count += 1;
                None
            }
            State::Ticks(start, 0..3) => Some(*start),
            State::Ticks(..) | State::FenceLine => {
                self.has_fence = true;
                self.state = if character == '\n' { State::Blank } else { State::FenceLine };
                None
            }
            State::Prose(search) => search.take(character, self.at),
        }
    }

    /// Takes the first character that is no white space.
    fn begin(&mut self, character: char) -> Option<usize> {
        match self.wrapping.opening() {
            Some(opening) if opening != character => {
                self.state = State::Prose(Search::new(opening));
                None
            }
            None if self.wrapping == Wrapping::Fenced && character == '`' && !self.has_fence => {
                self.state = State::Ticks(self.at, 1);
                None
            }
            _ => Some(self.at),
        }
    }

    /// Whether the document stands in a code fence that has to be closed.
    pub(super) fn has_fence(&self) -> bool {
        self.has_fence
    }

    /// Why there is no document, when the text ends here.
    pub(super) fn fault(&self, text: &str) -> Fault {
        let has_begun = match &self.state {
            State::Prose(search) => search.has_candidate(),
            State::Blank => false,
            State::Ticks(..) | State::FenceLine => true,
        };
        if has_begun { Problem::Ended.at(text.len()) } else { Problem::NotFound.at(text.len()) }
    }
}
