//! How messages are cut, delivered and given back.

/// What happens to messages that do not fit, and to those that were given up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Messages {
    /// Cut messages that do not fit a packet; otherwise `send` refuses them (RFC 9260 §6.9).
    pub fragmentation: bool,
    /// Hand a message that does not fit the receive buffer to the user in parts, see [`crate::Part`] (RFC 9260 §6.9).
    /// Otherwise it ends the association.
    pub partial_delivery: bool,
    /// Messages that were given up after their first fragment got its TSN are kept for
    /// [`take_given_up`](crate::Association::take_given_up), up to a send buffer of them.
    pub return_given_up: bool,
}

impl Default for Messages {
    fn default() -> Self {
        Messages { fragmentation: true, partial_delivery: false, return_given_up: false }
    }
}
