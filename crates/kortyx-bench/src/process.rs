//! What the operating system says about this process.

use std::fs;

use crate::error::Error;

const STATUS: &str = "/proc/self/status";

/// Memory of this process that is in RAM, in bytes.
pub(crate) fn resident_bytes() -> Result<u64, Error> {
    let text = fs::read_to_string(STATUS).map_err(Error::io("read /proc/self/status"))?;
    resident(&text).ok_or_else(|| Error::unexpected(format!("{STATUS} says nothing of resident memory")))
}

/// The line `VmRSS:     1234 kB`; unlike `statm` it does not count in pages, whose size differs by machine.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resident_memory_is_one_line_of_many() {
        assert_eq!(resident("Name:\tx\nVmHWM:\t    2000 kB\nVmRSS:\t    1234 kB\nThreads:\t1\n"), Some(1234 * 1024));
        assert_eq!(resident("Name:\tx\n"), None);
        assert_eq!(resident("VmRSS: many"), None);
    }

    #[test]
    fn this_process_is_somewhere_in_memory() {
        assert!(resident_bytes().unwrap() > 100 * 1024);
    }
}
