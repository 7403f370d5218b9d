//! Values with their units, as TOML texts.

use anabranch_base::{Duration, Rate};
use anabranch_sim::netem::{ParseError, units};
use serde::{Deserialize, Deserializer};

fn text<'de, D: Deserializer<'de>, T>(d: D, read: impl Fn(&str) -> Result<T, ParseError>) -> Result<T, D::Error> {
    let text = String::deserialize(d)?;
    read(&text).map_err(|e| {
        let message = e.to_string();
        serde::de::Error::custom(message.strip_prefix("`value` ").unwrap_or(&message))
    })
}

/// A span of time: `"30s"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Time(pub Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        text(d, |t| units::time("value", t)).map(Time)
    }
}

/// A rate: `"10mbit"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BitRate(pub Rate);

impl<'de> Deserialize<'de> for BitRate {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let needed = || ParseError::new("`value` needs a rate such as 10mbit".into());
        text(d, |t| units::rate("value", t)?.ok_or_else(needed)).map(BitRate)
    }
}

/// A number of bytes: `"64KB"` or `1500`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Size(pub u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Number(u64),
            Text(String),
        }
        let wrong = |_| serde::de::Error::custom("needs a number of bytes, such as \"64KB\" or 1500");
        match Either::deserialize(d).map_err(wrong)? {
            Either::Number(n) => Ok(Size(n)),
            Either::Text(t) => units::bytes("value", &t).map(Size).map_err(|e| {
                let message = e.to_string();
                serde::de::Error::custom(message.strip_prefix("`value` ").unwrap_or(&message))
            }),
        }
    }
}

/// A share: `"1%"`, as a fraction of one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Share(pub f64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        text(d, |t| units::share("value", t)).map(Share)
    }
}

/// One text or a list of them.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Names {
    One(String),
    Many(Vec<String>),
}

impl Names {
    pub fn all(&self) -> &[String] {
        match self {
            Names::One(one) => std::slice::from_ref(one),
            Names::Many(many) => many,
        }
    }
}
