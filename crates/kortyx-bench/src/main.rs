//! The bench, on the system's allocator as it is: to count its calls would take part of the time that is measured.

use std::process::ExitCode;

fn main() -> ExitCode {
    kortyx_bench::run()
}
