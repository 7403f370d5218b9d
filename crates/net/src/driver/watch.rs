//! Interfaces that vanish and return while connections live.

use super::Driver;
use super::port::Port;
use crate::clock;
use crate::config::{Local, Transport};
use crate::error::Error;
use crate::interface::{self, Binding, Interface};
use crate::link_layer::Place;
use crate::locals::Trouble;
use crate::socket;
use anabranch_base::{Duration, Instant};
use anabranch_engine::LocalId;
use std::net::SocketAddr;

/// How often interfaces are looked at, and sockets of absent ones tried again.
const PERIOD: Duration = Duration::from_millis(500);

/// What a client's socket was asked to be.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub local: Local,
    /// A peer it is for: its family and scope count.
    pub remote: SocketAddr,
    /// What it is bound to; none when the interface was not there.
    pub binding: Option<Binding>,
    /// Where it sends from; 0 is any free one.
    pub udp_port: u16,
}

/// A client's socket under watch.
#[derive(Debug)]
pub(super) struct Watched {
    watch: Watch,
    /// The interface was seen last.
    home: Option<String>,
    /// Gone; to be tried again then.
    retry: Option<Instant>,
    /// Gone because the interface or its address is: to be tried again as soon as that is back.
    absent: bool,
}

impl Watched {
    pub fn new(watch: Watch) -> Self {
        let home = watch.binding.as_ref().and_then(|b| b.device.clone());
        let retry = watch.binding.is_none().then_some(Instant::ZERO);
        Watched { watch, home, retry, absent: retry.is_some() }
    }

    /// It can change while we look on.
    fn on_a_device(&self) -> bool {
        self.watch.binding.as_ref().is_none_or(|b| b.device.is_some())
    }
}

/// What is to be done about a socket.
#[derive(Debug)]
enum Step {
    Nothing,
    Down(String),
    /// It is down, and now we know why.
    Absent,
    /// The old socket serves again.
    Up,
    /// A new socket is needed.
    Rebind(Binding),
}

fn step(w: &Watched, all: &[Interface], has_socket: bool, now: Instant) -> Step {
    let found = interface::resolve(all, &w.watch.local, w.watch.remote, w.home.as_deref());
    match (found, w.retry) {
        (Ok(b), None) if Some(&b) == w.watch.binding.as_ref() => Step::Nothing,
        (Ok(b), None) => Step::Rebind(b),
        (Err(e), None) => Step::Down(e.to_string()),
        (Err(_), Some(_)) if !w.absent => Step::Absent,
        (Ok(_), Some(at)) if now < at && !w.absent => Step::Nothing,
        // An unchanged socket keeps its port, and so what NATs on the way remember.
        (Ok(b), Some(_)) if has_socket && Some(&b) == w.watch.binding.as_ref() => Step::Up,
        (Ok(b), Some(_)) => Step::Rebind(b),
        (Err(_), Some(_)) => Step::Nothing,
    }
}

impl Driver {
    /// Looks at the interfaces when it is time to.
    pub(super) fn watch(&mut self) {
        let Some(due) = self.next_watch else { return };
        let now = clock::now();
        if now < due {
            return;
        }
        let watched = |f: fn(&Watched) -> bool| self.ports.iter().filter_map(|p| p.watched.as_ref()).any(f);
        let on_devices = watched(Watched::on_a_device);
        let down = watched(|w| w.retry.is_some());
        self.next_watch = (on_devices || down).then_some(now + PERIOD);
        if self.next_watch.is_none() {
            return;
        }
        let all = match interface::list() {
            Ok(all) => all,
            Err(error) => {
                tracing::warn!(%error, "the interfaces cannot be listed");
                return;
            }
        };
        for slot in 0..self.ports.len() {
            let Some(port) = self.ports.get(slot) else { continue };
            let Some(w) = &port.watched else { continue };
            let local = port.local;
            match step(w, &all, port.io.is_some(), now) {
                Step::Nothing => {}
                Step::Down(why) => {
                    self.local_down(local, &why);
                    self.mark_absent(slot, true);
                }
                Step::Absent => self.mark_absent(slot, true),
                Step::Up => self.local_up(slot, None),
                Step::Rebind(binding) => self.rebind(slot, binding),
            }
        }
        let core = self.shared.lock();
        if core.link_layer.is_wanted() {
            core.link_layer.follow(self.ports.iter().filter_map(place).collect());
        }
    }

    fn mark_absent(&mut self, slot: usize, absent: bool) {
        if let Some(w) = self.ports.get_mut(slot).and_then(|p| p.watched.as_mut()) {
            w.absent = absent;
        }
    }

    fn rebind(&mut self, slot: usize, binding: Binding) {
        let Some(port) = self.ports.get_mut(slot) else { return };
        let local = port.local;
        let was_up = port.watched.as_ref().is_some_and(|w| w.retry.is_none());
        if was_up {
            self.local_down(local, "its address changed");
        }
        let Some(port) = self.ports.get_mut(slot) else { return };
        let transport = self.shared.lock().transport;
        match replace(transport, port, &binding) {
            Ok(address) => {
                if let Some(w) = &mut port.watched {
                    w.home = binding.device.clone().or(w.home.take());
                    w.watch.binding = Some(binding);
                }
                self.local_up(slot, Some(address));
            }
            Err(error) => {
                tracing::debug!(%error, "a socket cannot be bound yet");
                if let Some(w) = &mut port.watched {
                    w.retry = Some(clock::now() + PERIOD);
                    w.absent = false;
                }
            }
        }
    }

