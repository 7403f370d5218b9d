//! Paths and links in netem's words; the grammar stands in the parent module.

use super::words::{self, Cursor, canonical, split};
use super::{ParseError, PathConfig, loss, units};
use anabranch_base::Duration;
use anabranch_sim::{Change, Direction, Jitter, Limit, LinkConfig, LossPoint, Schedule, Setting};
use std::net::{IpAddr, SocketAddr};

/// Packets held unless told otherwise, as with netem.
const LIMIT: Limit = Limit::packets(1000);
/// Header bytes of IPv4 and UDP.
const OVERHEAD_V4: u32 = 28;
/// Header bytes of IPv6 and UDP.
const OVERHEAD_V6: u32 = 48;

/// A change of a running path.
#[derive(Clone, PartialEq, Debug)]
pub enum PathChange {
    /// Of its links.
    Link {
        /// Which; `None` is both.
        direction: Option<Direction>,
        /// What.
        set: Setting,
    },
    /// The relay changes the ports it sends from.
    Rebind,
}

impl PathChange {
    /// A change of both links.
    pub const fn both(set: Setting) -> Self {
        PathChange::Link { direction: None, set }
    }
}

/// Reads one link, such as `rate 6mbit delay 30ms loss 0.1% limit 40 at 7s down at 10s up`. Words for
/// a relay or for one direction are errors here. `overhead` is 28 bytes unless given.
pub fn parse_link(text: &str) -> Result<LinkConfig, ParseError> {
    let words = split(text);
    let mut reader = Reader::new(Allowed { path: false, directions: false });
    reader.read(&mut Cursor::new(&words))?;
    Ok(reader.up.finish(OVERHEAD_V4, reader.every))
}

/// Reads one path: words of the link for both or one direction, and `listen`, `to`, `from`, `name`.
pub fn parse_path(text: &str) -> Result<PathConfig, ParseError> {
    path(text, "path0")
}

/// Reads changes for a running path, such as `delay 280ms`, `up.rate 2mbit loss 1%`, `down` or
/// `rebind`.
pub fn parse_changes(text: &str) -> Result<Vec<PathChange>, ParseError> {
    let words = split(text);
    let mut reader = Reader::new(Allowed { path: false, directions: true });
    reader.time = Some(Duration::ZERO);
    reader.read(&mut Cursor::new(&words))?;
    if reader.scheduled {
        return Err(ParseError::new("changes happen at once; leave out `at` and `every`".into()));
    }
    Ok(reader.changes.into_iter().map(|(_, change)| change).collect())
}

/// Reads one path; `name` is what it is called unless it says so itself.
pub(super) fn path(text: &str, name: &str) -> Result<PathConfig, ParseError> {
    path_of_words(&split(text), name)
}

pub(super) fn path_of_words(words: &[String], name: &str) -> Result<PathConfig, ParseError> {
    let mut reader = Reader::new(Allowed { path: true, directions: true });
    reader.read(&mut Cursor::new(words))?;
    let name = reader.name.unwrap_or_else(|| name.into());
    let missing = |word: &str| {
        ParseError::new(format!("path `{name}` needs `{word}` with an address and port, such as {word} 127.0.0.1:9101"))
    };
    let listen = reader.listen.ok_or_else(|| missing("listen"))?;
    let to = reader.to.ok_or_else(|| missing("to"))?;
    let overhead = if to.is_ipv6() { OVERHEAD_V6 } else { OVERHEAD_V4 };
    let rebinds: Vec<Duration> =
        reader.changes.iter().filter(|(_, c)| *c == PathChange::Rebind).map(|(at, _)| *at).collect();
    Ok(PathConfig {
        listen,
        to,
        from: reader.from,
        up: reader.up.finish(overhead, reader.every),
        down: reader.down.finish(overhead, reader.every),
        rebinds_every: reader.every.filter(|_| !rebinds.is_empty()),
        rebinds,
        name,
    })
}

