//! Chunk types that are set aside and have no format in use (RFC 9260 §3.2 table 1): they decode as unknown.

use crate::kind;

/// Is the type reserved: for ECN (ECNE, CWR), or for extending the type field?
pub const fn is_reserved(chunk_kind: u8) -> bool {
    matches!(chunk_kind, kind::ECNE | kind::CWR | 63 | 127 | 191 | 255)
}
