//! Tells the program which commit it was built from, for the manifests of its results.

use std::process::Command;

fn main() {
    // The commit itself is not watched: the sources say whether another program would come out. After a commit of
    // what was built already the older one with a plus stays, which is true as well.
    for source in ["../", "../../Cargo.lock", "../../experiments"] {
        println!("cargo::rerun-if-changed={source}");
    }
    println!("cargo::rustc-env=ANABRANCH_COMMIT={}", commit().unwrap_or_default());
}

/// The commit, with a plus where files were changed beyond it; none where these sources are not in a repository of
/// their own.
fn commit() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let id = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["--no-optional-locks", "status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() { id } else { format!("{id}+") })
}

fn git(args: &[&str]) -> Option<String> {
    let out = Command::new("git").args(args).output().ok().filter(|o| o.status.success())?;
    Some(String::from_utf8(out.stdout).ok()?.trim().to_owned())
}