/// Which words this text may have.
#[derive(Clone, Copy)]
struct Allowed {
    path: bool,
    directions: bool,
}

/// One link while it is read.
#[derive(Clone)]
struct Draft {
    config: LinkConfig,
    overhead: Option<u32>,
    changes: Vec<Change>,
    /// The limit as of the last word, so that packets and bytes can change apart.
    limit: Limit,
}

impl Draft {
    fn new() -> Self {
        let config = LinkConfig { limit: LIMIT, ..LinkConfig::ideal() };
        Draft { config, overhead: None, changes: Vec::new(), limit: LIMIT }
    }

    fn finish(self, overhead: u32, every: Option<Duration>) -> LinkConfig {
        let mut schedule = Schedule::once(self.changes);
        if let Some(period) = every {
            schedule.repeat(period);
        }
        LinkConfig { overhead: self.overhead.unwrap_or(overhead), schedule, ..self.config }
    }
}

struct Reader {
    allowed: Allowed,
    up: Draft,
    down: Draft,
    /// After `at`: when.
    time: Option<Duration>,
    every: Option<Duration>,
    /// Was there an `at` or `every`?
    scheduled: bool,
    /// Everything after an `at`, in the order read.
    changes: Vec<(Duration, PathChange)>,
    name: Option<String>,
    listen: Option<SocketAddr>,
    to: Option<SocketAddr>,
    from: Option<IpAddr>,
}

impl Reader {
    fn new(allowed: Allowed) -> Self {
        Reader {
            allowed,
            up: Draft::new(),
            down: Draft::new(),
            time: None,
            every: None,
            scheduled: false,
            changes: Vec::new(),
            name: None,
            listen: None,
            to: None,
            from: None,
        }
    }

    fn read(&mut self, words: &mut Cursor<'_>) -> Result<(), ParseError> {
        while let Some(word) = words.next() {
            let word = canonical(word);
            let (direction, bare) = self.direction(&word)?;
            match bare {
                "at" if direction.is_none() => {
                    self.time = Some(units::time("at", words.value("at", "a time such as 7s")?)?);
                    self.scheduled = true;
                }
                "every" if direction.is_none() => {
                    self.every = Some(units::time("every", words.value("every", "a time such as 60s")?)?);
                    self.scheduled = true;
                }
                "rebind" if direction.is_none() && (self.allowed.path || self.allowed.directions) => {
                    let at = self.time.ok_or_else(|| {
                        ParseError::new("`rebind` needs a time before it, such as `at 5s rebind`".into())
                    })?;
                    self.changes.push((at, PathChange::Rebind));
                }
                "listen" | "to" | "from" | "name" if direction.is_none() && self.allowed.path => {
                    self.relay_word(bare, words)?;
                }
                "order" | "loss-at" | "overhead" => self.fixed_word(direction, bare, words)?,
                _ => self.setting(direction, bare, &word, words)?,
            }
        }
        self.check_period()
    }

