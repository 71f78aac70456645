//! Telling the caller of a turn whether it began.

use std::sync::{Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::OrchestratorError;

/// Who hears that a turn has begun, or why it never will. Told once.
pub(super) struct Begun(Mutex<Option<oneshot::Sender<Result<(), OrchestratorError>>>>);

impl Begun {
    /// Nobody hears: what goes wrong is said in the stream.
    pub(super) fn unheard() -> Self {
        Self(Mutex::new(None))
    }

    pub(super) fn heard_by(listener: oneshot::Sender<Result<(), OrchestratorError>>) -> Self {
        Self(Mutex::new(Some(listener)))
    }

    /// The turn has begun: what goes wrong from now on is said in the stream.
    pub(super) fn tell(&self) {
        if let Some(listener) = self.listener() {
            let _ = listener.send(Ok(()));
        }
    }

    /// The turn will not begin. The error again when the stream has to say it.
    pub(super) fn refuse(&self, error: OrchestratorError) -> Result<(), OrchestratorError> {
        match self.listener() {
            Some(listener) => {
                let _ = listener.send(Err(error));
                Ok(())
            }
            None => Err(error),
        }
    }

    fn listener(&self) -> Option<oneshot::Sender<Result<(), OrchestratorError>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_wrong_is_told_once_and_then_said_in_the_stream() {
        let (listener, mut heard) = oneshot::channel();
        let begun = Begun::heard_by(listener);
        assert!(begun.refuse(OrchestratorError::Waiting).is_ok());
        assert!(matches!(heard.try_recv(), Ok(Err(OrchestratorError::Waiting))));
        assert!(matches!(begun.refuse(OrchestratorError::NotFound), Err(OrchestratorError::NotFound)));
    }

    #[test]
    fn after_the_beginning_the_stream_says_what_goes_wrong() {
        let (listener, mut heard) = oneshot::channel();
        let begun = Begun::heard_by(listener);
        begun.tell();
        begun.tell();
        assert!(matches!(heard.try_recv(), Ok(Ok(()))));
        assert!(begun.refuse(OrchestratorError::NotFound).is_err());
        assert!(Begun::unheard().refuse(OrchestratorError::NotFound).is_err());
    }
}
