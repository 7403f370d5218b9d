//! Outputs, of which each session has one.

use super::RecvArgs;
use super::body::Body;
use crate::exit::{Failure, Outcome};
use crate::filemark::FileMark;
use crate::output::Output;
use crate::overwrite::Files;
use crate::session::StreamName;
use crate::uri::{OutputUri, PeerUri};
use std::collections::BTreeMap;

/// Where the sender's stream id goes.
const NAME: &str = "{streamid}";

/// Outputs that peers may have opened by the names they give.
const OUTPUTS: usize = 1_000;

/// An output, and what an earlier session left to be put out.
pub(super) struct Slot {
    name: Option<StreamName>,
    pub output: Output,
    pub leftover: Option<Body>,
}

impl Slot {
    /// Puts out what an earlier session left and is due.
    pub async fn play_leftover(&mut self) -> Result<(), Failure> {
        if let Some(body) = &mut self.leftover {
            body.on_timeout(&mut self.output).await?;
            if body.is_played_out() {
                self.leftover = None;
            }
        }
        Ok(())
    }
}

/// All of them, while no session has them.
pub(super) struct Sinks {
    /// With [`NAME`] in it, where there are several.
    text: String,
    by_name: bool,
    /// What else the command reads and writes.
    others: Files,
    idle: BTreeMap<Option<StreamName>, Slot>,
    opened: usize,
}

/// The output of the stream with this name; with none, of any.
pub(super) fn uri(text: &str, name: Option<&StreamName>) -> Result<OutputUri, Failure> {
    let chosen = OutputUri::parse(&text.replace(NAME, name.map_or("stream", StreamName::as_str)));
    if name.is_none() && text.contains(NAME) && !matches!(chosen, Ok(OutputUri::File(_))) {
        return Err(Failure::usage(format!(
            "`{text}`: a sender must not choose where datagrams go; name the stream ids that may come, as in \
             anabranch://:9899?streamid=5001,5002"
        )));
    }
    chosen
}

impl Sinks {
    /// None is open yet.
    pub fn new(args: &RecvArgs, at: &PeerUri) -> Result<Self, Failure> {
        let text = args.output().to_owned();
        let by_name = text.contains(NAME);
        if !by_name && args.max_senders > 1 {
            return Err(Failure::usage(format!(
                "several senders need an output each: write {NAME} into its name, such as out-{NAME}.ts"
            )));
        }
        if args.once && args.max_senders > 1 {
            return Err(Failure::usage(
                "--once is for one sender; with --max-senders it goes on until it is interrupted",
            ));
        }
        let others = Files::of_session(&args.policies, &args.stats);
        let sinks = Sinks { text, by_name, others, idle: BTreeMap::new(), opened: 0 };
        for name in at.streamid.iter().filter(|_| by_name) {
            sinks.check(&uri(&sinks.text, Some(name))?)?;
        }
        Ok(sinks)
    }

    /// Is the output a file of its own?
    pub fn check(&self, uri: &OutputUri) -> Outcome {
        self.others.clone().output(uri).check()
    }

    /// Opens the output, where there is one for all; its file, if it is one.
    pub fn open(&mut self, uri: &OutputUri) -> Result<Option<FileMark>, Failure> {
        if self.by_name {
            return Ok(None);
        }
        let output = Output::open(uri)?;
        let file = output.file();
        self.idle.insert(None, Slot { name: None, output, leftover: None });
        Ok(file)
    }

    /// Has each stream one of its own?
    pub fn by_name(&self) -> bool {
        self.by_name
    }

    /// What they are called.
    pub fn name(&self) -> &str {
        &self.text
    }

    /// The output of a session.
    pub fn take(&mut self, name: Option<&StreamName>) -> Result<Slot, Failure> {
        let name = name.filter(|_| self.by_name).cloned();
        if let Some(slot) = self.idle.remove(&name) {
            return Ok(slot);
        }
        if self.opened >= OUTPUTS {
            return Err(Failure::usage(format!("{OUTPUTS} outputs are open; no further stream id is taken")));
        }
        let uri = uri(&self.text, name.as_ref())?;
        self.check(&uri)?;
        let output = Output::open(&uri)?;
        self.opened += 1;
        Ok(Slot { name, output, leftover: None })
    }

    /// The session is over.
    pub fn give_back(&mut self, slot: Slot) {
        self.idle.insert(slot.name.clone(), slot);
    }
}
