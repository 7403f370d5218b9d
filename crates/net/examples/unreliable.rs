//! Both ends on loopback: messages that overtake each other, and are given up rather than sent late.

use anabranch_net::{
    AssocConfig, ClientConfig, ConnectOptions, Duration, Endpoint, Profile, SendOptions, ServerConfig,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = AssocConfig::new(Profile::named("cmt")?);
    let server = Endpoint::server(ServerConfig::new("127.0.0.1:0".parse()?, config.clone()))?;
    let client = Endpoint::client(ClientConfig::default())?;
    let options = ConnectOptions::new(server.listening()[0], config);
    let (sender, receiver) = tokio::join!(client.connect(options), server.accept());
    let (sender, receiver) = (sender?, receiver.ok_or("the server was closed")?);

    let reader = tokio::spawn(async move {
        let mut arrived = 0;
        while let Ok(Some(message)) = receiver.recv().await {
            assert!(message.ssn.is_none(), "unordered messages have no number");
            arrived += 1;
        }
        arrived
    });

    // A game or a sensor: 200 positions, each of which the next one makes worthless.
    for i in 0_u32..200 {
        let position = SendOptions {
            unordered: true,
            deadline: Some(sender.now() + Duration::from_millis(20)),
            ..SendOptions::default()
        };
        sender.send(position, i.to_be_bytes().to_vec().into()).await?;
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    sender.shutdown().await;
    let given_up = {
        let s = sender.stats().association;
        s.abandoned_unsent + s.abandoned_sent
    };
    println!("{} of 200 arrived, {given_up} given up", reader.await?);
    Ok(())
}
