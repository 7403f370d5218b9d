//! SIGHUP: the paths are read anew from the file of `--config`, while all goes on.

use crate::config;
use crate::exit::{Failure, warning};
use crate::line::Handle;
use crate::netargs::PathArgs;
use crate::transport::Link;
use anabranch_net::{PathReport, PathSpec, PathState};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

/// Time for a new path to join.
const JOINING: Duration = Duration::from_secs(10);

/// Listens as long as it lives.
pub struct Reload(JoinHandle<()>);

impl Drop for Reload {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Reload {
    /// Changes the paths of `line` whenever the user asks; none without a file.
    pub fn start(line: Handle, file: Option<&Path>) -> Result<Option<Self>, Failure> {
        let Some(file) = file.map(Path::to_owned) else { return Ok(None) };
        let mut hangup = signal(SignalKind::hangup()).map_err(|e| Failure::network(format!("no signals: {e}")))?;
        let state = State { line, file };
        Ok(Some(Reload(tokio::spawn(async move {
            while hangup.recv().await.is_some() {
                if let Err(failure) = state.reload().await {
                    warning(&format!("{failure}; the paths stay as they are"));
                }
            }
        }))))
    }
}

struct State {
    line: Handle,
    file: PathBuf,
}

impl State {
    /// Takes over the paths that the file names now.
    async fn reload(&self) -> Result<(), Failure> {
        let before = self.line.paths();
        let after = PathArgs { paths: named(&self.file)?, ..before.clone() };
        let remotes = self.line.peer().resolve()?;
        let (now, wanted) = (before.specs(&remotes)?, after.specs(&remotes)?);
        // Without a connection the next one begins with them.
        if let Some(link) = self.line.link()
            && !change(&link, &now, wanted).await
        {
            warning("none of the paths named anew works; those before stay too");
            return Ok(());
        }
        self.line.set_paths(after);
        Ok(())
    }
}

/// New ones first: they join by the old ones, which go when a new one works. False when none does.
async fn change(link: &Link, now: &[PathSpec], wanted: Vec<PathSpec>) -> bool {
    let add = |spec: &PathSpec| match link.add_path(spec) {
        Ok(()) => true,
        Err(failure) => {
            warning(&failure.to_string());
            false
        }
    };
    let there: Vec<_> = wanted.into_iter().filter(|spec| now.contains(spec) || add(spec)).collect();
    if there.is_empty() || tokio::time::timeout(JOINING, works(link, &there)).await.is_err() {
        return false;
    }
    for gone in now.iter().filter(|old| there.iter().all(|spec| spec.local != old.local)) {
        link.leave_paths(&gone.local);
    }
    tracing::info!(?there, "paths read anew");
    true
}

/// Returns once one of these is in use.
async fn works(link: &Link, paths: &[PathSpec]) {
    let names: Vec<String> = paths.iter().map(|p| p.local.to_string()).collect();
    let active = |p: &PathReport| p.stats.state == PathState::Active && names.contains(&p.local);
    while !link.stats().paths.iter().any(active) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn named(file: &Path) -> Result<Vec<String>, Failure> {
    let table = config::read(file)?;
    let paths = table.get("path").and_then(config::texts).filter(|p| !p.is_empty());
    paths.ok_or_else(|| Failure::usage(format!("{} names no path", file.display())))
}
