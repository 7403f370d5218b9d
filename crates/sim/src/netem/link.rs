//! Links in netem's words; the grammar stands in the parent module.

use super::words::{self, Cursor, canonical};
use super::{ParseError, loss, queue, units};
use crate::Direction;
use crate::link::{Change, Jitter, LinkConfig, LossPoint, Schedule, Setting};
use crate::queue::Limit;
use anabranch_base::Duration;

/// Packets held unless told otherwise, as with netem.
const LIMIT: Limit = Limit::packets(1000);

/// Words that a caller reads beside those of links.
pub trait Guest {
    /// They.
    fn words(&self) -> &'static [&'static str];

    /// Reads the values of one of them. `at` is the time it is to happen, after the word `at`. True when it is a
    /// change at that time.
    ///
    /// # Errors
    /// What is wrong with the values.
    fn read(&mut self, word: &str, at: Option<Duration>, words: &mut Cursor<'_>) -> Result<bool, ParseError>;
}

/// No words of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGuest;

impl Guest for NoGuest {
    fn words(&self) -> &'static [&'static str] {
        &[]
    }
    fn read(&mut self, word: &str, _: Option<Duration>, _: &mut Cursor<'_>) -> Result<bool, ParseError> {
        Err(words::unknown(word, &[]))
    }
}

/// Something that happens later, in the order read.
#[derive(Clone, PartialEq, Debug)]
pub enum Later {
    /// To one link or, without a direction, to both.
    Link(Option<Direction>, Setting),
    /// What the guest knows.
    Guest,
}

/// One link while it is read.
#[derive(Clone, Debug)]
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

/// What words said about the links of both directions.
#[derive(Clone, Debug)]
pub struct Links {
    up: Draft,
    down: Draft,
    every: Option<Duration>,
    scheduled: bool,
    later: Vec<(Duration, Later)>,
}

impl Links {
    /// The links up and down, with this overhead where none was given.
    pub fn of(self, overhead: u32) -> (LinkConfig, LinkConfig) {
        (self.up.finish(overhead, self.every), self.down.finish(overhead, self.every))
    }

    /// Was there an `at` or `every`?
    pub fn scheduled(&self) -> bool {
        self.scheduled
    }

    /// After how long the schedule starts again.
    pub fn every(&self) -> Option<Duration> {
        self.every
    }

    /// Everything after an `at`, in the order read.
    pub fn later(&self) -> &[(Duration, Later)] {
        &self.later
    }
}

/// Reads the words of one link.
///
/// # Errors
/// The first word that makes no sense, and what to do.
pub fn read_link(words: &[String], guest: &mut dyn Guest) -> Result<Links, ParseError> {
    Reader::new(guest, false, None).finish(words)
}

/// Reads the words of both directions, where `up.` and `down.` before a word make it hold for one. With `from` all of
/// it happens at this time unless an `at` says otherwise.
///
/// # Errors
/// The first word that makes no sense, and what to do.
pub fn read_links(words: &[String], guest: &mut dyn Guest, from: Option<Duration>) -> Result<Links, ParseError> {
    Reader::new(guest, true, from).finish(words)
}

struct Reader<'g> {
    guest: &'g mut dyn Guest,
    directions: bool,
    /// After `at`: when.
    time: Option<Duration>,
    links: Links,
}

impl<'g> Reader<'g> {
    fn new(guest: &'g mut dyn Guest, directions: bool, time: Option<Duration>) -> Self {
        let links = Links { up: Draft::new(), down: Draft::new(), every: None, scheduled: false, later: Vec::new() };
        Reader { guest, directions, time, links }
    }

    fn finish(mut self, words: &[String]) -> Result<Links, ParseError> {
        self.read(&mut Cursor::new(words))?;
        Ok(self.links)
    }

