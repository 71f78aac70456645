//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::{error::Error, measure::Measure};

/// Measures Kortyx and prints a table. A missed target is marked there; only a measurement that cannot be made is a failure.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Options {
    /// Makes only the measures whose name contains this; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Makes only the measures of this store.
    #[arg(long)]
    pub(crate) store: Option<StoreKind>,
    /// Uses small sizes and few samples.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Prints JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Where database files go while they are measured; the system's directory for temporary files when absent. It must be on
    /// a disk, else a commit costs nothing.
    #[arg(long, value_name = "PATH")]
    pub(crate) directory: Option<PathBuf>,
    /// How many open questions are many, for pages of them; by default 1,000,000, and 200,000 in Redis, where they are made one by one.
    #[arg(long, value_name = "COUNT")]
    pub(crate) questions: Option<u64>,
    /// Prints the names of the servers that are needed instead, one a line.
    #[arg(long, hide = true)]
    pub(crate) needs: bool,
    /// Measures in this process instead of one for each measure. For profilers.
    #[arg(long)]
    pub(crate) in_process: bool,
}

/// A store that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StoreKind {
    /// `kortyx-memory`.
    Memory,
    /// `kortyx-sqlite`.
    Sqlite,
    /// `kortyx-redis`.
    Redis,
    /// `kortyx-postgres`.
    Postgres,
}

impl Options {
    /// The measures that are asked for, in their order.
    pub(crate) fn measures(&self) -> Result<Vec<Measure>, Error> {
        for name in &self.only {
            if !Measure::ALL.iter().any(|measure| measure.name().contains(name.as_str())) {
                let known = Measure::ALL.map(Measure::name).join(", ");
                return Err(Error::UnknownMeasure(name.clone(), known));
            }
        }
        Ok(Measure::ALL.into_iter().filter(|measure| self.wants(*measure)).collect())
    }

    fn wants(&self, measure: Measure) -> bool {
        let named = self.only.is_empty() || self.only.iter().any(|name| measure.name().contains(name.as_str()));
        named && self.store.is_none_or(|store| store == measure.store())
    }

    /// The first size, or the second with `--quick`.
    pub(crate) fn size<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measures(arguments: &[&str]) -> Vec<&'static str> {
        let options = Options::parse_from([&["bench"], arguments].concat());
        options.measures().unwrap().into_iter().map(Measure::name).collect()
    }

    #[test]
    fn everything_is_measured_unless_some_is_named() {
        assert_eq!(measures(&[]), Measure::ALL.map(Measure::name));
        let listings = ["memory-listing", "sqlite-listing", "redis-listing", "postgres-listing"];
        assert_eq!(measures(&["--only", "listing"]), listings);
        assert_eq!(measures(&["--only", "sqlite-m", "--only", "growth"]), ["memory-growth", "sqlite-many"]);
    }

    #[test]
    fn a_store_can_be_measured_alone() {
        assert_eq!(measures(&["--store", "sqlite", "--only", "listing"]), ["sqlite-listing"]);
        assert!(measures(&["--store", "memory"]).iter().all(|name| name.starts_with("memory")));
    }

    #[test]
    fn a_name_that_fits_nothing_is_refused_with_those_there_are() {
        let error = Options::parse_from(["bench", "--only", "speed"]).measures().unwrap_err();

        let text = error.to_string();
        assert!(text.contains("speed") && text.contains("memory-cycles"), "{text}");
    }
}
