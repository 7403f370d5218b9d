//! Both ends on loopback: a client whose server is restarted goes on by itself.

use anabranch_net::{
    AssocConfig, ClientConfig, ConnectOptions, Duration, Endpoint, Profile, ReconnectState, Reconnecting, SendError,
    SendOptions, ServerConfig,
};
use std::net::SocketAddr;

/// A server that says what it gets, until it is restarted.
async fn serve(at: SocketAddr, association: AssocConfig) -> Result<(), Box<dyn std::error::Error>> {
    loop {
        let server = Endpoint::server(ServerConfig::new(at, association.clone()))?;
        let connection = server.accept().await.ok_or("the server was closed")?;
        for _ in 0..3 {
            if let Some(message) = connection.recv().await? {
                println!("the server got {:?}", message.payload.into_bytes());
            }
        }
        println!("the server restarts");
        server.close("restarting");
        server.wait_idle().await;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut association = AssocConfig::new(Profile::named("low-latency")?);
    // How long all networks may be silent before the server counts as gone.
    association.failure.peer_timeout = Some(Duration::from_secs(60));
    let at = std::net::UdpSocket::bind("127.0.0.1:0")?.local_addr()?;
    let server = serve(at, association.clone());

    let client = Reconnecting::new(Endpoint::client(ClientConfig::default())?, ConnectOptions::new(at, association));
    let mut states = client.states();
    tokio::spawn(async move {
        while let Some(state) = states.next().await {
            match state {
                ReconnectState::Connected(number) => println!("connection {number}"),
                ReconnectState::Connecting(Some(why)) => println!("no connection: {why}"),
                _ => {}
            }
        }
    });
    let work = async {
        for n in 0..20 {
            // Worth something for 150 ms, so nothing piles up without a server.
            let deadline = Some(anabranch_net::now() + Duration::from_millis(150));
            match client.send(SendOptions { deadline, ..SendOptions::default() }, format!("{n}").into()).await {
                Ok(()) => {}
                Err(SendError::Expired) => println!("message {n} was not worth sending any more"),
                Err(e) => return Err(e),
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        Ok(())
    };
    tokio::select! {
        ended = server => ended?,
        ended = work => ended?,
    }
    if let Some(connection) = client.stop() {
        connection.shutdown_within(std::time::Duration::from_secs(1)).await;
    }
    Ok(())
}
