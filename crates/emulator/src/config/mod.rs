//! What to emulate: in Rust, as text in netem's words, or as TOML.
//!
//! # Text
//!
//! Words and their values, separated by spaces (`word=value` works too). A later word wins.
//!
//! | word | value | meaning | default |
//! |---|---|---|---|
//! | `listen` | `address:port` | where the relay takes datagrams; port 0 chooses one | needed |
//! | `to` | `address:port` | where it passes them on to | needed |
//! | `from` | `address` | address it sends from, towards the target | the system's choice |
//! | `name` | a word | name of the path in statistics and random streams | `path0`, `path1`, … |
//! | `rate` | `6mbit`, `800kbit`, `1mbyte`, `unlimited` | speed, a second | `unlimited` |
//! | `delay` | `30ms`, or `30ms 4ms`, or `30ms 4ms distribution normal` | time on the way, with jitter | `0ms` |
//! | `jitter` | `4ms` or `4ms normal` | even spread of ± this, or a normal one of this standard deviation | `0ms` |
//! | `order` | `kept` or `free` | may jitter make packets overtake each other? | `kept` |
//! | `loss` | see below | random loss | `none` |
//! | `loss-at` | `wire` or `entry` | is a lost packet lost after it used the rate, or before (as netem does)? | `wire` |
//! | `limit` | `40`, `none` | packets held, waiting or in transmission | `1000` |
//! | `limit-bytes` | `60000`, `none` | bytes held, headers included | `none` |
//! | `overhead` | `28` | header bytes that count for rate and `limit-bytes` in each packet | 28, with IPv6 48 |
//! | `mtu` | `1400`, `none` | largest datagram taken, in bytes of payload | `none` |
//! | `duplicate` | `1%` | share of packets that arrive twice | `0%` |
//! | `reorder` | `5%` | share of packets that skip the delay | `0%` |
//! | `down`, `up` | | the path is cut, is restored; `cut` and `restore` are the same | `up` |
//! | `at` | a time | everything after it, up to the next `at` or `every`, happens then | |
//! | `every` | a time | the schedule given by `at` starts again each time | once |
//! | `rebind` | | after `at`: the relay changes the ports it sends from, as a translator may | |
//!
//! `loss` takes one of
//! - `0.1%` or `random 0.1%`: each packet independently;
//! - `1% burst 5`: two states, 1 % lost in the mean, in bursts of 5 packets in the mean;
//! - `gemodel p=1% r=20%`, with `1-h=100%` and `1-k=0%` if wanted, or the four by position: the
//!   chain by its transition probabilities, as netem has it;
//! - `timed good=450ms bad=50ms`: two states that change with time, everything lost in the bad one;
//! - `packets 3,17`: exactly these, counted from 0;
//! - `none`.
//!
//! `up.` or `down.` before a word makes it hold for one direction only: up is from the sender to the
//! target, down is back. Without it a word holds for both. Times in a schedule count from the start
//! of the emulator.
//!
//! ```text
//! name wlan listen 127.0.0.1:9101 to 127.0.0.1:9899 rate 6mbit delay 30ms loss 0.1% limit 40 down.delay 5ms
//! name 3g listen 127.0.0.1:9102 to 127.0.0.1:9899 rate 4mbit delay 160ms at 7s down at 10s up at 16s delay 280ms
//! ```
//!
//! # TOML
//!
//! The same words as keys. A word for one direction goes into a table `up` or `down`.
//!
//! ```toml
//! seed = 1                      # of all random streams
//!
//! [[path]]
//! name = "wlan"
//! listen = "127.0.0.1:9101"
//! to = "127.0.0.1:9899"
//! rate = "6mbit"
//! delay = "30ms"
//! loss = "1% burst 5"
//! limit = 40
//! down = { delay = "5ms" }
//! schedule = ["7s down", "10s up", "16s delay 280ms"]
//! every = "60s"                 # optional
//!
//! [[path]]
//! listen = "127.0.0.1:9102"
//! to = "127.0.0.1:9899"
//! link = "rate 4mbit delay 160ms"   # text, before the other keys
//! ```

mod file;
mod loss;
mod text;
mod units;
mod words;

#[cfg(test)]
mod tests;

pub use text::{PathChange, parse_changes, parse_link, parse_path};

use anabranch_base::Duration;
use anabranch_sim::{ConfigError, LinkConfig};
use std::net::{IpAddr, SocketAddr};

/// A whole emulator.
#[derive(Clone, PartialEq, Debug, Default)]
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

    /// The same with another seed.
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

/// Why a text or file is not understood: one line that names the word and says what to do.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(String);

impl ParseError {
    pub(crate) fn new(message: String) -> Self {
        ParseError(message)
    }

    /// The same, with the place it happened in front.
    pub(crate) fn inside(self, place: &str) -> Self {
        ParseError(format!("{place}: {}", self.0))
    }
}
