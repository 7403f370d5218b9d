//! The game over QUIC (quinn): inputs and states as datagrams (RFC 9221), chat on one stream each way.

use crate::play::Rules;
use crate::stack::{Queued, Result, Stack};
use crate::tally::Class;
use bytes::Bytes;
use quinn::{ClientConfig, Connection, Endpoint, RecvStream, ServerConfig, TransportConfig};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::mpsc;

const LOOPBACK: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

pub struct Quic {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Quic {
    pub fn new() -> Result<Quic> {
        // A second call finds it there.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
        Ok(Quic { certificate: made.cert.der().clone(), key: made.key_pair.serialize_der() })
    }
}

/// As quinn has it, but that what waits for the window is at most about three states: a megabyte, its default, would be
/// seconds of them.
fn transport(rules: Rules) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.datagram_send_buffer_size(3 * (64 + 20 * usize::from(rules.bots)));
    transport.into()
}

impl Stack for Quic {
    type Seat = Queued;
    type Bot = Queued;

    async fn open(&self, rules: Rules) -> Result<(SocketAddr, mpsc::UnboundedReceiver<Queued>)> {
        let key = PrivateKeyDer::Pkcs8(self.key.clone().into());
        let mut config = ServerConfig::with_single_cert(vec![self.certificate.clone()], key)?;
        config.transport_config(transport(rules));
        let endpoint = Endpoint::server(config, LOOPBACK.into())?;
        let at = endpoint.local_addr()?;
        let (seats, players) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                let seats = seats.clone();
                tokio::spawn(async move {
                    if let Ok(connection) = incoming.await {
                        let _ = seats.send(line(connection, None));
                    }
                });
            }
        });
        Ok((at, players))
    }

    async fn join(&self, rules: Rules, server: Vec<SocketAddr>) -> Result<Queued> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
        config.transport_config(transport(rules));
        let endpoint = Endpoint::client(LOOPBACK.into())?;
        let connection = endpoint.connect_with(config, server[0], "localhost")?.await?;
        Ok(line(connection, Some(endpoint)))
    }
}

fn line(connection: Connection, endpoint: Option<Endpoint>) -> Queued {
    let (chat, waiting) = mpsc::unbounded_channel();
    let (arrived, inbox) = mpsc::unbounded_channel();
    tokio::spawn(write(connection.clone(), waiting));
    tokio::spawn(read_datagrams(connection.clone(), arrived.clone()));
    tokio::spawn(read_chat(connection.clone(), arrived));
    let send = move |class, message: Bytes| match class {
        Class::Chat => {
            let _ = chat.send(message);
        }
        // Where there is no room the oldest makes some.
        Class::Input | Class::State => {
            let _ = connection.send_datagram(message);
        }
    };
    Queued::new(send, inbox, endpoint.map(|e| Arc::new(e) as _))
}

async fn write(connection: Connection, mut waiting: mpsc::UnboundedReceiver<Bytes>) {
    let Ok(mut stream) = connection.open_uni().await else { return };
    while let Some(message) = waiting.recv().await {
        let framed = [&(message.len() as u16).to_be_bytes(), &message[..]].concat();
        if stream.write_all(&framed).await.is_err() {
            return;
        }
    }
}

async fn read_datagrams(connection: Connection, arrived: mpsc::UnboundedSender<Bytes>) {
    while let Ok(message) = connection.read_datagram().await {
        if arrived.send(message).is_err() {
            return;
        }
    }
}

async fn read_chat(connection: Connection, arrived: mpsc::UnboundedSender<Bytes>) {
    let Ok(mut stream) = connection.accept_uni().await else { return };
    while let Some(message) = framed(&mut stream).await {
        if arrived.send(message).is_err() {
            return;
        }
    }
}

async fn framed(stream: &mut RecvStream) -> Option<Bytes> {
    let mut size = [0; 2];
    stream.read_exact(&mut size).await.ok()?;
    let mut message = vec![0; u16::from_be_bytes(size).into()];
    stream.read_exact(&mut message).await.ok()?;
    Some(message.into())
}
