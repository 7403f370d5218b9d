//! Links in netem's words; the parent module has the grammar.

use super::units::{self, ValueError};
use super::words::{self, Cursor, canonical};
use super::{ParseError, loss, queue};
use crate::Direction;
use crate::damage::DamageConfig;
use crate::link::{Change, Jitter, LinkConfig, LossPoint, Schedule, Setting};
use crate::queue::Limit;
use anabranch_base::Duration;

/// A link layer repeats a frame a few times: 802.11 four or seven times.
const MOST_REPEATS: u32 = 255;

/// Packets held by default, as with netem.
const LIMIT: Limit = Limit::packets(1000);

/// Further words of a caller, read beside those of links.
pub trait Guest {
    /// The further words.
    fn words(&self) -> &'static [&'static str];

    /// Reads the values of one of them. `at` is the time it is to happen, after the word `at`. True when it is a
    /// change at that time.
    ///
    /// # Errors
    /// What is wrong with the values.
    fn read(&mut self, word: &str, at: Option<Duration>, words: &mut Cursor<'_>) -> Result<bool, ParseError>;
}

/// No further words.
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
    let mut reader = LinkReader { directions: false, ..LinkReader::new(guest, None) };
    reader.read(words)?;
    reader.finish()
}

/// Reads the words of both directions, where `up.` and `down.` before a word make it hold for one. With `from` all of
/// it happens at this time unless an `at` says otherwise.
///
/// # Errors
/// The first word that makes no sense, and what to do.
pub fn read_links(words: &[String], guest: &mut dyn Guest, from: Option<Duration>) -> Result<Links, ParseError> {
    let mut reader = LinkReader::new(guest, from);
    reader.read(words)?;
    reader.finish()
}

/// Reads links in pieces, for callers that keep each word and its values in a place of their own and want to know in
/// which one a mistake is. A piece ends its last word: values do not run on into the next.
pub struct LinkReader<'g> {
    guest: &'g mut dyn Guest,
    directions: bool,
    /// After `at`: when.
    time: Option<Duration>,
    links: Links,
}

impl<'g> LinkReader<'g> {
    /// Nothing read yet; with `from`, what comes before any `at` happens at this time.
    pub fn new(guest: &'g mut dyn Guest, from: Option<Duration>) -> Self {
        let links = Links { up: Draft::new(), down: Draft::new(), every: None, scheduled: false, later: Vec::new() };
        LinkReader { guest, directions: true, time: from, links }
    }

    /// Everything after an `at` so far, in the order read.
    pub fn later(&self) -> &[(Duration, Later)] {
        &self.links.later
    }

    /// The links, when all is read.
    ///
    /// # Errors
    /// A schedule that starts again before it has ended.
    pub fn finish(self) -> Result<Links, ParseError> {
        self.check_period()?;
        Ok(self.links)
    }

    /// Reads words with their values.
    ///
    /// # Errors
    /// The first word that makes no sense, and what to do.
    pub fn read(&mut self, words: &[String]) -> Result<(), ParseError> {
        let mut cursor = Cursor::new(words);
        loop {
            let at = cursor.position();
            let Some(word) = cursor.next() else { return Ok(()) };
            self.word(word, &mut cursor).map_err(|e| e.at_word(at))?;
        }
    }

