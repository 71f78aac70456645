//! How many streams are open, of each session and together.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::http::StatusCode;
use kortyx_protocol::{FailureCode, SessionId};

use crate::problem::Problem;

/// Counts the open streams of each session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Streams(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    of_sessions: Mutex<HashMap<SessionId, usize>>,
    all: AtomicUsize,
}

/// A place for one stream, given back when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    streams: Streams,
    session_id: Option<SessionId>,
}

impl Streams {
    /// A place for a stream of this session. A session that is not known yet is a new one, and has no other stream.
    pub(crate) fn enter(&self, session_id: Option<&SessionId>, limit: usize) -> Result<Place, Problem> {
        let Some(session_id) = session_id else { return Ok(self.place(None)) };
        let mut counts = self.0.of_sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let open = counts.get(session_id).copied().unwrap_or_default();
        if open >= limit {
            let message = format!("this session has {open} streams open already: end one of them first");
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, FailureCode::LimitReached, message));
        }
        counts.insert(session_id.clone(), open + 1);
        Ok(self.place(Some(session_id)))
    }

    /// How many places are taken.
    pub(crate) fn open(&self) -> usize {
        self.0.all.load(Ordering::Relaxed)
    }

    fn place(&self, session_id: Option<&SessionId>) -> Place {
        self.0.all.fetch_add(1, Ordering::Relaxed);
        Place { streams: self.clone(), session_id: session_id.cloned() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let counts = &self.streams.0;
        counts.all.fetch_sub(1, Ordering::Relaxed);
        let Some(session_id) = self.session_id.take() else { return };
        let mut counts = counts.of_sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = counts.get_mut(&session_id) {
            *open -= 1;
            if *open == 0 {
                counts.remove(&session_id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_given_back_and_a_session_without_streams_is_forgotten() {
        let (streams, session) = (Streams::default(), SessionId::new("s").unwrap());
        let first = streams.enter(Some(&session), 2).unwrap();
        let second = streams.enter(Some(&session), 2).unwrap();
        assert!(streams.enter(Some(&session), 2).is_err());
        assert!(streams.enter(SessionId::new("t").ok().as_ref(), 2).is_ok() && streams.enter(None, 0).is_ok());
        drop(first);
        let third = streams.enter(Some(&session), 2).unwrap();
        let new = streams.enter(None, 0).unwrap();
        assert_eq!(streams.open(), 3);
        drop((second, third));
        assert_eq!(streams.open(), 1);
        drop(new);
        assert_eq!(streams.open(), 0);
        assert!(streams.0.of_sessions.lock().unwrap().is_empty());
    }
}
