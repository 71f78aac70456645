//! A named case, and the list of them all.

use std::{fmt, future::Future, pin::Pin};

use super::{
    Backend, answering, batches, cancelling, checkpoints, crowds, expiry, finishing, following, forking, identities,
    inspecting, leases, listing, living, opening, orphans, payloads, pruning, racing, recording, responding,
    rolling_back, speaking, suspending,
};

/// Lists a module's cases under their names. One that is written and not listed is dead code, so it does not compile.
macro_rules! list {
    ($($case:ident),* $(,)?) => {
        pub(super) fn cases() -> Vec<Case> {
            vec![$(Case {
                name: stringify!($case),
                run: |backend| Box::pin(async move {
                    let world = World::new(backend).await?;
                    $case(&world).await;
                    Ok(())
                }),
            }),*]
        }
    };
}
pub(super) use list;

/// What a case does; a panic fails it too.
pub(super) type Run = for<'a> fn(&'a dyn Backend) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// One promise of the port, as a test over fresh stores.
#[derive(Clone, Copy)]
pub struct Case {
    pub(super) name: &'static str,
    pub(super) run: Run,
}

impl Case {
    /// The promise as a sentence; one that proves a known fault absent starts with the fault's number.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn run<'a>(
        &self,
        backend: &'a dyn Backend,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        (self.run)(backend)
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Case").field(&self.name).finish()
    }
}

/// Every case, in the order in which they run.
pub fn cases() -> Vec<Case> {
    let groups = [
        opening::cases(),
        recording::cases(),
        suspending::cases(),
        speaking::cases(),
        responding::cases(),
        answering::cases(),
        batches::cases(),
        racing::cases(),
        cancelling::cases(),
        finishing::cases(),
        leases::cases(),
        orphans::cases(),
        expiry::cases(),
        listing::cases(),
        inspecting::cases(),
        checkpoints::cases(),
        rolling_back::cases(),
        following::cases(),
        forking::cases(),
        pruning::cases(),
        payloads::cases(),
        identities::cases(),
        crowds::cases(),
        living::cases(),
    ];
    groups.into_iter().flatten().collect()
}
