//! What to emulate: in Rust, as text in netem's words, or as TOML.
//!
//! The grammar, for users and here:
//!
#![doc = include_str!("../../EMULATE.md")]

mod file;
mod relay;
mod text;

#[cfg(test)]
mod tests;

pub use anabranch_sim::netem::ParseError;
pub use relay::all_words;
pub use text::{PathChange, parse_changes, parse_link, parse_path};

use anabranch_base::Duration;
use anabranch_sim::{ConfigError, LinkConfig};
use std::net::{IpAddr, SocketAddr};

/// A whole emulator.
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct EmulatorConfig {
    /// The paths, at least one.
    pub paths: Vec<PathConfig>,
    /// Seed of all random streams.
    pub seed: u64,
}

/// One path: a relay and a link each way.
#[derive(Clone, PartialEq, Debug)]
pub struct PathConfig {
    /// Name, in statistics and of the random streams (`{name}.up.loss`, …). No two paths share one.
    pub name: String,
    /// Address to take datagrams on; port 0 chooses one.
    pub listen: SocketAddr,
    /// Address to pass them on to.
    pub to: SocketAddr,
    /// Address to send from, towards the target; `None` leaves it to the system.
    pub from: Option<IpAddr>,
    /// The link from the senders to the target.
    pub up: LinkConfig,
    /// The link from the target back.
    pub down: LinkConfig,
    /// When the relay changes the ports it sends from, since its start.
    pub rebinds: Vec<Duration>,
    /// After how long the list of rebinds starts again.
    pub rebinds_every: Option<Duration>,
}

impl PathConfig {
    /// A perfect path.
    pub fn new(name: &str, listen: SocketAddr, to: SocketAddr) -> Self {
        PathConfig {
            name: name.into(),
            listen,
            to,
            from: None,
            up: LinkConfig::ideal(),
            down: LinkConfig::ideal(),
            rebinds: Vec::new(),
            rebinds_every: None,
        }
    }

    fn check(&self) -> Result<(), ParseError> {
        let wrong =
            |direction: &str, e: ConfigError| ParseError::new(format!("path `{}`, {direction}: {e}", self.name));
        self.up.check().map_err(|e| wrong("up", e))?;
        self.down.check().map_err(|e| wrong("down", e))?;
        if self.to.port() == 0 {
            return Err(ParseError::new(format!("path `{}`: `to` needs a port other than 0", self.name)));
        }
        if self.to == self.listen {
            let to = self.to;
            return Err(ParseError::new(format!(
                "path `{}` leads to itself: it listens on {to} and sends there",
                self.name
            )));
        }
        if self.from.is_some_and(|from| from.is_ipv4() != self.to.is_ipv4()) {
            return Err(ParseError::new(format!(
                "path `{}`: `from` and `to` must both be IPv4 or both IPv6",
                self.name
            )));
        }
        Ok(())
    }
}

impl EmulatorConfig {
    /// An emulator of these paths, with seed 0.
    pub fn new(paths: Vec<PathConfig>) -> Self {
        EmulatorConfig { paths, seed: 0 }
    }

    /// An emulator of paths given as texts, with seed 0. Paths without a name are `path0`, `path1`
    /// and so on by their place.
    pub fn from_texts<'a>(paths: impl IntoIterator<Item = &'a str>) -> Result<Self, ParseError> {
        let paths = paths.into_iter().enumerate();
        let paths = paths.map(|(i, p)| text::path(p, &format!("path{i}"))).collect::<Result<_, _>>()?;
        let config = EmulatorConfig::new(paths);
        config.check()?;
        Ok(config)
    }

    /// Reads TOML. Unknown keys are errors.
    pub fn from_toml(toml: &str) -> Result<Self, ParseError> {
        let config = file::read(toml)?;
        config.check()?;
        Ok(config)
    }

    /// This configuration with another seed.
    #[must_use]
    pub fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What is wrong with the values, if anything.
    pub fn check(&self) -> Result<(), ParseError> {
        if self.paths.is_empty() {
            return Err(ParseError::new("there is no path to emulate; give at least one".into()));
        }
        for (i, path) in self.paths.iter().enumerate() {
            path.check()?;
            let others = self.paths.iter().take(i);
            if others.clone().any(|o| o.name == path.name) {
                return Err(ParseError::new(format!("two paths are called `{}`; rename one", path.name)));
            }
            if path.listen.port() != 0 && others.clone().any(|o| o.listen == path.listen) {
                return Err(ParseError::new(format!("two paths listen on {}; change one", path.listen)));
            }
        }
        Ok(())
    }
}
