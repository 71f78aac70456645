//! The bench, on an allocator that programs with many small allocations like to use. Calls are not counted: that would take part of the
//! time that is measured.

use std::process::ExitCode;

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    kortyx_bench::run()
}
