//! What is asked for.

use crate::play::Rules;
use std::time::Duration;

pub const STACKS: [&str; 6] = ["anabranch", "anabranch-two", "live", "tcp", "enet", "quic"];

pub struct Args {
    pub rules: Rules,
    pub seconds: u64,
    pub rounds: u32,
    /// How often a round may be done.
    pub tries: u32,
    /// In percent, as the emulator reads them.
    pub losses: Vec<String>,
    pub stacks: Vec<String>,
    /// Words of each bot's link, and of its second one.
    pub link: String,
    pub second: String,
}

impl Args {
    pub fn read() -> Result<Args, String> {
        let list = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let mut args = Args {
            rules: Rules::default(),
            seconds: 10,
            rounds: 3,
            tries: 4,
            losses: list("0,1,5"),
            stacks: list("anabranch,anabranch-two,tcp,enet,quic"),
            link: "rate 10mbit delay 25ms 5ms".into(),
            second: "rate 10mbit delay 40ms 5ms".into(),
        };
        let mut words = std::env::args().skip(1);
        while let Some(flag) = words.next() {
            let value = words.next().ok_or(format!("{flag} needs a value"));
            let number = || match value.clone()?.parse::<u32>() {
                Ok(n) if (1..=10_000).contains(&n) => Ok(n),
                _ => Err(format!("{flag} needs a number from 1 to 10000")),
            };
            match flag.as_str() {
                "--bots" => args.rules.bots = number()? as u16,
                "--rate" => args.rules.rate = number()?,
                "--lifetime" => args.rules.lifetime = Duration::from_millis(number()?.into()),
                "--chat-every" => args.rules.chat_every = Duration::from_millis(number()?.into()),
                "--seconds" => args.seconds = number()?.into(),
                "--rounds" => args.rounds = number()?,
                "--tries" => args.tries = number()?,
                "--loss" => args.losses = list(&value?),
                "--stacks" => args.stacks = list(&value?),
                "--link" => args.link = value?,
                "--second" => args.second = value?,
                _ => {
                    return Err(format!(
                        "there is no {flag}; there are --bots, --rate, --lifetime and --chat-every (ms), --seconds, \
                         --rounds, --tries, --loss, --stacks, --link, --second"
                    ));
                }
            }
        }
        if let Some(stack) = args.stacks.iter().find(|s| !STACKS.contains(&s.as_str())) {
            return Err(format!("there is no stack {stack}; there are {}", STACKS.join(", ")));
        }
        // A state has to fit one packet of each stack.
        if args.rules.bots > 50 {
            return Err("at most 50 bots: the state of more does not fit one packet".into());
        }
        for link in [&args.link, &args.second] {
            anabranch_emulator::parse_link(link).map_err(|e| format!("`{link}`: {e}"))?;
        }
        for loss in &args.losses {
            anabranch_emulator::parse_link(&format!("loss {loss}%")).map_err(|e| format!("--loss {loss}: {e}"))?;
        }
        Ok(args)
    }
}
