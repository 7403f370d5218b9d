//! Both ends on loopback: messages arrive whole, in order, all of them.

use anabranch_net::{
    AssocConfig, ClientConfig, ConnectOptions, Endpoint, Profile, SendOptions, ServerConfig, StreamId,
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
        let mut next = 0;
        while let Some(message) = receiver.recv().await? {
            let text = String::from_utf8_lossy(&message.payload.into_bytes()).into_owned();
            assert_eq!(text, format!("message {next}"));
            next += 1;
        }
        Ok::<_, anabranch_net::CloseReason>(next)
    });

    // Order holds within a stream; streams do not wait for each other.
    let stream = SendOptions { stream: StreamId(3), ..SendOptions::default() };
    for i in 0..1_000 {
        sender.send(stream, format!("message {i}").into()).await?;
    }
    // Everything is delivered before the end.
    let how = sender.shutdown().await;
    println!("{} messages arrived in order; {how}", reader.await??);
    Ok(())
}
