//! The experiments that come with the program.

use crate::scenario::{self, ScenarioError};

/// A folder of `experiments/`. The repository has them at its root; the link to there in this crate lets them travel
/// with its package.
#[derive(Debug)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// Its files by their path in the folder.
    pub files: &'static [(&'static str, &'static str)],
}

impl Shipped {
    /// Its scenarios: the name, and the text of the file.
    pub fn scenarios(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        let named = |path: &'static str| match path.strip_suffix("/scenario.toml") {
            Some(folder) => Some(folder),
            None if path.contains('/') => None,
            None => path.strip_suffix(".toml"),
        };
        // What others extend has no name of its own, nor have claims and figures.
        let scenario = |text: &str| text.lines().take_while(|l| !l.starts_with('[')).any(|l| l.starts_with("name ="));
        let one = move |f: &(&'static str, &'static str)| Some((named(f.0).filter(|n| *n != "experiment")?, f.1));
        self.files.iter().filter_map(one).filter(move |(_, text)| scenario(text))
    }

    /// The text of a file by its path in the folder.
    ///
    /// # Errors
    /// There is none.
    pub fn file(&self, path: &str) -> Result<String, String> {
        let found = self.files.iter().find(|f| f.0 == path);
        found.map(|f| f.1.to_owned()).ok_or_else(|| format!("there is no file `{path}`"))
    }

    /// The text of a shipped scenario, `rtx-csi/e1`, to be run from a file of its own, with what it extends put in; or
    /// of a recording beside one, `examples/cell.trace`. None when there is none.
    ///
    /// # Errors
    /// A mistake in it.
    pub fn text(name: &str) -> Option<Result<String, ScenarioError>> {
        let (of, part) = name.split_once('/')?;
        let shipped = SHIPPED.iter().find(|s| s.name == of)?;
        match shipped.scenarios().find(|s| s.0 == part) {
            Some((_, text)) => {
                Some(scenario::merged(name, text, &|other| shipped.file(other.trim_start_matches("../"))))
            }
            None => shipped.file(part).ok().map(Ok),
        }
    }

    /// The recordings that a shipped scenario reads: `examples/cell.trace`.
    pub fn recordings(name: &str) -> Vec<String> {
        let Some((of, part)) = name.split_once('/') else { return Vec::new() };
        let Some(shipped) = SHIPPED.iter().find(|s| s.name == of) else { return Vec::new() };
        let Some((_, text)) = shipped.scenarios().find(|s| s.0 == part) else { return Vec::new() };
        let read = |path: &&str| !path.ends_with(".toml") && text.contains(&format!("\"{path}\""));
        shipped.files.iter().map(|f| f.0).filter(read).map(|path| format!("{of}/{path}")).collect()
    }
}

macro_rules! shipped {
    ($($name:literal: $($file:literal),+;)*) => {
        &[$(Shipped {
            name: $name,
            files: &[$(($file, include_str!(concat!("../../experiments/", $name, "/", $file)))),+],
        }),*]
    };
}

