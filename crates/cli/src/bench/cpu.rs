//! What a run cost this process.

use nix::sys::resource::{UsageWho, getrusage};

/// CPU seconds of this process so far, user and system.
pub(super) fn seconds() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return 0.0 };
    let of = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 * 1e-6;
    of(usage.user_time()) + of(usage.system_time())
}

/// Bytes of memory this process holds now.
pub(super) fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|s| s.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0);
    pages * 4096
}
