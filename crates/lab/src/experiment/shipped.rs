//! The experiments that come with the program.

/// A folder of `experiments/` in the repository.
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
            None if self.name == "examples" => path.strip_suffix(".toml").filter(|n| *n != "experiment"),
            None => None,
        };
        self.files.iter().filter_map(move |f| Some((named(f.0)?, f.1)))
    }

    /// The text of a shipped scenario, `rtx-csi/e1`, as its file has it.
    pub fn text(name: &str) -> Option<&'static str> {
        let (of, part) = name.split_once('/')?;
        SHIPPED.iter().find(|s| s.name == of)?.scenarios().find(|s| s.0 == part).map(|s| s.1)
    }
}

macro_rules! shipped {
    ($($name:literal: $($file:literal),+;)*) => {
        &[$(Shipped {
            name: $name,
            files: &[$(($file, include_str!(concat!("../../../../experiments/", $name, "/", $file)))),+],
        }),*]
    };
}

/// All of them.
pub static SHIPPED: &[Shipped] = shipped! {
    "examples":
        "experiment.toml", "single-path.toml", "two-paths.toml", "over-time.toml", "tcp-beside-sctp.toml",
        "free-topology.toml", "video.toml";
    "rtx-csi":
        "experiment.toml", "claims.toml", "figures.toml", "p0.toml", "e1/scenario.toml", "e2-case1/scenario.toml",
        "e2-case2/scenario.toml", "calibration/scenario.toml", "ablation-readings/scenario.toml",
        "ablation-start/scenario.toml", "ablation-loss/scenario.toml", "ablation-era/scenario.toml",
        "ablation-oracle/scenario.toml";
};
