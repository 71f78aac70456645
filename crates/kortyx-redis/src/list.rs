//! Pages of open questions.
//!
//! A session and a run hold their open questions in order, so a page of them is exact. A page by context goes through an
//! index of other slots: its entries are hints, checked against the sessions; what is stale is taken out.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::future::try_join_all;
use kortyx_store::{InterruptPage, InterruptQuery, InterruptRecord, InterruptStatus, StoreError, StoreErrorKind};

use crate::{
    call::{BETWEEN, Entry},
    encode::scope,
    names::{Kind, pair_digest, session_digest},
    reply::{Parts, Reading, Reply},
    row, script,
    store::RedisStore,
};

const OPERATION: &str = "list interrupts";
/// The most questions of a page.
const PAGE: u32 = 200;
/// How many entries one call looks at before it gives what it has.
const SCAN: usize = 2_000;
/// What a cursor starts with: how its page was read. The place of the last question follows.
const OF_SESSION: &str = "s.";
const OF_CONTEXT: &str = "x.";

impl RedisStore {
    pub(crate) async fn page(&self, query: InterruptQuery) -> Result<InterruptPage, StoreError> {
        if query.scope.is_empty() && query.run_id.is_none() {
            let message = "a listing needs a session, a run or a context value";
            return Err(StoreError::new(StoreErrorKind::ScopeRequired, OPERATION, message));
        }
        let by_context = query.run_id.is_none() && query.scope.session_id.is_none();
        let kind = if by_context { OF_CONTEXT } else { OF_SESSION };
        let after = match &query.cursor {
            Some(cursor) => read_cursor(cursor, kind)?,
            None => String::new(),
        };
        let limit = usize::try_from(query.limit.clamp(1, PAGE)).unwrap_or(1);
        if by_context {
            self.page_of_context(query, after, limit).await
        } else {
            self.page_of(query, after, limit).await
        }
    }

    /// A page of a run's or a session's questions.
    async fn page_of(&self, query: InterruptQuery, after: String, limit: usize) -> Result<InterruptPage, StoreError> {
        let digest = match (&query.run_id, &query.scope.session_id) {
            (_, Some(session_id)) => session_digest(session_id),
            (Some(run_id), None) => match self.find(OPERATION, Kind::Run, run_id.as_str()).await? {
                Some(place) => place.digest,
                None => return Ok(InterruptPage::default()),
            },
            (None, None) => return Ok(InterruptPage::default()),
        };
        let mut request = self.request(OPERATION);
        if let serde_json::Value::Object(parts) = scope(&query.scope) {
            request.body.extend(parts);
        }
        request.set("run", query.run_id.as_ref().map(kortyx_protocol::RunId::as_str));
        request.set("after", after);
        request.set("limit", limit);
        request.set("scan", SCAN);
        request.set("flag", query.after_response_completed.map(u8::from));
        let said = self.read(OPERATION, &script::PAGE, &digest, request).await?;
        page(said).map_err(|damage| damage.during(OPERATION))
    }

    async fn page_of_context(
        &self,
        query: InterruptQuery,
        mut after: String,
        limit: usize,
    ) -> Result<InterruptPage, StoreError> {
        self.hints.settled().await;
        let index = self.smallest(&query).await?;
        let (mut page, mut scanned, mut last) = (InterruptPage::default(), 0, String::new());
        loop {
            let members = self.members(&index, &after, limit + 1).await?;
            let is_end = members.len() <= limit;
            if let Some(member) = members.last() {
                place_of(member).clone_into(&mut after);
            }
            for (member, record) in self.checked(&index, members).await? {
                scanned += 1;
                let record = record.filter(|record| is_wanted(record, &query));
                if record.is_some() && page.interrupts.len() == limit {
                    page.next = Some(format!("{OF_CONTEXT}{last}"));
                    return Ok(page);
                }
                page.interrupts.extend(record);
                place_of(&member).clone_into(&mut last);
            }
            if is_end {
                return Ok(page);
            }
            if scanned >= SCAN {
                page.next = Some(format!("{OF_CONTEXT}{last}"));
                return Ok(page);
            }
        }
    }

    /// The index with the fewest entries among those of the query's context values.
    async fn smallest(&self, query: &InterruptQuery) -> Result<String, StoreError> {
        let pairs = query.scope.context.iter().map(|(key, value)| format!("x:{}", pair_digest(key, value)));
        let mut names: Vec<_> = pairs.map(|name| self.names.index(&name)).collect();
        if names.len() > 1 {
            let client = self.client(OPERATION)?;
            let counts = names.iter().map(|name| client.command(OPERATION, "ZCARD", vec![name.clone().into()]));
            let counts = try_join_all(counts).await?;
            let mut counted: Vec<_> = counts.into_iter().map(|count| count.int().unwrap_or(0)).zip(names).collect();
            counted.sort();
            names = counted.into_iter().map(|(_, name)| name).collect();
        }
        Ok(names.swap_remove(0))
    }

