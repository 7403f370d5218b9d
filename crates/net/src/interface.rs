//! The machine's interfaces, and which of them a [`Local`] means.

use crate::config::Local;
use crate::error::Error;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// An interface as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub name: String,
    /// Switched on.
    pub up: bool,
    /// Has a carrier, as far as the device reports it.
    pub running: bool,
    pub loopback: bool,
    pub addresses: Vec<IpAddr>,
}

/// What a socket is to be bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    /// Bind to this device; none for loopback and any.
    pub device: Option<String>,
    /// The device's number, another one when it was unplugged and came back; 0 for none.
    pub index: u32,
    /// Bind to this address; the port is free.
    pub address: SocketAddr,
}

impl Binding {
    fn plain(address: IpAddr) -> Self {
        Binding { device: None, index: 0, address: SocketAddr::new(address, 0) }
    }
}

/// All interfaces with their addresses.
pub(crate) fn list() -> io::Result<Vec<Interface>> {
    let mut all: Vec<Interface> = Vec::new();
    for entry in getifaddrs()? {
        let i = match all.iter().position(|i| i.name == entry.interface_name) {
            Some(i) => i,
            None => {
                all.push(Interface {
                    name: entry.interface_name.clone(),
                    up: entry.flags.contains(InterfaceFlags::IFF_UP),
                    running: entry.flags.contains(InterfaceFlags::IFF_RUNNING),
                    loopback: entry.flags.contains(InterfaceFlags::IFF_LOOPBACK),
                    addresses: Vec::new(),
                });
                all.len() - 1
            }
        };
        let Some(address) = entry.address else { continue };
        let v4 = address.as_sockaddr_in().map(|a| IpAddr::V4(a.ip()));
        let v6 = address.as_sockaddr_in6().map(|a| IpAddr::V6(a.ip()));
        if let (Some(a), Some(interface)) = (v4.or(v6), all.get_mut(i)) {
            interface.addresses.push(a);
        }
    }
    Ok(all)
}

/// Does what leaves by `local` to a loopback address stay on this machine? An interface that is not there carries nothing.
pub(crate) fn is_loopback(local: &Local) -> io::Result<bool> {
    Ok(match local {
        Local::Any => true,
        Local::Address(a) => a.is_unspecified() || a.to_canonical().is_loopback(),
        Local::Interface(name) => list()?.iter().find(|i| i.name == *name).is_none_or(|i| i.loopback),
    })
}