    /// The interface is gone, or cannot reach anything: its paths carry nothing until it is back.
    pub(super) fn local_down(&mut self, local: LocalId, why: &str) {
        let now = clock::now();
        let watched = self.ports.iter_mut().filter(|p| p.local == local).find_map(|p| p.watched.as_mut());
        // Sockets of servers serve many peers: an error towards one of them says nothing about the others.
        let Some(w) = watched else { return };
        let is_new = w.retry.is_none();
        w.retry = Some(now + PERIOD);
        self.next_watch = Some(self.next_watch.map_or(now + PERIOD, |t| t.min(now + PERIOD)));
        let mut core = self.shared.lock();
        if let Some(side) = core.locals.get_mut(local) {
            if is_new {
                tracing::info!(local = %side.name, why, "interface gone");
            }
            side.up = false;
            side.trouble = Some(Trouble { what: why.to_owned(), remote: None });
        }
        if !is_new {
            return;
        }
        let all: Vec<_> = core.engine.associations().collect();
        for id in all {
            if let Some(mut a) = core.engine.association_mut(id) {
                a.interface_down(now, local);
            }
        }
        core.tell_all();
        self.more = true;
    }

    fn local_up(&mut self, slot: usize, address: Option<SocketAddr>) {
        let now = clock::now();
        let Some(port) = self.ports.get_mut(slot) else { return };
        let local = port.local;
        if let Some(w) = &mut port.watched {
            w.retry = None;
            w.absent = false;
        }
        let mut core = self.shared.lock();
        if let Some(side) = core.locals.get_mut(local) {
            side.up = true;
            side.trouble = side.trouble.take().filter(|_| address.is_none());
            side.address = address.unwrap_or(side.address);
            tracing::info!(local = %side.name, address = %side.address, "interface back");
        }
        let all: Vec<_> = core.engine.associations().collect();
        for id in all {
            if core.connections.get(&id).is_some_and(|c| c.left.contains(&local)) {
                continue;
            }
            if let Some(mut a) = core.engine.association_mut(id) {
                a.interface_up(now, local);
            }
        }
        core.tell_all();
        self.more = true;
    }
}

/// The device that a socket is bound to, while it is there.
fn place(port: &Port) -> Option<Place> {
    let w = port.watched.as_ref().filter(|w| w.retry.is_none())?;
    let Binding { device, index, .. } = w.watch.binding.as_ref()?;
    Some(Place { local: port.local, name: device.clone()?, index: *index })
}

/// A new socket in place of the old one.
fn replace(transport: Transport, port: &mut Port, binding: &Binding) -> Result<SocketAddr, Error> {
    let wrong = |source| Error::Bind { address: binding.address, source };
    let udp_port = port.watched.as_ref().map_or(0, |w| w.watch.udp_port);
    let s = socket::open(transport, binding, udp_port)?;
    let address = socket::address_of(transport, &s).map_err(wrong)?;
    port.attach(s).map_err(wrong)?;
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: Instant = Instant::from_millis(10_000);

    fn machine(addresses: &[&str]) -> Vec<Interface> {
        vec![Interface {
            name: "wlan0".into(),
            up: true,
            running: true,
            loopback: false,
            addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
        }]
    }

    fn watched(all: &[Interface]) -> Watched {
        let local = Local::Interface("wlan0".into());
        let remote = "192.0.2.1:9899".parse().unwrap();
        let binding = interface::resolve(all, &local, remote, None).ok();
        Watched::new(Watch { local, remote, binding, udp_port: 0 })
    }

    #[test]
    fn an_interface_that_stays_needs_nothing() {
        let all = machine(&["10.0.0.1"]);
        assert!(matches!(step(&watched(&all), &all, true, LATE), Step::Nothing));
    }

    #[test]
    fn an_address_that_goes_takes_the_path_down_and_its_return_brings_it_back() {
        let all = machine(&["10.0.0.1"]);
        let mut w = watched(&all);
        assert!(matches!(step(&w, &machine(&[]), true, LATE), Step::Down(why) if why.contains("no IPv4 address")));
        assert!(matches!(step(&w, &[], true, LATE), Step::Down(why) if why.contains("no interface wlan0")));
        w.retry = Some(LATE);
        assert!(matches!(step(&w, &machine(&[]), true, LATE), Step::Absent));
        assert!(matches!(step(&w, &all, true, LATE - PERIOD), Step::Nothing));
        w.absent = true;
        assert!(matches!(step(&w, &machine(&[]), true, LATE), Step::Nothing));
        assert!(matches!(step(&w, &all, true, LATE - PERIOD), Step::Up));
        assert!(matches!(step(&w, &all, true, LATE), Step::Up));
        assert!(matches!(step(&w, &all, false, LATE), Step::Rebind(_)));
    }

    #[test]
    fn another_address_needs_another_socket() {
        let w = watched(&machine(&["10.0.0.1"]));
        let moved = machine(&["10.0.0.9"]);
        assert!(matches!(step(&w, &moved, true, LATE), Step::Rebind(b) if b.address.ip().to_string() == "10.0.0.9"));
    }

    #[test]
    fn an_interface_that_was_never_there_is_bound_when_it_comes() {
        let w = watched(&[]);
        assert!(matches!(step(&w, &[], false, LATE), Step::Nothing));
        assert!(matches!(step(&w, &machine(&["10.0.0.1"]), false, LATE), Step::Rebind(_)));
    }
}