    /// Takes the prefix of a direction off a word.
    fn direction<'w>(&self, word: &'w str) -> Result<(Option<Direction>, &'w str), ParseError> {
        let found = match (word.strip_prefix("up."), word.strip_prefix("down.")) {
            (Some(bare), _) => (Some(Direction::Forward), bare),
            (_, Some(bare)) => (Some(Direction::Backward), bare),
            _ => return Ok((None, word)),
        };
        if !self.allowed.directions {
            return Err(ParseError::new(format!("`{word}`: a single link has no directions; leave out the prefix")));
        }
        Ok(found)
    }

    fn drafts(&mut self, direction: Option<Direction>) -> impl Iterator<Item = &mut Draft> {
        let up = (direction != Some(Direction::Backward)).then_some(&mut self.up);
        let down = (direction != Some(Direction::Forward)).then_some(&mut self.down);
        up.into_iter().chain(down)
    }

    fn relay_word(&mut self, word: &str, words: &mut Cursor<'_>) -> Result<(), ParseError> {
        let value = words.value(word, "a value")?;
        let address = || {
            value.parse::<SocketAddr>().map_err(|_| {
                ParseError::new(format!(
                    "`{word}` needs an address and port such as 127.0.0.1:9101 or [::1]:9101, not `{value}`"
                ))
            })
        };
        match word {
            "listen" => self.listen = Some(address()?),
            "to" => self.to = Some(address()?),
            "from" => {
                let from = value.parse::<IpAddr>().map_err(|_| {
                    ParseError::new(format!("`from` needs an address without port, such as 127.0.0.2, not `{value}`"))
                })?;
                self.from = Some(from);
            }
            _ => self.name = Some(value.into()),
        }
        Ok(())
    }

    /// Words that cannot change while a link runs.
    fn fixed_word(
        &mut self,
        direction: Option<Direction>,
        word: &str,
        words: &mut Cursor<'_>,
    ) -> Result<(), ParseError> {
        if self.time.is_some() {
            return Err(ParseError::new(format!(
                "`{word}` cannot change while a path runs; give it at the start, before any `at`"
            )));
        }
        let value = words.value(word, "a value")?;
        let wrong = |choices: &str| ParseError::new(format!("`{word}` is {choices}, not `{value}`"));
        match (word, value) {
            ("order", "kept") => self.drafts(direction).for_each(|d| d.config.jitter_reorders = false),
            ("order", "free") => self.drafts(direction).for_each(|d| d.config.jitter_reorders = true),
            ("order", _) => return Err(wrong("`kept` or `free`")),
            ("loss-at", "wire") => self.drafts(direction).for_each(|d| d.config.loss_point = LossPoint::Wire),
            ("loss-at", "entry") => self.drafts(direction).for_each(|d| d.config.loss_point = LossPoint::Entry),
            ("loss-at", _) => return Err(wrong("`wire` or `entry`")),
            _ => {
                let bytes = value
                    .parse()
                    .map_err(|_| ParseError::new(format!("`overhead` needs a whole number of bytes, not `{value}`")))?;
                self.drafts(direction).for_each(|d| d.overhead = Some(bytes));
            }
        }
        Ok(())
    }

    /// Words that can also change while a link runs.
    fn setting(
        &mut self,
        direction: Option<Direction>,
        bare: &str,
        word: &str,
        words: &mut Cursor<'_>,
    ) -> Result<(), ParseError> {
        let sets = match bare {
            "limit" | "limit-bytes" => return self.limit(direction, bare, words),
            "rate" => vec![Setting::Rate(units::rate(word, words.value(word, "a rate such as 6mbit")?)?)],
            "delay" => delay(word, words)?,
            "jitter" => {
                let span = units::time(word, words.value(word, "a time such as 4ms")?)?;
                vec![Setting::Jitter(distribution(span, words)?)]
            }
            "loss" => vec![Setting::Loss(loss::value(words)?)],
            "mtu" => vec![Setting::Mtu(match words.value(word, "a size in bytes")? {
                "none" => None,
                size => Some(units::count(word, size, "bytes")?.try_into().unwrap_or(u32::MAX)),
            })],
            "duplicate" => vec![Setting::Duplicate(units::share(word, words.value(word, "a share such as 1%")?)?)],
            "reorder" => vec![Setting::Reorder(units::share(word, words.value(word, "a share such as 5%")?)?)],
            "down" | "cut" => vec![Setting::Down],
            "up" | "restore" => vec![Setting::Up],
            _ => return Err(words::unknown(word, self.allowed.path)),
        };
        for set in sets {
            self.take(direction, set);
        }
        Ok(())
    }

    fn limit(&mut self, direction: Option<Direction>, word: &str, words: &mut Cursor<'_>) -> Result<(), ParseError> {
        let what = if word == "limit" { "packets" } else { "bytes" };
        let value = match words.value(word, &format!("a number of {what}"))? {
            "none" => None,
            n => Some(units::count(word, n, what)?),
        };
        if value == Some(0) {
            return Err(ParseError::new(format!("`{word} 0` drops everything; use `down` to cut a path")));
        }
        for one in [Direction::Forward, Direction::Backward] {
            if direction.is_none_or(|d| d == one) {
                let mut limit = self.draft(one).limit;
                *(if word == "limit" { &mut limit.packets } else { &mut limit.bytes }) = value;
                self.take(Some(one), Setting::Limit(limit));
            }
        }
        Ok(())
    }

    fn draft(&mut self, direction: Direction) -> &mut Draft {
        match direction {
            Direction::Forward => &mut self.up,
            Direction::Backward => &mut self.down,
        }
    }

    /// A setting holds from the start, or from the time of the last `at`.
    fn take(&mut self, direction: Option<Direction>, set: Setting) {
        let time = self.time;
        for draft in self.drafts(direction) {
            if let Setting::Limit(limit) = set {
                draft.limit = limit;
            }
            match time {
                Some(at) => draft.changes.push(Change { at, set: set.clone() }),
                None => initial(draft, set.clone()),
            }
        }
        if let Some(at) = time {
            self.changes.push((at, PathChange::Link { direction, set }));
        }
    }

    fn check_period(&self) -> Result<(), ParseError> {
        let last = [&self.up, &self.down].into_iter().flat_map(|d| &d.changes).map(|c| c.at);
        let last = last.chain(self.changes.iter().map(|(at, _)| *at)).max();
        match (self.every, last) {
            (Some(_), None) => Err(ParseError::new("`every` repeats a schedule, but there is no `at`".into())),
            (Some(every), Some(last)) if every <= last => {
                Err(ParseError::new(format!("`every` must be longer than the last `at` ({last})")))
            }
            _ => Ok(()),
        }
    }
}

