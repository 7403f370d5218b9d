//! The flows on one association, at one of its ends: what sends their messages, and what is noted of them.

use super::application::{Application, Unsendable, flow_of};
use crate::metrics::SharedRecord;
use anabranch_base::Instant;
use anabranch_engine::Association;

/// The flow that has the association, and those that share it, in the order in which they joined.
pub(super) struct Users {
    records: Vec<SharedRecord>,
    /// At the end that sends, one for each record.
    applications: Vec<Application>,
    /// Which of them has the next turn.
    turn: usize,
}

impl Users {
    /// The flow that has the association.
    pub fn new(record: SharedRecord) -> Self {
        Users { records: vec![record], applications: Vec::new(), turn: 0 }
    }

    /// What sends its messages.
    pub fn sending(&mut self, application: Application) {
        self.applications.push(application);
    }

    /// A flow that shares the association, at the end that sends with its application.
    pub fn share(&mut self, application: Option<Application>, record: SharedRecord) {
        let number = self.records.len();
        self.records.push(record);
        self.applications.extend(application.map(|a| a.numbered(number)));
    }

    /// The record of the flow whose message has this number.
    pub fn record_of(&self, number: u32) -> &SharedRecord {
        let flow = if self.records.len() == 1 { 0 } else { flow_of(number) };
        self.records.get(flow).unwrap_or(&self.records[0])
    }

    /// Their sources begin.
    pub fn start(&mut self, now: Instant) {
        self.applications.iter_mut().for_each(|a| a.start(now));
    }

    /// The send buffer has room again.
    pub fn unblock(&mut self) {
        self.applications.iter_mut().for_each(Application::unblock);
    }

    /// No message is taken any more.
    pub fn end(&mut self) {
        self.applications.iter_mut().for_each(Application::end);
    }

    /// When there is something to send.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.applications.iter().filter_map(Application::next_timeout).min()
    }

    /// Why an application gave up, if one did, and whose.
    pub fn failed(&self) -> Option<(usize, Unsendable)> {
        self.applications.iter().enumerate().find_map(|(i, a)| Some((i, a.failed()?)))
    }

    /// Hands over what is due: one message each in turn, since one that always has more would leave no room in the buffer
    /// for the others.
    pub fn send(&mut self, now: Instant, a: &mut Association) {
        let count = self.applications.len();
        let mut silent = 0;
        while silent < count {
            let at = self.turn % count;
            let mut record = Some(self.records[at].borrow_mut()).filter(|r| r.wanted().births());
            let app = &mut self.applications[at];
            if count == 1 {
                return app.send(now, a, record.as_deref_mut());
            }
            silent = if app.send_one(now, a, record.as_deref_mut()) { 0 } else { silent + 1 };
            self.turn = at + 1;
        }
    }
}
