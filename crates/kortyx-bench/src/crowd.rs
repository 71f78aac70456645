//! Many runs at once.

use tokio::task::JoinSet;

use crate::error::Error;

/// How many run at once.
pub(crate) const RUNS: u64 = 64;

/// Spawns so many loops, each with its number, and waits for what all of them give.
pub(crate) async fn at_once<T, F>(loops: impl Fn(u64) -> F) -> Result<Vec<T>, Error>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let mut running: JoinSet<Result<T, Error>> = (0..RUNS).map(loops).collect();
    let mut given = Vec::new();
    while let Some(ended) = running.join_next().await {
        given.push(ended.map_err(|_| Error::unexpected("a loop panicked"))??);
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Barrier;

    use super::*;

    #[tokio::test]
    async fn all_loops_run_at_the_same_time() {
        // Each waits for all others.
        let meeting = Arc::new(Barrier::new(64));

        let mut numbers = at_once(|number| {
            let meeting = meeting.clone();
            async move {
                meeting.wait().await;
                Ok(number)
            }
        })
        .await
        .unwrap();

        numbers.sort_unstable();
        assert_eq!(numbers, (0..64).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_loop_that_fails_is_told() {
        let failing = |number| async move { if number == 7 { Err(Error::unexpected("seven")) } else { Ok(()) } };

        assert_eq!(at_once(failing).await.unwrap_err().to_string(), "seven");
    }
}