fn initial(draft: &mut Draft, set: Setting) {
    match set {
        Setting::Rate(rate) => draft.config.rate = rate,
        Setting::Delay(delay) => draft.config.delay = delay,
        Setting::Jitter(jitter) => draft.config.jitter = jitter,
        Setting::Loss(loss) => draft.config.loss = loss,
        Setting::Limit(limit) => draft.config.limit = limit,
        Setting::Duplicate(p) => draft.config.duplicate = p,
        Setting::Reorder(p) => draft.config.reorder = p,
        Setting::Mtu(mtu) => draft.config.mtu = mtu,
        set @ (Setting::Down | Setting::Up) => draft.changes.push(Change { at: Duration::ZERO, set }),
    }
}

/// `delay 30ms`, `delay 30ms 4ms`, `delay 30ms 4ms distribution normal`.
fn delay(word: &str, words: &mut Cursor<'_>) -> Result<Vec<Setting>, ParseError> {
    let mut sets = vec![Setting::Delay(units::time(word, words.value(word, "a time such as 30ms")?)?)];
    if let Some(next) = words.peek().filter(|w| w.starts_with(|c: char| c.is_ascii_digit())) {
        words.skip();
        let span = units::time("jitter", next)?;
        sets.push(Setting::Jitter(distribution(span, words)?));
    }
    Ok(sets)
}

/// The shape of a jitter: `normal`, `uniform`, `distribution normal`, or nothing.
fn distribution(span: Duration, words: &mut Cursor<'_>) -> Result<Jitter, ParseError> {
    let named = words.take_if("distribution");
    let jitter = if words.take_if("normal") {
        Jitter::Normal(span)
    } else if words.take_if("uniform") || !named {
        Jitter::Uniform(span)
    } else {
        let other = words.peek().filter(|w| w.starts_with("pareto"));
        let other = other.map_or(String::new(), |w| format!("; netem's `{w}` is not supported"));
        return Err(ParseError::new(format!("`distribution` is `normal` or `uniform`{other}")));
    };
    Ok(if span.is_zero() { Jitter::None } else { jitter })
}
