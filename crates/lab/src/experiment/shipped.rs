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
    /// The folders of its scenarios.
    pub fn scenarios(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.files.iter().filter_map(|f| f.0.strip_suffix("/scenario.toml"))
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
    "rtx-csi":
        "experiment.toml", "claims.toml", "figures.toml", "p0.toml", "e1/scenario.toml", "e2-case1/scenario.toml",
        "e2-case2/scenario.toml", "calibration/scenario.toml", "ablation-readings/scenario.toml",
        "ablation-start/scenario.toml", "ablation-loss/scenario.toml", "ablation-era/scenario.toml",
        "ablation-oracle/scenario.toml";
};
