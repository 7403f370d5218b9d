//! Ctrl-C, the polite kill and a terminal that goes: the first asks for a clean end, the second ends at once.

use std::path::Path;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Tells whether the user wants to end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Starts listening to SIGINT, SIGTERM and SIGHUP.
    pub fn install() -> Self {
        Self::listening(true)
    }

    /// The same without SIGHUP when that reads the file of `--config` anew.
    pub fn beside_reload(config: Option<&Path>) -> Self {
        Self::listening(config.is_none())
    }

    fn listening(hangups: bool) -> Self {
        let (tx, rx) = watch::channel(false);
        tokio::spawn(async move {
            let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
            let [Ok(mut int), Ok(mut term), Ok(mut hangup)] = kinds.map(signal) else {
                tracing::warn!("signals cannot be caught; Ctrl-C ends at once");
                return std::future::pending().await;
            };
            loop {
                tokio::select! {
                    _ = int.recv() => {}
                    _ = term.recv() => {}
                    _ = hangup.recv(), if hangups => {}
                }
                if tx.send_replace(true) {
                    std::process::exit(i32::from(crate::exit::Failure::Interrupted.code()));
                }
            }
        });
        Interrupt(rx)
    }

    /// One that never comes.
    #[cfg(test)]
    pub fn never() -> Self {
        Interrupt(watch::channel(false).1)
    }

    /// Returns once the user wants to end.
    pub async fn wait(&self) {
        let mut rx = self.0.clone();
        if rx.wait_for(|b| *b).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
