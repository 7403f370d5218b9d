//! No command writes over what it reads, nor two things into one file.

use crate::exit::{Failure, Outcome};
use crate::netargs::PolicyArgs;
use crate::stats::{Format, StatsArgs};
use crate::uri::{InputUri, OutputUri};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Links in a row that a system follows.
const LINKS: usize = 40;

/// The files of a command, each by the argument that names it.
#[derive(Clone, Debug, Default)]
pub struct Files {
    read: Vec<(&'static str, PathBuf)>,
    written: Vec<(&'static str, PathBuf)>,
}

impl Files {
    /// Those of the flags of every session.
    pub fn of_session(policies: &PolicyArgs, stats: &StatsArgs) -> Self {
        let page = stats.stats_file.as_deref().filter(|_| stats.intervals() == Some(Format::Prometheus));
        Files::default()
            .reads("--config", policies.config.as_deref())
            .writes("--pcap", policies.pcap.as_deref())
            .writes("--stats-file", stats.stats_file.as_deref())
            .writes("--stats-file", page.map(beside).as_deref())
    }

    /// What this argument names is read.
    pub fn reads(mut self, what: &'static str, path: Option<&Path>) -> Self {
        self.read.extend(path.map(|p| (what, p.to_owned())));
        self
    }

    /// What this argument names is written.
    pub fn writes(mut self, what: &'static str, path: Option<&Path>) -> Self {
        self.written.extend(path.map(|p| (what, p.to_owned())));
        self
    }

    /// Where a stream comes from.
    pub fn input(self, uri: &InputUri) -> Self {
        let path = match uri {
            InputUri::File(path) => Some(path.as_path()),
            InputUri::Stdin => Some(Path::new("/dev/stdin")),
            InputUri::Udp { .. } | InputUri::Rtp { .. } => None,
        };
        self.reads("the input", path)
    }

    /// Where a stream goes to.
    pub fn output(self, uri: &OutputUri) -> Self {
        let path = match uri {
            OutputUri::File(path) => Some(path.as_path()),
            OutputUri::Stdout => Some(Path::new("/dev/stdout")),
            OutputUri::Udp { .. } | OutputUri::Rtp { .. } => None,
        };
        self.writes("the output", path)
    }

    /// Is what is written a file of its own each time? To be asked before anything is opened for writing.
    ///
    /// # Errors
    /// Two are one file, by whatever names.
    pub fn check(&self) -> Outcome {
        for (i, (what, path)) in self.written.iter().enumerate() {
            let Some(place) = Place::of(path) else { continue };
            let is_same = |other: &&(&str, PathBuf)| Place::of(&other.1).as_ref() == Some(&place);
            let path = path.display();
            if let Some((other, _)) = self.read.iter().find(is_same) {
                return Err(Failure::usage(format!(
                    "{what} would write over {path}, which is {other}; name another file"
                )));
            }
            if let Some((other, _)) = self.written.iter().take(i).find(is_same) {
                return Err(Failure::usage(format!(
                    "{what} and {other} would both write {path}; name another file for one of them"
                )));
            }
        }
        Ok(())
    }
}

/// What is written first where a file is to be replaced whole.
pub fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// A file, whatever it is called.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    There(u64, u64),
    /// To be made, by its name in a folder without links.
    New(PathBuf),
}

impl Place {
    /// None for pipes and devices, which have nothing to lose.
    fn of(path: &Path) -> Option<Place> {
        let Ok(meta) = std::fs::metadata(path) else { return Some(Place::New(target(path))) };
        meta.is_file().then(|| Place::There(meta.dev(), meta.ino()))
    }
}

/// Where a file is made that is not there yet: behind links that lead to nothing.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(to) = std::fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(to);
    }
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn one_file_by_two_names() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("a"), "x").unwrap();
        std::fs::write(at("c"), "x").unwrap();
        std::fs::hard_link(at("a"), at("hard")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        symlink("a", at("soft")).unwrap();
        symlink("new", at("to-new")).unwrap();
        symlink("folder", at("to-folder")).unwrap();
        let says = |read: &str, written: [&str; 2]| {
            let [first, second] = written.map(at);
            let files = Files::default().reads("IN", Some(&at(read)));
            let files = files.writes("--one", Some(&first)).writes("--two", Some(&second));
            files.check().map_err(|e| e.to_string()).err()
        };
        for name in ["a", "hard", "soft", "./a", "folder/../a", "to-folder/../a"] {
            let what = says("a", ["new", name]).expect("one file");
            assert!(what.starts_with("--two would write over ") && what.contains("which is IN"), "{what}");
            assert!(says("c", ["a", name]).is_some_and(|w| w.contains("--two and --one would both write")), "{name}");
        }
        for (first, second) in [("new", "to-new"), ("folder/new", "to-folder/new"), ("new", "./new")] {
            assert!(says("a", [first, second]).is_some(), "{first} {second}");
        }
        for (first, second) in [("c", "new"), ("new", "folder/new"), ("no/such", "no/more"), ("to-new", "c")] {
            assert_eq!(says("a", [first, second]), None, "{first} {second}");
        }
    }

    #[test]
    fn devices_may_be_named_often() {
        let [null, folder] = ["/dev/null", "/tmp"].map(Path::new);
        let files = Files::default().reads("IN", Some(null)).writes("--one", Some(null)).writes("--two", Some(null));
        assert_eq!(files.check(), Ok(()));
        assert_eq!(Files::default().reads("IN", Some(folder)).writes("--one", Some(folder)).check(), Ok(()));
    }
}
