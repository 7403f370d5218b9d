//! Ctrl-C and the polite kill: the first asks for a clean end, the second ends at once.

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Tells whether the user wants to end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Interrupt(watch::Receiver<bool>);

impl Interrupt {
    /// Starts listening to SIGINT and SIGTERM.
    pub fn install() -> Self {
        let (tx, rx) = watch::channel(false);
        tokio::spawn(async move {
            let (Ok(mut int), Ok(mut term)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) else {
                tracing::warn!("signals cannot be caught; Ctrl-C ends at once");
                return std::future::pending().await;
            };
            loop {
                tokio::select! {
                    _ = int.recv() => {}
                    _ = term.recv() => {}
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
