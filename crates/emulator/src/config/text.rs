//! Paths and links in netem's words; the parent module has the grammar.

use super::relay::{PATH_WORDS, Relay};
use super::{ParseError, PathConfig};
use anabranch_base::Duration;
use anabranch_sim::netem::{Cursor, Guest, Later, read_link, read_links, split, unknown};
use anabranch_sim::{Direction, LinkConfig, Setting};

/// Header bytes of IPv4 and UDP.
const OVERHEAD_V4: u32 = 28;
/// Header bytes of IPv6 and UDP.
const OVERHEAD_V6: u32 = 48;

/// A change of a running path.
#[derive(Clone, PartialEq, Debug)]
pub enum PathChange {
    /// Of the path's links.
    Link {
        /// Direction of the link; `None` is both.
        direction: Option<Direction>,
        /// New value.
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

    fn of(later: &Later) -> Self {
        match later {
            Later::Link(direction, set) => PathChange::Link { direction: *direction, set: set.clone() },
            Later::Guest => PathChange::Rebind,
        }
    }
}

/// Reads one link, such as `rate 6mbit delay 30ms loss 0.1% limit 40 at 7s down at 10s up`. Words for
/// a relay or for one direction are errors here. `overhead` is 28 bytes unless given.
pub fn parse_link(text: &str) -> Result<LinkConfig, ParseError> {
    let words = split(text, PATH_WORDS);
    let link = read_link(&words, &mut Strangers { rebind: false })?.of(OVERHEAD_V4).0;
    refuse_marks([&link])?;
    Ok(link)
}

/// Reads one path: words of the link for both or one direction, and `listen`, `to`, `from`, `name`.
pub fn parse_path(text: &str) -> Result<PathConfig, ParseError> {
    path(text, "path0")
}

/// Reads changes for a running path, such as `delay 280ms`, `up.rate 2mbit loss 1%`, `down` or
/// `rebind`.
pub fn parse_changes(text: &str) -> Result<Vec<PathChange>, ParseError> {
    let words = split(text, PATH_WORDS);
    let links = read_links(&words, &mut Strangers { rebind: true }, Some(Duration::ZERO))?;
    if links.scheduled() {
        return Err(ParseError::new("changes happen at once; leave out `at` and `every`".into()));
    }
    Ok(links.later().iter().map(|(_, later)| PathChange::of(later)).collect())
}

/// Reads one path; `name` is what it is called unless it says so itself.
pub(super) fn path(text: &str, name: &str) -> Result<PathConfig, ParseError> {
    path_of_words(&split(text, PATH_WORDS), name)
}

pub(super) fn path_of_words(words: &[String], name: &str) -> Result<PathConfig, ParseError> {
    let mut relay = Relay::default();
    check_said(words)?;
    let links = read_links(words, &mut relay, None)?;
    check_order(links.later())?;
    let rebinds = links.later().iter().filter(|(_, l)| *l == Later::Guest).map(|(at, _)| *at);
    let rebinds: Vec<Duration> = rebinds.collect();
    let rebinds_every = links.every().filter(|_| !rebinds.is_empty());
    let name = relay.name.unwrap_or_else(|| name.into());
    let missing = |word: &str| {
        ParseError::new(format!("path `{name}` needs `{word}` with an address and port, such as {word} 127.0.0.1:9101"))
    };
    let listen = relay.listen.ok_or_else(|| missing("listen"))?;
    let to = relay.to.ok_or_else(|| missing("to"))?;
    let (up, down) = links.of(if to.is_ipv6() { OVERHEAD_V6 } else { OVERHEAD_V4 });
    refuse_marks([&up, &down])?;
    Ok(PathConfig { listen, to, from: relay.from, up, down, rebinds_every, rebinds, name })
}

/// A schedule says something at each of its times.
fn check_said(words: &[String]) -> Result<(), ParseError> {
    let ends = |word: Option<&String>| word.is_none_or(|w| w == "at" || w == "every");
    // What is no time is said to be none by the reader.
    let starts = |word: Option<&String>| word.is_some_and(|w| w.starts_with(|c: char| c.is_ascii_digit()));
    let is_time = |i: &usize| {
        words.get(*i).is_some_and(|w| w == "at") && (*i == 0 || words.get(i - 1).is_none_or(|w| w != "name"))
    };
    match (0..words.len()).filter(is_time).find(|i| starts(words.get(i + 1)) && ends(words.get(i + 2))) {
        Some(i) => {
            let time = words.get(i + 1).map_or("", String::as_str);
            Err(ParseError::new(format!("`at {time}`: nothing happens then; write for example at {time} down")))
        }
        None => Ok(()),
    }
}

/// Times of a schedule rise.
fn check_order(later: &[(Duration, Later)]) -> Result<(), ParseError> {
    match later.windows(2).find_map(|w| <&[_; 2]>::try_from(w).ok().filter(|[a, b]| b.0 < a.0)) {
        Some([a, b]) => {
            let (late, early) = (a.0.as_secs_f64(), b.0.as_secs_f64());
            let text = format!("a schedule goes forward: {early}s comes after {late}s; put the earlier time first");
            Err(ParseError::new(text))
        }
        None => Ok(()),
    }
}

/// A relay has no say in the IP header of what it passes on.
fn refuse_marks<'a>(links: impl IntoIterator<Item = &'a LinkConfig>) -> Result<(), ParseError> {
    match links.into_iter().any(|l| l.discipline.marks()) {
        true => Err(ParseError::new("`queue`: a relay cannot mark packets; leave out `ecn=` and `mark=`".into())),
        false => Ok(()),
    }
}

/// Words of a path that have no meaning for a single link.
struct Strangers {
    /// `rebind` is allowed all the same.
    rebind: bool,
}

impl Guest for Strangers {
    fn words(&self) -> &'static [&'static str] {
        PATH_WORDS
    }

    fn read(&mut self, word: &str, _: Option<Duration>, _: &mut Cursor<'_>) -> Result<bool, ParseError> {
        match word {
            "rebind" if self.rebind => Ok(true),
            _ if PATH_WORDS.contains(&word) => {
                Err(ParseError::new(format!("`{word}` is a word for a whole path and has no place here")))
            }
            _ => Err(unknown(word, &[])),
        }
    }
}
