//! What the operating system says about this process.

use std::{fs, time::Duration};

use rustix::time::{ClockId, clock_gettime};

use crate::error::Error;

const STATUS: &str = "/proc/self/status";

/// Memory of this process that is in RAM, in bytes.
pub(crate) fn resident_bytes() -> Result<u64, Error> {
    let text = fs::read_to_string(STATUS).map_err(Error::io("read /proc/self/status"))?;
    resident(&text).ok_or_else(|| Error::unexpected(format!("{STATUS} says nothing of resident memory")))
}

/// The processor time that this thread has used.
pub(crate) fn thread_time() -> Duration {
    time(ClockId::ThreadCPUTime)
}

/// The processor time that all threads of this process have used.
pub(crate) fn process_time() -> Duration {
    time(ClockId::ProcessCPUTime)
}

fn time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
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
    fn only_work_takes_processor_time() {
        let before = thread_time();

        let sum: u64 = (0..1_000_000_u64).map(std::hint::black_box).sum();

        assert!(thread_time() > before, "{sum}");
    }

    #[test]
    fn this_process_is_somewhere_in_memory() {
        assert!(resident_bytes().unwrap() > 100 * 1024);
    }
}
