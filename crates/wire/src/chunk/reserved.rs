//! Chunk types that are set aside for extending the type field (RFC 9260 §3.2 table 1): they decode as unknown.

/// Is the type reserved?
pub const fn is_reserved(chunk_kind: u8) -> bool {
    matches!(chunk_kind, 63 | 127 | 191 | 255)
}
