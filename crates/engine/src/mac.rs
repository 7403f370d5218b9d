//! Message authentication codes: HMAC (RFC 2104) with SHA-1 and SHA-256 for what peers check, keyed BLAKE3 for what
//! only comes back to us.

use core::ops::Deref;
use hmac::{Hmac, KeyInit, Mac as _};
use sha1::Sha1;
use sha2::{Digest, Sha256};

/// Bytes that both hash functions take at a time.
const BLOCK: usize = 64;

/// A key, ready to use.
#[derive(Clone)]
pub enum Key {
    /// Makes MACs of 20 bytes.
    Sha1(Hmac<Sha1>),
    /// Makes MACs of 32 bytes.
    Sha256(Hmac<Sha256>),
}

impl Key {
    /// A key of any length for SHA-1.
    pub fn sha1(key: &[u8]) -> Self {
        Key::Sha1(Hmac::new(&padded::<Sha1>(key).into()))
    }

    /// A key of any length for SHA-256.
    pub fn sha256(key: &[u8]) -> Self {
        Key::Sha256(Hmac::new(&padded::<Sha256>(key).into()))
    }

    /// The MAC over `bytes`.
    pub fn sign(&self, bytes: &[u8]) -> Mac {
        match self {
            Key::Sha1(key) => Mac::Sha1(key.clone().chain_update(bytes).finalize().into_bytes().into()),
            Key::Sha256(key) => Mac::Sha256(key.clone().chain_update(bytes).finalize().into_bytes().into()),
        }
    }

    /// Is `mac` the MAC over `bytes`? The comparison takes the same time for every wrong MAC of the right length.
    pub fn verify(&self, bytes: &[u8], mac: &[u8]) -> bool {
        match self {
            Key::Sha1(key) => key.clone().chain_update(bytes).verify_slice(mac).is_ok(),
            Key::Sha256(key) => key.clone().chain_update(bytes).verify_slice(mac).is_ok(),
        }
    }
}

/// The key as a block: one that is longer is hashed, one that is shorter ends in zeros (RFC 2104 §2).
fn padded<D: Digest>(key: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let hashed = (key.len() > BLOCK).then(|| D::digest(key));
    let from = hashed.as_deref().unwrap_or(key);
    block.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
    block
}

/// A computed MAC; dereferences to its bytes.
#[derive(Clone, Copy)]
pub enum Mac {
    /// 20 bytes.
    Sha1([u8; 20]),
    /// 32 bytes.
    Sha256([u8; 32]),
}

impl Deref for Mac {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Mac::Sha1(bytes) => bytes,
            Mac::Sha256(bytes) => bytes,
        }
    }
}

/// A key for what no one else has to understand: BLAKE3 makes a MAC in a fraction of the time that HMAC-SHA-256 takes
/// without instructions for it, and each INIT and each forged cookie costs us one.
pub struct OwnKey([u8; 32]);

impl OwnKey {
    /// From secret bytes.
    pub fn new(key: [u8; 32]) -> Self {
        OwnKey(key)
    }

    /// The MAC over `bytes`.
    pub fn sign(&self, bytes: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.0, bytes).as_bytes()
    }

    /// Is `mac` the MAC over `bytes`? The comparison takes the same time for every wrong MAC.
    pub fn verify(&self, bytes: &[u8], mac: &[u8; 32]) -> bool {
        blake3::keyed_hash(&self.0, bytes) == blake3::Hash::from_bytes(*mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|b| format!("{b:02x}")).collect()
    }

    /// RFC 4231 §4.2, §4.3, §4.7; RFC 2202 §3, cases 1, 2 and 6.
    #[test]
    fn macs_are_those_of_the_rfcs() {
        let (long, larger) = ([0xaa; 131], "Test Using Larger Than Block-Size Key - Hash Key First");
        for (key, text, want) in [
            (&[0x0b; 20][..], "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe",
                "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (&long, larger, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
        ] {
            assert_eq!(hex(&Key::sha256(key).sign(text.as_bytes())), want);
        }
        for (key, text, want) in [
            (&[0x0b; 20][..], "Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"),
            (b"Jefe", "what do ya want for nothing?", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
            (&long[..80], larger, "aa4ae5e15272d00e95705637ce8a3b55ed402112"),
        ] {
            assert_eq!(hex(&Key::sha1(key).sign(text.as_bytes())), want);
        }
    }

    #[test]
    fn our_own_macs_depend_on_key_and_text() {
        let (key, other) = (OwnKey::new([7; 32]), OwnKey::new([8; 32]));
        let mac = key.sign(b"text");
        assert!(key.verify(b"text", &mac) && !key.verify(b"texT", &mac) && !other.verify(b"text", &mac));
        for at in 0..mac.len() {
            let mut wrong = mac;
            wrong[at] ^= 1;
            assert!(!key.verify(b"text", &wrong), "{at}");
        }
    }

    #[test]
    fn only_the_whole_right_mac_is_right() {
        for key in [Key::sha1(b"key"), Key::sha256(b"key")] {
            let mac = key.sign(b"text");
            assert!(key.verify(b"text", &mac));
            assert!(!key.verify(b"texT", &mac) && !key.verify(b"text", &mac[1..]) && !key.verify(b"text", &[]));
            for at in 0..mac.len() {
                let mut wrong = mac.to_vec();
                wrong[at] ^= 1;
                assert!(!key.verify(b"text", &wrong), "{at}");
            }
        }
    }
}
