//! SIGHUP: the paths are read anew from the file of `--config`, while all goes on.

use crate::config;
use crate::exit::{Failure, warning};
use crate::netargs::{PathArgs, PolicyArgs};
use crate::transport::Link;
use crate::uri::PeerUri;
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
    /// Changes the paths of `link` whenever the user asks; none without a file.
    pub fn start(
        link: &Link,
        peer: &PeerUri,
        paths: &PathArgs,
        policies: &PolicyArgs,
    ) -> Result<Option<Self>, Failure> {
        let Some(file) = policies.config.clone() else { return Ok(None) };
        let now = paths.specs(peer.resolve()?)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(|e| Failure::network(format!("no signals: {e}")))?;
        let state = State { link: link.clone(), peer: peer.clone(), paths: paths.clone(), file };
        Ok(Some(Reload(tokio::spawn(async move {
            let mut now = now;
            while hangup.recv().await.is_some() {
                match state.wanted() {
                    Ok(wanted) => now = state.change(&now, wanted).await,
                    Err(failure) => warning(&format!("{failure}; the paths stay as they are")),
                }
            }
        }))))
    }
}

struct State {
    link: Link,
    peer: PeerUri,
    paths: PathArgs,
    file: PathBuf,
}

impl State {
    /// The paths that the file names now.
    fn wanted(&self) -> Result<Vec<PathSpec>, Failure> {
        let paths = PathArgs { paths: named(&self.file)?, ..self.paths.clone() };
        paths.specs(self.peer.resolve()?)
    }

    /// New ones first: they join by the old ones, which go when a new one works. Answers those that are there now.
    async fn change(&self, now: &[PathSpec], wanted: Vec<PathSpec>) -> Vec<PathSpec> {
        let add = |spec: &PathSpec| match self.link.add_path(spec) {
            Ok(()) => true,
            Err(failure) => {
                warning(&failure.to_string());
                false
            }
        };
        let there: Vec<_> = wanted.into_iter().filter(|spec| now.contains(spec) || add(spec)).collect();
        if there.is_empty() || tokio::time::timeout(JOINING, self.works(&there)).await.is_err() {
            warning("none of the paths named anew works; those before stay too");
            return now.iter().chain(&there).cloned().collect();
        }
        for gone in now.iter().filter(|old| there.iter().all(|spec| spec.local != old.local)) {
            self.link.leave_paths(&gone.local);
        }
        tracing::info!(?there, "paths read anew");
        there
    }

    /// Returns once one of these is in use.
    async fn works(&self, paths: &[PathSpec]) {
        let names: Vec<String> = paths.iter().map(|p| p.local.to_string()).collect();
        let active = |p: &PathReport| p.stats.state == PathState::Active && names.contains(&p.local);
        while !self.link.stats().paths.iter().any(active) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn named(file: &Path) -> Result<Vec<String>, Failure> {
    let table = config::read(file)?;
    let paths = table.get("path").and_then(config::texts).filter(|p| !p.is_empty());
    paths.ok_or_else(|| Failure::usage(format!("{} names no path", file.display())))
}
