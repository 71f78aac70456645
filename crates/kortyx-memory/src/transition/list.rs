//! Pages of open questions, through the smallest index that holds them all.

use kortyx_protocol::{RequestId, RunId};
use kortyx_store::{InterruptPage, InterruptQuery, InterruptRecord, RunRecord, Scope, StoreError, StoreErrorKind};

use crate::{index::members, slab::Slot, state::Transition};

/// What a cursor starts with; the order of the last question follows, in hex.
const CURSOR: &str = "after.";

impl Transition<'_> {
    pub(crate) fn run(&self, run_id: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let Some(slot) = self.find_run(run_id) else { return Ok(None) };
        let mut record = self.run_record(slot)?;
        record.response.clone_from(&self.run_at(slot)?.response);
        Ok(Some(record))
    }

    pub(crate) fn interrupt(&self, request_id: &RequestId) -> Result<Option<InterruptRecord>, StoreError> {
        self.find_question(request_id).map(|slot| self.question_record(slot)).transpose()
    }

    pub(crate) fn list_interrupts(&self, query: &InterruptQuery) -> Result<InterruptPage, StoreError> {
        if query.scope.is_empty() && query.run_id.is_none() {
            let message = "a listing needs a session, a run or a context value";
            return Err(self.error(StoreErrorKind::ScopeRequired, message));
        }
        let after = query.cursor.as_deref().map(|cursor| self.parse_cursor(cursor)).transpose()?;
        let limit = query.limit.clamp(1, 200) as usize;
        let mut page = InterruptPage::default();
        let Some(candidates) = self.candidates(query, after)? else { return Ok(page) };
        let (mut context, mut last) = (None, 0);
        for slot in candidates {
            let question = self.question_at(slot)?;
            let wants = query.after_response_completed.unwrap_or(question.after_response_completed);
            if question.is_due(self.now)
                || wants != question.after_response_completed
                || !self.is_inside(question.run, &query.scope)?
            {
                continue;
            }
            if page.interrupts.len() == limit {
                page.next = Some(format!("{CURSOR}{last:016x}"));
                break;
            }
            last = question.ord;
            page.interrupts.push(self.record_sharing(slot, &mut context)?);
        }
        Ok(page)
    }

    /// Pending questions among which are all that the query wants, oldest first; `None` when there are none.
    fn candidates<'s>(
        &'s self,
        query: &InterruptQuery,
        after: Option<u64>,
    ) -> Result<Option<Box<dyn Iterator<Item = Slot> + 's>>, StoreError> {
        if let Some(run_id) = &query.run_id {
            let Some(run) = self.find_run(run_id) else { return Ok(None) };
            let open = &self.run_at(run)?.open;
            let is_seen = |slot: &Slot| self.state.questions.get(*slot).is_some_and(|q| Some(q.ord) <= after);
            let from = open.partition_point(is_seen);
            return Ok(Some(Box::new(open.iter().skip(from).copied())));
        }
        let Some(smallest) = self.smallest_group(&query.scope) else { return Ok(None) };
        let (index, group) = match smallest {
            Group::Session(session) => (&self.state.index.open_by_session, session),
            Group::Pair(pair) => (&self.state.index.open_by_pair, pair),
        };
        Ok(Some(Box::new(index.range(members(group, after)).map(|(_, _, slot)| *slot))))
    }

    /// The group with the fewest pending questions among those that the scope names; `None` when one is empty.
    fn smallest_group(&self, scope: &Scope) -> Option<Group> {
        let mut smallest = None;
        let mut consider = |open: u32, group: Group| {
            if smallest.as_ref().is_none_or(|(least, _)| open < *least) {
                smallest = Some((open, group));
            }
        };
        if let Some(session_id) = &scope.session_id {
            let session = self.find_session(session_id)?;
            consider(self.state.sessions.get(session)?.open, Group::Session(session));
        }
        for (key, value) in &scope.context {
            let pair = self.state.pairs.find(&(key.clone(), value.clone()))?;
            consider(*self.state.pairs.beside(pair)?, Group::Pair(pair));
        }
        smallest.map(|(_, group)| group)
    }

    fn parse_cursor(&self, cursor: &str) -> Result<u64, StoreError> {
        let digits = cursor.strip_prefix(CURSOR).filter(|digits| digits.len() == 16);
        let ord = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        ord.ok_or_else(|| self.invalid("the cursor is malformed"))
    }
}

/// What an index of pending questions is grouped by.
enum Group {
    Session(Slot),
    Pair(Slot),
}
