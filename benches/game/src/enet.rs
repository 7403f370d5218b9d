//! The game over ENet: inputs and states unreliable on one channel, chat reliable on another. A host is served when
//! something came, when there is something to send, and each 10 ms for its timers.

use crate::play::Rules;
use crate::stack::{Queued, Result, Stack};
use crate::tally::Class;
use bytes::Bytes;
use rusty_enet::{EventNoRef, Host, HostSettings, MTU_MAX, Packet, PacketReceived, PeerID, Socket};
use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

const CHANNELS: usize = 2;
const TIMERS: Duration = Duration::from_millis(10);

pub struct Enet;

/// The host's socket, which its task waits for too.
struct Shared(Arc<UdpSocket>);

impl Socket for Shared {
    type Address = SocketAddr;
    type Error = io::Error;

    fn send(&mut self, address: SocketAddr, buffer: &[u8]) -> io::Result<usize> {
        match self.0.try_send_to(buffer, address) {
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(0),
            done => done,
        }
    }

    fn receive(&mut self, buffer: &mut [u8; MTU_MAX]) -> io::Result<Option<(SocketAddr, PacketReceived)>> {
        match self.0.try_recv_from(buffer) {
            Ok((size, from)) => Ok(Some((from, PacketReceived::Complete(size)))),
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }
}

type Order = (PeerID, Class, Bytes);

struct Serving {
    host: Host<Shared>,
    socket: Arc<UdpSocket>,
    orders: mpsc::UnboundedReceiver<Order>,
    to_host: mpsc::UnboundedSender<Order>,
    inboxes: HashMap<PeerID, mpsc::UnboundedSender<Bytes>>,
    lines: mpsc::UnboundedSender<Queued>,
}

impl Serving {
    async fn new(peers: usize, lines: mpsc::UnboundedSender<Queued>) -> Result<Serving> {
        let socket = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?);
        let settings = HostSettings { peer_limit: peers, channel_limit: CHANNELS, ..HostSettings::default() };
        let host = Host::new(Shared(socket.clone()), settings).map_err(|e| format!("ENet: {e:?}"))?;
        let (to_host, orders) = mpsc::unbounded_channel();
        Ok(Serving { host, socket, orders, to_host, inboxes: HashMap::new(), lines })
    }

    async fn run(mut self) {
        let mut timers = tokio::time::interval(TIMERS);
        timers.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = self.socket.readable() => {}
                _ = timers.tick() => {}
                order = self.orders.recv() => {
                    let Some(order) = order else { return };
                    self.carry_out(order);
                    while let Ok(order) = self.orders.try_recv() {
                        self.carry_out(order);
                    }
                }
            }
            while let Ok(Some(event)) = self.host.service().map(|e| e.map(|e| e.no_ref())) {
                self.note(event);
            }
        }
    }

    fn carry_out(&mut self, (peer, class, message): Order) {
        let (channel, packet) = match class {
            Class::Chat => (1, Packet::reliable(&message[..])),
            Class::Input | Class::State => (0, Packet::unreliable(&message[..])),
        };
        if let Some(peer) = self.host.get_peer_mut(peer) {
            let _ = peer.send(channel, &packet);
        }
    }

    fn note(&mut self, event: EventNoRef) {
        match event {
            EventNoRef::Connect { peer, .. } => {
                let (arrived, inbox) = mpsc::unbounded_channel();
                self.inboxes.insert(peer, arrived);
                let to_host = self.to_host.clone();
                let send = move |class, message| {
                    let _ = to_host.send((peer, class, message));
                };
                let _ = self.lines.send(Queued::new(send, inbox, None));
            }
            EventNoRef::Disconnect { peer, .. } => {
                self.inboxes.remove(&peer);
            }
            EventNoRef::Receive { peer, packet, .. } => {
                if let Some(inbox) = self.inboxes.get(&peer) {
                    let _ = inbox.send(Bytes::copy_from_slice(packet.data()));
                }
            }
        }
    }
}

impl Stack for Enet {
    type Seat = Queued;
    type Bot = Queued;

    async fn open(&self, rules: Rules) -> Result<(SocketAddr, mpsc::UnboundedReceiver<Queued>)> {
        let (seats, players) = mpsc::unbounded_channel();
        let serving = Serving::new(rules.bots.into(), seats).await?;
        let at = serving.socket.local_addr()?;
        tokio::spawn(serving.run());
        Ok((at, players))
    }

    async fn join(&self, _: Rules, server: Vec<SocketAddr>) -> Result<Queued> {
        let (lines, mut connected) = mpsc::unbounded_channel();
        let mut serving = Serving::new(1, lines).await?;
        serving.host.connect(server[0], CHANNELS, 0).map_err(|e| format!("ENet: {e:?}"))?;
        tokio::spawn(serving.run());
        connected.recv().await.ok_or_else(|| "ENet ended".into())
    }
}