    fn read(&mut self, words: &mut Cursor<'_>) -> Result<(), ParseError> {
        while let Some(word) = words.next() {
            let word = canonical(word);
            let (direction, bare) = self.direction(&word)?;
            match bare {
                "at" if direction.is_none() => {
                    self.time = Some(units::time("at", words.value("at", "a time such as 7s")?)?);
                    self.links.scheduled = true;
                }
                "every" if direction.is_none() => {
                    self.links.every = Some(units::time("every", words.value("every", "a time such as 60s")?)?);
                    self.links.scheduled = true;
                }
                _ if direction.is_none() && self.guest.words().contains(&bare) => {
                    if self.guest.read(bare, self.time, words)? {
                        self.links.later.push((self.time.unwrap_or_default(), Later::Guest));
                    }
                }
                "order" | "loss-at" | "overhead" | "queue" => self.fixed_word(direction, bare, words)?,
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
        if !self.directions {
            return Err(ParseError::new(format!("`{word}`: a single link has no directions; leave out the prefix")));
        }
        Ok(found)
    }

    fn drafts(&mut self, direction: Option<Direction>) -> impl Iterator<Item = &mut Draft> {
        let up = (direction != Some(Direction::Backward)).then_some(&mut self.links.up);
        let down = (direction != Some(Direction::Forward)).then_some(&mut self.links.down);
        up.into_iter().chain(down)
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
        if word == "queue" {
            let discipline = queue::value(words)?;
            self.drafts(direction).for_each(|d| d.config.discipline = discipline);
            return Ok(());
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
            _ => return Err(words::unknown(word, self.guest.words())),
        };
        for set in sets {
            self.take(direction, set);
        }
        Ok(())
    }

    fn limit(&mut self, direction: Option<Direction>, word: &str, words: &mut Cursor<'_>) -> Result<(), ParseError> {
        let text = words.value(word, "a number, such as 50, 50p or 64KB")?;
        let size = text.to_ascii_lowercase();
        let in_bytes = word == "limit-bytes" || size.ends_with('b');
        let value = match text {
            "none" => None,
            n if in_bytes => Some(units::bytes(word, n)?),
            n => Some(units::count(word, n.strip_suffix('p').unwrap_or(n), "packets")?),
        };
        let waiting_only = words.take_if("waiting");
        if value == Some(0) {
            return Err(ParseError::new(format!("`{word} 0` drops everything; use `down` to cut a path")));
        }
        for one in [Direction::Forward, Direction::Backward] {
            if direction.is_none_or(|d| d == one) {
                let mut limit = self.draft(one).limit;
                *(if in_bytes { &mut limit.bytes } else { &mut limit.packets }) = value;
                limit.waiting_only |= waiting_only;
                self.take(Some(one), Setting::Limit(limit));
            }
        }
        Ok(())
    }

    fn draft(&mut self, direction: Direction) -> &mut Draft {
        match direction {
            Direction::Forward => &mut self.links.up,
            Direction::Backward => &mut self.links.down,
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
            self.links.later.push((at, Later::Link(direction, set)));
        }
    }

    fn check_period(&self) -> Result<(), ParseError> {
        let last = [&self.links.up, &self.links.down].into_iter().flat_map(|d| &d.changes).map(|c| c.at);
        let last = last.chain(self.links.later.iter().map(|(at, _)| *at)).max();
        match (self.links.every, last) {
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

/// The shape of a jitter: `normal`, `uniform`, `exponential`, `distribution normal`, or nothing.
fn distribution(span: Duration, words: &mut Cursor<'_>) -> Result<Jitter, ParseError> {
    let named = words.take_if("distribution");
    let jitter = if words.take_if("normal") {
        Jitter::Normal(span)
    } else if words.take_if("exponential") {
        Jitter::Exponential(span)
    } else if words.take_if("uniform") || !named {
        Jitter::Uniform(span)
    } else {
        let other = words.peek().filter(|w| w.starts_with("pareto"));
        let other = other.map_or(String::new(), |w| format!("; netem's `{w}` is not supported"));
        return Err(ParseError::new(format!("`distribution` is `exponential`, `normal` or `uniform`{other}")));
    };
    Ok(if span.is_zero() { Jitter::None } else { jitter })
}