    async fn members(&self, index: &str, after: &str, count: usize) -> Result<Vec<String>, StoreError> {
        // What stands at a place goes on behind this; nothing in a text sorts behind the last byte.
        let from = match after {
            "" => b"-".to_vec(),
            after => [b"(", after.as_bytes(), b"\x1f\xff"].concat(),
        };
        let rest = ["+", "BYLEX", "LIMIT", "0", &count.to_string()].map(|arg| Bytes::from(arg.to_owned()));
        let args = [index.to_owned().into(), from.into()].into_iter().chain(rest).collect();
        let reply = self.client(OPERATION)?.command(OPERATION, "ZRANGE", args).await?;
        let read = || reply.list()?.into_iter().map(Reply::text).collect::<Reading<_>>();
        read().map_err(|damage| damage.during(OPERATION))
    }

    /// Reads what entries name; those that name nothing open are taken out.
    async fn checked(
        &self,
        index: &str,
        members: Vec<String>,
    ) -> Result<Vec<(String, Option<InterruptRecord>)>, StoreError> {
        let entries: Vec<_> = members.into_iter().filter_map(Entry::of_stamped).collect();
        let mut groups: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
        for entry in &entries {
            groups.entry(&entry.digest).or_default().extend(entry.question());
        }
        let groups = groups.into_iter().map(|(digest, named)| async move {
            let ids: Vec<_> = named.iter().flat_map(|(id, run)| [*id, *run]).collect();
            let rows = self.read_ids(OPERATION, "questions", digest, &ids).await?;
            Ok::<_, StoreError>(named.into_iter().map(|(id, _)| id).zip(rows).collect::<Vec<_>>())
        });
        let mut found = BTreeMap::new();
        for (id, row) in try_join_all(groups).await?.into_iter().flatten() {
            if !row::is_absent(&row) {
                found.insert(id.to_owned(), row::question(row).map_err(|damage| damage.during(OPERATION))?);
            }
        }
        let read = entries.into_iter().map(|entry| {
            let record = entry.question().and_then(|(id, _)| found.remove(id));
            (entry.member, record)
        });
        let read: Vec<_> = read.collect();
        self.take_out(index, &read).await?;
        Ok(read)
    }

    async fn take_out(&self, index: &str, read: &[(String, Option<InterruptRecord>)]) -> Result<(), StoreError> {
        use InterruptStatus::{Expired, Pending};
        let is_open = |record: &InterruptRecord| matches!(record.status, Pending | Expired) && record.answer.is_none();
        let stale = read.iter().filter(|(_, record)| !record.as_ref().is_some_and(is_open));
        let mut args: Vec<_> = stale.map(|(member, _)| Bytes::from(member.clone())).collect();
        if args.is_empty() {
            return Ok(());
        }
        args.insert(0, Bytes::from(index.to_owned()));
        self.client(OPERATION)?.command(OPERATION, "ZREM", args).await.map(drop)
    }
}

/// A place in an index, without what stands there.
fn place_of(member: &str) -> &str {
    member.split_once(BETWEEN).map_or(member, |(place, _)| place)
}

fn is_wanted(record: &InterruptRecord, query: &InterruptQuery) -> bool {
    record.status == InterruptStatus::Pending
        && query.scope.contains(&record.session_id, &record.context)
        && query.after_response_completed.is_none_or(|wanted| wanted == record.after_response_completed)
}

fn page(said: Reply) -> Reading<InterruptPage> {
    let mut parts = Parts::of(said)?;
    let interrupts = row::questions(parts.list()?)?;
    let last = parts.text()?;
    Ok(InterruptPage { interrupts, next: (!last.is_empty()).then(|| format!("{OF_SESSION}{last}")) })
}

/// The place that a cursor of this kind names: 18 digits, 12 digits, and an id, with dots between.
fn read_cursor(cursor: &str, kind: &str) -> Result<String, StoreError> {
    let digits = |text: Option<&str>, count: usize| {
        text.is_some_and(|text| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let place = cursor.strip_prefix(kind).filter(|place| {
        let mut parts = place.splitn(3, '.');
        digits(parts.next(), 18) && digits(parts.next(), 12) && parts.next().is_some_and(|id| !id.is_empty())
    });
    let refused = || StoreError::new(StoreErrorKind::InvalidRequest, OPERATION, "the cursor is none that a page gave");
    place.map(str::to_owned).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_names_its_place_and_how_it_was_read() {
        let place = "001767225600000000.000000000001.human-1";
        assert_eq!(read_cursor(&format!("s.{place}"), OF_SESSION).unwrap(), place);
        for cursor in ["", "s.", place, "s.1.2.x", "s.001767225600000000.000000000001.", &format!("x.{place}")] {
            assert!(read_cursor(cursor, OF_SESSION).is_err(), "{cursor}");
        }
    }

    #[test]
    fn a_page_that_is_not_the_last_says_where_the_next_starts() {
        let said = |last: &str| Reply::List(vec![Reply::List(Vec::new()), Reply::Bytes(last.to_owned().into())]);
        assert_eq!(page(said("")).unwrap().next, None);
        assert_eq!(page(said("1.2.x")).unwrap().next.as_deref(), Some("s.1.2.x"));
        assert!(page(Reply::Int(1)).is_err());
    }
}
