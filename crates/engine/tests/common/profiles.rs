//! The profiles that random sequences and forged packets meet.

/// Seeds of the fuzz targets name them by their places: a new one goes to the end. Left out are the profiles of ns-2's age,
/// which send no HEARTBEATs and so never come back to a path, and those that differ from one of these in constants or in
/// what they read from a link: `lksctp`, `freebsd`, `freebsd-efr`, `cmt-cl`, `cmt-qa`. The random configurations
/// (`random_configuration.rs`) draw from all.
pub const PROFILES: [&str; 12] = [
    "sctp",
    "cmt",
    "live",
    "confluent",
    "low-latency",
    "cmt-rtx-csi",
    "thin",
    "media",
    "live-parity",
    "cmt-fair",
    "cmt-cl-fd",
    "linux",
];
