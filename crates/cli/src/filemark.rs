//! Tells whether two programs on one machine have the same file open, without telling which.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU64;
use std::os::unix::fs::MetadataExt;

/// A regular file of this machine since it was started; equal for the same file, by whatever name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMark(pub NonZeroU64);

impl FileMark {
    /// None for pipes and devices, and where the machine cannot be identified.
    pub fn of(file: &File) -> Option<Self> {
        let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let machine = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let mut hash = DefaultHasher::new();
        (machine, meta.dev(), meta.ino()).hash(&mut hash);
        NonZeroU64::new(hash.finish()).map(FileMark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_file_by_two_names() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|n| dir.path().join(n));
        std::fs::write(&a, "x").unwrap();
        std::fs::write(&c, "x").unwrap();
        std::os::unix::fs::symlink(&a, &b).unwrap();
        let [a, b, c] = [a, b, c].map(|p| FileMark::of(&File::open(p).unwrap()));
        assert!(a.is_some());
        assert_eq!(a, b);
        assert_ne!(a, c);
        assert_eq!(FileMark::of(&File::open("/dev/null").unwrap()), None);
    }
}
