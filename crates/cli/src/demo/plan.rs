//! What is run: the links, the runs, the limits. All of it is fixed here, before anything is measured.

use crate::exit::Failure;
use anabranch_base::Duration;
use anabranch_emulator::{EmulatorConfig, ParseError};
use anabranch_policy::registry::Profile;
use std::net::SocketAddr;

/// The profile shown as `best`. Chosen before any run; a run never changes it.
pub const BEST_PROFILE: &str = "live";

/// The profile of the runs over one network: the same as `best`, so that these runs differ from it by nothing but
/// the second network.
pub const SINGLE_PROFILE: &str = BEST_PROFILE;

/// The profile of the run `round_robin`: concurrent multipath transfer as the papers' baseline has it.
pub const ROUND_ROBIN_PROFILE: &str = "cmt";

/// From the sender's input to the receiver's output, in every run.
pub const LATENCY: Duration = Duration::from_millis(300);

/// Header bytes of IPv4 and UDP, which count on the wire.
pub const PACKET_OVERHEAD: u64 = 28;

/// An emulated network.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// Name in results, and of the random streams.
    pub name: &'static str,
    /// Name for people.
    pub title: &'static str,
    /// Speed in Mbit/s, each way.
    pub rate_mbit: f64,
    /// Time on the way towards the receiver.
    pub delay_ms: u64,
    /// Share of packets lost at random, each way, in percent.
    pub loss_percent: f64,
}

/// Time on the way back.
pub const BACK_MS: u64 = 5;
/// Packets that wait in front of each link, each way.
pub const QUEUE_PACKETS: u64 = 40;

/// The networks of the demo.
pub const NETWORKS: [Network; 2] = [
    Network { name: "wlan", title: "WLAN", rate_mbit: 6.0, delay_ms: 30, loss_percent: 0.1 },
    Network { name: "3g", title: "3G", rate_mbit: 4.0, delay_ms: 160, loss_percent: 0.0 },
];

impl Network {
    /// The link in the words of `anabranch emulate`; a perfect one without impairments.
    pub fn words(&self, impaired: bool) -> String {
        if !impaired {
            return format!("name {} limit none", self.name);
        }
        let loss = if self.loss_percent > 0.0 { format!("{}%", self.loss_percent) } else { "none".to_owned() };
        format!(
            "name {} rate {}mbit delay {}ms down.delay {BACK_MS}ms loss {loss} limit {QUEUE_PACKETS}",
            self.name, self.rate_mbit, self.delay_ms
        )
    }

    /// The link in words for people.
    pub fn sentence(&self) -> String {
        let loss = if self.loss_percent > 0.0 { format!(", {} % loss", self.loss_percent) } else { String::new() };
        format!("{} ({} Mbit/s, {} ms{loss})", self.title, self.rate_mbit, self.delay_ms)
    }
}

/// One run: a profile over some of the networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPlan {
    /// Name in results and files.
    pub name: String,
    /// Name of the profile.
    pub profile: &'static str,
    /// Which of [`NETWORKS`].
    pub networks: Vec<usize>,
}

impl RunPlan {
    /// The runs of a whole demo, in the order shown. Two at a time run side by side.
    pub fn all() -> Vec<RunPlan> {
        ["wlan", "3g", "round_robin", "best"].iter().filter_map(|name| RunPlan::named(name).ok()).collect()
    }

    /// A run by name: a network alone, `round_robin`, `best`, or any profile over all networks.
    ///
    /// # Errors
    /// A name that means none of these.
    pub fn named(name: &str) -> Result<RunPlan, Failure> {
        let everywhere = || (0..NETWORKS.len()).collect::<Vec<_>>();
        let alone = NETWORKS.iter().position(|n| n.name == name);
        let (profile, networks) = match (name, alone) {
            (_, Some(network)) => (SINGLE_PROFILE, vec![network]),
            ("round_robin", _) => (ROUND_ROBIN_PROFILE, everywhere()),
            ("best", _) => (BEST_PROFILE, everywhere()),
            _ => match Profile::names().into_iter().find(|known| *known == name) {
                Some(profile) => (profile, everywhere()),
                None => return Err(Failure::usage(unknown_run(name))),
            },
        };
        Ok(RunPlan { name: name.to_owned(), profile, networks })
    }