/// The binding that `local` means for packets to `remote`. `home` is the interface that an address was on before.
pub(crate) fn resolve(
    all: &[Interface],
    local: &Local,
    remote: SocketAddr,
    home: Option<&str>,
) -> Result<Binding, Error> {
    match local {
        Local::Any => {
            let address: IpAddr =
                if remote.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            Ok(Binding::plain(address))
        }
        Local::Interface(name) => {
            let Some(i) = all.iter().find(|i| i.name == *name) else {
                let known = all.iter().map(|i| i.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(Error::NoInterface { name: name.clone(), known });
            };
            on_interface(i, None, remote)
        }
        Local::Address(a) if a.is_loopback() => Ok(Binding::plain(*a)),
        Local::Address(a) => {
            let owner = all.iter().find(|i| i.addresses.contains(a));
            if let Some(i) = owner {
                return on_interface(i, Some(*a), remote);
            }
            match all.iter().find(|i| Some(i.name.as_str()) == home) {
                Some(i) => on_interface(i, None, remote),
                None => Err(Error::NoSuchAddress(*a)),
            }
        }
    }
}

fn on_interface(i: &Interface, wanted: Option<IpAddr>, remote: SocketAddr) -> Result<Binding, Error> {
    let not_ready = |lack| Err(Error::NotReady { name: i.name.clone(), lack });
    if !i.up {
        return not_ready("is down");
    }
    if !i.running {
        return not_ready("has no carrier");
    }
    let fits = |a: &&IpAddr| a.is_ipv4() == remote.is_ipv4() && is_link_local(**a) == is_link_local(remote.ip());
    let Some(&ip) = wanted.as_ref().or_else(|| i.addresses.iter().find(fits)) else {
        return not_ready(if remote.is_ipv4() { "has no IPv4 address" } else { "has no IPv6 address" });
    };
    if i.loopback {
        return Ok(Binding::plain(ip));
    }
    let index = if_nametoindex(i.name.as_str()).unwrap_or(0);
    let address = match ip {
        IpAddr::V6(a) if is_link_local(ip) => SocketAddrV6::new(a, 0, 0, index).into(),
        _ => SocketAddr::new(ip, 0),
    };
    Ok(Binding { device: Some(i.name.clone()), index, address })
}

/// IPv6 link-local addresses reach only each other; those of IPv4 are addresses like any.
fn is_link_local(a: IpAddr) -> bool {
    matches!(a, IpAddr::V6(a) if a.is_unicast_link_local())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Vec<Interface> {
        let interface = |name: &str, loopback, addresses: &[&str]| Interface {
            name: name.into(),
            up: true,
            running: true,
            loopback,
            addresses: addresses.iter().map(|a| a.parse().unwrap()).collect(),
        };
        vec![
            interface("lo", true, &["127.0.0.1", "::1"]),
            interface("wlan0", false, &["fe80::1", "192.168.1.7", "2001:db8::7"]),
            interface("wwan0", false, &["10.64.0.9"]),
        ]
    }

    fn got(local: &str, remote: &str) -> Result<(Option<String>, String), String> {
        resolve(&machine(), &local.parse().unwrap(), remote.parse().unwrap(), None)
            .map(|b| (b.device, b.address.ip().to_string()))
            .map_err(|e| e.to_string())
    }

    #[test]
    fn what_leaves_by_another_interface_than_loopback_leaves_the_machine() {
        for i in list().unwrap() {
            assert_eq!(is_loopback(&Local::Interface(i.name.clone())).unwrap(), i.loopback, "{}", i.name);
        }
        for (local, stays) in [
            ("*", true),
            ("127.0.0.1", true),
            ("::1", true),
            ("0.0.0.0", true),
            ("192.0.2.7", false),
            ("nosuch0", true),
        ] {
            assert_eq!(is_loopback(&local.parse().unwrap()).unwrap(), stays, "{local}");
        }
    }

    #[test]
    fn names_and_addresses_mean_the_device() {
        let on = |d: &str, a: &str| Ok((Some(d.to_owned()), a.to_owned()));
        assert_eq!(got("wlan0", "1.2.3.4:5"), on("wlan0", "192.168.1.7"));
        assert_eq!(got("wlan0", "[2001:db8::1]:5"), on("wlan0", "2001:db8::7"));
        assert_eq!(got("wlan0", "[fe80::2]:5"), on("wlan0", "fe80::1"));
        assert_eq!(got("10.64.0.9", "1.2.3.4:5"), on("wwan0", "10.64.0.9"));
    }

    #[test]
    fn loopback_and_any_mean_no_device() {
        assert_eq!(got("lo", "127.0.0.1:5"), Ok((None, "127.0.0.1".into())));
        assert_eq!(got("127.0.0.2", "127.0.0.1:5"), Ok((None, "127.0.0.2".into())));
        assert_eq!(got("*", "[::1]:5"), Ok((None, "::".into())));
    }

    #[test]
    fn what_is_missing_is_said() {
        assert_eq!(got("wlan7", "1.2.3.4:5").unwrap_err(), "there is no interface wlan7; there are: lo, wlan0, wwan0");
        assert_eq!(got("wwan0", "[2001:db8::1]:5").unwrap_err(), "interface wwan0 has no IPv6 address");
        assert_eq!(
            got("172.16.0.1", "1.2.3.4:5").unwrap_err(),
            "no interface of this machine has the address 172.16.0.1"
        );
        let mut all = machine();
        all[1].running = false;
        let e = resolve(&all, &Local::Interface("wlan0".into()), "1.2.3.4:5".parse().unwrap(), None).unwrap_err();
        assert_eq!(e.to_string(), "interface wlan0 has no carrier");
        assert!(e.is_missing());
    }

    #[test]
    fn an_address_that_changed_is_followed_on_its_interface() {
        let b = resolve(
            &machine(),
            &Local::Address("192.168.1.6".parse().unwrap()),
            "1.2.3.4:5".parse().unwrap(),
            Some("wlan0"),
        );
        assert_eq!(b.unwrap().address.ip().to_string(), "192.168.1.7");
    }

    #[test]
    fn this_machine_has_loopback() {
        let all = list().unwrap();
        let lo = all.iter().find(|i| i.loopback).expect("a loopback interface");
        assert!(lo.addresses.contains(&"127.0.0.1".parse().unwrap()));
    }
}
