//! From the resume metadata of a chat message to an answer.

use kortyx_protocol::{InterruptKind, Issue, ResumeMeta, ResumeResponse};

use crate::{
    Question,
    answer::{expected, refuse},
};

impl Question {
    /// The answer that a chat message gives to this question, already [valid](Self::validate).
    ///
    /// A cancellation comes first. A contract takes the structured value; a text question takes the typed text, else the
    /// first selected id; a choice takes the selected ids. A message that holds none of what the question takes is refused
    /// with issues, like an answer that does not fit.
    pub fn response_from_meta(&self, meta: &ResumeMeta) -> Result<ResumeResponse, Vec<Issue>> {
        let response = if meta.cancel { ResumeResponse::Cancel } else { self.response_in(meta)? };
        self.validate(&response)?;
        Ok(response)
    }

    fn response_in(&self, meta: &ResumeMeta) -> Result<ResumeResponse, Vec<Issue>> {
        let nothing_else = meta.text.is_none() && meta.value.is_none();
        let response = match self.kind() {
            InterruptKind::Choice | InterruptKind::MultiChoice if !meta.selected.is_empty() || nothing_else => {
                Some(ResumeResponse::Select { ids: meta.selected.clone() })
            }
            InterruptKind::Text => {
                meta.text.as_ref().or(meta.selected.first()).map(|text| ResumeResponse::Text { text: text.clone() })
            }
            InterruptKind::Custom => meta.value.as_ref().map(|value| ResumeResponse::Value { value: value.clone() }),
            _ => None,
        };
        match response {
            Some(response) => Ok(response),
            None => self.refuse_form(meta),
        }
    }

    fn refuse_form<T>(&self, meta: &ResumeMeta) -> Result<T, Vec<Issue>> {
        let found = match meta {
            ResumeMeta { value: Some(_), .. } => "a structured value",
            ResumeMeta { text: Some(_), .. } => "a text",
            ResumeMeta { selected, .. } if !selected.is_empty() => "a selection",
            _ => return refuse("required", format!("the message holds no answer: {}", expected(self.kind()))),
        };
        refuse("type", format!("{}, not {found}", expected(self.kind())))
    }
}
