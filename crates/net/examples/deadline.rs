//! Both ends on loopback: a receiver that stops reading, and messages that are given up when their time is over
//! while what has no deadline still arrives.

use anabranch_net::{
    AssocConfig, ClientConfig, ConnectOptions, Duration, Endpoint, Event, Profile, SendOptions, ServerConfig, StreamId,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let profile = Profile::named("cmt")?;
    let mut small = AssocConfig::new(profile.clone());
    small.limits.receive_buffer = 16_000;
    let server = Endpoint::server(ServerConfig::new("127.0.0.1:0".parse()?, small))?;
    let client = Endpoint::client(ClientConfig::default())?;
    let options = ConnectOptions::new(server.listening()[0], AssocConfig::new(profile));
    let (sender, receiver) = tokio::join!(client.connect(options), server.accept());
    let (sender, receiver) = (sender?, receiver.ok_or("the server was closed")?);

    // 100 pictures of 4 kB, each worth something for 100 ms; the receiver takes only the first 16 kB.
    for _ in 0..100 {
        let picture = SendOptions {
            unordered: true,
            deadline: Some(sender.now() + Duration::from_millis(100)),
            ..SendOptions::default()
        };
        sender.send(picture, vec![1; 4_000].into()).await?;
    }
    let command = SendOptions { stream: StreamId(1), class: 0, ..SendOptions::default() };
    sender.send(command, "stop".into()).await?;

    // The receiver was busy. What is left of the pictures by now would be too late.
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let reader = tokio::spawn(async move {
        let (mut pictures, mut commands) = (0, 0);
        while let Ok(Some(message)) = receiver.recv().await {
            match message.stream {
                StreamId(1) => commands += 1,
                _ => pictures += 1,
            }
        }
        (pictures, commands)
    });
    sender.shutdown().await;

    let mut given_up = 0;
    let mut events = sender.events();
    while let Some(e) = events.try_next() {
        if let Event::Abandoned { messages } = e.event {
            given_up += messages;
        }
    }
    let (pictures, commands) = reader.await?;
    println!("{pictures} pictures arrived in time, {given_up} were given up, {commands} command arrived");
    Ok(())
}
