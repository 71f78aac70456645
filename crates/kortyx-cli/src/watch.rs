//! Saying the same again when it has changed, until Ctrl-C.

use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};

use crate::{
    error::{CliError, Exit},
    report::Report,
};

/// Prints what `look` finds, again and again. On a terminal each replaces the last; elsewhere, and as JSON, it is printed when
/// something changed. It ends when the reader goes away, too.
pub(crate) async fn watch(
    every: Duration,
    json: bool,
    look: impl AsyncFn() -> Result<Report, CliError>,
) -> Result<Exit, CliError> {
    let is_screen = !json && io::stdout().is_terminal();
    let mut last: Option<Report> = None;
    loop {
        let report = look().await?;
        let told = if is_screen {
            report.repaint()
        } else if last.as_ref().is_none_or(|last| !last.is_same(&report)) {
            report.print(json)
        } else {
            Ok(())
        };
        let exit = report.exit;
        if told.is_err() {
            return Ok(exit);
        }
        last = Some(report);
        tokio::select! {
            () = tokio::time::sleep(every) => {}
            _ = tokio::signal::ctrl_c() => return Ok(exit),
        }
    }
}
