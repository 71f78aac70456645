//! How many transactions a database file has seen.

use std::{fs::File, io::Read as _, path::Path};

use crate::error::Error;

/// Where the counter is in the index of the write-ahead log: `iChange`, "incremented each transaction"
/// (<https://www.sqlite.org/walformat.html>, section 2.1).
const OFFSET: usize = 8;

/// The number of transactions that were committed to a file, from some moment on; it wraps around.
pub(super) fn count(database: &Path) -> Result<u32, Error> {
    let mut path = database.as_os_str().to_owned();
    path.push("-shm");
    let mut head = [0; OFFSET + 4];
    let read = File::open(path).and_then(|mut index| index.read_exact(&mut head));
    read.map_err(Error::io("read the index of the write-ahead log"))?;
    let counter = head.last_chunk().copied().unwrap_or_default();
    Ok(u32::from_ne_bytes(counter))
}
