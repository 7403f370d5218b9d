//! Nothing is unregistered, undocumented or unread.
