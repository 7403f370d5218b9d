//! Values with their units, as TOML texts.

use anabranch_base::{Duration, Rate};
use anabranch_sim::netem::{ParseError, units};
use core::fmt;
use serde::de::{DeserializeOwned, Visitor};
use serde::{Deserialize, Deserializer};

/// What to say of a wrong value; its key is named by who reads it.
fn message<E: serde::de::Error>(e: &ParseError) -> E {
    let message = e.to_string();
    E::custom(message.strip_prefix("`value` ").unwrap_or(&message).replace("`value ", "`"))
}

/// A text that stands for a value.
struct Text<F>(&'static str, F);

impl<T, F: Fn(&str) -> Result<T, ParseError>> Visitor<'_> for Text<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        (self.1)(text).map_err(|e| message(&e))
    }
}

/// A span of time: `"30s"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Time(pub Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_str(Text("a time such as \"30ms\"", |t: &str| units::time("value", t))).map(Time)
    }
}

/// From when until when: `"8s-9.5s"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    pub from: Duration,
    pub until: Duration,
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let read = |t: &str| {
            let wrong = || ParseError::new(format!("`value` needs a span such as 8s-9.5s, not `{t}`"));
            let (from, until) = t.split_once('-').ok_or_else(wrong)?;
            let (from, until) = (units::time("value", from)?, units::time("value", until)?);
            if from <= until { Ok(Span { from, until }) } else { Err(wrong()) }
        };
        d.deserialize_str(Text("a span such as \"8s-9.5s\"", read))
    }
}

/// A rate: `"10mbit"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct BitRate(pub Rate);

impl<'de> Deserialize<'de> for BitRate {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let needed = || ParseError::new("`value` needs a rate such as 10mbit".into());
        // Advice for links helps nobody here.
        let own =
            |e: ParseError| ParseError::new(e.to_string().split("; use `down`").next().unwrap_or_default().into());
        let read = |t: &str| match units::rate("value", t).map_err(own)? {
            Some(rate) => Ok(rate),
            None => Err(needed()),
        };
        d.deserialize_str(Text("a rate such as \"10mbit\"", read)).map(BitRate)
    }
}

/// A number of bytes: `"64KB"` or `1500`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Size(pub u64);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Size;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes, such as \"64KB\" or 1500")
            }

            fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<Size, E> {
                let wrong = |_| E::custom("needs a number of bytes, such as \"64KB\" or 1500");
                u64::try_from(n).map(Size).map_err(wrong)
            }

            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<Size, E> {
                Ok(Size(n))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Size, E> {
                units::bytes("value", text).map(Size).map_err(|e| message(&e))
            }
        }
        d.deserialize_any(Bytes)
    }
}

/// A share: `"1%"`, as a fraction of one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Share(pub f64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_str(Text("a share such as \"1%\"", |t: &str| units::share("value", t))).map(Share)
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

/// One value for all classes of frames, or a list of three for I, P and B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ByClass<T> {
    All(T),
    Each([T; 3]),
}

impl<T: Copy> ByClass<T> {
    /// For I, P and B.
    pub fn each(self) -> [T; 3] {
        match self {
            ByClass::All(t) => [t; 3],
            ByClass::Each(each) => each,
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for ByClass<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        // Not `untagged`, which would forget what is wrong with the value.
        let wrong = |e: toml::de::Error| serde::de::Error::custom(e.message().to_owned());
        match toml::Value::deserialize(d)? {
            list @ toml::Value::Array(_) => {
                let each: Vec<T> = list.try_into().map_err(wrong)?;
                let three = |_| serde::de::Error::custom("needs one value, or a list of three for I, P and B");
                each.try_into().map(ByClass::Each).map_err(three)
            }
            one => one.try_into().map(ByClass::All).map_err(wrong),
        }
    }
}