/// All of them.
pub static SHIPPED: &[Shipped] = shipped! {
    "examples":
        "experiment.toml", "single-path.toml", "two-paths.toml", "over-time.toml", "tcp-beside-sctp.toml",
        "free-topology.toml", "video.toml", "phases.toml", "home-router.toml", "game-server.toml", "one-association.toml", "cell-and-wlan.toml", "cell.trace", "film.txt",
        "clip.toml", "clip.txt",
        "kinds-of-loss.toml", "losses.txt", "cross-traffic.toml", "tcp-now.toml", "mptcp.toml", "random-networks.toml",
        "square-root-law.toml", "square-root-law.csv", "kinds-of-figures.toml";
    "encoder":
        "experiment.toml", "claims.toml", "base.toml", "one-overload.toml", "overload-two.toml",
        "users-five.toml", "scarce.toml", "three-scarce.toml", "scarce-lossy.toml", "staircase.toml",
        "bufferbloat.toml", "collapse-one.toml", "collapse-best.toml", "one-collapse.toml",
        "collapse-both.toml", "three-collapse-all.toml", "three-fading.toml";
    "media-streams":
        "experiment.toml", "claims.toml", "figures.toml", "path.toml", "table1.toml", "table2.toml", "table3.toml",
        "queues.toml", "recovery.toml", "picture.toml", "ablation.toml", "sharing.toml", "handshake.toml", "handshake.txt";
    "messages":
        "experiment.toml", "claims.toml", "game.toml", "anchor.toml", "anchor-both.toml", "peers.toml", "intervals.toml",
        "grid.toml", "outage.toml", "unlike.toml", "unlike-back.toml", "overload-one.toml", "overload-two.toml", "bulk.toml", "take-over.toml", "start.toml";
    "rtx-csi":
        "experiment.toml", "claims.toml", "cases.toml", "figures.toml", "p0.toml", "e1/scenario.toml",
        "e1-segments/scenario.toml", "e2-case1/scenario.toml", "e2-case2/scenario.toml", "calibration/scenario.toml",
        "ablation-readings/scenario.toml", "ablation-scope/scenario.toml", "ablation-start/scenario.toml",
        "ablation-loss/scenario.toml", "ablation-era/scenario.toml", "ablation-oracle/scenario.toml";
    "thin-streams":
        "experiment.toml", "claims.toml", "figures.toml", "game.toml", "web.toml", "e1-components.toml", "e1.toml",
        "e2.toml", "e2-floor.toml", "e3.toml", "e4.toml", "thick.toml", "ablation.toml", "motive.toml",
        "motive-hour.toml", "kernel/e1-components.csv";
    "confluent-scheduling":
        "experiment.toml", "claims.toml", "figures.toml", "a.toml", "b.toml", "a-windows.toml", "b-windows.toml",
        "film-a.toml", "film-b.toml", "clip.toml", "clip.txt", "d.toml", "order.toml", "order-three.toml", "handover.toml", "live.toml";
    "cmt-cl-fd":
        "experiment.toml", "claims.toml", "claims-calibrated.toml", "claims-neutral.toml", "claims-own.toml",
        "figures.toml", "three-paths.toml", "shared.toml", "own-path.toml", "s1a.toml", "s1b.toml", "s1c.toml",
        "s2.toml", "f1.toml", "f1b.toml", "f1c.toml", "f2.toml", "f2b.toml", "way-back.toml", "ablation-radio.toml",
        "ablation-shared.toml", "live.toml";
    "fairness":
        "experiment.toml", "f1.toml", "f1-each.toml", "f2.toml", "disjoint.toml", "disjoint-each.toml", "grid.toml",
        "grid-each.toml", "radio.toml", "unseen.toml", "unseen-all.toml", "claims.toml";
    "loss-causes":
        "experiment.toml", "paper.toml", "paper-shared.toml", "grid.toml", "links.toml";
    "erasure":
        "experiment.toml", "claims.toml", "figures.toml", "jitter.toml", "film.toml", "clip.txt", "loss.toml", "share.toml", "spare.toml";
    "windows":
        "experiment.toml", "response.toml", "loss.toml", "queue.toml", "among.toml", "beside.toml", "claims.toml", "figures.toml";
    "weather":
        "experiment.toml", "one.toml", "several.toml", "one-start.toml", "one-spike-600ms.toml",
        "one-stopped-2s.toml", "one-collapse.toml", "one-dark-1s.toml", "one-loss-jitter.toml", "one-overload.toml",
        "one-mtu-600.toml", "start-even.toml", "start-unlike.toml", "start-far.toml", "unlike-loss.toml",
        "spike-one-300ms.toml", "spike-both-600ms.toml", "spike-both-1500ms.toml", "spike-both-3s.toml",
        "spike-one-3s.toml", "spike-one-5s.toml", "stopped-4s.toml", "stopped-300ms.toml", "stall-one-2s.toml",
        "ramp-one.toml", "ramp-both.toml", "collapse-one.toml", "collapse-best.toml", "collapse-both.toml",
        "dark-one-3s.toml", "dark-both-1s.toml", "dark-both-400ms.toml", "dark-both-5s.toml", "dark-up-one.toml",
        "dark-back-one.toml", "dark-back-both.toml", "handover.toml", "handover-gap.toml", "bursts-one.toml",
        "bursts-both.toml", "loss-0.1-jitter-1.toml", "loss-0.5-jitter-10.toml", "loss-2-jitter-10.toml",
        "loss-2-jitter-5-free.toml", "loss-5-jitter-50-free.toml", "loss-1-jitter-exponential.toml",
        "mtu-600-one.toml", "mtu-600-both.toml", "scarce.toml", "bufferbloat.toml", "short-queues.toml",
        "tcp-beside-one.toml", "tcp-beside-both.toml", "three-start.toml", "three-spike-one.toml",
        "three-spike-all.toml", "three-collapse-all.toml", "three-dark-two.toml", "three-fading.toml",
        "three-handovers.toml", "three-loss-mix.toml", "three-scarce.toml", "three-everything.toml";
};
