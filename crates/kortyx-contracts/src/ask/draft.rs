//! The one builder behind every ask.

use std::sync::Arc;

use kortyx_protocol::InterruptKind;

use crate::{
    AskError, ChoiceOption, Question,
    check::{add, check},
    question::Asked,
};

/// What is asked so far, and the first mistake that was made.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    asked: Arc<Asked>,
    mistake: Option<AskError>,
}

impl Draft {
    pub(crate) fn new(kind: InterruptKind, question: Option<String>) -> Self {
        let mut asked = Asked::new(kind);
        asked.question = question;
        Self { asked: Arc::new(asked), mistake: None }
    }

    /// A draft that cannot be asked.
    pub(crate) fn refused(kind: InterruptKind, mistake: AskError) -> Self {
        Self { mistake: Some(mistake), ..Self::new(kind, None) }
    }

    /// Changes what is asked.
    pub(crate) fn set(mut self, change: impl FnOnce(&mut Asked)) -> Self {
        change(Arc::make_mut(&mut self.asked));
        self
    }

    pub(crate) fn option(mut self, option: ChoiceOption) -> Self {
        let added = add(Arc::make_mut(&mut self.asked), option);
        self.mistake = self.mistake.or(added.err());
        self
    }

    pub(crate) fn options(self, options: impl IntoIterator<Item = ChoiceOption>) -> Self {
        options.into_iter().fold(self, Self::option)
    }

    pub(crate) fn question(&self) -> Result<Question, AskError> {
        if let Some(mistake) = &self.mistake {
            return Err(mistake.clone());
        }
        check(&self.asked)?;
        Ok(Question::new(Arc::clone(&self.asked)))
    }
}