    fn word(&mut self, word: &str, words: &mut Cursor<'_>) -> Result<(), ParseError> {
        let word = canonical(word);
        let (direction, bare) = self.direction(&word)?;
        match bare {
            "at" if direction.is_none() => {
                self.time = Some(words.read("at", "a time such as 7s", units::time)?);
                self.links.scheduled = true;
            }
            "every" if direction.is_none() => {
                self.links.every = Some(words.read("every", "a time such as 60s", units::time)?);
                self.links.scheduled = true;
            }
            _ if direction.is_none() && self.guest.words().contains(&bare) => {
                if self.guest.read(bare, self.time, words)? {
                    self.links.later.push((self.time.unwrap_or_default(), Later::Guest));
                }
            }
            "order" | "loss-at" | "arq" | "overhead" | "queue" => self.fixed_word(direction, bare, words)?,
            _ => self.setting(direction, bare, &word, words)?,
        }
        Ok(())
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
            let says = "cannot change while a path runs; give it at the start, before any `at`";
            return Err(ParseError::about(word, says));
        }
        if word == "queue" {
            let discipline = queue::value(words)?;
            self.drafts(direction).for_each(|d| d.config.discipline = discipline);
            return Ok(());
        }
        let value = words.value(word, "a value")?;
        let wrong = |choices: &str| ParseError::about(word, format!("is {choices}, not `{value}`"));
        match (word, value) {
            ("order", "kept") => self.drafts(direction).for_each(|d| d.config.jitter_reorders = false),
            ("order", "free") => self.drafts(direction).for_each(|d| d.config.jitter_reorders = true),
            ("order", _) => return Err(wrong("`kept` or `free`")),
            ("loss-at", "wire") => self.drafts(direction).for_each(|d| d.config.loss_point = LossPoint::Wire),
            ("loss-at", "entry") => self.drafts(direction).for_each(|d| d.config.loss_point = LossPoint::Entry),
            ("loss-at", _) => return Err(wrong("`wire` or `entry`")),
            ("arq", value) => {
                let times = if value == "none" { Some(0) } else { value.parse().ok().filter(|n| *n <= MOST_REPEATS) };
                let what = || format!("a number of repetitions from 0 to {MOST_REPEATS}");
                let times = times.ok_or_else(|| ValueError::needs(what(), value).of(word))?;
                self.drafts(direction).for_each(|d| d.config.repeats = times);
            }
            _ => {
                let bytes = units::count(value, "bytes").ok().and_then(|n| n.try_into().ok());
                let bytes = bytes.ok_or_else(|| ValueError::needs("a whole number of bytes", value).of(word))?;
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
            "rate" => vec![Setting::Rate(words.read(word, "a rate such as 6mbit", units::rate)?)],
            "delay" => delay(word, words)?,
            "jitter" => {
                let span = words.read(word, "a time such as 4ms", units::time)?;
                vec![Setting::Jitter(distribution(span, words)?)]
            }
            "loss" => vec![Setting::Loss(loss::value(words)?)],
            "mtu" => vec![Setting::Mtu(match words.value(word, "a size in bytes")? {
                "none" => None,
                size => match units::count(size, "bytes").map_err(|e| e.of(word))? {
                    0 => {
                        let what = format!(
                            "`{word} 0` drops everything; use `down` to cut a path, `{word} none` for no limit"
                        );
                        return Err(ParseError::new(what));
                    }
                    size => Some(size.try_into().unwrap_or(u32::MAX)),
                },
            })],
            "duplicate" => vec![Setting::Duplicate(words.read(word, "a share such as 1%", units::share)?)],
            "reorder" => vec![Setting::Reorder(words.read(word, "a share such as 5%", units::share)?)],
            "corrupt" => vec![Setting::Damage(damage(words)?)],
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
            n if in_bytes => Some(units::bytes(n).map_err(|e| e.of(word))?),
            n => Some(units::count(n.strip_suffix('p').unwrap_or(n), "packets").map_err(|e| e.of(word))?),
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
            (Some(_), None) => Err(ParseError::about("every", "repeats a schedule, but there is no `at`")),
            (Some(every), Some(last)) if every <= last => {
                Err(ParseError::about("every", format!("must be longer than the last `at` ({last})")))
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
        Setting::Damage(damage) => draft.config.damage = damage,
        Setting::Mtu(mtu) => draft.config.mtu = mtu,
        set @ (Setting::Down | Setting::Up) => draft.changes.push(Change { at: Duration::ZERO, set }),
    }
}

/// `corrupt 1%`, `corrupt bits 1e-6`, `corrupt blocks`, `corrupt blocks 3% 5%`, `corrupt none`.
fn damage(words: &mut Cursor<'_>) -> Result<DamageConfig, ParseError> {
    Ok(match words.value("corrupt", "a share of the packets such as 0.1%, `bits`, `blocks` or `none`")? {
        "none" => DamageConfig::None,
        "bits" => DamageConfig::Bits { rate: words.read("corrupt bits", "a bit-error rate such as 1e-6", bit_rate)? },
        "blocks" if words.peek().is_some_and(|w| w.starts_with(|c: char| c.is_ascii_digit())) => DamageConfig::Blocks {
            packets: words.read("corrupt blocks", "a share of the packets such as 3%", units::share)?,
            blocks: words.read("corrupt blocks", "behind it a share of their blocks such as 5%", units::share)?,
        },
        "blocks" => DamageConfig::BECKE,
        share => DamageConfig::OneBit { packets: units::share(share).map_err(|e| e.of("corrupt"))? },
    })
}

/// A share of the bits: a plain number, as bit-error rates are written.
fn bit_rate(text: &str) -> Result<f64, ValueError> {
    let rate = text.parse::<f64>().ok().filter(|r| (0.0..=1.0).contains(r));
    rate.ok_or_else(|| ValueError::needs("a number from 0 to 1 such as 1e-6", text))
}

/// Words of a jitter's shape.
const SHAPES: [&str; 6] = ["distribution", "normal", "uniform", "exponential", "pareto", "paretonormal"];

/// `delay 30ms`, `delay 30ms 4ms`, `delay 30ms 4ms distribution normal`.
fn delay(word: &str, words: &mut Cursor<'_>) -> Result<Vec<Setting>, ParseError> {
    let mut sets = vec![Setting::Delay(words.read(word, "a time such as 30ms", units::time)?)];
    if let Some(next) = words.peek().filter(|w| w.starts_with(|c: char| c.is_ascii_digit())) {
        words.skip();
        let span = units::time(next).map_err(|e| e.of("jitter"))?;
        sets.push(Setting::Jitter(distribution(span, words)?));
    } else if let Some(shape) = words.peek().filter(|w| SHAPES.contains(w)) {
        return Err(ParseError::about(
            word,
            format!("needs a jitter in front of `{shape}`, such as `delay 30ms 4ms distribution normal`"),
        ));
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
        return Err(ParseError::about("distribution", format!("is `exponential`, `normal` or `uniform`{other}")));
    };
    Ok(if span.is_zero() { Jitter::None } else { jitter })
}
