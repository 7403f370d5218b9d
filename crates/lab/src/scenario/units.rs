//! Values with their units, as TOML texts.

use anabranch_base::{Duration, Rate};
use anabranch_sim::netem::units::{self, ValueError};
use core::fmt;
use core::marker::PhantomData;
use serde::de::{DeserializeOwned, IntoDeserializer, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A text that is read as a value.
struct Text<F>(&'static str, F);

impl<T, F: Fn(&str) -> Result<T, ValueError>> Visitor<'_> for Text<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        (self.1)(text).map_err(E::custom)
    }
}

/// A span of time: `"30s"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Time(pub Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_str(Text("a time such as \"30ms\"", units::time)).map(Time)
    }
}

/// From one to the next: `"30s"`, or `"off"` where there is none, which is zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interval(pub Duration);

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let read = |t: &str| if t == "off" { Ok(Duration::ZERO) } else { units::time(t) };
        d.deserialize_str(Text("a time such as \"30s\", or \"off\"", read)).map(Interval)
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
            let wrong = || ValueError::needs("a span such as 8s-9.5s", t);
            let (from, until) = t.split_once('-').ok_or_else(wrong)?;
            let (from, until) = (units::time(from)?, units::time(until)?);
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
        let read = |t: &str| units::rate(t)?.ok_or_else(|| ValueError::needs("a rate such as 10mbit", t));
        d.deserialize_str(Text("a rate such as \"10mbit\"", read)).map(BitRate)
    }
}

/// A rate that may be none at all: `"0"` or `"0bit"` beside those of [`BitRate`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AnyRate(pub Rate);

impl<'de> Deserialize<'de> for AnyRate {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let nothing =
            |t: &str| t == "0" || t.strip_prefix('0').is_some_and(|unit| units::rate(&format!("1{unit}")).is_ok());
        let read = |t: &str| match t {
            t if nothing(t) => Ok(Rate::ZERO),
            t => units::rate(t)?.ok_or_else(|| ValueError::needs("a rate such as 10mbit, or 0", t)),
        };
        d.deserialize_str(Text("a rate such as \"10mbit\", or \"0\"", read)).map(AnyRate)
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
                units::bytes(text).map(Size).map_err(E::custom)
            }
        }
        d.deserialize_any(Bytes)
    }
}

/// A congestion window or its threshold: a number of what the transport counts in, bytes, or full packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Window {
    /// `1500`: bytes over SCTP, segments over TCP.
    Number(u64),
    /// `"6KB"`.
    Bytes(u64),
    /// `"4p"`, `"10 segments"`.
    Packets(u64),
}

impl Window {
    /// In bytes, where a number says bytes and a full packet carries `payload` of them.
    pub fn bytes(self, payload: u64) -> u64 {
        match self {
            Window::Number(bytes) | Window::Bytes(bytes) => bytes,
            Window::Packets(n) => n.saturating_mul(payload),
        }
    }

    /// In segments, where a number says segments.
    pub fn segments(self) -> Option<u32> {
        match self {
            Window::Number(n) | Window::Packets(n) => u32::try_from(n).ok(),
            Window::Bytes(_) => None,
        }
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Counted;
        impl Visitor<'_> for Counted {
            type Value = Window;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a text such as \"64KB\", \"4p\" or \"10 segments\"")
            }

            fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<Window, E> {
                u64::try_from(n).map(Window::Number).map_err(|_| E::custom("must not be below zero"))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Window, E> {
                let packets = [" segments", " segment", " packets", " packet", "p"];
                match packets.iter().find_map(|unit| text.strip_suffix(unit)) {
                    Some(n) => units::count(n.trim(), "packets").map(Window::Packets).map_err(E::custom),
                    None => units::bytes(text).map(Window::Bytes).map_err(E::custom),
                }
            }
        }
        d.deserialize_any(Counted)
    }
}

/// A share: `"1%"`, as a fraction of one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Share(pub f64);

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_str(Text("a share such as \"1%\"", units::share)).map(Share)
    }
}

/// One text or a list of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Names(Vec<String>);

impl Names {
    pub fn all(&self) -> &[String] {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let names = d.deserialize_any(OneOrList { needed: "a text or a list of texts", of: PhantomData::<String> })?;
        Ok(Names(match names {
            One(one) => vec![one],
            Listed(list) => list,
        }))
    }
}

/// A limit, or the word `"none"`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limit<T>(pub Option<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Limit<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(LimitOrNone(PhantomData::<T>))
    }
}

struct LimitOrNone<T>(PhantomData<T>);

impl<T: DeserializeOwned> Visitor<'_> for LimitOrNone<T> {
    type Value = Limit<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a limit or \"none\"")
    }

    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<Self::Value, E> {
        T::deserialize(Number(n, PhantomData)).map(|t| Limit(Some(t)))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        if text == "none" {
            return Ok(Limit(None));
        }
        T::deserialize(text.into_deserializer()).map(|t| Limit(Some(t)))
    }
}

/// A whole number inside one of the types above, which says the range of what it is read as where it lies outside.
struct Number<E>(i64, PhantomData<E>);

macro_rules! in_range {
    ($($name:ident: $of:ty => $visit:ident),*) => {$(
        fn $name<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
            let (least, most, n) = (<$of>::MIN, <$of>::MAX, self.0);
            let wrong = |_| E::custom(format_args!("needs a whole number from {least} to {most}, not the number {n}"));
            visitor.$visit(<$of>::try_from(n).map_err(wrong)?)
        }
    )*};
}

impl<'de, E: serde::de::Error> Deserializer<'de> for Number<E> {
    type Error = E;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_i64(self.0)
    }

    in_range! {
        deserialize_u8: u8 => visit_u8, deserialize_u16: u16 => visit_u16, deserialize_u32: u32 => visit_u32,
        deserialize_u64: u64 => visit_u64
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// One value for all classes of frames, or a list of three for I, P and B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ByClass<T>([T; 3]);

impl<T> ByClass<T> {
    /// For I, P and B.
    pub fn each(self) -> [T; 3] {
        self.0
    }
}

impl<'de, T: DeserializeOwned + Copy> Deserialize<'de> for ByClass<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        const NEEDED: &str = "one value, or a list of three for I, P and B";
        let three = |_| serde::de::Error::custom(format_args!("needs {NEEDED}"));
        match d.deserialize_any(OneOrList { needed: NEEDED, of: PhantomData::<T> })? {
            One(one) => Ok(ByClass([one; 3])),
            Listed(list) => list.try_into().map(ByClass).map_err(three),
        }
    }
}

/// Reads a single value or a list. Not by serde's `untagged`, which would forget what is wrong with the value.
struct OneOrList<T> {
    needed: &'static str,
    of: PhantomData<T>,
}

enum OneOrListed<T> {
    One(T),
    Listed(Vec<T>),
}
use OneOrListed::{Listed, One};

impl<'de, T: DeserializeOwned> Visitor<'de> for OneOrList<T> {
    type Value = OneOrListed<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.needed)
    }

    fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<Self::Value, E> {
        T::deserialize(Number(n, PhantomData)).map(One)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        T::deserialize(text.into_deserializer()).map(One)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = list.next_element()? {
            all.push(one);
        }
        Ok(Listed(all))
    }
}
