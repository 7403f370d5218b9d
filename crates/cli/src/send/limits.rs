//! How long frames of each class are worth sending, and how often.

use crate::units;
use anabranch_media::{OutMessage, Submission};
use anabranch_net::SendOptions;
use std::time::Duration;

/// A value for I, P and B frames, each of which may have none.
pub type PerClass<T> = [Option<T>; 3];

/// Limits of frames by class, within the latency (Cheng et al. 2011 §III: what matters most is repaired longest).
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct ClassLimits {
    /// Media: frames are given up so long after they came in, by class, where that is sooner than the latency; for
    /// example none,500ms,200ms
    #[arg(long, value_name = "I,P,B", value_parser = lifetimes)]
    pub class_lifetime: Option<PerClass<Duration>>,
    /// Media: a message is given up after so many repetitions, by class; for example none,none,1
    #[arg(long, value_name = "I,P,B", value_parser = counts)]
    pub class_retransmissions: Option<PerClass<u16>>,
}

impl ClassLimits {
    /// The flags that name some.
    pub fn flags(&self) -> impl Iterator<Item = &'static str> {
        let lifetime = self.class_lifetime.map(|_| "--class-lifetime");
        lifetime.into_iter().chain(self.class_retransmissions.map(|_| "--class-retransmissions"))
    }

    /// What the engine is to know of a message besides what [`Submission`] says of every film.
    pub fn limit(&self, message: &OutMessage, said: Submission, options: SendOptions) -> SendOptions {
        let class = usize::from(said.class);
        let of = |t: PerClass<Duration>| t.get(class).copied().flatten();
        let ends = self.class_lifetime.and_then(of).map(|l| message.ingest + l.into());
        let repeats = |n: PerClass<u16>| n.get(class).copied().flatten();
        SendOptions {
            deadline: options.deadline.into_iter().chain(ends).min(),
            max_retransmissions: self.class_retransmissions.and_then(repeats),
            ..options
        }
    }
}

fn per_class<T>(text: &str, what: &str, one: impl Fn(&str) -> Result<T, String>) -> Result<PerClass<T>, String> {
    let values: Vec<&str> = text.split(',').map(str::trim).collect();
    let [i, p, b] = values[..] else {
        return Err(format!("{text} is not {what} for each of I, P and B; write none where there is no limit"));
    };
    let one = |t: &str| if t == "none" { Ok(None) } else { one(t).map(Some) };
    Ok([one(i)?, one(p)?, one(b)?])
}

fn lifetimes(text: &str) -> Result<PerClass<Duration>, String> {
    let time = |t: &str| match units::latency(t)? {
        l if l.as_millis() == 0 => Err(format!("{t} leaves frames no time to arrive; write 1ms or more, or none")),
        l => Ok(l),
    };
    per_class(text, "a time such as 200ms", time)
}

fn counts(text: &str) -> Result<PerClass<u16>, String> {
    let count = |t: &str| t.parse().map_err(|_| format!("{t} is no number of repetitions; write 0 to 65535 or none"));
    per_class(text, "a number", count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_media::{Class, MediaHeader};
    use anabranch_net::Instant;
    use bytes::Bytes;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn message(class: Class) -> OutMessage {
        let header = MediaHeader {
            sequence: 0,
            frame: 0,
            part: 0,
            parts: 1,
            class,
            frame_class: class,
            class_known: true,
            timestamp: 0,
        };
        OutMessage { header, message: Bytes::new(), ingest: Instant::from_millis(1_000) }
    }

    #[test]
    fn each_class_has_its_limits_within_the_latency() {
        let limits = ClassLimits {
            class_lifetime: Some(lifetimes("none, 500ms,200").unwrap()),
            class_retransmissions: Some(counts("none,7,1").unwrap()),
        };
        for (class, ends, repeats) in [(Class::I, 1_300, None), (Class::P, 1_300, Some(7)), (Class::B, 1_200, Some(1))]
        {
            let m = message(class);
            let said = m.submission(ms(300).into());
            let plain = SendOptions { deadline: said.deadline, ..SendOptions::default() };
            let got = limits.limit(&m, said, plain);
            assert_eq!((got.deadline, got.max_retransmissions), (Some(Instant::from_millis(ends)), repeats));
            assert_eq!(ClassLimits::default().limit(&m, said, plain), plain);
        }
        assert_eq!((limits.flags().count(), ClassLimits::default().flags().count()), (2, 0));
    }

    #[test]
    fn mistakes_are_explained() {
        for (text, part) in [("1s,2s", "for each of I, P and B"), ("1s,2s,fast", "fast"), ("", "for each of")] {
            assert!(lifetimes(text).unwrap_err().contains(part), "{text}");
        }
        for text in ["0,0,0", "none,500ms,0", "0ms,none,none", "none,0.4ms,none"] {
            assert!(lifetimes(text).unwrap_err().contains("leaves frames no time to arrive"), "{text}");
        }
        assert_eq!(counts("0,0,0"), Ok([Some(0); 3]), "once, and never again");
        assert!(counts("1,2,x").unwrap_err().contains("x is no number of repetitions"));
    }
}
