//! Chunk authentication (RFC 4895).

/// Chunk authentication (RFC 4895) beyond what address changes need by themselves: nothing and no keys by default.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AuthConfig {
    /// Further chunk types that the peer must authenticate. INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH cannot be.
    pub chunks: Vec<u8>,
    /// Endpoint pair shared keys by identifier, beside the empty key 0.
    pub keys: Vec<(u16, bytes::Bytes)>,
    /// Identifier of the key to sign with.
    pub active_key: u16,
}
