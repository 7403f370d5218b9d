//! The words of a path that are not its links'.

use super::ParseError;
use anabranch_base::Duration;
use anabranch_sim::netem::{Cursor, Guest, LINK_WORDS};
use std::net::{IpAddr, SocketAddr};

pub(super) const PATH_WORDS: &[&str] = &["listen", "to", "from", "name", "rebind"];

/// Every word of the grammar.
pub fn all_words() -> impl Iterator<Item = &'static str> {
    LINK_WORDS.iter().chain(PATH_WORDS).copied()
}

/// A relay while it is read.
#[derive(Default)]
pub(super) struct Relay {
    pub name: Option<String>,
    pub listen: Option<SocketAddr>,
    pub to: Option<SocketAddr>,
    pub from: Option<IpAddr>,
}

impl Guest for Relay {
    fn words(&self) -> &'static [&'static str] {
        PATH_WORDS
    }

    fn read(&mut self, word: &str, at: Option<Duration>, words: &mut Cursor<'_>) -> Result<bool, ParseError> {
        if word == "rebind" {
            return match at {
                Some(_) => Ok(true),
                None => Err(ParseError::new("`rebind` needs a time before it, such as `at 5s rebind`".into())),
            };
        }
        let value = words.value(word, "a value")?;
        let address = || {
            let port = value.rsplit_once(':').map_or("", |(_, port)| port);
            let digits = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
            if digits && port.parse::<u16>().is_err() {
                return Err(ParseError::new(format!("`{word}`: a port is at most 65535, not {port}")));
            }
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
        Ok(false)
    }
}
