//! What comes after the document.

use super::{
    Problem, Wrapping,
    error::{Fault, unexpected},
    wrapping::{Search, is_space},
};

/// Judges what follows the document.
#[derive(Debug)]
pub(super) struct After {
    /// How far the text was read.
    at: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing but white space may follow.
    Nothing,
    /// The backticks that close the code fence may follow, and white space.
    Fence {
        /// How many backticks there were.
        ticks: usize,
    },
    /// Anything may follow but another document.
    Prose(Search),
}

impl After {
    pub(super) fn new(wrapping: Wrapping, has_fence: bool, at: usize) -> Self {
        let state = match wrapping.opening() {
            Some(opening) => State::Prose(Search::new(opening)),
            None if has_fence => State::Fence { ticks: 0 },
            None => State::Nothing,
        };
        Self { at, state }
    }

    /// Reads on to the end of the text.
    pub(super) fn read(&mut self, text: &str) -> Result<(), Fault> {
        while let Some(character) = text.get(self.at..).and_then(|rest| rest.chars().next()) {
            match &mut self.state {
                State::Prose(search) => {
                    if let Some(start) = search.take(character, self.at) {
                        return Err(Problem::Second.at(start));
                    }
                }
                State::Fence { ticks } if character == '`' => *ticks += 1,
                State::Fence { ticks: 1 | 2 } => return Err(unexpected(text, self.at, "the end of the code fence")),
                State::Fence { ticks } if *ticks > 2 && is_space(character) => self.state = State::Nothing,
                State::Nothing | State::Fence { .. } if is_space(character) => {}
                State::Nothing | State::Fence { .. } => return Err(unexpected(text, self.at, "the end of the text")),
            }
            self.at += character.len_utf8();
        }
        Ok(())
    }
}