    /// The networks in the order of the paths.
    pub fn networks(&self) -> impl Iterator<Item = &'static Network> + '_ {
        self.networks.iter().filter_map(|i| NETWORKS.get(*i))
    }

    /// An emulator of the run's networks in front of `receiver`. The same seed loses the same packets of a network in
    /// every run, counted by their place on it.
    ///
    /// # Errors
    /// None with the networks above.
    pub fn emulator(&self, receiver: SocketAddr, impaired: bool, seed: u64) -> Result<EmulatorConfig, ParseError> {
        let texts: Vec<String> = self
            .networks()
            .map(|n| format!("listen {}:0 to {receiver} {}", receiver.ip(), n.words(impaired)))
            .collect();
        Ok(EmulatorConfig::from_texts(texts.iter().map(String::as_str))?.with_seed(seed))
    }
}

fn unknown_run(name: &str) -> String {
    let runs: Vec<String> = RunPlan::all().into_iter().map(|r| r.name).collect();
    format!(
        "there is no run `{name}`; choose from {}, or any profile: {}",
        runs.join(", "),
        Profile::names().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_base::Rate;

    #[test]
    fn the_runs_are_what_the_page_says() {
        let runs = RunPlan::all();
        let names: Vec<&str> = runs.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["wlan", "3g", "round_robin", "best"]);
        assert_eq!((&runs[0].networks[..], &runs[1].networks[..]), (&[0][..], &[1][..]));
        assert_eq!((runs[2].profile, runs[2].networks.len()), ("cmt", 2));
        assert_eq!(runs[3].profile, BEST_PROFILE);
        for run in &runs {
            Profile::named(run.profile).unwrap().check(run.networks.len()).unwrap();
        }
    }

    #[test]
    fn any_profile_may_run_and_nonsense_is_named() {
        assert_eq!(RunPlan::named("media").unwrap().profile, "media");
        let e = RunPlan::named("5g").unwrap_err().to_string();
        assert!(e.contains("`5g`") && e.contains("round_robin") && !e.contains('\n'), "{e}");
    }

    #[test]
    fn the_links_are_as_specified() {
        let to = "127.0.0.1:9".parse().unwrap();
        let config = RunPlan::named("best").unwrap().emulator(to, true, 7).unwrap();
        assert_eq!(config.seed, 7);
        let [wlan, umts] = &config.paths[..] else { panic!("two paths") };
        assert_eq!((wlan.name.as_str(), umts.name.as_str()), ("wlan", "3g"));
        assert_eq!(wlan.up.rate, Some(Rate::from_bits_per_sec(6_000_000)));
        assert_eq!(umts.up.rate, Some(Rate::from_bits_per_sec(4_000_000)));
        assert_eq!((wlan.up.delay, umts.up.delay), (Duration::from_millis(30), Duration::from_millis(160)));
        for link in [&wlan.up, &wlan.down, &umts.up, &umts.down] {
            assert_eq!(link.limit.packets, Some(40));
            assert_eq!(u64::from(link.overhead), PACKET_OVERHEAD);
        }
        assert_eq!((wlan.down.delay, umts.down.delay), (Duration::from_millis(5), Duration::from_millis(5)));
        let perfect = RunPlan::named("wlan").unwrap().emulator(to, false, 7).unwrap();
        assert_eq!(perfect.paths.len(), 1);
        assert_eq!((perfect.paths[0].up.rate, perfect.paths[0].up.delay), (None, Duration::ZERO));
    }
}
